/*
 * Would a seccomp filter kill the target for the system calls that attaching makes in it? Runs classic BPF over each of them; no
 * allocation and no system call, because it runs while a thread is held.
 */
#ifndef INFERSCOPE_INJECT_SECCOMP_H
#define INFERSCOPE_INJECT_SECCOMP_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The action (SECCOMP_RET_…, with data) of one FILTER of COUNT instructions for DATA. A filter that does not make sense kills. */
uint32_t seccomp_run(const struct sock_filter *filter, size_t count, const struct seccomp_data *data);

enum seccomp_verdict { SECCOMP_FINE, SECCOMP_KILLS, SECCOMP_FORBIDS };
/* LOCKED: the process has locked memory. FORBIDS: it only fails a call that attaching cannot do without. *nr is the call meant. */
enum seccomp_verdict seccomp_judge(const struct sock_filter *filter, size_t count, uint64_t code_addr, uint64_t clone_flags, bool locked, int *nr);

#endif
