/* Bytes of a file or pipe, gunzipped where they begin as gzip does. A window that slides: what is needed at once must fit into it. For this layer alone. */
#ifndef INFERSCOPE_IMPORT_INPUT_H
#define INFERSCOPE_IMPORT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct input;

enum { INPUT_WINDOW_MAX = 1 << 20 };

/* HEAD_LENGTH bytes that were read of FD already, then what follows there. Both stay the caller's. NULL = out of memory. */
struct input *input_open(int fd, const void *head, size_t head_length);
/* BYTES stay the caller's and must outlive the input. */
struct input *input_open_memory(const void *bytes, size_t size);
void input_close(struct input *input);

/* The window: LENGTH bytes from where the reader stands; it may write there. */
unsigned char *input_window(const struct input *input, size_t *length);
/* Adds at least one byte to the window, which may move. False at the end, after a failure, or when the window is full (INPUT_WINDOW_MAX). */
bool input_more(struct input *input);
/* COUNT is at most the window's length. */
void input_skip(struct input *input, size_t count);
uint64_t input_offset(const struct input *input); /* of the window, in unpacked bytes */
bool input_out_of_memory(const struct input *input);
/* Why it ended before its end, NULL when it did not. Static. */
const char *input_failure(const struct input *input);

#endif
