"""`inferscope run` against plain python: the same output, the same errors, the same end, for each of these programs."""
import fcntl
import os
import re
import signal
import subprocess
import termios
import time

from harness import Fail, require, status_text, tail

# name: (arguments before the script, script or None, arguments after it, text on stdin, environment)
SCRIPTS = {
    "hello": ([], "print('hello')", [], "", {}),
    "argv": ([], "import sys; print(sys.argv, sys.path[0] != '', __name__, __file__)", ["a b", "--report", "x", "-h"], "", {}),
    "exit-3": ([], "import sys; print('before'); sys.exit(3)", [], "", {}),
    "exit-text": ([], "import sys; sys.exit('a reason')", [], "", {}),
    "exit-none": ([], "raise SystemExit", [], "", {}),
    "os-exit": ([], "import os; os._exit(9)", [], "", {}),
    "uncaught": ([], "def f():\n    raise ValueError('trouble')\nf()", [], "", {}),
    "syntax-error": ([], "def f(:\n", [], "", {}),
    "sigterm": ([], "import os, signal; os.kill(os.getpid(), signal.SIGTERM)", [], "", {}),
    "sigkill": ([], "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", [], "", {}),
    "stdin": ([], "import sys\nfor line in sys.stdin: print(line.strip()[::-1])", [], "one\ntwo\n", {}),
    "stderr": ([], "import sys; print('out'); print('err', file=sys.stderr); sys.stderr.write('no newline')", [], "", {}),
    "bytes": ([], "import sys; sys.stdout.buffer.write(bytes(range(256)))", [], "", {}),
    "main": ([], "import __main__, sys; print(sorted(k for k in vars(__main__) if not k.startswith('__cached')), sys.modules['__main__'] is __main__)", [], "", {}),
    "flags": ([], "import sys; print([getattr(sys.flags, f) for f in ('debug', 'inspect', 'interactive', 'optimize', 'no_site', 'verbose', 'dev_mode', 'utf8_mode')])", [], "",
              {"PYTHONOPTIMIZE": "1"}),
    "environment": ([], "import os; print(sorted(k for k in os.environ if not k.startswith('INFERSCOPE') and k != '_'))", [], "", {"MINE": "1"}),
    "preload": ([], "import os, sys; print([k for k in os.environ if k.startswith(('LD_', 'PYTHON'))], 'sitecustomize' in sys.modules, sys.gettrace(), sys.getprofile())", [], "", {}),
    "threads": ([], "import threading\nout = []\nts = [threading.Thread(target=out.append, args=(i,)) for i in range(20)]\n[t.start() for t in ts]; [t.join() for t in ts]\nprint(sorted(out))", [], "", {}),
    "atexit": ([], "import atexit, threading, time\natexit.register(print, 'last words')\nthreading.Thread(target=time.sleep, args=(30,), daemon=True).start()\nprint('done')", [], "", {}),
    "fork": ([], "import os\npid = os.fork()\nif pid == 0:\n    os._exit(4)\nprint(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) if hasattr(os, 'waitstatus_to_exitcode') else 4)", [], "", {}),
    "spawn": ([], "import multiprocessing\ndef square(x):\n    return x * x\nif __name__ == '__main__':\n    with multiprocessing.get_context('spawn').Pool(2) as pool:\n        print(pool.map(square, range(5)))", [], "", {}),
    "subprocess": ([], "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'print(6 * 7)'], stdout=subprocess.PIPE).stdout)", [], "", {}),
    "exec": ([], "import os, sys\nsys.stdout.flush()\nos.execv(sys.executable, [sys.executable, '-c', 'import sys; print(\"second\"); sys.exit(5)'])", [], "", {}),
    "signals": ([], "import signal\nprint([signal.getsignal(s) for s in (signal.SIGPIPE, signal.SIGINT, signal.SIGCHLD)] and sorted(signal.pthread_sigmask(0, [])))", [], "", {}),
    "recursion": ([], "def f(n):\n    return f(n + 1)\ntry:\n    f(0)\nexcept RecursionError:\n    print('caught')", [], "", {}),
    "fds": ([], "import os; print(sorted(int(f) for f in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + f) and int(f) < 3))", [], "", {}),
    "short": ([], "pass", [], "", {}),
    "module": (["-m", "json.tool"], None, [], '{"a": [1, 2]}', {}),
    "code": (["-c", "import sys; print(sys.argv, __name__); sys.exit(6)"], None, ["x", "-y"], "", {}),
    "missing": ([], None, [], "", {}),
}
QUICK = ["3.8.18", "3.11.7", "system", "3.13.0"]


def tests(world):
    for python in world.pythons:
        if python.view or (world.quick and python.name not in QUICK):
            continue
        yield "launching/%s" % python.name, lambda w, p=python: compare_all(w, p)
        yield "launching/%s/interrupt" % python.name, lambda w, p=python: interrupt(w, p)
        yield "launching/%s/forwarded" % python.name, lambda w, p=python: forwarded(w, p)
        yield "launching/%s/threads_later" % python.name, lambda w, p=python: threads_later(w, p)


def outcome(command, folder, stdin, env):
    try:
        done = subprocess.run(command, input=stdin.encode(), capture_output=True, cwd=folder, env=env, timeout=60)
    except subprocess.TimeoutExpired:
        raise Fail("did not end within 60 s: %s" % " ".join(command[:6]))
    # addresses and thread ids in tracebacks and reprs differ from run to run
    clean = lambda data: re.sub(rb"0x[0-9a-f]{6,}", b"0x..", data)
    return done.returncode, clean(done.stdout), clean(done.stderr)


def compare_all(world, python):
    wrong = []
    for name, (before, source, after, stdin, extra) in SCRIPTS.items():
        script = os.path.join(world.folder, "script-%s.py" % name)
        if source is not None:
            with open(script, "w") as f:
                f.write(source)
        tail_of = before + ([] if before else [script]) + after
        env = dict(world.env(), **extra)
        plain = outcome(python.argv + tail_of, world.folder, stdin, env)
        ours = outcome([world.binary, "run", "--report", world.path("run.md"), "--trace", "none", "--force", "--log-level", "error", "--python", python.argv[0]] + tail_of,
                       world.folder, stdin, env)
        wanted = plain[0] if plain[0] >= 0 else (plain[0], 128 - plain[0])
        if ours[0] not in (wanted if isinstance(wanted, tuple) else (wanted,)):
            wrong.append("%s: status %s instead of %s (%s)" % (name, status_text(ours[0]), status_text(plain[0]), tail(ours[2].decode(errors="replace"), 160)))
        elif ours[1] != plain[1]:
            wrong.append("%s: stdout %r instead of %r" % (name, ours[1][-120:], plain[1][-120:]))
        elif not ours[2].startswith(plain[2]):
            wrong.append("%s: stderr %r does not begin as plain python's %r" % (name, ours[2][:200], plain[2][:200]))
    require(not wrong, "%d of %d differ: %s" % (len(wrong), len(SCRIPTS), "; ".join(wrong)))
    return "%d programs" % len(SCRIPTS)


WAITING = """import sys, time
try:
    print('up', flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print('interrupted', flush=True)
    raise SystemExit(8)
"""


# 200 functions that are called equally often: none is left out, so that windows are all there is. Two threads for most of the time, and the end alone, which forks.
THREADS_LATER = """import os, threading, time
made = {}
for i in range(200):
    exec("def f%d(x):\\n    return x + %d" % (i, i), made)
exec("def each(n):\\n" + "".join("    n = f%d(n) & 255\\n" % i for i in range(200)) + "    return n", made)
def work(end, each=made["each"], n=0):
    while time.monotonic() < end:
        n = each(n)
end = time.monotonic() + 6
work(end - 5.5)
other = threading.Thread(target=work, args=(end,))
other.start()
work(end)
other.join()
work(end + 2)
if os.fork() == 0:
    os._exit(0)
os.wait()
"""


def threads_later(world, python):
    """A program has one thread at first, as each has under `run`: once it has another, hooks are on again and again; and its forks warn of no thread of ours later."""
    script = world.path("later.py")
    with open(script, "w") as f:
        f.write(THREADS_LATER)
    ran = world.run("run", "-o", world.path("run.json"), "--trace", world.path("run.iscope"), "--force", "--python", python.argv[0], script).expect(0, 90)
    require("multi-threaded" not in ran.err, tail(ran.err))
    opened = world.run("dump-trace", world.path("run.iscope")).expect(0).out.count(" window_on ")
    require(opened > 7, "%d windows in 8 s" % opened)
    return "%d windows" % opened


def start_waiting(world, python, **kwargs):
    script = world.path("wait.py")
    with open(script, "w") as f:
        f.write(WAITING)
    child = subprocess.Popen([world.binary, "run", "-o", world.path("run.json"), "--trace", "none", "--python", python.argv[0], script], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, env=world.env(), cwd=world.folder, start_new_session=True, **kwargs)
    require(child.stdout.readline() == "up\n", "the script did not start")
    time.sleep(0.5)
    return child


def expect_interrupted(world, child):
    try:
        out, err = child.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        raise Fail("it did not end after the signal")
    require(child.returncode == 8 and out == "interrupted\n", "status %s, stdout %r, %s" % (status_text(child.returncode), out, tail(err)))
    require(world.report("run.json")["functions"], "no functions in the report")


def interrupt(world, python):
    """Ctrl-C on a terminal goes to both; the script sees it once, the report is written all the same."""
    master, slave = os.openpty()
    child = start_waiting(world, python, stdin=slave, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.write(master, b"\x03")
    expect_interrupted(world, child)
    os.close(slave)
    os.close(master)


def forwarded(world, python):
    """A signal sent to inferscope alone is the script's."""
    child = start_waiting(world, python, stdin=subprocess.DEVNULL)
    child.send_signal(signal.SIGINT)
    expect_interrupted(world, child)
