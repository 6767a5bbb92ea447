/* Fields of 64-bit ARM's instructions, for what reads code of that machine. */
#ifndef INFERSCOPE_BASE_A64_H
#define INFERSCOPE_BASE_A64_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The instruction at CODE[AT]. */
static inline uint32_t a64_word(const unsigned char *code, size_t at)
{
	uint32_t word;

	memcpy(&word, code + at, sizeof word);
	return word;
}

/* BITS of WORD from LOW on, as a signed number. */
static inline int64_t a64_signed(uint32_t word, unsigned low, unsigned bits)
{
	return (int64_t)((uint64_t)word << (64 - low - bits)) >> (64 - bits);
}

#endif
