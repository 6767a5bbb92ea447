#!/usr/bin/env python3
"""What sampling with native frames costs a process, ours beside others': sampling.py --python VENV/bin/python [--kind fib|decode] [--rounds 6] | --root sid.

One process, windows of a few seconds, each tool's beside one without any, in an order that changes. Two numbers per window, both of the process's main thread and both
free of what neighbours take: CPU time per item of work, and the time it stood still (wall time less CPU time less waiting for a CPU, by schedstat). VENV has py-spy for
its rows, and numpy for decode. --root: the Python of a root of contrib/roots, which in 3.15 has profiling.sampling of its own; that looks from within, as it knows files by their paths there."""
import argparse
import mmap
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WORK = os.path.join(HERE, "../live/programs/work.py")
ROOTS = os.path.join(HERE, "../../contrib/roots")


def tools(options, pid, out):
    seconds, pid = str(options.seconds), str(pid)
    spy = os.path.join(os.path.dirname(options.python or ""), "py-spy")
    rows = {"nothing": ["sleep", seconds]}
    for rate in ("100", "500", "1000"):
        rows["inferscope " + rate] = [options.inferscope, "attach", pid, "-d", seconds, "--hook", "none", "--rate", rate, "-o", out + ".md", "--trace", "none", "--force"]
    rows["inferscope hold 100"] = [options.inferscope, "attach", pid, "-d", seconds, "--hook", "none", "--native", "hold", "-o", out + ".md", "--trace", "none", "--force"]
    if os.path.exists(spy):
        for rate in ("100", "1000"):
            rows["py-spy --native " + rate] = [spy, "record", "--native", "-r", rate, "-p", pid, "-d", seconds, "-f", "raw", "-o", out]
        rows["py-spy 100"] = [spy, "record", "-r", "100", "-p", pid, "-d", seconds, "-f", "raw", "-o", out]
    for rate in ("100", "1000") if options.root else ():
        rows["profiling.sampling " + rate] = ["nsenter", "--target", pid, "--mount", "--root", "python3", "-m", "profiling.sampling", "attach", "-d", seconds, "-r", rate, "--collapsed", "-o", "/tmp/out", pid]
    return {name: command for name, command in rows.items() if not options.only or name.split()[0] in options.only.split(",")}


class Process:
    def __init__(self, options, folder):
        shutil.copy(WORK, folder)
        with open(os.path.join(folder, "counter"), "w+b") as file:
            file.truncate(16)
            self.page = memoryview(mmap.mmap(file.fileno(), 16)).cast("Q")
        seen = "/tmp/host" if options.root else folder
        python = [ROOTS, "enter", options.root, "python3"] if options.root else [options.target or options.python]
        self.child = subprocess.Popen(python + [os.path.join(seen, "work.py"), options.kind, os.path.join(seen, "counter")], stdout=subprocess.PIPE, text=True, cwd=folder)
        self.child.stdout.readline()
        time.sleep(1)

    def read(self):
        with open("/proc/%d/task/%d/schedstat" % (self.child.pid, self.child.pid)) as f:
            run, delay = (int(x) for x in f.read().split()[:2])
        return time.monotonic_ns(), run, delay, self.page[0]

    def window(self, command):
        """CPU time per item, share of the time that it stood still."""
        begin = self.read()
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        wall, run, delay, items = (b - a for a, b in zip(begin, self.read()))
        if done.returncode:
            sys.exit("%s: %s" % (command[0], done.stderr[-300:]))
        return run / max(1, items), (wall - run - delay) / wall


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python")
    parser.add_argument("--root")
    parser.add_argument("--target", help="another Python for the process that is measured")
    parser.add_argument("--inferscope", default="inferscope")
    parser.add_argument("--only", help="first words of rows: inferscope,py-spy")
    parser.add_argument("--kind", default="fib", choices=["fib", "decode"])
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    if not options.python and not options.root:
        parser.error("which Python? --python or --root")
    pause = ["sleep", str(options.seconds)]
    with tempfile.TemporaryDirectory() as folder:
        process = Process(options, folder)
        rows = tools(options, process.child.pid, os.path.join(folder, "out"))
        slower, still = {name: [] for name in rows}, {name: [] for name in rows}
        for round_ in range(options.rounds):
            names = list(rows)
            for name in names[round_ % len(names):] + names[:round_ % len(names)]:
                before, with_tool, after = process.window(pause), process.window(rows[name]), process.window(pause)
                slower[name].append(2 * with_tool[0] / (before[0] + after[0]) - 1)
                still[name].append(with_tool[1])
    process.child.kill()
    print("%-26s %28s %24s" % (options.kind, "CPU time per item, median", "stood still, median"))
    for name in rows:
        print("%-26s %+9.1f %% [%+.1f, %+.1f] %16.2f %% [%.2f, %.2f]" % (name, 100 * statistics.median(slower[name]), 100 * min(slower[name]), 100 * max(slower[name]),
                                                                    100 * statistics.median(still[name]), 100 * min(still[name]), 100 * max(still[name])))


main()
