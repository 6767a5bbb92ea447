/* The published schemas, as texts that end with a zero byte: src/cli/schema.c has their names. The assembler finds them in docs/schema. */
	.section .rodata
	.macro schema name
	.globl schema_\name
	.type schema_\name, @object
schema_\name:
	.incbin "inferscope-\name\()-1.schema.json"
	.byte 0
	.endm
	schema diff
	schema dump
	schema error
	schema events
	schema job
	schema report
	schema rules
	schema top
	.section .note.GNU-stack, "", @progbits
