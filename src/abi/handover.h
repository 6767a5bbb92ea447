/*
 * What the collector's entry thread and the attacher say to each other before they share a page. It lies in the target (in the
 * scratch that inject/ made); the attacher reads and writes it with process_vm_readv/writev, so each word has one writer.
 *
 *   attacher: asks a command, inject/ starts the thread           → entry(struct handover *)
 *   ARM       thread: memfd_create → lanes_fd, said = HAVE_FD
 *             attacher: sizes, fills, pre-faults, seals it through /proc/PID/fd/N → lanes_bytes, answer = GO (or GIVE_UP)
 *             thread: maps it, closes the fd, said = MAPPED; from here on page.arm decides, with true atomics
 *             thread: takes the GIL, arms, said = DONE, ends
 *   REARM     thread: takes the GIL, turns throttled locations on again, said = DONE, ends
 *   GPU       thread: starts the device's part of a session that is armed, said = DONE, ends
 *   DISARM    thread: takes the GIL, takes off every hook, frees tool id and references, unmaps the lanes, said = DONE, ends
 * The thread waits for an answer with the target running, sleeping 100 µs at a time, and gives up by itself after wait_ms.
 */
#ifndef INFERSCOPE_ABI_HANDOVER_H
#define INFERSCOPE_ABI_HANDOVER_H

#include <stdint.h>

enum handover_command { HANDOVER_ARM = 1, HANDOVER_DISARM = 2, HANDOVER_REARM = 3, HANDOVER_NOTHING = 4 /* loads and ends: tests */, HANDOVER_GPU = 5 };
enum handover_said { SAID_NOTHING = 0, SAID_HAVE_FD = 1, SAID_MAPPED = 2, SAID_DONE = 3, SAID_FAILED = 4, SAID_GAVE_UP = 5 };
enum handover_answer { ANSWER_NONE = 0, ANSWER_GO = 1, ANSWER_GIVE_UP = 2 };

#define HANDOVER_MAGIC 0x31564f444e414849ull /* "IHANDOV1" */
#define COLLECTOR_MEMFD_NAME "inferscope-collector"
#define LANES_MEMFD_NAME "inferscope-lanes"
#define COLLECTOR_ENTRY "inferscope_collector_entry" /* void inferscope_collector_entry(struct handover *) */

struct handover {
	/* attacher's */
	uint64_t magic;
	uint32_t command; /* enum handover_command */
	uint32_t wait_ms;
	uint64_t lanes_bytes;
	uint32_t answer; /* enum handover_answer */
	uint32_t attacher_pid; /* as the target's namespace sees it, 0 if it does not; for people */
	/* thread's */
	uint32_t said; /* enum handover_said, stored with release */
	int32_t lanes_fd;
	int32_t error; /* errno, or a collector_reason when the page is not mapped */
	uint64_t page_addr; /* where the lanes are mapped in the target */
	char text[256];
};

#endif
