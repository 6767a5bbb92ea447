/* The table of commands. */
#include "cli/command.h"

#include <string.h>

#include "base/words.h"

const struct command_row command_rows[] = {
	{ "attach", ATTACH, "PID…", 0, SIZE_MAX, false, "measure a running Python process, without restarting it",
	  "Enters the process with ptrace, leaves a small collector in it for as long as it measures, and writes a report. The process "
	  "is held for microseconds, once. The first Ctrl-C stops early and writes what there is; a second one leaves at once and writes nothing. "
	  "Several processes (PID PID, --children, --match, --cgroup, --container) are measured at the same time, each with a trace and a report of its own in a folder, and one report of all; "
	  "one that cannot be measured fails alone.",
	  attach_command },
	{ "run", RUN, "SCRIPT [ARGS…] | -m MODULE [ARGS…] | -c CODE [ARGS…]", 0, SIZE_MAX, true, "run a Python program and measure it from its first line",
	  "The program gets its arguments, stdio and signals as without InferScope, and INFERSCOPE_ENABLED=1; inferscope ends with its status, or by the same signal. "
	  "INFERSCOPE_ENABLED=0 runs it unmeasured. Options of inferscope stand before SCRIPT. The summary goes to stderr. 125 to 127 are failures of inferscope itself.",
	  run_command },
	{ "analyze", ANALYZE, "TRACE…", 0, SIZE_MAX, false, "make the report of a kept trace again, or in another format",
	  "The same trace and options give the same bytes as attach wrote. Never opens files of the measured process. TRACE is a file, or - for stdin. Several are the ranks of one job: "
	  "who computes how much, who keeps the others waiting, how much communication is hidden (text, md, json).", analyze_command },
	{ "merge", MERGE, "TRACE…", 1, SIZE_MAX, false, "report traces of several processes and machines as one job",
	  "As analyze with several traces, and lays their clocks side by side: by the wall clocks that each trace holds, with the bound that these have, and closer by collective operations of NCCL that "
	  "ranks share; says which rank comes last to them and lets the others wait. Ranks are named by RANK, LOCAL_RANK, SLURM_PROCID or their pod, as their environment told.", merge_command },
	{ "diff", DIFF, "BEFORE AFTER", 2, 2, false, "say what changed between two kept traces",
	  "Latencies, functions, kernels and idle devices, per request when both have the same scope, else per second; only what exceeds the noise: 10 % of the value before, 0.5 % of the time of a "
	  "request or second, and twice the error of sampling. Findings that appeared or vanished. --fail-on regression,… ends with status 1 when something became worse.", diff_command },
	{ "dump", STACKS, "PID", 0, 1, false, "print what every thread of a process is doing now",
	  "Stacks of all threads, with the line each call is at, what a thread waits for, and who holds the GIL. Nothing is put into the process and nothing is stopped (but with --native each "
	  "running thread, for microseconds), so that it works on processes that are stuck, stopped, or never give up the GIL.", dump_process_command },
	{ "top", LIVE, "PID", 0, 1, false, "watch what a process does, live",
	  "A table of functions or threads, anew every second, out of samples from outside: nothing is put into the process. On a terminal ? lists the keys; elsewhere one table is printed, or "
	  "with --json a line per refresh. Ends with q, Ctrl-C, or the process.", top_command },
	{ "dump-trace", DUMP, "TRACE", 1, 1, false, "print a trace as text", "The text can be read, edited, and assembled back.", dump_command },
	{ "assemble", ASSEMBLE, "TEXT", 1, 1, false, "make a trace from the text that dump-trace prints", "TEXT is a file, or - for stdin.", assemble_command },
	{ "detach", DETACH, "PID", 0, 1, false, "free a process whose InferScope died", "Takes off hooks that are left. They take themselves off within 2 s of their attacher's death; "
	  "this also frees the memory.", detach_command },
	{ "doctor", DOCTOR, "[PID]", 0, 1, false, "say whether a process can be measured, and why not", "Reads only. Without PID it looks at this machine and user.", doctor_command },
	{ "schema", SCHEMA, "NAME", 1, 1, false, "print the JSON Schema of what InferScope writes",
	  "NAME is report (-f json), trace (-f events), rules (of a rules file), error (of a failure), diff, job (several traces analyzed), dump or top (of their JSON). Schemas grow, and never change what they said: a break is a new number.", schema_command },
	{ "config show", CONFIG, "", 0, 0, false, "print every setting, its value and where it comes from",
	  "Command line goes before environment, environment before .inferscope.yaml (of the current folder, else of the home folder), that before the defaults. "
	  "The extension of an output goes before a format that is said less strongly; of several formats in the settings a command that writes one report takes the first that it can write.", config_command },
};
const size_t command_count = sizeof command_rows / sizeof *command_rows;

const struct command_row *command_find(const char *name)
{
	for (size_t i = 0; i < command_count; i++)
		if (strcmp(command_rows[i].name, name) == 0)
			return &command_rows[i];
	return NULL;
}

const char *command_suggest(const char *name)
{
	const char *best = NULL;
	unsigned closest = 99;

	for (size_t i = 0; i < command_count; i++)
		if (words_nearer(name, strlen(name), command_rows[i].name, &closest))
			best = command_rows[i].name;
	return best;
}
