/* The collector library as bytes. COLLECTOR_FILE is its path in the build tree. */
	.section .rodata
	.balign 4096
	.globl payload_begin
	.type payload_begin, @object
payload_begin:
	.incbin COLLECTOR_FILE
	.globl payload_end
	.type payload_end, @object
payload_end:
	.byte 0
	.section .note.GNU-stack, "", @progbits
