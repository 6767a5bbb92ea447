/*
 * What a program built on glibc 2.31 has of versions after 2.28, had from those before: contrib/python/manylinux links it in, with `ld --wrap` for each name, into the program and the
 * static libraries that it needs. The wheel works with glibc 2.28 then (RHEL 8, Debian 10). gettid came with 2.30; pow and log got new versions with 2.29, which set no error handler.
 */
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

__asm__(".symver old_pow, pow@GLIBC_2.2.5");
__asm__(".symver old_log, log@GLIBC_2.2.5");
double old_pow(double base, double exponent);
double old_log(double number);

double __wrap_pow(double base, double exponent);
double __wrap_pow(double base, double exponent)
{
	return old_pow(base, exponent);
}

double __wrap_log(double number);
double __wrap_log(double number)
{
	return old_log(number);
}

pid_t __wrap_gettid(void);
pid_t __wrap_gettid(void)
{
	return (pid_t)syscall(SYS_gettid);
}
