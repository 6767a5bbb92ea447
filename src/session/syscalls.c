/* System calls that can block, by number (x86-64). */
#include "session/syscalls.h"

#include <stdio.h>
#include <sys/syscall.h>

#define ROW(name) { SYS_##name, #name }
static const struct { uint64_t number; const char *name; } rows[] = {
	ROW(read), ROW(write), ROW(open), ROW(close), ROW(poll), ROW(lseek), ROW(mmap), ROW(mprotect), ROW(munmap), ROW(ioctl), ROW(pread64), ROW(pwrite64),
	ROW(readv), ROW(writev), ROW(select), ROW(sched_yield), ROW(msync), ROW(madvise), ROW(pause), ROW(nanosleep), ROW(sendfile), ROW(connect),
	ROW(accept), ROW(sendto), ROW(recvfrom), ROW(sendmsg), ROW(recvmsg), ROW(clone), ROW(fork), ROW(vfork), ROW(execve), ROW(exit), ROW(wait4),
	ROW(semop), ROW(msgsnd), ROW(msgrcv), ROW(fcntl), ROW(flock), ROW(fsync), ROW(fdatasync), ROW(truncate), ROW(ftruncate), ROW(getdents64),
	ROW(rename), ROW(unlink), ROW(rt_sigsuspend), ROW(rt_sigtimedwait), ROW(futex), ROW(io_getevents), ROW(semtimedop), ROW(clock_nanosleep), ROW(exit_group),
	ROW(epoll_wait), ROW(mq_timedsend), ROW(mq_timedreceive), ROW(waitid), ROW(openat), ROW(newfstatat), ROW(pselect6), ROW(ppoll), ROW(splice), ROW(tee),
	ROW(vmsplice), ROW(epoll_pwait), ROW(fallocate), ROW(accept4), ROW(preadv), ROW(pwritev), ROW(recvmmsg), ROW(syncfs), ROW(sendmmsg),
	ROW(process_vm_readv), ROW(copy_file_range), ROW(preadv2), ROW(pwritev2), ROW(statx), ROW(restart_syscall),
	{ 426, "io_uring_enter" }, { 441, "epoll_pwait2" }, { 449, "futex_waitv" }, { 455, "futex_wait" },
};

void syscall_name(uint64_t number, char *out, size_t size)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (rows[i].number == number) {
			snprintf(out, size, "%s", rows[i].name);
			return;
		}
	}
	snprintf(out, size, "syscall_%llu", (unsigned long long)number);
}
