"""Storms of whole sessions on target.py, and what must be true of it afterwards. For tests/torture/run."""
import concurrent.futures
import glob
import os
import random
import signal
import subprocess
import time

import harness
from harness import Skip, Target, footprint, require, state_of, thread_names

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.path.join(HERE, "target.py")
LOOP = os.path.join(os.environ.get("BUILD", os.getcwd()), "tests/torture/attach_loop")
ALLOCATORS = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4", "mimalloc": "libmimalloc.so.2.0"}
BATCH = 250  # attaches per process


def ask(target, word, answer, seconds=60):
    target.child.stdin.write((word + "\n").encode())
    target.child.stdin.flush()
    return target.expect(answer, seconds)


def driver(pid, *words, seconds=900):
    """The driver on PID. Returns (exit status, its line, what it complained of)."""
    done = subprocess.run([LOOP, str(pid)] + ["%s" % w for w in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=seconds)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def loop(pid, *words):
    """The driver on PID, which must succeed. Returns its line."""
    status, said, complaints = driver(pid, *words)
    require(status == 0, "driver: exit status %s: %s | %s" % (harness.status_text(status), harness.tail(complaints, 250), said))
    return said


def text_changed(pid):
    """Places where the code of the executable and its libraries is not what their files hold, other than the padding behind it."""
    changed, looked = [], 0
    with open("/proc/%d/maps" % pid) as f:
        rows = [line.split(None, 5) for line in f]
    with open("/proc/%d/mem" % pid, "rb", buffering=0) as memory:
        for row in rows:
            path = row[5].strip() if len(row) > 5 else ""
            if "x" not in row[1] or not path.startswith("/") or "memfd:" in path:
                continue
            start, end = (int(word, 16) for word in row[0].split("-"))
            file = next((p for p in (path, "/proc/%d/root%s" % (pid, path)) if os.path.exists(p) and os.stat(p).st_ino == int(row[4])), None)
            if not file:
                continue
            try:
                memory.seek(start)
                now = memory.read(end - start)
            except OSError:
                continue  # unmapped meanwhile
            with open(file, "rb") as f:
                f.seek(int(row[2], 16))
                then = f.read(len(now))
            looked += 1
            changed += differences(path, now[:len(then)], then)
    require(looked >= 3, "only %d mapped files could be compared" % looked)
    return changed


def differences(path, now, then):
    found = []
    for at in range(0, len(then), 4096):
        if now[at:at + 4096] != then[at:at + 4096]:
            found += ["%s+%#x: %02x instead of %02x" % (os.path.basename(path), at + i, a, b) for i, (a, b) in enumerate(zip(now[at:at + 4096], then[at:at + 4096])) if a != b and b]
    return found


def without_guest(pid):
    """A guest whose attacher died waits for an answer for 8 s; then there is no thread of ours."""
    end = time.monotonic() + 30
    while "inferscope" in thread_names(pid) and time.monotonic() < end:
        time.sleep(0.1)
    require("inferscope" not in thread_names(pid), "a thread of ours stayed")


def unharmed(target, before, signals):
    """Nothing of ours is at work in it, its threads block what they blocked, and it says that all its results were right."""
    require(state_of(target.pid) in "RSD", "the target is in state " + state_of(target.pid))
    found = ask(target, "hooks", "HOOKS")
    require(found == "HOOKS none", "still hooked: " + found)
    now = ask(target, "blocked", "BLOCKED")
    require(now == signals, "signals blocked: %s instead of %s" % (now, signals))
    without_guest(target.pid)
    with open("/proc/%d/maps" % target.pid) as f:
        require("/memfd:inferscope-lanes" not in f.read(), "our shared memory stayed mapped")
    changed = text_changed(target.pid)
    require(not changed, "changed code: " + ", ".join(changed[:3]))
    maps = footprint(target.pid)[0]
    status, last = target.finish(120)
    require(status == 0 and last.startswith("OK"), "the target ended with %s: %s %s" % (harness.status_text(status), last, target.errors()))
    require(not target.errors(), "the target said on stderr: " + target.errors())
    return "mappings %d then %d; %s" % (before[0], maps, last)


def storm(world, python, *words, kind="all", env=None):
    with Target(python, TARGET, "--kind", kind, env=env) as target:
        signals = ask(target, "blocked", "BLOCKED")
        before = footprint(target.pid)
        try:
            said = loop(target.pid, *words)
        except harness.Fail as why:
            raise harness.Fail("%s; the target %s %s" % (why, "ended with " + harness.status_text(target.child.wait()) if state_of(target.pid) in ("gone", "Z") else "lives", target.errors()))
        if "kill=" in " ".join(words):
            time.sleep(2.2)  # the dead man's switch
        return said + " | " + unharmed(target, before, signals)


def rounds(world, python):
    """As many attaches as were asked for, in several processes one after the other."""
    said, left = [], world.rounds
    while left > 0:
        said.append(storm(world, python, "rounds=%d" % min(left, BATCH), "record_ms=5"))
        left -= BATCH
    return " || ".join(said)


def loader(world, python):
    """The raw thread's storage initialised 400 times as often, while libraries come and go and threads begin and end."""
    return storm(world, python, "rounds=%d" % max(10, world.rounds // 10), "record_ms=2", "tls_repeat=400", "any=1", kind="loader")


def forks(world, python):
    """A program that forks all the time and makes no thread: no child may inherit a lock of the interpreter's from a thread of ours (gh-112275)."""
    with Target(python, TARGET, "--kind", "forks", "--pause", "0") as target:
        before, signals = footprint(target.pid), ask(target, "blocked", "BLOCKED")
        said = loop(target.pid, "rounds=%d" % max(40, world.rounds // 4), "record_ms=1")
        return said + " | " + unharmed(target, before, signals)


def killed_moments(world, python):
    return storm(world, python, "kill=moments", "rounds=%d" % (12 if world.quick else 200), "record_ms=60")


def small_process(attacher):
    """The one that holds threads for ATTACHER, or 0."""
    for path in glob.glob("/proc/%d/task/*/children" % attacher):
        try:
            with open(path) as f:
                for child in f.read().split():
                    with open("/proc/%s/comm" % child) as name:
                        if name.read().strip() == "inferscope-hold":
                            return int(child)
        except OSError:
            pass
    return 0


def killed_holding(world, python):
    """Attachers that hold threads a thousand times a second for their native frames, SIGKILLed meanwhile: every other one loses its small process first."""
    dice, kills, holding = random.Random(), 10 if world.quick else world.rounds // 5, 0
    with Target(python, TARGET, "--kind", "held", "--pause", "0.002") as target:
        signals, before = ask(target, "blocked", "BLOCKED"), footprint(target.pid)
        for i in range(kills):
            attach = world.attach(target.pid, "-d", "60s", "--native=hold", "--hook", "none", "--rate", "1000")
            small, end = 0, time.monotonic() + 30
            while not small and attach.child.poll() is None and time.monotonic() < end:
                small = small_process(attach.child.pid)
            require(small, "nothing holds threads: " + (harness.tail(attach.err) if attach.child.poll() is not None else "no process of its own"))
            time.sleep(dice.random() * 0.3)
            for pid in [small, attach.child.pid][i % 2:]:
                try:
                    os.kill(pid, signal.SIGKILL)
                    holding += pid == small
                except ProcessLookupError:
                    pass
            attach.wait(30)
        end = time.monotonic() + 5
        while os.path.exists("/proc/%d" % small) and time.monotonic() < end:
            time.sleep(0.02)
        require(not os.path.exists("/proc/%d" % small), "the small process outlives its attacher")
        return "%d attachers killed, %d of them after their small process | %s" % (kills, holding, unharmed(target, before, signals))


def killed_footprint(world, python):
    """What attachers that died leave: memory that is counted, no descriptor, no thread."""
    with Target(python, TARGET, "--kind", "gil") as target:
        loop(target.pid, "rounds=3", "record_ms=2")
        time.sleep(0.5)
        before = footprint(target.pid)
        kills = 32
        said = loop(target.pid, "kill=steps", "rounds=%d" % kills, "record_ms=2")
        time.sleep(1.2)  # a raw thread without its attacher waits for a second
        without_guest(target.pid)
        after = footprint(target.pid)
        require(after[1] <= before[1] and after[2] <= before[2], "fds or threads grew: %s, %s" % (before, after))
        require(after[0] <= before[0] + kills + 8, "mappings grew: %s, %s" % (before, after))
        status, last = target.finish(60)
        require(status == 0, last)
        return "%s | mappings, fds, threads %s then %s" % (said, before, after)


def single_once(python, cpu):
    """One process with one thread, entered once."""
    env = {"MALLOC_ARENA_MAX": "1", "PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": "165"}
    with Target(harness.Python(python.name, ["taskset", "-c", str(cpu)] + python.argv, python.version, python.view), TARGET, "--kind", "single", env=env, ready=120) as target:
        time.sleep(0.02)
        status, said, complaints = driver(target.pid, "rounds=1", "record_ms=100")
        require(status in (0, 3), "driver: " + harness.tail(complaints))
        time.sleep(0.5)  # a heap that was harmed shows when it is used
        status, last = target.finish(60)
        require(status == 0 and last.startswith("OK"), "the target ended with %s: %s %s" % (harness.status_text(status), last, target.errors()))
        return "good=1" in said


def single(world, python):
    """All of Python's memory from malloc, one arena, one CPU, one attach per process: glibc takes no locks there."""
    count = 6 if world.quick else 30
    cpus = sorted(os.sched_getaffinity(0))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        entered = list(pool.map(lambda i: single_once(python, cpus[i % len(cpus)]), range(count)))
    require(sum(entered) * 2 >= count, "only %d of %d could be entered" % (sum(entered), count))
    return "%d processes, %d entered" % (count, sum(entered))


def preload(name):
    def test(world, python):
        paths = [os.path.join(folder, ALLOCATORS[name]) for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib")]
        path = next((p for p in paths if os.path.exists(p)), None)
        if not path:
            raise Skip("%s is not installed here" % ALLOCATORS[name])
        return storm(world, python, "rounds=%d" % (20 if world.quick else 200), "record_ms=5", env={"LD_PRELOAD": path})
    return test
