/*
 * CUPTI without its headers: one build reads the records of every release from 11.8 on, because fields never moved. Records are
 * read by memcpy at these offsets and stepped over by cuptiActivityGetNextRecord() alone, never by a size of ours: cuptiGetVersion()
 * says 18 for 11.8, 12.0 and 12.1, whose records differ in size. Rows and their sources are in cupti.def.
 */
#ifndef INFERSCOPE_ABI_CUPTI_H
#define INFERSCOPE_ABI_CUPTI_H

/* CUPTI_KIND_KERNEL = 10, … */
enum cupti_kind {
#define CUPTI_RECORD(record, kind, structs) CUPTI_KIND_##record = kind,
#include "abi/cupti.def"
};

/* CUPTI_KERNEL_START = 16, … */
enum cupti_offset {
#define CUPTI_FIELD(record, field, member, offset, bytes) CUPTI_##record##_##field = offset,
#define CUPTI_LATER(record, field, member, offset, bytes, release) CUPTI_##record##_##field = offset,
#include "abi/cupti.def"
};

enum cupti_number {
#define CUPTI_NUMBER(ours, theirs, value) ours = value,
#include "abi/cupti.def"
};

/* What cuptiGetVersion() says, where behaviour differs. */
enum cupti_version {
	CUPTI_12_6 = 24,      /* from here on cuptiFinalize() may follow CUDA graphs */
	CUPTI_12_9 = 27,      /* from here on a buffer request may be answered with NULL */
	CUPTI_13_0 = 130000,  /* 13.x: major * 10000 + minor * 100 + patch; subscribers have names */
	CUPTI_13_3 = 130300,  /* several subscribers, each with buffers of its own */
};

/* CUpti_SubscriberParams of cuptiSubscribe_v2(): its first 32 bytes in 13.0–13.2, all of it from 13.3 on. */
struct cupti_subscriber {
	unsigned long bytes; /* of this struct: 32 or 40 */
	const char *name;    /* at most 53 bytes */
	char *holder;        /* the name of who has subscribed already is written here: at least 64 bytes */
	unsigned long holder_bytes;
	unsigned char allow_several;
	unsigned char padding[7];
};

/* Head of CUpti_CallbackData. */
struct cupti_callback {
	unsigned site; /* CUPTI_SITE_ENTER, CUPTI_SITE_EXIT */
	const char *function;
	const void *parameters;
	void *result;
	const char *symbol;
	void *context;
	unsigned context_id;
	unsigned long *data;
	unsigned correlation;
};

#endif
