/* Names of system calls. */
#include "session/syscalls.h"

#include <stdio.h>

#include "abi/syscall.h"

void syscall_name(uint64_t number, char *out, size_t size)
{
	const struct syscall_row *row = syscall_row(number);

	if (row)
		snprintf(out, size, "%s", row->name);
	else
		snprintf(out, size, "syscall_%llu", (unsigned long long)number);
}
