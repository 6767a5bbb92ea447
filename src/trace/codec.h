/*
 * How a chunk's events become small: their fields are sorted into columns of single bytes, ticks as differences to the event before, and
 * zstd packs the columns. A call and its return take 4 to 6 bytes instead of 32.
 */
#ifndef INFERSCOPE_TRACE_CODEC_H
#define INFERSCOPE_TRACE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct codec;
struct codec *codec_new(void);
void codec_free(struct codec *codec);

/* EVENTS are COUNT well-formed events. Returns the packed bytes (the codec's, until its next use) and their *size, or NULL when out of memory. */
const void *codec_pack(struct codec *codec, const void *events, size_t events_size, uint32_t count, size_t *size);
/* Did unpacking fail because there was no memory? Then what was packed may be whole. */
bool codec_failed(const struct codec *codec);
/* The events again, RAW_SIZE bytes of them (the codec's, until its next use). NULL when PACKED does not unpack to COUNT well-formed events. */
const void *codec_unpack(struct codec *codec, const void *packed, size_t packed_size, size_t raw_size, uint32_t count);

/* Counts the events of BYTES, or returns false when they are not well-formed to the last byte. */
bool events_count(const void *bytes, size_t size, uint32_t *count);

#endif
