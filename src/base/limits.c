#include "base/limits.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

void limit_raise(__rlimit_resource_t which)
{
	struct rlimit limit;

	if (getrlimit(which, &limit) == 0 && limit.rlim_cur != limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(which, &limit);
	}
}

int descriptors_check(int least, struct error *err)
{
	int held[DESCRIPTORS_CHECK_MAX], count = 0, error;

	limit_raise(RLIMIT_NOFILE);
	while (count < least && count < DESCRIPTORS_CHECK_MAX && (held[count] = eventfd(0, EFD_CLOEXEC)) >= 0)
		count++;
	error = errno;
	for (int i = 0; i < count; i++)
		close(held[i]);
	if (count == least)
		return 0;
	errno = error;
	return fail(err, error_of(error, ERR_DESCRIPTORS), "only %d more files can be opened, and measuring needs %d: %s", count, least, strerror(error));
}
