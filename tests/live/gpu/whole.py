"""What a device did is told as the doubles wrote it down, with every CUPTI, every hook, every kind of work."""
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import harness
from harness import Fail, Skip, require, thread_names
from scene import CLIENT, KERNEL, MARKER, MEMORY, QUICK, VERSIONS, Scene, check_calls_balance, check_joined, check_kernels, clock_error, kinds_on, names


def exact(python):
    """Kernels by name, device, stream and duration; the journal; hard detach; the kernel's Python function."""
    with Scene(python) as scene:
        report, launched = scene.measure("--max-overhead", "none", times=2)
        check_kernels(scene, report, launched)
        rows = scene.journal()
        check_calls_balance(rows)
        require(rows[-1][5] == "Finalize" and rows[-1][7] == "0", "the journal ends with %s, not with a hard detach" % rows[-1][4:])
        check_frames(report, launched)
        copies = report["metrics"]["gpu.copies"]
        require(copies["Memcpy HtoD (Pageable -> Device)"]["count"] == 2 and copies["Memcpy DtoH (Device -> Pinned)"]["bytes"] == 2 * 256 * 64, "copies: %s" % copies)
        require("inferscope-gpu" not in thread_names(scene.target.pid), "a thread of ours is left")
        check_cost(report)
        scene.finish()
        return "%d kernels" % sum(launched.values())


def check_cost(report):
    """What the GPU part costs is in the overhead that is told."""
    counters, process = report["capture"]["counters"], report["processes"][0]
    tick_ns = 10**9 // os.sysconf("SC_CLK_TCK")  # what /proc tells is cut to whole ticks, user's and system's at both ends
    own_ns, cpu_ns = counters["gpu.work_ns"] + counters["gpu.cupti_overhead_ns"], process["user_ns"] + process["system_ns"] + 2 * tick_ns
    require(counters["gpu.work_ns"] > 0, "its thread's work was not measured")
    require(counters["overhead_ppm"] >= 0.9 * min(10**6, 10**6 * own_ns / cpu_ns), "overhead %d ppm, of which the GPU part has %d of %d ns" % (counters["overhead_ppm"], own_ns, cpu_ns))


def check_frames(report, launched):
    """Each kernel was launched by the function that the program says."""
    known = {"forward_small": launched["small_gemm<float, 4>"], "forward_large": launched["large_gemm"]}
    for function, count in known.items():
        sites = [site for site in report["gpu_sites"] if site["class"] == "launch" and (site["function"] or "").split(".")[-1] in ("gemm", function)]
        require(sites, "no launch site: %s" % [(site["function"], site["class"], site["count"]) for site in report["gpu_sites"]])
    gemm = sum(site["count"] for site in report["gpu_sites"] if site["class"] == "launch" and (site["function"] or "").split(".")[-1] == "gemm")
    require(gemm >= 0.99 * sum(known.values()), "gemm() launched %d of %d kernels: %s" % (gemm, sum(known.values()), report["gpu_sites"][:6]))


def versions(python):
    """Every CUPTI, with the functions and layouts that it has; from 13.3 on, with a driver of that age, by the functions that several clients may use."""
    some = VERSIONS if not QUICK else [(11, 18), (12, 22), (12, 28), (13, 130500)]
    for cuda, version in some:
        several = version >= 130300
        with Scene(python, cuda=cuda, version=version, rounds=20, DRIVER=13030 if several else 13000) as scene:
            try:
                report, launched = scene.measure()
                check_kernels(scene, report, launched)
                check_calls_balance(scene.journal())
                require(scene.settings()["gpu.api"] == ("2" if several else "1"), "the family of functions: %s" % scene.settings())
                require(several == (scene.settings()["gpu.detach"] == "soft"), "how it left: %s" % scene.settings())
                scene.finish()
            except Fail as why:
                raise Fail("CUPTI %d of CUDA %d: %s" % (version, cuda, why))
    return "%d versions" % len(some)


def graphs(python):
    """A graph captured before attach: each node of each replay, or each launch as one piece of work; under CUPTI 11, which does not bear graphs, the GPU part ends."""
    with Scene(python, "replay") as scene:
        report, launched = scene.measure()
        check_kernels(scene, report, launched)
        per_launch = collections.Counter(kernel["correlation"] for kernel in scene.events("gpu_kernel"))
        require(set(per_launch.values()) == {5} and len(per_launch) == 100, "nodes per launch: %s" % collections.Counter(per_launch.values()))
        scene.measure("--gpu-graphs", "graph")
        require(names(scene.events("gpu_kernel")) == {"CUDA graph": 100}, "launches as one piece of work: %s" % dict(names(scene.events("gpu_kernel"))))
        scene.finish()


def old_graphs(python):
    """CUPTI 11 and CUDA graphs: the GPU part ends as soon as one is seen, without taking CUPTI down."""
    with Scene(python, "replay", cuda=11) as scene:
        attach = scene.attach()
        scene.wait_for_call("ActivityEnable", KERNEL)
        scene.work()
        scene.wait_until_left()
        scene.check_alive()
        attach.stop()
        attach.expect(0)
        require("CUDA graphs" in " ".join(scene.world.report()["warnings"]), "warnings: %s" % scene.world.report()["warnings"])
        require("Finalize" not in [row[5] for row in scene.journal()] and not kinds_on(scene.journal()), "the journal ends with %s" % scene.journal()[-3:])
        scene.finish()


def devices(python):
    """Two devices, four threads with a stream each."""
    with Scene(python, "many", DEVICES=2) as scene:
        report, launched = scene.measure()
        check_kernels(scene, report, launched)
        require(len(report["devices"]) == 2, "devices: %s" % report["devices"])
        require(len(report["metrics"]["gpu.stream_busy_us"]) == 4, "streams: %s" % report["metrics"]["gpu.stream_busy_us"])
        require([(device["name"], device["mig_uuid"]) for device in report["devices"]] == [("NVIDIA FakeGPU", None)] * 2, "devices: %s" % report["devices"])
        scene.finish()
    with Scene(python, "many", DEVICES=2, MIG=1, rounds=10) as scene:
        report, launched = scene.measure()
        check_kernels(scene, report, launched)
        known = [(device["name"], device["mig_uuid"], device["multiprocessors"]) for device in report["devices"]]
        uuids = ["-".join(("%s" % bytes((device * 17 + i * 31 + 101) % 256 for i in range(16)).hex())[a:b] for a, b in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))) for device in (0, 1)]
        require(known == [("NVIDIA FakeGPU MIG 1g.18gb", uuid, 16) for uuid in uuids], "instances: %s, not %s" % (known, uuids))
        scene.finish()


def fewer_hooks(python):
    """Devices are followed without native frames as well; without hooks nothing enters the process, and that is said."""
    with Scene(python, rounds=20) as scene:
        report, launched = scene.measure("--native", "none")
        check_kernels(scene, report, launched)
        check_joined(scene)
        after = len(scene.journal())
        scene.attach("--hook", "none", seconds="1s").expect(0)
        report = scene.world.report()
        require("it was not entered" in (report["verdict"]["gpu"] or ""), "without hooks the reason is '%s'" % report["verdict"]["gpu"])
        require(len(scene.journal()) == after, "CUPTI was called without hooks: %s" % scene.journal()[after:][:3])
        scene.finish()


def memory(python):
    """--gpu-memory: each allocation and release; without it CUPTI is not asked."""
    with Scene(python, rounds=5) as scene:
        scene.measure()
        require(not scene.events("gpu_memory") and str(MEMORY) not in [row[6] for row in scene.journal() if row[5] == "ActivityEnable"], "allocations were recorded though nobody asked for them")
        begun = len(scene.journal())
        scene.measure("--gpu-memory")
        found = [(event["operation"], event["bytes"], event["memory_kind"]) for event in scene.events("gpu_memory")]
        require(found == [(1, 16384, 3), (2, 16384, 3)], "allocations: %s" % found)
        check_calls_balance(scene.journal()[begun:])
        scene.finish()


def ranges(python):
    """Ranges of NVTX are scopes of their threads where the program's NVTX gives them to CUPTI; else it is said why there are none."""
    with Scene(python, "ranges", rounds=20, env={"NVTX_INJECTION64_PATH": "/opt/libcupti.so.13"}) as scene:
        report, launched = scene.measure()
        check_kernels(scene, report, launched)
        check_calls_balance(scene.journal())
        scopes = {scope["name"]: scope["count"] for scope in report["scopes"]}
        require(scopes == {"step": 20, "forward": 20}, "scopes: %s" % scopes)
        require(len(scene.events("instant")) == 20 and names(scene.events("instant")) == {"token": 20}, "marks: %s" % names(scene.events("instant")))
        scene.finish()
    with Scene(python, "ranges", rounds=5) as scene:
        report, _ = scene.measure()
        require(scene.settings()["gpu.ranges"].startswith("none: NVTX") and not report["scopes"], "ranges: %s" % scene.settings()["gpu.ranges"])
        require(str(MARKER) not in [row[6] for row in scene.journal() if row[5] == "ActivityEnable"], "CUPTI was asked for ranges that nobody gives to it")
        scene.finish()


def no_kernels(python):
    """Nothing seen is explained: no call was made, or calls that launch nothing."""
    for mode, reason in (("nothing", "made no CUDA call"), ("quiet", r"made \d+ CUDA calls.*reported no kernel")):
        with Scene(python, mode) as scene:
            report, _ = scene.measure()
            require(re.search(reason, report["verdict"]["gpu"] or ""), "%s: the reason is '%s'" % (mode, report["verdict"]["gpu"]))
            require(report["functions"], "nothing of Python was measured")
            scene.finish()


def order(python):
    """Records of devices that come before those of their calls, a flush that takes long, a thread that CUPTI leaves behind: each kernel, joined to its call."""
    with Scene(python, GPU_BUFFER=1, STALL_FLUSH=400, LEAK_THREAD=1, FINALIZE_RACE=1) as scene:
        report, launched = scene.measure()
        check_kernels(scene, report, launched)
        check_calls_balance(scene.journal())
        check_joined(scene)
        scene.finish()


def reattach(python):
    """Again and again: as exact each time; nothing piles up."""
    rounds = 4 if QUICK else 20
    with Scene(python, rounds=10) as scene:
        first = None
        for i in range(rounds):
            report, launched = scene.measure()
            check_kernels(scene, report, launched)
            now = harness.footprint(scene.target.pid)
            first = first if i > 1 else now
            require(now[1] <= first[1] and now[2] <= first[2], "(mappings, fds, threads) %s after the second attach, %s after attach %d" % (first, now, i + 1))
        finalized = [row for row in scene.journal() if row[4] == "<" and row[5] == "Finalize"]
        require(len(finalized) == rounds, "%d hard detaches of %d" % (len(finalized), rounds))
        scene.finish()
    return "%d times" % rounds


def unmapped(python):
    """A program without CUPTI: the one beside its CUDA runtime, in each layout."""
    for cuda, layout in ((12, "wheel12"), (13, "wheel13"), (12, "toolkit"), (13, "cupti_extras"))[:2 if QUICK else 4]:
        with Scene(python, "unmapped", cuda=cuda, layout=layout, rounds=10) as scene:
            try:
                report, launched = scene.measure()
                check_kernels(scene, report, launched)
                scene.finish()
            except Fail as why:
                raise Fail("%s: %s" % (layout, why))
    with Scene(python, "unmapped", layout="none", rounds=10) as scene:
        scene.without_gpu("libcupti|CUPTI")
        scene.finish()


def exits(python):
    """The target ends while it is measured: its exit status is its own, and the trace holds what it did."""
    with Scene(python) as scene:
        attach = scene.attach()
        scene.wait_for_call("ActivityEnable", KERNEL)
        launched = scene.work()
        time.sleep(1)
        scene.finish()
        attach.expect(0)
        found = names(scene.events("gpu_kernel"))
        require(found == launched, "kernels %s, launched %s" % (dict(found), dict(launched)))
        ended = [i for i, row in enumerate(scene.journal()) if row[4:6] == ["#", "exit"]]
        require(ended and not [row for row in scene.journal()[ended[0]:] if row[4] == ">"], "CUPTI was called after exit")


def forks(python):
    """A forked child makes no CUPTI call."""
    with Scene(python, "fork") as scene:
        report, launched = scene.measure()
        check_kernels(scene, report, launched)
        require({row[1] for row in scene.journal()} == {str(scene.target.pid)}, "calls of a child")
        scene.finish()


def clock(python):
    """Stamps are off by no more than the bound that the report states, also where CUPTI's clock drifts; where it is set, that is told."""
    for switches in ({}, {"SLOPE_PPM": 200})[1 if QUICK else 0:]:
        with Scene(python, rounds=200, **switches) as scene:
            report, launched = scene.measure(times=3)
            check_kernels(scene, report, launched)
            counters = report["capture"]["counters"]
            require(0 < counters["gpu.clock_bound_ns"] <= 10**6, "the bound is %d ns with %s" % (counters["gpu.clock_bound_ns"], switches))
            require(counters["gpu.clock_steps"] == 0, "a step was seen where there was none")
            error, bound = clock_error(scene), counters["gpu.clock_bound_ns"]
            # Seen on a machine with four times as many runnable threads as CPUs: 165 ns with a bound of 118.
            require(error <= bound + 250, "a stamp is off by %d ns, with %s the bound is said to be %d ns" % (error, switches, bound))
            scene.finish()
    with Scene(python) as scene:
        attach = scene.attach()
        scene.wait_for_call("ActivityEnable", KERNEL)
        scene.work()
        scene.wait_for_ticks(3)
        scene.set("STEP_NS", 50000000)
        scene.wait_for_ticks(3)
        scene.work()
        attach.stop()
        attach.expect(0)
        report = scene.world.report()
        require(report["capture"]["counters"]["gpu.clock_steps"] >= 1, "the step was not noticed: %s" % report["warnings"])
        scene.finish()


def causality(python):
    """Work that seems to begin before the call that launched it is counted, and by how much."""
    with Scene(python, rounds=50, GPU_SKEW_NS=-10**7) as scene:
        report, launched = scene.measure()
        quality = {row["key"]: row for row in report["quality"]["notes"]}["gpu_clock"]
        require("pieces of work seem to begin before their launch" in json.dumps(quality) and "at most by" in json.dumps(quality), "the clock: %s" % quality)
        require(not re.search(r"\b0 of ", json.dumps(quality)), "none was counted: %s" % quality)
        scene.finish()


def foreign_clock(python):
    """A clock that another tool gave to CUPTI is fitted; when it jumps, nothing is claimed of it: the margin that the user gives is assumed, and said."""
    other = {"HOLDER": CLIENT, "HOLDER_FLAGS": "4", "HOLDER_KINDS": "0"}
    with Scene(python, rounds=50, env=other) as scene:
        report, launched = scene.measure("--sync-error-margin-us", "777")
        require(names(scene.events("gpu_kernel")) == launched, "kernels: %s, launched: %s" % (names(scene.events("gpu_kernel")), launched))
        said = scene.settings()["gpu.clock"]
        require(said.startswith(("another tool's, fitted", "not synchronised")), "the clock: %s" % said)
        require(said.startswith("not") or clock_error(scene, 50) < 20000, "a stamp is off by %d ns" % clock_error(scene, 50))
        scene.finish()
    with Scene(python, rounds=50, env=other) as scene:
        attach = scene.attach("--sync-error-margin-us", "777")
        scene.wait_for_call("ActivityEnable", KERNEL)
        scene.work()
        scene.wait_for_ticks(3)
        scene.ask("jump 50000000")
        scene.wait_for_ticks(3)
        scene.work()
        attach.stop()
        attach.expect(0)
        report = scene.world.report()
        require("777 us" in scene.settings()["gpu.clock"] and "777 us" in " ".join(report["warnings"]), "the clock: %s; warnings: %s" % (scene.settings()["gpu.clock"], report["warnings"]))
        require(report["capture"]["counters"]["gpu.clock_bound_ns"] == 777000, "the bound: %d" % report["capture"]["counters"]["gpu.clock_bound_ns"])
        scene.finish()


def case_records(python):
    """Records that fool summaries, played through CUPTI: two streams that overlap, one stream number on two devices, impossible times, a kernel before its call,
    a graph of five kernels, lost records, no order. The case says itself what is true of them."""
    case = os.path.join(os.environ.get("INFERSCOPE_CASES") or os.path.join(harness.TOP, "../shared/cases"), "d22_gpu_records.py")
    if not os.path.exists(case):
        raise Skip("no GPU case d22_*.py in %s (INFERSCOPE_CASES)" % os.path.dirname(case))
    lines = subprocess.run([sys.executable, case], stdout=subprocess.PIPE, text=True, timeout=60, env=dict(os.environ, CASE_SECS="0")).stdout.splitlines()
    truth = json.loads([line for line in lines if line.startswith("TRUTH")][0][6:])
    with tempfile.NamedTemporaryFile("w", suffix=".json") as records:
        records.write("".join(line + "\n" for line in lines if line.startswith("{")))
        records.flush()
        with Scene(python, "play", DEVICES=2, env={"RECORDS": records.name}) as scene:
            report, _ = scene.measure()
            counters, kernels = report["capture"]["counters"], scene.events("gpu_kernel")
            require(len(kernels) == truth["kernels"], "%d kernels instead of %d" % (len(kernels), truth["kernels"]))
            require(counters["gpu.invalid"] == truth["bad_records"], "%d bad records" % counters["gpu.invalid"])
            require(counters["gpu.dropped"] == truth["lost"] and "lost" in " ".join(report["warnings"]), "%d records lost: %s" % (counters["gpu.dropped"], report["warnings"]))
            require(sorted(report["metrics"]["gpu.stream_busy_us"]) == ["%d/%d" % tuple(one) for one in truth["streams"]], "streams: %s" % report["metrics"]["gpu.stream_busy_us"])
            for device in report["devices"]:
                busy, wanted = device["busy_ns"], truth["busy_ns"][str(device["device_id"])]
                require(abs(busy - wanted) <= 1000, "device %d was busy for %d ns, not %d" % (device["device_id"], busy, wanted))
            require(sum(kernel["correlation"] == 900 for kernel in kernels) == 5, "the graph's kernels are not listed one by one")
            scene.finish()
