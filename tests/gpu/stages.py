"""The stages of tests/gpu/accept, and what they share: the machine, a target, an attach. Each stage returns numbers for the verdict, or raises Fail."""
import collections
import json
import os
import re
import shutil
import signal
import subprocess
import time

import fakecuda
import harness
import records
from harness import Skip, require

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
STEPS = 500


class Setup:
    """The machine, the options, what has been found. Only what is worth keeping goes to `out`."""

    def __init__(self, options, folder):
        self.dry, self.out, self.folder = options.dry_run, os.path.abspath(options.out), folder
        self.binary = harness.find_binary()
        self.built = os.path.join(os.path.dirname(self.binary or ""), "tests/fakecuda")
        self.python = harness.Python("python", [options.python], harness.version_of([options.python]))
        self.workload = options.workload or ("driver" if self.dry or not has_torch(self.python) else "torch")
        self.steps = 60 if self.dry else STEPS
        os.makedirs(self.out, exist_ok=True)
        self.world = harness.World(self.binary, False, folder, [])
        self.reference = None
        self.count = 0

    def start(self, mode, client=False, **env):
        """A target, READY. On the doubles it gets its own libraries and journal."""
        env["WORKLOAD"] = self.workload
        if client:
            env["CLIENT"] = self.client()
        if self.dry:
            self.count += 1
            folder = os.path.join(self.folder, "doubles", str(self.count))
            env.update(fakecuda.install(self.built, folder, 13))
            env.update(FAKECUDA_JOURNAL=folder + "/journal")
        return harness.Target(self.python, os.path.join(HERE, "workload.py"), mode, env=dict(env, PYTHONDONTWRITEBYTECODE="1"), ready=60)

    def client(self):
        path = os.path.join(self.built, "libfakeclient.so")
        if not os.path.exists(path):
            raise Skip("the other client of CUPTI is not built: %s" % path)
        return path

    def keep(self, name, as_name, most=8 << 20):
        """Into `out`, if it is not too large to be carried home."""
        if os.path.exists(self.world.path(name)) and os.path.getsize(self.world.path(name)) <= most:
            shutil.copy(self.world.path(name), os.path.join(self.out, as_name))

    def attach(self, target, *options, seconds="120s", trace="t.iscope"):
        return self.world.attach(target.pid, "-d", seconds, "--max-overhead", "5%", *options, trace=trace)

    def events(self, kind, trace="t.iscope"):
        text = subprocess.run([self.binary, "dump-trace", self.world.path(trace)], stdout=subprocess.PIPE, text=True, check=True, timeout=300).stdout
        rows = (line.strip().split(" ", 2) for line in text.splitlines())
        found, clock = [], None
        for row in rows:
            if row[0] == "chunk":
                clock = [int(part) for part in re.search(r"clock=(\d+)/(\d+)/(\d+)", " ".join(row)).groups()]
            elif len(row) == 3 and row[1] == kind:
                event = dict((key, json.loads(value) if value.startswith('"') else int(value)) for key, value in re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|-?\d+)', row[2]))
                event["at"] = clock[2] + (int(row[0]) - clock[1]) * 10**9 // clock[0]  # ns of CLOCK_MONOTONIC
                found.append(event)
        return found


def has_torch(python):
    return subprocess.run(python.argv + ["-c", "import torch, sys; sys.exit(not torch.cuda.is_available())"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120).returncode == 0


def ask(target, command, seconds=60):
    target.child.stdin.write(command.encode() + b"\n")
    target.child.stdin.flush()
    answer = json.loads(target.expect("DONE", seconds)[5:])
    require(answer["error"] is None, "the target says %s" % answer["error"])
    return answer


def ready(setup, attach, target):
    """Until the GPU part is on: its thread is there, and had a moment to enable everything."""
    harness.settle(attach)
    harness.wait_for(lambda: "inferscope-gpu" in harness.thread_names(target.pid), 30, "no GPU thread in the target")
    time.sleep(2 if not setup.dry else 1)


def stop(attach):
    attach.stop()
    attach.expect(0, 120)


def gpu_memory(setup):
    """MiB in use on device 0, by nvidia-smi; 0 on the doubles."""
    if setup.dry:
        return 0
    out = subprocess.run(["nvidia-smi", "-i", "0", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], stdout=subprocess.PIPE, text=True).stdout
    return int(out.split()[0]) if out.split() else 0


def rss_mib(pid):
    with open("/proc/%d/statm" % pid) as f:
        return int(f.read().split()[1]) * 4096 / 2**20


# ---- the stages ----

def env(setup):
    """A: libcupti is found, the session begins, devices are told though they were there before."""
    with setup.start("eager") as target:
        attach = setup.attach(target)
        ready(setup, attach, target)
        ask(target, "run 20")
        stop(attach)
        report = setup.world.report()
        settings = report["capture"]["settings"]
        require(report["verdict"]["gpu"] is None, "no GPU data: %s" % report["verdict"]["gpu"])
        require(report["devices"], "no device record")
        return {key: settings[key] for key in settings if key.startswith("gpu")}


def reference(setup):
    """B: what torch.profiler sees of the same steps in a process of its own."""
    with setup.start("eager") as target:
        setup.reference = ask(target, "profile %d" % setup.steps)
        return {"kernels": sum(setup.reference["kernels"].values()), "names": len(setup.reference["kernels"])}


def late(setup, mode, reference_of):
    with setup.start(mode) as target:
        before = ask(target, "run 20")
        attach = setup.attach(target)
        ready(setup, attach, target)
        after = ask(target, "run %d" % setup.steps)
        stop(attach)
        report, kernels = setup.world.report(), setup.events("gpu_kernel")
        calls = {event["correlation"] for event in setup.events("gpu_api")}
        require(before["checksum"] == after["checksum"] or mode != "graph", "the graph's result changed: %r, %r" % (before["checksum"], after["checksum"]))
        matched = sum(kernel["correlation"] in calls for kernel in kernels) / max(1, len(kernels))
        require(matched >= 0.999, "%.4f of the kernels have their call" % matched)
        found = collections.Counter(kernel["name"] for kernel in kernels)
        wanted = reference_of(setup)
        require(found == wanted, "kernels differ from the reference: ours less theirs %s, theirs less ours %s" % (dict(found - wanted), dict(wanted - found)))
        setup.keep("t.iscope", "golden-%s.iscope" % mode)
        sites = report["gpu_sites"]
        launches = [site for site in sites if site["class"] in ("launch", "graph_launch")]
        framed = sum(site["count"] for site in launches if site["function"]) / max(1, sum(site["count"] for site in launches))
        require(framed >= 0.99, "%.3f of the launches have a Python function" % framed)
        early = report["capture"]["counters"]
        return {"kernels": len(kernels), "matched": matched, "framed": framed, "head_orphans": len([kernel for kernel in kernels if kernel["correlation"] not in calls]),
                "invalid": early["gpu.invalid"], "dropped": early["gpu.dropped"], "attach_ms": early["gpu.attach_ns"] / 1e6, "detach_ms": early["gpu.detach_ns"] / 1e6}


def late_eager(setup):
    """C: attached late, the same kernels as the reference, joined to calls and Python functions."""
    return late(setup, "eager", lambda s: collections.Counter(s.reference["kernels"]))


def late_graph(setup):
    """D: a graph captured before: every node of every replay."""
    def of_graph(s):
        with s.start("graph") as target:
            return collections.Counter(ask(target, "profile %d" % s.steps)["kernels"])
    return late(setup, "graph", of_graph)


def copies(setup):
    """D2: bytes of each kind of copy are the reference's."""
    with setup.start("copies") as target:
        wanted = ask(target, "profile %d" % setup.steps)["copies"]
        attach = setup.attach(target)
        ready(setup, attach, target)
        ask(target, "run %d" % setup.steps)
        stop(attach)
        found = {name: row["bytes"] for name, row in setup.world.report()["metrics"]["gpu.copies"].items()}
        differ = {name: (found.get(name), count) for name, count in wanted.items() if found.get(name) != count}
        require(wanted and not differ, "bytes of copies (ours, reference): %s" % differ)
        return {"copies": found}


def golden(setup):
    """Raw records, as another client gets them: kept, and compared with what the doubles take for granted."""
    path = os.path.join(setup.out, "golden-records.bin")
    with setup.start("eager", client=True) as target:
        ask(target, "record %d %s" % (setup.steps // 5, path))
        attach = setup.attach(target)
        ready(setup, attach, target)
        ask(target, "run 20")
        stop(attach)
        version = int(setup.world.report()["capture"]["settings"]["gpu.cupti"])
    summary = records.summary(path)
    differ = records.differences(path, version)
    require("10" in summary["kinds"], "no kernel among the records: %s" % summary)
    require(not differ, "CUPTI %d is not as tests/fakecuda/layout.def says: %s; %s" % (version, "; ".join(differ[:6]), summary["kinds"]))
    return dict(summary, cupti=version)


def clock(setup):
    """E: the bound, causality, and one long kernel between two readings of the host's clock."""
    with setup.start("eager") as target:
        attach = setup.attach(target)
        ready(setup, attach, target)
        ask(target, "run 100")
        spin = ask(target, "spin 1000")
        stop(attach)
        kernels, counters = setup.events("gpu_kernel"), setup.world.report()["capture"]["counters"]
        begun = {event["correlation"]: event["at"] for event in setup.events("gpu_api")}
        early = sorted(begun[kernel["correlation"]] - kernel["at"] for kernel in kernels if kernel["correlation"] in begun)
        violations = sum(by > 0 for by in early)
        longest = max(kernel["duration_ns"] for kernel in kernels)
        host = spin["after_ns"] - spin["before_ns"]
        bound = counters["gpu.clock_bound_ns"]
        require(bound <= (1000 if not setup.dry else 10**6), "the clock's bound is %d ns" % bound)
        require(violations <= 0.001 * len(early), "%d of %d kernels begin before their call, at most by %d ns" % (violations, len(early), early[-1]))
        require(longest <= host + 50000, "a kernel of %d ns in %d ns of the host" % (longest, host))
        require(setup.dry or host - longest <= 0.01 * host, "a spin of %d ns took the host %d ns" % (longest, host))
        return {"bound_ns": bound, "spin_device_ns": longest, "spin_host_ns": host, "violations": violations, "of": len(early), "launch_delay_p1_ns": -early[len(early) * 99 // 100]}


def overhead(setup):
    """F: off and attached by turns in one process, at two rates and with a graph; and after it."""
    numbers = {}
    for mode in ("eager", "graph", "tiny"):
        with setup.start(mode) as target:
            ask(target, "run 50")
            pairs, last = [], None
            for _ in range(1 if setup.dry else 3):
                off = ask(target, "run %d" % setup.steps)["ns_per_step"]
                attach = setup.attach(target)
                ready(setup, attach, target)
                on = ask(target, "run %d" % setup.steps)["ns_per_step"]
                stop(attach)
                pairs.append(on / off)
                last = ask(target, "run %d" % setup.steps)["ns_per_step"] / off
            pairs.sort()
            numbers[mode] = {"attached": round(pairs[len(pairs) // 2], 4), "after": round(last, 4)}
    for mode, ratio in numbers.items():
        require(setup.dry or ratio["attached"] <= 1.05, "%s: attached %.3f times as slow: %s" % (mode, ratio["attached"], numbers))
        require(setup.dry or ratio["after"] <= 1.01, "%s: %.3f times as slow after detach: %s" % (mode, ratio["after"], numbers))
    return numbers


def detach(setup):
    """G: again and again while a graph is replayed: nothing piles up, ids stay apart."""
    rounds = 3 if setup.dry else 20
    with setup.start("graph") as target:
        kinds, first = collections.Counter(), None
        for i in range(rounds):
            attach = setup.attach(target, trace="g.iscope")
            ready(setup, attach, target)
            ask(target, "run 20")
            stop(attach)
            kinds[setup.world.report()["capture"]["settings"].get("gpu.detach")] += 1
            now = harness.footprint(target.pid)[1:] + (rss_mib(target.pid), gpu_memory(setup))
            first = now if i == 1 else first
            if first:
                require(now[0] <= first[0] and now[1] <= first[1], "(fds, threads) %s after attach 2, %s after attach %d" % (first[:2], now[:2], i + 1))
        per_launch = collections.Counter(kernel["correlation"] for kernel in setup.events("gpu_kernel", "g.iscope"))
        require(len(set(per_launch.values())) == 1, "nodes per launch in the last session: %s" % collections.Counter(per_launch.values()))
        require(now[2] - first[2] < 8 and now[3] - first[3] < 32, "memory grew from %s to %s MiB (host, device)" % (first[2:], now[2:]))
        return {"rounds": rounds, "detach": dict(kinds), "host_mib": round(now[2] - first[2], 1), "device_mib": now[3] - first[3]}


def coexistence(setup):
    """H: torch.profiler, or where there is no torch a client of its kind, before us, started while we measure, and after us: its trace is whole each time."""
    a_step, numbers = sum(setup.reference["kernels"].values()) // setup.steps, {}
    with setup.start("eager", client=setup.workload != "torch") as target:
        target.child.stdin.write(b"beside 8s\n")
        target.child.stdin.flush()
        time.sleep(1)
        attach = setup.attach(target, seconds="2s")
        attach.expect(0, 60)
        numbers["theirs_first"] = setup.world.report()["verdict"]["gpu"]
        theirs = json.loads(target.expect("DONE", 100)[5:])
        seen(theirs, a_step, "when we came")
        require("torch.profiler" in (numbers["theirs_first"] or ""), "the holder is not named: %s" % numbers["theirs_first"])
        attach = setup.attach(target)
        ready(setup, attach, target)
        theirs = ask(target, "beside %d" % setup.steps)
        time.sleep(2)
        stop(attach)
        numbers["ours_first"] = setup.world.report()["warnings"]
        seen(theirs, a_step, "when it came")
        require("ended early" in " ".join(numbers["ours_first"]), "the truncation is not told: %s" % numbers["ours_first"])
        seen(ask(target, "beside %d" % setup.steps), a_step, "after us")
        return numbers


def seen(theirs, a_step, when):
    require(not theirs.get("error"), "the other profiler: %s" % theirs.get("error"))
    found, wanted = sum(theirs["kernels"].values()), a_step * theirs["steps"]
    require(found == wanted, "the other profiler lost kernels %s: %d of %d" % (when, found, wanted))


def faults(setup):
    """I: an idle target, a killed attacher, a target that ends, no visible device."""
    with setup.start("idle") as target:
        attach = setup.attach(target)
        ready(setup, attach, target)
        begun = time.monotonic()
        stop(attach)
        idle_s = time.monotonic() - begun
        require(setup.dry or idle_s < 4, "leaving an idle target took %.1f s" % idle_s)
        attach = setup.attach(target)
        ready(setup, attach, target)
        attach.stop(signal.SIGKILL)
        attach.child.communicate()
        harness.wait_for(lambda: "inferscope-gpu" not in harness.thread_names(target.pid), 12, "12 s after the attacher's death our thread is still there")
        ask(target, "run 20")
    with setup.start("eager") as target:
        attach = setup.attach(target)
        ready(setup, attach, target)
        ask(target, "run 20")
        time.sleep(1)
        require(target.finish()[0] == 0, "the target's exit status changed")
        attach.expect(0)
        require(setup.events("gpu_kernel"), "nothing was kept of a target that ended")
    return {"leave_idle_s": round(idle_s, 2)}


def rules(setup):
    """J: modes with a cause of their own are told apart."""
    wanted = {"sync": "sync", "copies": "pageable|copy|transfer", "tiny": "launch|small|short"}
    found = {}
    for mode, word in wanted.items():
        with setup.start(mode) as target:
            attach = setup.attach(target)
            ready(setup, attach, target)
            begun = time.monotonic()
            while time.monotonic() - begun < 3:
                ask(target, "run %d" % setup.steps)
            stop(attach)
            report = setup.world.report()
            found[mode] = [report["verdict"]["class"]] + [finding["rule"] if "rule" in finding else finding.get("id") for finding in report["findings"]][:6]
            require(setup.dry or re.search(word, " ".join(str(name) for name in found[mode])), "%s: %s" % (mode, found[mode]))
    return found


STAGES = [env, reference, late_eager, late_graph, copies, clock, golden, overhead, detach, faults, coexistence, rules]
