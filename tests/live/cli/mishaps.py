"""What goes wrong while it measures: the program ends, is stopped or does not answer, the attacher is interrupted, killed or held up, a disk is full. For tests/live/cli/run."""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from commands import BINARY, BUSY, Busy, Keeper, inferscope, is_free, measuring
from harness import Python, Skip, Target, require, state_of

IDLERS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "programs", "idlers.py")


def not_clean():
    """E_NOT_CLEAN: the GIL is held when it is to leave. What was measured is written; the target frees itself when it can."""
    with tempfile.TemporaryDirectory() as folder, Keeper() as target:
        attach = measuring(target, "-d", "0", "--error-format", "json", cwd=folder)
        target.keep()
        attach.send_signal(signal.SIGINT)
        _, err = attach.communicate(timeout=60)
        told = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
        require(attach.returncode == 7 and told[0]["code"] == "E_NOT_CLEAN" and told[0]["target_safe"] is False, "%d %s" % (attach.returncode, err))
        require(os.path.exists(os.path.join(folder, "report.md")), "no report")
        target.release()


def not_clean_nor_written():
    """The GIL is held when it is to leave, and the report cannot be written: both are said."""
    with tempfile.TemporaryDirectory() as folder, Keeper() as target:
        attach = measuring(target, "-d", "0", "-f", "json", "-o", "/dev/full", cwd=folder)
        target.keep()
        attach.send_signal(signal.SIGINT)
        _, err = attach.communicate(timeout=60)
        require(attach.returncode == 7 and "hooks were not confirmed to be off" in err and "cannot write /dev/full" in err, "%d %s" % (attach.returncode, err))
        target.release()


def kill(attach):
    attach.kill()
    attach.communicate()


def no_answer():
    """E_TIMEOUT: detach waits for the GIL no longer than it says."""
    with tempfile.TemporaryDirectory() as folder, Keeper() as target:
        attach = measuring(target, "-d", "60s", cwd=folder)
        target.keep()
        kill(attach)
        time.sleep(3)  # the dead one's time is over
        status, out, err = inferscope("detach", target.pid, "--error-format", "json")
        require(status == 9 and json.loads(err)["code"] == "E_TIMEOUT", "%d %s" % (status, err))
        target.release()


def dead_attacher():
    """After SIGKILL of the attacher, detach frees the target; so would a new attach."""
    for word in ("detach", "attach"):
        with Busy() as target, tempfile.TemporaryDirectory() as folder:
            kill(measuring(target, "-d", "60s", cwd=folder))
            require(not os.listdir(folder), "files were left: %r" % os.listdir(folder))
            time.sleep(2.5)
            words = ("detach", target.pid) if word == "detach" else ("attach", target.pid, "-d", "500ms")
            status, out, err = inferscope(*words, cwd=folder)
            require(status == 0, "%s: %d %s" % (word, status, err))
            require(is_free(target), "lanes are still mapped after " + word)
            require(target.child.poll() is None, "the target ended")


def interrupted():
    with Busy() as target, tempfile.TemporaryDirectory() as folder:
        for number in (signal.SIGINT, signal.SIGTERM, None):  # None: as timeout(1) ends it, by a signal to it and one to its group
            first = measuring(target, "-d", "0", cwd=folder)
            time.sleep(0.5)
            for wish in (number,) if number else (signal.SIGTERM, signal.SIGTERM):
                first.send_signal(wish)
                time.sleep(0.01)
            out, err = first.communicate(timeout=20)
            require(first.returncode == 0 and "report.md" in out, "%s: %d %s" % (number, first.returncode, err))


def left_at_once():
    """A second Ctrl-C while it leaves: nothing is written, and what was not confirmed is told; the target frees itself when it can."""
    with tempfile.TemporaryDirectory() as folder, Keeper() as target:
        attach = measuring(target, "-d", "0", cwd=folder)
        target.keep()
        begin = time.monotonic()
        for _ in range(2):
            attach.send_signal(signal.SIGINT)
            time.sleep(0.5)  # what comes sooner is the same one
        _, err = attach.communicate(timeout=60)
        require(attach.returncode == 7 and "not confirmed" in err, "%d after %.1f s: %s" % (attach.returncode, time.monotonic() - begin, err))
        require(not os.listdir(folder), "it wrote %s although it was told not to" % os.listdir(folder))
        target.release()


def held_up():
    """An attacher that stands still for 3 s, at once or later: the hooks go off meanwhile, and the report says so."""
    for before in (0, 0, 1):
        with Busy() as target, tempfile.TemporaryDirectory() as folder:
            first = measuring(target, "-d", "6s", cwd=folder)
            time.sleep(before)
            first.send_signal(signal.SIGSTOP)
            time.sleep(3)
            first.send_signal(signal.SIGCONT)
            out, err = first.communicate(timeout=60)
            require(first.returncode == 0 and "held up" in err, "%d %s" % (first.returncode, err))
            with open(os.path.join(folder, "report.md")) as f:
                require("held up" in f.read(), "the report does not say so")
            require(is_free(target), "lanes are still mapped")


def crowd_in_a_namespace():
    """700 threads that the process numbers otherwise than we do: asking for them takes little (4.9 s of CPU time once, 0.7 now)."""
    own = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if subprocess.run(own + ["true"], stderr=subprocess.DEVNULL).returncode:
        raise Skip("no pid namespace for us")
    with tempfile.TemporaryDirectory() as folder, Target(Python("namespaced", own + ["/usr/bin/python3"], (3, 11)), IDLERS, "700", "0", "1", ready=60) as target:
        before = os.times()
        status, _, err = inferscope("attach", target.pid, "--rate", "0", "--max-overhead", "none", "-d", "5s", "-f", "json", "-o", "r.json", cwd=folder)
        after = os.times()
        seconds = after.children_user + after.children_system - before.children_user - before.children_system
        require(status == 0 and "held up" not in err and seconds < 2.5, "%d, %.1f s of CPU time: %s" % (status, seconds, err))
        with open(os.path.join(folder, "r.json")) as f:
            require(json.load(f)["quality"]["coverage_ratio"] > 0.1, "hooks were on too rarely")
        status, out, err = inferscope("dump", "-n", "--json", target.pid)
        idlers = [thread for thread in json.loads(out)["threads"] if any(frame["function"] == "idler" for frame in thread["frames"])]
        require(status == 0 and len(idlers) == 700, "%d of 700 threads have their Python frames: %s" % (len(idlers), err))


def clock_set():
    """The wall clock jumps a day ahead and two days back while a process is measured: it takes as long as it should, and times in the report do not jump."""
    if not shutil.which("faketime"):
        raise Skip("faketime is not installed here")
    library = subprocess.run(["faketime", "-f", "+0", "printenv", "LD_PRELOAD"], capture_output=True, text=True).stdout.strip()
    with tempfile.TemporaryDirectory(prefix="inferscope-cli-") as folder, Busy() as target:
        offset = os.path.join(folder, "offset")

        def put(text):
            with open(offset + ".new", "w") as f:
                f.write(text)
            os.rename(offset + ".new", offset)
        put("+0")
        env = dict(os.environ, LD_PRELOAD=library, FAKETIME_TIMESTAMP_FILE=offset, FAKETIME_NO_CACHE="1", FAKETIME_DONT_FAKE_MONOTONIC="1", DONT_FAKE_MONOTONIC="1")
        began = time.monotonic()
        child = measuring(target, "-d", "3s", "-o", "r.json", "--trace", "t.iscope", env=env, cwd=folder)
        time.sleep(1)
        put("+86400")
        time.sleep(1)
        put("-86400")
        out, err = child.communicate(timeout=60)
        took = time.monotonic() - began
        require(child.returncode == 0 and took < 60, "%d after %.1f s: %s" % (child.returncode, took, err))
        for words in (None, ["analyze", "t.iscope", "-o", "again.json", "--source", "none"]):
            if words:
                status, out, err = inferscope(*words, cwd=folder)
                require(status == 0, "%d %s" % (status, err))
            with open(os.path.join(folder, "again.json" if words else "r.json")) as f:
                report = json.load(f)
            seconds = report["capture"]["duration_ns"] / 1e9
            require(2.9 < seconds < took, "%.2f s were measured in %.2f s" % (seconds, took))
            hot = [row for row in report["functions"] if row["name"].endswith("inner")]
            require(hot and hot[0]["total_ns"] < 1.1e9 * seconds, "%s" % hot)


# Goes on until its stdin ends.
UNTIL = """
import os, select, sys
def inner():
    return sum(range(2000))
print("READY", os.getpid(), flush=True)
while not select.select([0], [], [], 0)[0]:
    inner()
"""


def ended_meanwhile(code, *words, cwd):
    """Status and words of an attach to a program that ends, or becomes another one, while it is measured; and what has become of it."""
    with Busy(code, stdin=subprocess.PIPE) as target:
        attach = measuring(target, "-d", "60s", *words, cwd=cwd)
        time.sleep(0.5)
        end, target.child.stdin = target.child.stdin, None
        end.close()
        begin = time.monotonic()
        _, err = attach.communicate(timeout=90)
        require(time.monotonic() - begin < 30, "it was not noticed that the program had ended")
        require(os.path.exists(os.path.join(cwd, "report.md")), "no report: %s" % err)
        return attach.returncode, err, target.child.poll()


def target_ends():
    for strict, expected in (([], 0), (["--strict"], 10)):
        with tempfile.TemporaryDirectory() as folder:
            status, err, _ = ended_meanwhile(UNTIL, *strict, cwd=folder)
            require(status == expected and "ended" in err, "%d %s" % (status, err))


def target_execs():
    with tempfile.TemporaryDirectory() as folder:
        status, err, new = ended_meanwhile(UNTIL + "os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(100)'])\n", cwd=folder)
        require(status == 0 and "exec" in err, "%d %s" % (status, err))
        require(new is None, "the new program was harmed")


def stopped_meanwhile():
    """A target that is stopped when it is to be left: said so, and it frees itself once it goes on."""
    with tempfile.TemporaryDirectory() as folder, Busy() as target:
        first = measuring(target, "-d", "1s", cwd=folder)
        os.kill(target.pid, signal.SIGSTOP)
        out, err = first.communicate(timeout=60)
        require(state_of(target.pid) == "T", "it was continued")
        os.kill(target.pid, signal.SIGCONT)
        require(first.returncode == 7 and os.path.exists(os.path.join(folder, "report.md")), "%d %s" % (first.returncode, err))
        time.sleep(1)
        status, out, err = inferscope("attach", target.pid, "-d", "500ms", cwd=folder)
        require(status == 0 and is_free(target), "%d %s" % (status, err))


def disk_full():
    """The trace's file system is full: the target is left clean, and what failed is said."""
    if os.geteuid() != 0:
        raise Skip("needs root to mount a small file system")
    with tempfile.TemporaryDirectory() as folder, Busy(BUSY.replace("sum(range(2000))", "[len(()) for _ in range(3)]").replace("    inner()", "    for _ in range(1000): inner()")) as target:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True).returncode != 0:
            raise Skip("cannot mount a small file system here")
        try:
            status, out, err = inferscope("attach", target.pid, "-d", "30s", "--max-overhead", "none", cwd=folder)
            left = os.listdir(folder)
        finally:
            subprocess.run(["umount", "-l", folder])
        require(status == 8 and "space" in err, "%d %s" % (status, err))
        require(not left and is_free(target), "files or hooks were left: %r" % left)


def read_only():
    """A folder on a file system that cannot be written: said before the target is touched; what needs no file works there."""
    if os.geteuid() != 0:
        raise Skip("needs root to mount a small file system")
    with tempfile.TemporaryDirectory() as folder, Busy() as target:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,ro", "tmpfs", folder], capture_output=True).returncode != 0:
            raise Skip("cannot mount a small file system here")
        try:
            status, out, err = inferscope("attach", target.pid, "-d", "30s", cwd=folder)
            touched = re.search(r"inferscope", open("/proc/%d/maps" % target.pid).read())
            dry, _, said = inferscope("dump", target.pid, cwd=folder)
            elsewhere, _, other = inferscope("attach", target.pid, "-d", "0.2s", "--trace", "none", "-o", "-", "-f", "json", cwd=folder, env={"TMPDIR": "/tmp"})
        finally:
            subprocess.run(["umount", "-l", folder])
        require(status == 8 and "Read-only file system" in err and not touched, "%d %s" % (status, err))
        require(dry == 0 and elsewhere == 0, "%d %s %d %s" % (dry, said, elsewhere, other))


def full_stdout():
    """What cannot be printed is said, whatever is printed; where nobody reads any more, nothing is."""
    with Busy() as target:
        for words in (["--version"], ["help"], ["help", "--man"], ["schema", "report"], ["config", "show"], ["analyze", "--list-metrics"], ["doctor"], ["doctor", target.pid], ["doctor", target.pid, "--json"],
                      ["dump", target.pid], ["dump", target.pid, "-n", "--json"], ["top", target.pid, "--once"], ["attach", target.pid, "--dry-run"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([BINARY, *map(str, words)], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
            require(done.returncode == 8 and "cannot write stdout: No space left" in done.stderr, "%s: %d %s" % (words, done.returncode, done.stderr))
            read, write = os.pipe()
            os.close(read)
            done = subprocess.run([BINARY, *map(str, words)], stdout=write, stderr=subprocess.PIPE, text=True, timeout=60, preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN))
            os.close(write)
            require(done.returncode == 0 and not done.stderr, "%s, and nobody reads: %d %s" % (words, done.returncode, done.stderr))


TESTS = (not_clean, not_clean_nor_written, no_answer, dead_attacher, interrupted, left_at_once, held_up, crowd_in_a_namespace, clock_set, target_ends, target_execs, stopped_meanwhile, disk_full, read_only, full_stdout)
