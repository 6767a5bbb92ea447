/* Machine code: what is read out of the target's functions, and what the stub is made of. */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "inject/decode.h"
#include "inject/slot.h"

/* ---- of the target ---- */

/* _dl_allocate_tls of Debian's glibc 2.31 (one argument), 2.36 (1) and 2.41 (0), as they lie in ld.so. */
static const unsigned char allocate_231[] = "\x55\x53\x48\x83\xec\x08\x48\x85\xff\x74\x3d\x48\x89\xfd\x48\x8b\x3d\x9b\x92\x01\x00\xbe\x10\x00\x00\x00"
	"\x48\x8d\x5f\x0e\x48\x83\xc7\x10\xe8\x29\xe3\xfe\xff\x48\x85\xc0\x74\x32\x48\x89\x18\x48\x83\xc0\x10\x48\x89\x45\x08\x48\x83\xc4\x08"
	"\x48\x89\xef\x5b\x5d\xe9\x00\x01\x00\x00";
static const unsigned char allocate_236[] = "\x48\x83\xec\x08\x48\x85\xff\x74\x17\xe8\x72\xf5\xff\xff\xbe\x01\x00\x00\x00\x48\x83\xc4\x08\x48\x89\xc7\xe9\x41\xfd\xff\xff";
static const unsigned char allocate_241[] = "\x48\x83\xec\x08\x48\x85\xff\x74\x17\xe8\xc2\xf5\xff\xff\x31\xf6\x48\x83\xc4\x08\x48\x89\xc7\xe9\xc4\xfd\xff\xff";

static int tls_argument(const unsigned char *code, size_t size)
{
	/* The jump is the last instruction; its target is taken as the function. */
	int32_t jump;

	memcpy(&jump, code + size - 4, 4);
	return decode_tls_argument(code, size, 0x10000, 0x10000 + size + (uint64_t)(int64_t)jump);
}

Test(decode, tells_the_second_argument_of_the_tls_initialisation)
{
	cr_assert_eq(tls_argument(allocate_231, sizeof allocate_231 - 1), TLS_ARGUMENT_NONE);
	cr_assert_eq(tls_argument(allocate_236, sizeof allocate_236 - 1), 1);
	cr_assert_eq(tls_argument(allocate_241, sizeof allocate_241 - 1), 0);
}

Test(decode, does_not_guess_when_the_function_is_never_called)
{
	cr_assert_eq(decode_tls_argument(allocate_236, sizeof allocate_236 - 1, 0x10000, 0x777), TLS_ARGUMENT_UNKNOWN);
}

Test(decode, does_not_guess_when_the_argument_is_something_else)
{
	unsigned char code[sizeof allocate_236];

	memcpy(code, allocate_236, sizeof code);
	code[15] = 7; /* mov esi, 7 */
	cr_assert_eq(tls_argument(code, sizeof code - 1), TLS_ARGUMENT_UNKNOWN);
}

/* What pthread_create of Ubuntu's glibc 2.35 and 2.39 (1) and 2.41 (0) has before its call, in a made-up function behind which the stub lies that it calls. */
static const unsigned char before_call_235[] = "\xe8\x58\x36\xf9\xff\xbe\x01\x00\x00\x00\x48\x89\xef", before_call_239[] = "\xe8\xfa\xb6\xf8\xff\xbe\x01\x00\x00\x00\x48\x89\xdf",
	before_call_241[] = "\xe8\x99\x52\xf8\xff\x31\xf6\x48\x89\xdf", other_order[] = "\xe8\x99\x52\xf8\xff\x4c\x89\xe7\x31\xf6";
/* bnd jmp, which 2.35 has, and jmp. */
static const unsigned char stub_235[] = "\xf3\x0f\x1e\xfa\xf2\xff\x25", stub_239[] = "\xf3\x0f\x1e\xfa\xff\x25", stub_plain[] = "\xff\x25";
static unsigned char caller[160], slots[16];

static int argument_of_caller(const unsigned char *before, size_t size, const unsigned char *stub, size_t stub_size)
{
	const struct memory memory = { getpid(), 0, NULL };
	int32_t to_stub = (int32_t)(128 - size - 5), to_slot = (int32_t)(slots - (caller + 128 + stub_size + 4));

	memset(caller, 0x90, sizeof caller);
	memcpy(caller, before, size);
	caller[size] = 0xe8;
	memcpy(caller + size + 1, &to_stub, 4);
	memcpy(caller + 128, stub, stub_size);
	memcpy(caller + 128 + stub_size, &to_slot, 4);
	return decode_tls_argument_of_caller(&memory, caller, 64, (uint64_t)(uintptr_t)caller, (uint64_t)(uintptr_t)slots);
}

#define OF_CALLER(before, stub) argument_of_caller(before, sizeof before - 1, stub, sizeof stub - 1)

Test(decode, tells_it_of_what_pthread_create_passes)
{
	cr_assert_eq(OF_CALLER(before_call_235, stub_235), 1);
	cr_assert_eq(OF_CALLER(before_call_239, stub_239), 1);
	cr_assert_eq(OF_CALLER(before_call_241, stub_239), 0);
	cr_assert_eq(OF_CALLER(other_order, stub_plain), 0);
}

Test(decode, tells_it_of_a_call_without_a_stub)
{
	const struct memory memory = { getpid(), 0, NULL };
	int32_t to_slot = (int32_t)(slots - (caller + sizeof before_call_239 - 1 + 6));

	memset(caller, 0x90, sizeof caller);
	memcpy(caller, before_call_239, sizeof before_call_239 - 1);
	memcpy(caller + sizeof before_call_239 - 1, "\xff\x15", 2);
	memcpy(caller + sizeof before_call_239 + 1, &to_slot, 4);
	cr_assert_eq(decode_tls_argument_of_caller(&memory, caller, 64, (uint64_t)(uintptr_t)caller, (uint64_t)(uintptr_t)slots), 1);
}

Test(decode, does_not_guess_what_pthread_create_passes)
{
	const struct memory memory = { getpid(), 0, NULL };
	unsigned char seven[sizeof before_call_235];

	memcpy(seven, before_call_235, sizeof seven);
	seven[6] = 7;
	cr_assert_eq(OF_CALLER(seven, stub_235), TLS_ARGUMENT_UNKNOWN);
	cr_assert_eq(argument_of_caller((const unsigned char *)"\x31\xf6\xe8\x99\x52\xf8\xff\x4c\x89\xe7", 10, stub_239, sizeof stub_239 - 1), TLS_ARGUMENT_UNKNOWN); /* of the call before */
	cr_assert_eq(argument_of_caller((const unsigned char *)"\x31\xf6", 2, stub_239, sizeof stub_239 - 1), TLS_ARGUMENT_UNKNOWN);
	cr_assert_eq(argument_of_caller((const unsigned char *)"", 0, stub_239, sizeof stub_239 - 1), TLS_ARGUMENT_UNKNOWN);
	OF_CALLER(before_call_235, stub_235);
	cr_assert_eq(decode_tls_argument_of_caller(&memory, caller, 64, (uint64_t)(uintptr_t)caller, (uint64_t)(uintptr_t)slots + 8), TLS_ARGUMENT_UNKNOWN); /* another function's */
	memcpy(caller + 40, "\x31\xf6\x48\x89\xdf\xe8\x4e\x00\x00\x00", 10); /* a second call, which passes 0 */
	caller[46] = 128 - 50;
	cr_assert_eq(decode_tls_argument_of_caller(&memory, caller, 64, (uint64_t)(uintptr_t)caller, (uint64_t)(uintptr_t)slots), TLS_ARGUMENT_UNKNOWN);
}

Test(decode, does_not_guess_between_two_calls_that_differ)
{
	unsigned char code[64] = { 0 };
	int32_t first = 100 - 7, second = 100 - 14; /* both to offset 100 */

	memcpy(code, "\x31\xf6\xe8", 3);
	memcpy(code + 3, &first, 4);
	memcpy(code + 7, "\x90\x90", 2);
	code[9] = 0xe8;
	memcpy(code + 10, &second, 4);
	cr_assert_eq(decode_tls_argument(code, sizeof code, 0, 100), 0); /* the first xor is seen from both */
	memcpy(code + 7, "\x31\xff", 2);
	memcpy(code + 0, "\xbe\x01\x00\x00\x00\x31\xf6\xe8", 8);
	first = 100 - 12;
	memcpy(code + 8, &first, 4);
	memcpy(code + 12, "\xbe\x01\x00\x00\x00\xe8", 6);
	second = 100 - 22;
	memcpy(code + 18, &second, 4);
	cr_assert_eq(decode_tls_argument(code, sizeof code, 0, 100), TLS_ARGUMENT_UNKNOWN);
}

Test(decode, reads_python_versions)
{
	int major, minor, micro;
	uint32_t hex;

	cr_assert(decode_python_version("3.8.18", &major, &minor, &micro, &hex));
	cr_assert(major == 3 && minor == 8 && micro == 18 && hex == 0x030812f0);
	cr_assert(decode_python_version("3.14.0rc2+", &major, &minor, &micro, &hex));
	cr_assert_eq(hex, 0x030e00c2);
	cr_assert(decode_python_version("3.13.0a4", &major, &minor, &micro, &hex));
	cr_assert_eq(hex, 0x030d00a4);
	cr_assert(decode_python_version("2.7.18", &major, &minor, &micro, &hex));
	cr_assert_eq(major, 2);
	cr_assert(!decode_python_version("python", &major, &minor, &micro, &hex));
	cr_assert(!decode_python_version("3.", &major, &minor, &micro, &hex));
}

/* ---- the stub ---- */

Test(stub, has_the_data_that_c_believes_in)
{
	struct stub_data data;

	cr_assert_eq((size_t)(stub_end - stub_data), sizeof(struct stub_data));
	slot_data_init(&data);
	cr_assert(data.all_signals == UINT64_MAX && data.constant == 0x1f80 && data.nap[1] == 100000 && data.clone_flags == 0x3d0f00);
	cr_assert(data.saved.pc == 0 && data.memfd_name[0] == 0, "an unused slot must look free");
}

Test(stub, leaves_room_for_two_in_a_page)
{
	cr_assert(STUB_SIZE <= 1900, "%zu bytes", STUB_SIZE);
}

Test(stub, changes_no_flag_before_it_has_saved_them)
{
	/* From the entry to lahf (0x9f) only mov, lea, jmp, jrcxz and syscall: none of the one-byte arithmetic opcodes at an instruction's
	 * start. The encoder's choices are few enough to walk. */
	const unsigned char *code = stub_entry;

	while (*code != 0x9f) {
		const unsigned char *at = code;
		bool segment = *at == 0x64, wide;

		at += segment;
		wide = (*at & 0xf8) == 0x48;
		if (wide || (*at & 0xf0) == 0x40)
			at++;
		if (at[0] == 0x0f && at[1] == 0x05) /* syscall */
			code = at + 2;
		else if (at[0] >= 0xb8 && at[0] <= 0xbf) /* mov r, imm */
			code = at + (wide && (code[segment] & 8) ? 9 : 5);
		else if (at[0] == 0xe3 || at[0] == 0xeb) /* jrcxz, jmp short */
			code = at + 2;
		else if (at[0] == 0xe9) /* jmp */
			code = at + 5;
		else if (at[0] == 0x89 || at[0] == 0x8b || at[0] == 0x8d || at[0] == 0xc6 || at[0] == 0xc7) { /* mov, lea */
			unsigned mod = at[1] >> 6, rm = at[1] & 7;
			size_t length = 2;

			length += mod != 3 && rm == 4; /* SIB */
			length += mod == 1 ? 1 : mod == 2 || (mod == 0 && rm == 5) ? 4 : 0;
			if (mod == 0 && rm == 4 && (at[2] & 7) == 5)
				length += 4;
			length += at[0] == 0xc6 ? 1 : at[0] == 0xc7 ? 4 : 0;
			code = at + length;
		} else {
			cr_assert_fail("opcode %02x at %zd", at[0], at - stub_begin);
		}
	}
}
