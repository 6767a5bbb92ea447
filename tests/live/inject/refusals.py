"""Processes that cannot be entered, or not now: each is refused by its reason, and nothing of it changes. For tests/live/inject/run."""
import ctypes
import os
import signal
import subprocess
import tempfile
import time

import entering
from entering import BUILD, DRIVER, ROUNDS, Skip, Target, enter, label, last_line, preflight, python_target, require, run_test
from harness import state_of, wait_for_state

SLEEPER = '#include <stdio.h>\n#include <unistd.h>\nint main(void){printf("READY %d\\n",getpid());fflush(stdout);sleep(20);return 0;}\n'


def refused(pid, code, *texts):
    said = preflight(pid)
    line = [l for l in said.splitlines() if l.startswith("refused")]
    require(line and code in line[0] and all(text in line[0] for text in texts), "wanted %s %s, got: %s" % (code, texts, said))
    return line[0][9:]


def refuse_absent():
    return refused(999999999, "E_NO_PROCESS")


def refuse_zombie():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    wait_for_state(pid, "Z")
    try:
        return refused(pid, "E_ZOMBIE")
    finally:
        os.waitpid(pid, 0)


def refuse_kernel_thread():
    return refused(2, "E_KERNEL_THREAD")


def refuse_shell():
    with Target("/bin/sh", "-c", "echo READY $$; sleep 20") as target:
        return refused(target.pid, "E_NOT_PYTHON")


def refuse_thread(python):
    with python_target(python, "busy") as target:
        tids = [int(t) for t in os.listdir("/proc/%d/task" % target.pid) if int(t) != target.pid]
        said = refused(tids[0], "E_NO_PROCESS", "thread of process %d" % target.pid)
        target.end()
        return said


def refuse_stopped(python):
    with python_target(python, "idle") as target:
        os.kill(target.pid, signal.SIGSTOP)
        wait_for_state(target.pid, "T")
        said = refused(target.pid, "E_STOPPED")
        require(state_of(target.pid) == "T", "it was continued")
        os.kill(target.pid, signal.SIGCONT)
        enter(target.pid)
        target.end()
        return said


def refuse_traced(python):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    with python_target(python, "idle") as target:
        if libc.ptrace(0x4206, target.pid, None, None) != 0:
            raise Skip("cannot ptrace here")
        said = refused(target.pid, "E_ALREADY_TRACED", "by %d" % os.getpid())
        libc.ptrace(0x4207, target.pid, None, None)
        os.waitpid(target.pid, 0x40000000)
        libc.ptrace(17, target.pid, None, None)
        target.end()
        return said


def refuse_python(path):
    program = "import os,sys,time\nsys.stdout.write('READY %d\\n' % os.getpid())\nsys.stdout.flush()\ntime.sleep(30)"
    with Target(path, "-c", program) as target:
        return refused(target.pid, "E_PYTHON_VERSION", "Python " + label(path))


def refuse_user(python):
    if os.getuid() != 0:
        raise Skip("needs root to become somebody else")
    with python_target(python, "idle") as target, tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        copy = os.path.join(folder, "enter")
        subprocess.run(["cp", DRIVER, copy], check=True)
        said = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", copy, str(target.pid), "check"],
                              stdout=subprocess.PIPE, text=True).stdout
        require("refused: E_PERMISSION" in said and "uid 65534" in said, said)
        target.end()
        return [l for l in said.splitlines() if l.startswith("refused")][0][9:]


def refuse_capability(python):
    if os.getuid() != 0:
        raise Skip("needs root")
    with python_target(python, "idle") as target:
        said = subprocess.run(["setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace", DRIVER, str(target.pid), "check"],
                              stdout=subprocess.PIPE, text=True).stdout
        require("refused: E_CAPABILITY" in said and "sys_ptrace" in said, said)
        target.end()
        return [l for l in said.splitlines() if l.startswith("refused")][0][9:]


def refuse_files():
    """Root of a container that has CAP_SYS_PTRACE and nothing else: files in /proc of another user's process stay closed to it."""
    if os.getuid() != 0:
        raise Skip("needs root to become somebody else")
    child = subprocess.Popen(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "/usr/bin/python3", "-c", "import time; print('READY', flush=True); time.sleep(60)"],
                             stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        said = subprocess.run(["setpriv", "--bounding-set", "-all,+sys_ptrace", "--inh-caps", "-all", DRIVER, str(child.pid), "check"], stdout=subprocess.PIPE, text=True).stdout
    finally:
        child.kill()
        child.wait()
    require("refused: E_CAPABILITY" in said and "uid 65534 alone" in said, said)
    return [l for l in said.splitlines() if l.startswith("refused")][0][9:]


def refuse_dumpable(python):
    if os.getuid() != 0:
        raise Skip("needs root to become somebody else")
    program = ("import ctypes,os,time\nos.setgid(65534)\nos.setuid(65534)\nctypes.CDLL(None).prctl(4,0,0,0,0)\n"
               "print('READY',os.getpid(),flush=True)\ntime.sleep(30)")
    with tempfile.TemporaryDirectory() as folder, Target("/usr/bin/python3", "-c", program) as target:
        os.chmod(folder, 0o755)
        copy = os.path.join(folder, "enter")
        subprocess.run(["cp", DRIVER, copy], check=True)
        said = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", copy, str(target.pid), "check"],
                              stdout=subprocess.PIPE, text=True).stdout
    require("refused: E_DUMPABLE" in said, said)
    return [l for l in said.splitlines() if l.startswith("refused")][0][9:]


def refuse_uninitialised():
    """A C program with libpython mapped and never started."""
    library = [p for p in entering.pythons() if "versions" in p]
    if not library:
        raise Skip("no shared libpython")
    folder = os.path.join(os.path.dirname(os.path.dirname(library[-1])), "lib")
    name = [f for f in os.listdir(folder) if f.startswith("libpython3.") and f.endswith(".so.1.0")][0]
    with Target(os.path.join(BUILD, "registers"), "20", env={"LD_PRELOAD": os.path.join(folder, name)}) as target:
        return refused(target.pid, "E_NOT_PYTHON", "not initialised")


def refuse_musl():
    """A program on musl that says it is a Python."""
    if subprocess.run(["sh", "-c", "command -v musl-gcc"], stdout=subprocess.DEVNULL).returncode:
        raise Skip("no musl-gcc")
    with tempfile.TemporaryDirectory() as folder:
        program, source = os.path.join(folder, "pretend"), os.path.join(folder, "main.c")
        with open(source, "w") as file:
            file.write(SLEEPER)
        subprocess.run(["musl-gcc", "-w", "-rdynamic", "-o", program, source, os.path.join(entering.HERE, "pretend.c")], check=True)
        with Target(program) as target:
            return refused(target.pid, "E_LIBC", "musl")


def refuse_32_bit():
    with tempfile.TemporaryDirectory() as folder:
        program, source = os.path.join(folder, "small"), os.path.join(folder, "main.c")
        with open(source, "w") as file:
            file.write(SLEEPER)
        if subprocess.run(["cc", "-m32", "-w", "-o", program, source], stderr=subprocess.DEVNULL).returncode:
            raise Skip("the compiler makes no 32-bit programs here")
        with Target(program) as target:
            return refused(target.pid, "E_ARCHITECTURE", "32-bit")


def refuse_unknown_call(env):
    """Its only thread waits in a call of which nobody knows how it takes a stop: left alone."""
    with tempfile.TemporaryDirectory() as folder:
        fifo = os.path.join(folder, "fifo")
        os.mkfifo(fifo)
        with Target(os.path.join(BUILD, "blocked"), "open", "1", env=dict(env, FIFO=fifo)) as target:
            time.sleep(0.2)
            switches = [l for l in open("/proc/%d/status" % target.pid) if "voluntary" in l]
            code, said = enter(target.pid, "timeout_ms=500", ok=(4,))
            require(said.startswith("E_NO_THREAD"), said)
            require(switches == [l for l in open("/proc/%d/status" % target.pid) if "voluntary" in l], "it was stopped")
            return said.splitlines()[0]


def refuse_limits(python):
    """No address space left, or no descriptors: said beforehand."""
    import resource
    with python_target(python, "idle") as target:
        size = int([l for l in open("/proc/%d/status" % target.pid) if l.startswith("VmSize")][0].split()[1]) * 1024
        old = resource.prlimit(target.pid, resource.RLIMIT_AS, (size + (4 << 20), -1))
        said = refused(target.pid, "E_INJECT", "address space limit")
        resource.prlimit(target.pid, resource.RLIMIT_AS, old)
        old_hard = resource.prlimit(target.pid, resource.RLIMIT_NOFILE)[1]
        old = resource.prlimit(target.pid, resource.RLIMIT_NOFILE, (5, old_hard))
        said += " / " + refused(target.pid, "E_INJECT", "files open")
        resource.prlimit(target.pid, resource.RLIMIT_NOFILE, old)
        target.end()
        return said


def refuse_locked():
    """It has locked its memory and may lock no more: said beforehand, as what it maps later would be refused to it."""
    if os.getuid() != 0:
        raise Skip("needs root to become somebody else")
    program = ("import ctypes,os,time,resource,signal\nended=[]\nlocked=ctypes.CDLL(None).mlockall(3)\nsoft=1<<20\nresource.setrlimit(resource.RLIMIT_MEMLOCK,(soft,soft))\n"
               "os.setgid(65533)\nos.setuid(65533)\nsignal.signal(signal.SIGTERM,lambda *a:ended.append(1))\nprint('READY',os.getpid(),flush=True)\nfor i in range(3000):\n if ended: break\n time.sleep(0.01)\n"
               "print('OK' if not locked else 'FAIL','locked',flush=True)")
    with Target("/usr/bin/python3", "-c", program) as target:
        said = refused(target.pid, "E_INJECT", "its memory is locked")
        target.end()
        return said


def no_thread_can_be_made():
    """clone() fails in the target (its user has no processes left): said, and nothing changes."""
    if os.getuid() != 0:
        raise Skip("needs root to become somebody else")
    program = ("import os,time,resource,signal\nended=[]\nos.setgid(65533)\nos.setuid(65533)\nresource.setrlimit(resource.RLIMIT_NPROC,(1,1))\n"
               "signal.signal(signal.SIGTERM,lambda *a:ended.append(1))\nprint('READY',os.getpid(),flush=True)\nfor i in range(3000):\n if ended: break\n time.sleep(0.01)\n"
               "b=[l for l in open('/proc/self/status') if l.startswith('SigBlk')][0].split()[1]\nprint('OK' if int(b,16)==0 else 'FAIL','nproc',b,flush=True)")
    with Target("/usr/bin/python3", "-c", program) as target:
        code, said = enter(target.pid, "rounds=2", ok=(4,))
        require("no thread could be made in it: Resource temporarily unavailable" in said, said)
        target.end()
        return said.splitlines()[0]


def full_group(python):
    """Its control group has no task left, for the raw thread or for the real one: said, nothing stays, and later it is entered."""
    folder = "/sys/fs/cgroup/pids/inferscope-test-%d" % os.getpid()
    try:
        os.mkdir(folder)
    except OSError as error:
        raise Skip("no pids control group on this kernel to make one in: %s" % error)
    put = lambda name, text: open(os.path.join(folder, name), "w").write(str(text))
    try:
        with python_target(python, "idle") as target:
            before, said = entering.snapshot(target.pid), []
            put("cgroup.procs", target.pid)
            tasks = int(open(os.path.join(folder, "pids.current")).read())
            for left, reason in ((0, "no thread could be made in it"), (1, "pthread_create in it")):
                put("pids.max", tasks + left)
                _, words = enter(target.pid, ok=(4,))
                require(reason in words and "Resource temporarily unavailable" in words, words)
                said.append(words.splitlines()[0])
                entering.settle(target.pid, before)
            put("pids.max", "max")
            enter(target.pid, "rounds=2")
            target.end()
            return " | ".join(said)
    finally:
        end = time.monotonic() + 5
        while os.path.exists(folder) and time.monotonic() < end:
            try:
                os.rmdir(folder)
            except OSError:
                time.sleep(0.05)


def seccomp_target(python, action, calls):
    """A Python that installs a filter with ACTION for CALLS."""
    program = """
import ctypes, os, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
rules = []
calls, action = %r, %d
rules.append((0x20, 0, 0, 0))
for i, nr in enumerate(calls):
    rules.append((0x15, len(calls) - i, 0, nr))
rules.append((6, 0, 0, 0x7fff0000))
rules.append((6, 0, 0, action))
code = b"".join(struct.pack("HBBI", *r) for r in rules)
buffer = ctypes.create_string_buffer(code)
import signal
ticks = [0]
signal.signal(signal.SIGALRM, lambda *a: ticks.__setitem__(0, ticks[0] + 1))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)  # its signals cannot be blocked from outside: they may come on top of the stub
program = struct.pack("HxxxxxxQ", len(rules), ctypes.addressof(buffer))
held = ctypes.create_string_buffer(program)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, held, 0, 0) == 0
print("READY", os.getpid(), flush=True)
end, bad = time.monotonic() + 100, 0
signal.signal(signal.SIGTERM, lambda *a: globals().update(end=0))
while time.monotonic() < end:
    bad += sum(range(1000)) != 499500
    time.sleep(0.005)
blocked = [l for l in open("/proc/self/status") if l.startswith("SigBlk")][0].split()[1]
print("FAIL" if bad or int(blocked, 16) else "OK", "seccomp", bad, blocked, flush=True)
os._exit(1 if bad else 0)
""" % (list(calls), action)
    return Target(python, "-c", program)


KILL, ERRNO, NOSYS, TRAP = 0x80000000, 0x00050001, 0x00050026, 0x00030000
NAMES = {"mmap": 9, "rt_sigprocmask": 14, "clone": 56, "rt_sigpending": 127, "memfd_create": 319, "rt_sigaction": 13, "mprotect": 10, "clone3": 435, "prctl": 157, "sched_getaffinity": 204}


def seccomp(python, name, action, allowed):
    with seccomp_target(python, action, [NAMES[name]]) as target:
        code, said = enter(target.pid, "rounds=%d" % (ROUNDS if allowed else 1), "gap_us=500", ok=(0, 4))
        require((code == 0) == allowed, "status %d: %s" % (code, said))
        require(allowed or said.startswith(("E_SECCOMP", "E_INJECT: cannot attach to %d: pthread_create" % target.pid)), said)
        time.sleep(0.1)
        target.end()
        return last_line(said)


def run_tests(python, preload):
    run_test("refuse absent", refuse_absent)
    run_test("refuse zombie", refuse_zombie)
    run_test("refuse kernel thread", refuse_kernel_thread)
    run_test("refuse shell", refuse_shell)
    run_test("refuse a thread", refuse_thread, python)
    run_test("refuse stopped", refuse_stopped, python)
    run_test("refuse traced", refuse_traced, python)
    for old in ("2.7.18", "3.6.15", "3.7.16"):
        path = os.path.expanduser("~/.pyenv/versions/%s/bin/python" % old)
        if os.path.exists(path):
            run_test("refuse " + old, refuse_python, path)
    run_test("refuse other user", refuse_user, python)
    run_test("refuse capability", refuse_capability, python)
    run_test("refuse closed files", refuse_files)
    run_test("refuse dumpable", refuse_dumpable, python)
    run_test("refuse uninitialised", refuse_uninitialised)
    run_test("refuse musl", refuse_musl)
    run_test("refuse 32-bit", refuse_32_bit)
    run_test("refuse unknown call", refuse_unknown_call, preload)
    run_test("refuse limits", refuse_limits, python)
    run_test("refuse locked", refuse_locked)
    run_test("no thread can be made", no_thread_can_be_made)
    run_test("no task left in its control group", full_group, python)
    for name, action, allowed in (("clone", ERRNO, False), ("mmap", ERRNO, False), ("memfd_create", ERRNO, False), ("rt_sigprocmask", ERRNO, False),
                                  ("rt_sigpending", ERRNO, True), ("clone3", NOSYS, True), ("clone3", ERRNO, False), ("clone", KILL, False), ("memfd_create", TRAP, False),
                                  ("rt_sigpending", KILL, False), ("prctl", KILL, False), ("sched_getaffinity", KILL, False), ("prctl", ERRNO, True)):
        run_test("seccomp %s %x" % (name, action), seccomp, "/usr/bin/python3", name, action, allowed)
