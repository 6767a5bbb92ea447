"""Processes that cannot be measured, or not now: which exit status each has, and what is said. For tests/live/cli/run."""
import contextlib
import ctypes
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time

from commands import BINARY, BUSY, NOBODY, PYTHON, PYTHONS, Busy, Keeper, inferscope, is_free, measuring, read_link, refuse
from harness import Attaching, Skip, require, wait_for, wait_for_state


def wrong_pids():
    for word in ("0", "-5", "12abc", "", "1.5", "99999999999999999999"):
        refuse(2, "attach", word, says="pid|process")
    refuse(3, "attach", 999999999, says="no process|no such")
    refuse(2, "attach", says="pid")
    refuse(2, "attach", 1, "-p", 2, says="two processes")
    refuse(2, "attach", 1, "12abc", says="pid")
    status, _, err = inferscope("attach", 1)
    require(status in (4, 5) and len(err.splitlines()) <= 2, "pid 1: %d %s" % (status, err))


def own_pid():
    # the shell becomes inferscope: same pid
    done = subprocess.run(["sh", "-c", 'exec "$0" attach $$', BINARY], capture_output=True, text=True)
    require(done.returncode == 2 and "itself" in done.stderr, "%d %s" % (done.returncode, done.stderr))  # E_OWN_PROCESS


def kernel_thread():
    if not os.path.exists("/proc/2/stat") or os.path.exists("/proc/2/exe") and os.path.islink("/proc/2/exe") and read_link("/proc/2/exe"):
        raise Skip("pid 2 is no kernel thread here")
    refuse(5, "attach", 2, says="kernel")


def other_processes():
    """/proc of another pid namespace, none at all, or one that hides others' processes: that is said, and not that there is no Python or no process."""
    if os.geteuid() != 0:
        raise Skip("needs root to mount /proc")
    nobody = "setpriv --reuid %d --regid %d --clear-groups " % (NOBODY, NOBODY)
    with Busy() as target, copy_for_nobody() as (folder, copy):
        for status, says, way, before in ((3, "another pid namespace", ["--pid", "--fork"], ""), (3, "not mounted", ["--mount"], "mount -t tmpfs none /proc && "), (4, "hidepid", ["--mount"], "mount -t proc -o hidepid=2 none /proc && exec " + nobody)):
            done = subprocess.run(["unshare", *way, "sh", "-c", before + '"$0" dump %d' % target.pid, copy], capture_output=True, text=True, cwd=folder)
            if "unshare" in done.stderr or "mount:" in done.stderr:
                raise Skip(done.stderr.strip())
            require(done.returncode == status and says in done.stderr, "%s: %d %s" % (way, done.returncode, done.stderr))


def zombie():
    child = subprocess.Popen(["true"])
    wait_for_state(child.pid, "Z")
    try:
        refuse(3, "attach", child.pid, says="zombie|ended")
    finally:
        child.wait()


def shell():
    child = subprocess.Popen(["sleep", "30"])
    try:
        refuse(5, "attach", child.pid, says="[Pp]ython")
    finally:
        child.kill()
        child.wait()


def old_pythons():
    top = os.path.expanduser("~/.pyenv/versions")
    found = [os.path.join(top, v, "bin", "python3" if v[0] == "3" else "python2") for v in ("2.7.18", "3.6.15", "3.7.16")]
    found = [path for path in found if os.path.exists(path)]
    if not found:
        raise Skip("no old Python here")
    for path in found:
        code = "import os,sys,time; sys.stdout.write('READY %d\\n' % os.getpid()); sys.stdout.flush(); time.sleep(30)"
        with Busy(code, [path]) as target:
            refuse(5, "attach", target.pid, says=r"[23]\.[67]")


def stopped_target():
    with Busy() as target:
        os.kill(target.pid, signal.SIGSTOP)
        wait_for_state(target.pid, "T")
        refuse(6, "attach", target.pid, says="stopped")
        os.kill(target.pid, signal.SIGCONT)


def traced_target():
    with Busy() as target:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        if libc.ptrace(0x4206, target.pid, None, None) != 0:  # PTRACE_SEIZE
            raise Skip("cannot trace: %s" % os.strerror(ctypes.get_errno()))
        try:
            refuse(6, "attach", target.pid, says="traced by %d" % os.getpid())
        finally:
            os.kill(target.pid, signal.SIGKILL)


@contextlib.contextmanager
def copy_for_nobody():
    """The program, in a folder that the user nobody may write to."""
    if os.geteuid() != 0:
        raise Skip("needs root to become nobody")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        copy = os.path.join(folder, "inferscope")
        shutil.copyfile(BINARY, copy)
        os.chmod(copy, 0o755)
        yield folder, copy


def no_permission():
    with copy_for_nobody() as (folder, copy), Busy() as target:
        done = subprocess.run([copy, "attach", str(target.pid), "-o", os.path.join(folder, "r.md"), "--trace", "none"], capture_output=True, text=True, user=NOBODY, group=NOBODY, cwd=folder)
        require(done.returncode == 4 and str(NOBODY) in done.stderr, "%d %s" % (done.returncode, done.stderr))


def installed_setuid():
    """Whoever makes it setuid gives nothing away."""
    with copy_for_nobody() as (folder, copy), Busy() as target:
        for mode in (0o4755, 0o2755):
            os.chmod(copy, mode)
            done = subprocess.run([copy, "dump", str(target.pid)], capture_output=True, text=True, user=NOBODY, group=NOBODY, extra_groups=[], cwd=folder)
            require(done.returncode == 4 and "setuid" in done.stderr and not done.stdout, "%o: %d %s" % (mode, done.returncode, done.stderr))


def gil_not_to_be_had():
    """E_GIL: the attacher gives up, and nothing is armed when the GIL comes free later."""
    with tempfile.TemporaryDirectory() as folder, Keeper() as target:
        target.keep()
        refuse(6, "attach", target.pid, "--gil-timeout", "500ms", says="GIL", cwd=folder)
        require(not os.listdir(folder), "files were left")
        status, _, err = inferscope("attach", target.pid, "-d", "500ms", "--hook", "none", "--trace", "none", cwd=folder)
        require(status == 0, "samples alone, while the thread of that attach still waits: %d %s" % (status, err))
        target.tell()  # that it may let go
        wait_for(lambda: len(os.listdir("/proc/%d/task" % target.pid)) == 1, 30, "a thread of ours stays")
        require(is_free(target) and target.child.poll() is None, "it was armed after all, or harmed")
        require(inferscope("attach", target.pid, "-d", "500ms", cwd=folder)[0] == 0, "the next attach")


FILTERED = """
import ctypes, struct, time
libc, rules = ctypes.CDLL(None, use_errno=True), [(0x20, 0, 0, 0)]
calls = %r
for i, nr in enumerate(calls):
    rules.append((0x15, len(calls) - i, 0, nr))
code = b"".join(struct.pack("HBBI", *rule) for rule in rules + [(6, 0, 0, 0x7fff0000), (6, 0, 0, 0x80000000)])  # allow; kill the process
held = ctypes.create_string_buffer(code)
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(rules) + 2, ctypes.addressof(held)))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
""" % ([319, 219, 127] if os.uname().machine == "x86_64" else [279, 128, 136])  # memfd_create, restart_syscall, rt_sigpending


def samples_alone():
    """What stands in the way of entering a process does not stand in the way of --hook none: a filter that nobody can read, a limit, a stop. Nor does it harm it."""
    if os.geteuid() != 0:
        raise Skip("needs root to be without some of its rights")
    few = ["setpriv", "--bounding-set", "-all,+sys_ptrace,+dac_override", "--inh-caps", "-all", BINARY, "attach"]
    with tempfile.TemporaryDirectory() as folder, Busy(FILTERED + BUSY.replace("range(2000)", "range(200000)").replace("    inner()", "    inner(); time.sleep(0.001)")) as target:
        def attach(*words):
            done = subprocess.run(few + [str(target.pid), "-d", "1s", "--trace", "none", "--force", "-o", "r.json", *words], capture_output=True, text=True, cwd=folder)
            with open("/proc/%d/maps" % target.pid) as f:
                require("inferscope" not in f.read(), "it was entered")
            require(target.child.poll() is None, "it was killed: %s" % done.stderr)
            return done.returncode, done.stderr

        def sampled(*words):
            status, err = attach("--hook", "none", *words)
            with open(os.path.join(folder, "r.json")) as f:
                require(status == 0 and any("inner" in row["name"] for row in json.load(f)["functions"]), "%s: %d %s" % (words, status, err))

        status, err = attach()
        require(status == 6 and "seccomp filter" in err, "with hooks: %d %s" % (status, err))
        sampled("--native", "hold", "--rate", "1000")
        resource.prlimit(target.pid, resource.RLIMIT_NOFILE, (5, resource.prlimit(target.pid, resource.RLIMIT_NOFILE)[1]))
        sampled()
        os.kill(target.pid, signal.SIGSTOP)
        wait_for_state(target.pid, "T")
        status, err = attach("--hook", "none", "--native", "hold")
        require(status == 0 and "warning: it is stopped" in err, "stopped: %d %s" % (status, err))
        wait_for_state(target.pid, "T")
        os.kill(target.pid, signal.SIGCONT)
        sampled()


def few_rights():
    """What docs/SECURITY.md says suffices: two capabilities for a process of another user, one for one's own where Yama asks for it."""
    if os.geteuid() != 0:
        raise Skip("needs root to become somebody else")
    nobody = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
    with tempfile.TemporaryDirectory() as folder, Busy(argv=nobody + ["/usr/bin/python3"]) as target:
        os.chmod(folder, 0o777)
        shutil.copy(BINARY, os.path.join(folder, "inferscope"))
        for rights, words in ((0x80002, ["--bounding-set", "-all,+sys_ptrace,+dac_override", "--inh-caps", "-all"]),
                              (0x80000, nobody[1:] + ["--inh-caps", "-all,+sys_ptrace", "--ambient-caps", "+sys_ptrace"])):
            attach = Attaching(["setpriv", *words, os.path.join(folder, "inferscope"), "attach", target.pid, "-d", "60s", "-o", "%x.md" % rights, "--trace", "none"],
                               cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).begun()
            with open("/proc/%d/status" % attach.pid) as f:
                has = re.search(r"CapEff:\s*(\w+)", f.read())
            attach.send_signal(signal.SIGINT)
            _, err = attach.communicate(timeout=60)
            require(attach.returncode == 0 and has and int(has[1], 16) == rights, "%x: status %d with %s: %s" % (rights, attach.returncode, has and has[1], err))
        owners = [os.stat(os.path.join(folder, name)).st_uid for name in ("80002.md", "80000.md")]
        require(owners == [0, NOBODY], "the reports belong to %r" % owners)


def hooks_taken():
    """All ids of sys.monitoring belong to others: samples alone, and said so; hooks that were asked for are refused."""
    code = BUSY.replace("import os, time", "import os, sys, time\nfor i in range(6): sys.monitoring.use_tool_id(i, 'tool%d' % i)")
    newer = [p for p in PYTHONS if subprocess.run([p, "-c", "import sys; sys.exit(sys.version_info < (3, 12))"]).returncode == 0]
    if not newer:
        raise Skip("needs Python 3.12 or later")
    with Busy(code, argv=newer[-1:]) as target, tempfile.TemporaryDirectory() as folder:
        status, out, err = inferscope("attach", target.pid, "-d", "1s", "-o", "r.json", cwd=folder)
        require(status == 0 and "samples only" in err, "%d %s" % (status, err))
        with open(os.path.join(folder, "r.json")) as f:
            report = json.load(f)
        require(any("inner" in row["name"] for row in report["functions"]), "inner was not sampled")
        # Nobody asked for --native hold: no thread is held for a sample.
        require(not report["capture"]["counters"].get("sampler_holds"), "threads were held: %r" % report["capture"]["settings"])
        refuse(6, "attach", target.pid, "-d", "1s", "--hook", "monitoring", says="taken")
        require(is_free(target), "lanes are still mapped")


def recorder_that_never_began():
    """A flight recorder whose attach is refused has watched nothing, and says nothing of it."""
    newer = subprocess.run([PYTHON, "-c", "import sys; sys.exit(sys.version_info < (3, 12))"]).returncode == 0
    with Busy() as target, tempfile.TemporaryDirectory() as folder:
        status, _, err = inferscope("attach", target.pid, "--keep", "60s", "--hook", "setprofile" if newer else "monitoring", cwd=folder)
        require(status == 2 and "does not exist on Python" in err and "watched" not in err, "%d: %s" % (status, err))


def second_at_once():
    """While one measures, another is told so."""
    with Busy() as target, tempfile.TemporaryDirectory() as folder:
        first = measuring(target, "-d", "0", cwd=folder)
        refuse(6, "attach", target.pid, "-d", "1s", "-o", os.path.join(folder, "b.md"), says="measured")
        refuse(6, "detach", target.pid, says="measured")
        first.send_signal(signal.SIGINT)
        out, err = first.communicate(timeout=20)
        require(first.returncode == 0, err)


TESTS = (wrong_pids, own_pid, kernel_thread, other_processes, zombie, shell, old_pythons, stopped_target, traced_target, no_permission, installed_setuid, gil_not_to_be_had, samples_alone, few_rights, hooks_taken,
         recorder_that_never_began, second_at_once)
