/*
 * Call-frame tables (DWARF 5 §6.4; .eh_frame: LSB 5.0 §10.6): from the bytes of a CIE and an FDE to the row of rules for one address. Bytes
 * come from files that may lie: everything is bounded, nothing is trusted. Addresses are those of the file (process - bias).
 */
#ifndef INFERSCOPE_UNWIND_CFI_H
#define INFERSCOPE_UNWIND_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/machine.h"

enum { CFI_REGISTERS = DWARF_COUNT, CFI_RETURN = DWARF_RETURN, CFI_EXPRESSION_MAX = 64, CFI_EXPRESSIONS = 2048 };

/* What DWARF calls expressions, kept apart from the tables they come from. */
struct cfi_expressions {
	uint32_t count;
	struct {
		uint8_t size, bytes[CFI_EXPRESSION_MAX];
	} list[CFI_EXPRESSIONS];
};

enum cfi_rule {
	CFI_SAME,       /* as in the inner frame; for registers that calls do not preserve: unknown */
	CFI_UNDEFINED,
	CFI_AT,         /* saved at CFA + value */
	CFI_IS,         /* is CFA + value */
	CFI_REGISTER,   /* is in register `value` */
	CFI_AT_EXPRESSION, CFI_IS_EXPRESSION, /* value: which expression */
};

struct cfi_row {
	bool signal;       /* the caller was interrupted, it did not call: its address is exact */
	bool cfa_by_expression;
	bool at_start;     /* of the function: PC is the first address that the FDE covers */
	bool foreign;      /* it named a register that there is none of */
	uint8_t cfa_register;
	uint8_t rules[CFI_REGISTERS];
	int64_t cfa_value; /* offset, or which expression */
	int64_t values[CFI_REGISTERS];
};

/* One CIE or FDE, its length field included. */
struct cfi_entry {
	const uint8_t *bytes;
	size_t size;
	uint64_t addr;     /* in the file, for pointers relative to where they stand */
	bool debug_frame;  /* of .debug_frame, not .eh_frame */
};

struct cfi_bytes {
	const uint8_t *at, *end;
	bool failed;       /* read past the end: values are 0 */
};

struct cfi_cie {
	uint64_t code_factor;
	int64_t data_factor;
	uint8_t pointer_encoding;
	bool augmented, signal;
	struct cfi_bytes program;
};

struct cfi_fde {
	uint64_t start, end;
	struct cfi_bytes program;
};

/* Size of the entry that begins with these bytes, its length field included; 0 = the terminator, or no entry. HEAD has 12 bytes. */
uint64_t cfi_entry_size(const uint8_t *head);
/* Where the CIE of an FDE begins, counted from the beginning of the section (.debug_frame) or backwards from the field at *FIELD (.eh_frame).
 * False: it is itself a CIE. */
bool cfi_cie_pointer(const struct cfi_entry *fde, uint64_t *out, size_t *field);
/* 0 or -1. The results point into the entry's bytes. */
int cfi_read_cie(const struct cfi_entry *entry, struct cfi_cie *out);
int cfi_read_fde(const struct cfi_entry *entry, const struct cfi_cie *cie, struct cfi_fde *out);
/* The rules at PC, which the FDE covers. 0, -1: damaged or not understood, -2: EXPRESSIONS is full. */
int cfi_row(const struct cfi_cie *cie, const struct cfi_fde *fde, uint64_t pc, struct cfi_expressions *expressions, struct cfi_row *out);

/* What an expression may look at. */
struct cfi_state {
	const uint64_t *regs; /* CFI_REGISTERS of them */
	uint64_t known;       /* bit N: regs[N] is known */
	int (*read)(void *context, uint64_t addr, uint64_t *out); /* 0 or -1 */
	void *context;
};

enum cfi_outcome { CFI_DONE, CFI_BAD, CFI_NEEDS_REGISTER, CFI_NEEDS_MEMORY };

/* INITIAL: the CFA, first on its stack; NULL for an expression that is the CFA. */
enum cfi_outcome cfi_evaluate(const struct cfi_expressions *expressions, uint64_t index, const struct cfi_state *state, const uint64_t *initial, uint64_t *out);

/* Numbers in DWARF's encodings. */
uint64_t cfi_number(struct cfi_bytes *bytes, size_t size); /* little-endian, 1 to 8 bytes */
int64_t cfi_signed(struct cfi_bytes *bytes, size_t size);
uint64_t cfi_uleb(struct cfi_bytes *bytes);
int64_t cfi_sleb(struct cfi_bytes *bytes);
/* A pointer in one of the encodings that tables use (DW_EH_PE_…); AT is where it stands. */
bool cfi_pointer(struct cfi_bytes *bytes, uint8_t encoding, uint64_t at, uint64_t *out);

#endif
