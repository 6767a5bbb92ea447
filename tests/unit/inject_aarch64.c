/* Machine code of 64-bit ARM, as Debian 12 has it; the functions that read it are compiled here under other names. */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "inject/decode.h"

#define decode_tls_argument aarch64_tls_argument
#define decode_tls_argument_of_caller aarch64_tls_argument_of_caller
#define decode_address aarch64_address
#define decode_is_end aarch64_is_end
#define decode_initialized aarch64_initialized
int decode_tls_argument(const unsigned char *code, size_t size, uint64_t addr, uint64_t init);
int decode_tls_argument_of_caller(const struct memory *memory, const unsigned char *code, size_t size, uint64_t addr, uint64_t slot);
uint64_t decode_address(const unsigned char *code, size_t size, size_t at, uint64_t addr);
bool decode_is_end(const unsigned char *code, size_t size, size_t at);
int decode_initialized(const struct memory *memory, uint64_t addr);
#include "inject/code_aarch64.c"

/* _dl_allocate_tls of glibc 2.36, at 0xff20 of ld.so; _dl_allocate_tls_init is at 0xfcd0. */
static const uint32_t allocate[] = { 0xa9bf7bfd, 0x910003fd, 0xb40000a0, 0x97fffd49, 0xa8c17bfd, 0x52800021, 0x17ffff66, 0x97ffff29, 0xa8c17bfd, 0x52800021, 0x17ffff62 };

static int tls_argument(const uint32_t *code, size_t size)
{
	return decode_tls_argument((const unsigned char *)code, size, 0xff20, 0xfcd0);
}

Test(aarch64, tells_the_second_argument_of_the_tls_initialisation)
{
	uint32_t code[11];

	cr_assert_eq(tls_argument(allocate, sizeof allocate), 1);
	memcpy(code, allocate, sizeof code);
	code[5] = code[9] = 0x52800001; /* mov w1, #0 */
	cr_assert_eq(tls_argument(code, sizeof code), 0);
	code[5] = 0x52800021; /* the two differ */
	cr_assert_eq(tls_argument(code, sizeof code), TLS_ARGUMENT_UNKNOWN);
	code[5] = code[9] = 0x528000e1; /* mov w1, #7 */
	cr_assert_eq(tls_argument(code, sizeof code), TLS_ARGUMENT_UNKNOWN);
	code[5] = code[9] = 0xf9400261; /* ldr x1, [x19] */
	cr_assert_eq(tls_argument(code, sizeof code), TLS_ARGUMENT_UNKNOWN);
	code[5] = code[9] = 0xd503201f; /* nop: the call before it may have left anything */
	cr_assert_eq(tls_argument(code, sizeof code), TLS_ARGUMENT_NONE);
	cr_assert_eq(decode_tls_argument((const unsigned char *)allocate, sizeof allocate, 0xff20, 0x777), TLS_ARGUMENT_UNKNOWN);
}

/* gnu_get_libc_version, at 0x27920: adrp x0, 0x153000; add x0, x0, #0x480; ret */
Test(aarch64, tells_what_a_pair_of_instructions_points_at)
{
	static const uint32_t version[] = { 0x90000960, 0x91120000, 0xd65f03c0 }, other[] = { 0x90000961, 0x91120000, 0xd65f03c0 };

	cr_assert_eq(decode_address((const unsigned char *)version, sizeof version, 4, 0x27920), 0x153480);
	cr_assert_eq(decode_address((const unsigned char *)version, sizeof version, 0, 0x27920), 0);
	cr_assert_eq(decode_address((const unsigned char *)other, sizeof other, 4, 0x27920), 0, "the page is another register's");
	cr_assert(decode_is_end((const unsigned char *)version, sizeof version, 8) && !decode_is_end((const unsigned char *)version, sizeof version, 4));
}

/* Py_IsInitialized: adrp x0, …; ldr w0, [x0, #24]; ret. The word lies in the page behind the code. */
Test(aarch64, reads_whether_python_is_initialised)
{
	static _Alignas(4096) struct { uint32_t code[1024], data[1024]; } pages = { .code = { 0xb0000000, 0xb9401800, 0xd65f03c0 }, .data = { [6] = 1 } };
	const struct memory memory = { .pid = getpid() };

	cr_assert_eq(decode_initialized(&memory, (uint64_t)(uintptr_t)pages.code), 1);
	pages.data[6] = 0;
	cr_assert_eq(decode_initialized(&memory, (uint64_t)(uintptr_t)pages.code), 0);
	pages.code[2] = 0xd503201f;
	cr_assert_eq(decode_initialized(&memory, (uint64_t)(uintptr_t)pages.code), -1);
}
