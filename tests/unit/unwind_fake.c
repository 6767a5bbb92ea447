/* Recorded memory that looks like a Python's. */
#include "unwind_fake.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int fake_read(void *context, uint64_t addr, void *buffer, size_t size)
{
	struct fake *fake = context;

	fake->reads++;
	if (fake->fail_after && fake->reads > fake->fail_after)
		return -1;
	if (fake->on_read)
		fake->on_read(fake);
	if (addr < MEMORY_BASE || addr - MEMORY_BASE > MEMORY_BYTES || size > MEMORY_BYTES - (addr - MEMORY_BASE))
		return -1;
	memcpy(buffer, fake->bytes + (addr - MEMORY_BASE), size);
	return 0;
}

uint64_t place(struct fake *fake, size_t size)
{
	uint64_t addr = MEMORY_BASE + fake->used;

	fake->used += (size + 15) & ~(size_t)15;
	cr_assert_leq(fake->used, (size_t)MEMORY_BYTES);
	return addr;
}

unsigned char *at(struct fake *fake, uint64_t addr, int offset)
{
	return fake->bytes + (addr - MEMORY_BASE) + offset;
}

void put(struct fake *fake, uint64_t addr, int offset, uint64_t value)
{
	memcpy(at(fake, addr, offset), &value, sizeof value);
}

void put_int(struct fake *fake, uint64_t addr, int offset, uint32_t value)
{
	memcpy(at(fake, addr, offset), &value, sizeof value);
}

uint64_t add_text(struct fake *fake, const char *text)
{
	uint64_t addr = place(fake, strlen(text) + 1);

	memcpy(at(fake, addr, 0), text, strlen(text) + 1);
	return addr;
}

uint64_t add_str(struct fake *fake, const void *units, size_t length, uint32_t kind, bool ascii)
{
	const struct cpython_layout *layout = fake->layout;
	int text = ascii ? layout->unicode_ascii_size : layout->unicode_compact_size;
	uint64_t addr = place(fake, (size_t)text + length * kind);

	put(fake, addr, layout->unicode_length, length);
	put_int(fake, addr, layout->unicode_state, kind << layout->unicode_kind_bit | 1u << layout->unicode_compact_bit | (uint32_t)ascii << layout->unicode_ascii_bit);
	memcpy(at(fake, addr, text), units, length * kind);
	return addr;
}

uint64_t add_ascii(struct fake *fake, const char *text)
{
	return add_str(fake, text, strlen(text), 1, true);
}

uint64_t add_code(struct fake *fake, const char *name, const char *file, uint32_t line)
{
	const struct cpython_layout *layout = fake->layout;
	uint64_t addr = place(fake, (size_t)layout->code_size);
	char qualname[64];

	snprintf(qualname, sizeof qualname, "Class.%s", name);
	put(fake, addr, layout->object_type, fake->code_type);
	put(fake, addr, layout->code_name, add_ascii(fake, name));
	put(fake, addr, layout->code_filename, add_ascii(fake, file));
	if (layout->code_qualname >= 0)
		put(fake, addr, layout->code_qualname, add_ascii(fake, qualname));
	put_int(fake, addr, layout->code_firstlineno, line);
	return addr;
}

uint64_t add_frame(struct fake *fake, uint64_t code, uint64_t previous, int owner)
{
	const struct cpython_layout *layout = fake->layout;
	uint64_t addr = place(fake, FRAME_SIZE);

	put(fake, addr, layout->frame_code, fake->minor >= 14 ? code | 1 : code);
	put(fake, addr, layout->frame_previous, previous);
	if (layout->frame_owner >= 0)
		*at(fake, addr, layout->frame_owner) = (unsigned char)owner;
	return addr;
}

uint64_t outermost(const struct fake *fake)
{
	return fake->layout->tstate_base_frame >= 0 ? fake->base_frame : 0;
}

/* A thread whose innermost frame is FRAME. */
uint64_t add_thread(struct fake *fake, uint64_t frame, uint32_t tid)
{
	const struct cpython_layout *layout = fake->layout;
	uint64_t addr = place(fake, (size_t)layout->tstate_size), thread = place(fake, 1024), cframe = place(fake, 64);

	put(fake, addr, layout->tstate_interp, fake->interp);
	put(fake, addr, layout->tstate_thread_id, thread);
	put_int(fake, thread, TID_OFFSET, tid);
	if (layout->tstate_native_id >= 0)
		put(fake, addr, layout->tstate_native_id, tid);
	if (layout->tstate_base_frame >= 0)
		put(fake, addr, layout->tstate_base_frame, fake->base_frame);
	if (layout->cframe_frame >= 0) {
		put(fake, addr, layout->tstate_cframe, cframe);
		put(fake, cframe, layout->cframe_frame, frame);
	} else
		put(fake, addr, layout->tstate_frame, frame);
	if (fake->last_thread)
		put(fake, fake->last_thread, layout->tstate_next, addr);
	else
		put(fake, fake->interp, layout->interp_threads, addr);
	fake->last_thread = addr;
	return addr;
}

void give_gil(struct fake *fake, uint64_t thread)
{
	const struct cpython_layout *layout = fake->layout;

	if (layout->tstate_holds_gil >= 0)
		put_int(fake, thread, layout->tstate_holds_gil, 1);
	if (layout->runtime_current >= 0)
		put(fake, fake->runtime, layout->runtime_current, thread);
	if (layout->interp_gil >= 0) {
		put(fake, fake->interp, layout->interp_gil, fake->gil);
		put(fake, fake->gil, layout->gil_holder, thread);
		put_int(fake, fake->gil, layout->gil_locked, 1);
	}
}

uint32_t fake_hex(int minor)
{
	return 0x03000000u | (uint32_t)minor << 16 | 0x01f0;
}

static void say_offsets(struct fake *fake)
{
	const struct cpython_layout *layout = fake->layout;

	if (layout->debug_size < 0)
		return;
	memcpy(at(fake, fake->runtime, 0), "xdebugpy", 8);
	put(fake, fake->runtime, 8, fake_hex(fake->minor));
	put(fake, fake->runtime, layout->debug_interp_head, (uint64_t)layout->runtime_interp_head);
#define SAY(field) if (layout->debug_##field >= 0) put(fake, fake->runtime, layout->debug_##field, (uint64_t)layout->field)
	SAY(interp_next); SAY(interp_threads); SAY(interp_modules); SAY(interp_gil); SAY(tstate_size); SAY(tstate_next); SAY(tstate_frame);
	SAY(tstate_base_frame); SAY(tstate_thread_id); SAY(tstate_native_id); SAY(frame_previous); SAY(frame_code);
	SAY(frame_owner); SAY(code_name); SAY(code_qualname); SAY(code_filename);
#undef SAY
}

struct fake *fake_new(int minor)
{
	struct fake *fake = calloc(1, sizeof *fake);

	fake->minor = minor;
	fake->layout = cpython_layout(minor);
	fake->bytes = calloc(1, MEMORY_BYTES);
	fake->runtime = place(fake, RUNTIME_BYTES);
	fake->interp = place(fake, INTERP_BYTES);
	fake->gil = place(fake, 64);
	fake->base_frame = place(fake, FRAME_SIZE);
	fake->code_type = place(fake, 512);
	put(fake, fake->code_type, fake->layout->type_name, add_text(fake, "code"));
	put(fake, fake->runtime, fake->layout->runtime_interp_head, fake->interp);
	say_offsets(fake);
	return fake;
}

void fake_free(struct fake *fake)
{
	free(fake->bytes);
	free(fake);
}
