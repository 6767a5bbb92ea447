/* Numbers of system calls that this machine's headers do not know yet, or that the machine does not have: those are numbers that no call has. */
#ifndef INFERSCOPE_INJECT_CALLS_H
#define INFERSCOPE_INJECT_CALLS_H

#include <sys/syscall.h>

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_io_pgetevents
#ifdef __x86_64__
#define SYS_io_pgetevents 333
#else
#define SYS_io_pgetevents 292
#endif
#endif

enum { NO_CALL = -1000 };
#ifndef SYS_poll /* machines that came after ppoll() */
#define SYS_poll (NO_CALL - 1)
#define SYS_select (NO_CALL - 2)
#define SYS_pause (NO_CALL - 3)
#define SYS_epoll_wait (NO_CALL - 4)
#define SYS_vfork (NO_CALL - 5)
#endif

#endif
