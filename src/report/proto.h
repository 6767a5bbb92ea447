/* Protocol Buffers, the writing half: fields into bytes the caller has room for, or into a text. */
#ifndef INFERSCOPE_REPORT_PROTO_H
#define INFERSCOPE_REPORT_PROTO_H

#include <stdint.h>
#include <string.h>

#include "base/text.h"

enum { PROTO_FIELD_BYTES = 20 }; /* the most that a key and a number take */

static inline unsigned char *proto_varint(unsigned char *at, uint64_t value)
{
	for (; value > 127; value >>= 7)
		*at++ = (unsigned char)(value | 128);
	*at++ = (unsigned char)value;
	return at;
}

static inline unsigned char *proto_number(unsigned char *at, unsigned field, uint64_t value)
{
	return proto_varint(proto_varint(at, field << 3), value);
}

static inline unsigned char *proto_fixed64(unsigned char *at, unsigned field, uint64_t value)
{
	at = proto_varint(at, field << 3 | 1);
	for (unsigned i = 0; i < 8; i++)
		*at++ = (unsigned char)(value >> 8 * i);
	return at;
}

/* The key and length of a field whose LENGTH bytes follow: a string or a message. */
static inline unsigned char *proto_head(unsigned char *at, unsigned field, size_t length)
{
	return proto_varint(proto_varint(at, field << 3 | 2), length);
}

static inline void proto_add_number(struct text *out, unsigned field, uint64_t value)
{
	unsigned char bytes[PROTO_FIELD_BYTES];

	text_add(out, bytes, (size_t)(proto_number(bytes, field, value) - bytes));
}

static inline void proto_add_bytes(struct text *out, unsigned field, const void *bytes, size_t length)
{
	unsigned char head[PROTO_FIELD_BYTES];

	text_add(out, head, (size_t)(proto_head(head, field, length) - head));
	text_add(out, bytes, length);
}

static inline void proto_add_string(struct text *out, unsigned field, const char *string)
{
	proto_add_bytes(out, field, string, strlen(string));
}

static inline void proto_add_message(struct text *out, unsigned field, const struct text *message)
{
	out->failed |= message->failed;
	proto_add_bytes(out, field, message->data, message->length);
}

#endif
