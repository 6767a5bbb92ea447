/*
 * Sixteen bytes looked at together. Comparisons of such vectors (x == '"', x <= 31) are the compiler's own on every machine and give -1 or 0 for each byte;
 * which bytes they hold for is asked in the machine's way.
 */
#ifndef INFERSCOPE_IMPORT_SIXTEEN_H
#define INFERSCOPE_IMPORT_SIXTEEN_H

#include <string.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#else
#error "which bytes a comparison holds for is not known here"
#endif

typedef unsigned char sixteen __attribute__((vector_size(16)));
typedef signed char sixteen_truth __attribute__((vector_size(16)));

/* From anywhere. */
static inline sixteen sixteen_load(const void *at)
{
	sixteen bytes;

	memcpy(&bytes, at, sizeof bytes);
	return bytes;
}

/* Bit N: it holds for byte N. */
static inline unsigned sixteen_places(sixteen_truth truth)
{
#if defined(__x86_64__)
	return (unsigned)_mm_movemask_epi8((__m128i)truth);
#else
	const uint8x16_t bits = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128 };
	uint8x16_t held = vandq_u8((uint8x16_t)truth, bits);

	return vaddv_u8(vget_low_u8(held)) | (unsigned)vaddv_u8(vget_high_u8(held)) << 8;
#endif
}

#endif
