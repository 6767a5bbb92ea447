/*
 * Slots of global offset tables, found by the attacher and exchanged here: each by one store of 8 aligned bytes, only where the library that lies there
 * by now has such a slot, in memory that it says is writable and not protected after relocation, where it still holds what it should, and where the
 * kernel could write without changing anything. A slot that is not bound yet leads into its library's own code, and is put back to that.
 */
#include "collector/heap.h"

#include <errno.h>
#include <link.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collector/libc.h"

enum { PAGE_MASK = 4095, SLOT_BYTES = sizeof(uint64_t) };

/* What a library says of its slots; all of it lies in its segments, but for what symbols lead to. */
struct tables {
	const ElfW(Rela) *slots;
	uint64_t slot_bytes, symbols, strings, string_bytes;
};

/* Bytes of a library, with all of FLAGS. */
static bool has(const struct dl_phdr_info *library, uint64_t address, uint64_t size, uint32_t flags)
{
	for (int i = 0; i < library->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &library->dlpi_phdr[i];
		uint64_t start = library->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && (segment->p_flags & flags) == flags && address >= start && address - start < segment->p_memsz &&
		    segment->p_memsz - (address - start) >= size)
			return true;
	}
	return false;
}

/* All of a library's bytes lie in here, and perhaps others': most addresses are told apart by two comparisons, as the loader's lock is held. */
struct span { uint64_t low, high; };

static struct span span_of(const struct dl_phdr_info *library)
{
	struct span span = {UINT64_MAX, 0};

	for (int i = 0; i < library->dlpi_phnum; i++) {
		uint64_t start = library->dlpi_addr + library->dlpi_phdr[i].p_vaddr, end = start + library->dlpi_phdr[i].p_memsz;

		if (library->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		span.low = start < span.low ? start : span.low;
		span.high = end > span.high ? end : span.high;
	}
	return span;
}

static bool is_within(struct span span, uint64_t address)
{
	return address >= span.low && address < span.high;
}

/* The loader protects whole pages, and not the last one if that is only in part RELRO. */
static bool is_protected(const struct dl_phdr_info *library, uint64_t address)
{
	for (int i = 0; i < library->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &library->dlpi_phdr[i];
		uint64_t start = library->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_GNU_RELRO && address + sizeof(uint64_t) > (start & ~(uint64_t)PAGE_MASK) && address < ((start + segment->p_memsz) & ~(uint64_t)PAGE_MASK))
			return true;
	}
	return false;
}

/* The loader relocates these in place (glibc 2.31 to 2.43). */
static uint64_t pointer_of(const struct dl_phdr_info *library, uint64_t value)
{
	return has(library, value, 1, PF_R) ? value : library->dlpi_addr + value;
}

static struct tables tables_of(const struct dl_phdr_info *library)
{
	struct tables tables = {0};

	for (int i = 0; i < library->dlpi_phnum; i++) {
		uint64_t at = library->dlpi_addr + library->dlpi_phdr[i].p_vaddr, end = at + library->dlpi_phdr[i].p_memsz;

		if (library->dlpi_phdr[i].p_type != PT_DYNAMIC || !has(library, at, end - at, PF_R))
			continue;
		for (const ElfW(Dyn) *entry = (const ElfW(Dyn) *)at; (uint64_t)(entry + 1) <= end && entry->d_tag != DT_NULL; entry++) {
			switch (entry->d_tag) {
			case DT_JMPREL: tables.slots = (const ElfW(Rela) *)pointer_of(library, entry->d_un.d_ptr); break;
			case DT_PLTRELSZ: tables.slot_bytes = entry->d_un.d_val; break;
			case DT_SYMTAB: tables.symbols = pointer_of(library, entry->d_un.d_ptr); break;
			case DT_STRTAB: tables.strings = pointer_of(library, entry->d_un.d_ptr); break;
			case DT_STRSZ: tables.string_bytes = entry->d_un.d_val; break;
			default: break;
			}
		}
	}
	if (!has(library, (uint64_t)tables.slots, tables.slot_bytes, PF_R) || !has(library, tables.strings, tables.string_bytes, PF_R))
		return (struct tables){0};
	return tables;
}

static bool symbol_is(const struct dl_phdr_info *library, const struct tables *tables, uint64_t symbol, const char *name)
{
	uint64_t at = tables->symbols + symbol * sizeof(ElfW(Sym)), size = strlen(name) + 1;
	const ElfW(Sym) *found = (const ElfW(Sym) *)at;

	return has(library, at, sizeof *found, PF_R) && found->st_shndx == SHN_UNDEF && found->st_name < tables->string_bytes && tables->string_bytes - found->st_name >= size &&
	       /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): an address inside the library */
	       memcmp((const char *)tables->strings + found->st_name, name, size) == 0;
}

/* Linkers lay slots in the order of their relocations, one after the other; where one did not, all are looked at. */
static const ElfW(Rela) *slot_find(const struct tables *tables, uint64_t offset)
{
	uint64_t count = tables->slot_bytes / sizeof *tables->slots, guess = count ? (offset - tables->slots[0].r_offset) / SLOT_BYTES : 0;

	if (guess < count && tables->slots[guess].r_offset == offset)
		return &tables->slots[guess];
	for (uint64_t i = 0; i < count; i++)
		if (tables->slots[i].r_offset == offset)
			return &tables->slots[i];
	return NULL;
}

/* The library may have come after the attacher looked, to where another was. */
static bool is_slot(const struct dl_phdr_info *library, const struct tables *tables, uint64_t address, enum heap_function which)
{
	static const char *const names[HEAP_FUNCTIONS] = HEAP_FUNCTION_NAMES;
	const ElfW(Rela) *slot = slot_find(tables, address - library->dlpi_addr);

	return slot && ELF64_R_TYPE(slot->r_info) == MACHINE_JUMP_SLOT && symbol_is(library, tables, ELF64_R_SYM(slot->r_info), names[which]);
}

/* The kernel adds 0 to half of it, atomically: it says EFAULT where we would get SIGSEGV. */
static bool may_be_written(uint64_t address)
{
	int saved = errno;
	long woken = syscall(SYS_futex, &the.heap.nobody, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 1, 0L, (uint32_t *)(uintptr_t)address, FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_LT, 0));

	errno = saved;
	return woken >= 0;
}

static bool exchange(uint64_t address, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n((uint64_t *)(uintptr_t)address, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void put_in(const struct dl_phdr_info *library, uint64_t address, enum heap_function which)
{
	struct heap_slot *slot = &the.heap.slots[the.heap.slot_count];
	uint64_t found;

	if (is_protected(library, address) || !may_be_written(address)) {
		the.page->heap_refused++;
		return;
	}
	found = __atomic_load_n((uint64_t *)(uintptr_t)address, __ATOMIC_ACQUIRE);
	if (found != the.settings.heap_functions[which] && !(the.settings.heap_unbound && has(library, found, 1, PF_X))) {
		the.page->heap_foreign++;
		return;
	}
	*slot = (struct heap_slot){address, found, which};
	if (exchange(address, found, heap_function(which)))
		the.heap.slot_count++;
	else
		the.page->heap_foreign++;
}

/*
 * Slots are dealt with in pieces, in the order of their addresses, so that the loader's lock is held and forks wait for a fraction of a millisecond at a time,
 * however many there are (3 600 at once took 8 to 12 ms). A library may come or go between two pieces: each looks at those that are there.
 */
enum { PIECE = 64, BETWEEN_PIECES_NS = 50000 /* in which who waits for either gets it: fork.c looks every 20 us */ };

struct piece {
	uint32_t from, to;
	struct span span; /* of its addresses */
	void (*each)(const struct dl_phdr_info *library, struct tables *tables, uint32_t slot);
	uint64_t (*address_of)(uint32_t slot);
};

static int piece_in_library(struct dl_phdr_info *library, size_t size, void *context)
{
	struct piece *piece = context;
	const struct span span = span_of(library);
	struct tables tables = {0};

	if (piece->span.low >= span.high || piece->span.high < span.low)
		return 0;
	for (uint32_t i = piece->from; i < piece->to; i++)
		if (is_within(span, piece->address_of(i)))
			piece->each(library, &tables, i);
	return 0;
}

static void in_pieces(uint32_t count, struct piece piece)
{
	const struct timespec pause = {0, BETWEEN_PIECES_NS};

	for (uint32_t from = 0; from < count; from = piece.to) {
		if (from)
			nanosleep(&pause, NULL);
		piece.from = from;
		piece.to = count - from < PIECE ? count : from + PIECE;
		piece.span = (struct span){UINT64_MAX, 0};
		for (uint32_t i = piece.from; i < piece.to; i++) {
			uint64_t address = piece.address_of(i);

			piece.span.low = address < piece.span.low ? address : piece.span.low;
			piece.span.high = address > piece.span.high ? address : piece.span.high;
		}
		fork_forbid();
		dl_iterate_phdr(piece_in_library, &piece);
		fork_allow();
	}
}

static uint64_t wanted_address(uint32_t slot)
{
	return the.settings.heap_slots[slot] & ~7ull;
}

static void put_in_slot(const struct dl_phdr_info *library, struct tables *tables, uint32_t slot)
{
	uint64_t address = wanted_address(slot);
	uint32_t which = the.settings.heap_slots[slot] & 7;

	if (!tables->slots)
		*tables = tables_of(library);
	if (which < HEAP_FUNCTIONS && the.settings.heap_functions[which] && has(library, address, SLOT_BYTES, PF_R | PF_W) && is_slot(library, tables, address, which))
		put_in(library, address, which);
}

static uint64_t taken_address(uint32_t slot)
{
	return the.heap.slots[slot].address;
}

static void take_out_slot(const struct dl_phdr_info *library, struct tables *unused, uint32_t index)
{
	struct heap_slot *slot = &the.heap.slots[index];

	if (!has(library, slot->address, SLOT_BYTES, PF_R | PF_W))
		return;
	if (!may_be_written(slot->address) || !exchange(slot->address, heap_function(slot->which), slot->before))
		the.heap.left++;
	slot->address = 0;
}

void slots_put_in(void)
{
	the.heap.slot_count = 0;
	the.page->heap_refused = the.page->heap_foreign = 0; /* not once more for each turn */
	in_pieces(the.settings.heap_slot_count < HEAP_SLOTS_MAX ? the.settings.heap_slot_count : HEAP_SLOTS_MAX, (struct piece){.each = put_in_slot, .address_of = wanted_address});
}

/* What is in no library any more went with its library. */
void slots_take_out(void)
{
	if (!the.heap.slot_count)
		return;
	the.heap.left = 0;
	in_pieces(the.heap.slot_count, (struct piece){.each = take_out_slot, .address_of = taken_address});
	the.heap.slot_count = 0;
}

void slots_forked(void)
{
	for (uint32_t i = 0; i < the.heap.slot_count; i++) {
		const struct heap_slot *slot = &the.heap.slots[i];

		if (slot->address && may_be_written(slot->address))
			exchange(slot->address, heap_function(slot->which), slot->before);
	}
	the.heap.slot_count = 0;
}
