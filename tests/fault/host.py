"""A machine in trouble: calls of the attacher's fail, one after another: allocations, mappings, threads, reads, writes; opening, naming and syncing files; reading
the process's memory, starting children, other system calls. It must end with a documented status and one or two lines, or with the whole report; never by a signal, never with half a file; and the
process that it measures must not notice, nor a program that it starts. INFERSCOPE_ROUNDS=100000: every call of each kind (hours; two processes at a time). Part of tests/fault/run."""
import collections
import concurrent.futures
import contextlib
import json
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from common import Fail, QUICK, python_target, require, run_test

BUILD = os.environ.get("BUILD", os.getcwd())
BINARY = os.path.join(BUILD, "inferscope")
FAILING = os.path.join(BUILD, "tests/fault/failing.so")
# How many calls of a kind fail, each in a run of its own.
ROUNDS = int(os.environ.get("INFERSCOPE_ROUNDS", "6" if QUICK else "200"))
HANDS = 2
ENOUGH = 20  # failures, to see what they have in common
PATIENCE_S = 19  # one second less than an attach waits for a thread of its own that hangs
DOCUMENTED = {0, 2, 3, 4, 5, 6, 7, 8, 9, 10}
IN_SHORT = ["allocation", "disk full", "open", "remote memory"]
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "import")
ENOMEM, EAGAIN, EIO, EMFILE, ENOSPC, EROFS, EDQUOT = 12, 11, 5, 24, 28, 30, 122
# kind of call, what it says, whether it goes on failing
TROUBLES = {
    "allocation": ("memory", ENOMEM, False), "no memory any more": ("memory", ENOMEM, True), "mapping": ("map", ENOMEM, False), "thread": ("thread", EAGAIN, False),
    "write": ("write", EIO, False), "disk full": ("write", ENOSPC, True), "quota": ("write", EDQUOT, True), "read": ("read", EIO, False),
    "open": ("open", EMFILE, False), "no descriptors any more": ("open", EMFILE, True), "sync, size or name": ("place", EIO, False), "read-only": ("place", EROFS, True),
    "remote memory": ("remote", EIO, False), "child": ("process", EAGAIN, False), "system call": ("kernel", EMFILE, False),
}


def inferscope(folder, words, kind=None, at=0, error=0, on=False, slow=0):
    """(status, stderr, calls of that kind)"""
    env = {key: value for key, value in os.environ.items() if not key.startswith("INFERSCOPE")}
    if kind:
        env.update(failing(folder, kind, at, error, on))
    if slow:
        env["FAILING_SLOW"] = str(slow)
    try:
        done = subprocess.run([BINARY, *map(str, words)], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        raise Fail("%s call %d (%s) fails: not done after %d s" % (kind, at, where(folder), PATIENCE_S))
    return done.returncode, done.stderr, counted(folder)


def failing(folder, kind, at, error, on):
    """The environment in which that call fails."""
    for name in ("count", "where"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))
    return {"LD_PRELOAD": FAILING, "FAILING_KIND": kind, "FAILING_AT": str(at), "FAILING_ERROR": str(error), "FAILING_ON": str(int(on)), "FAILING_COUNT": os.path.join(folder, "count"),
            "FAILING_WHERE": os.path.join(folder, "where")}


def counted(folder):
    """How many calls there were in the process that made most; none where it was killed."""
    with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, "count")) as f:
        return max((int(line) for line in f), default=0)
    return 0


def where(folder):
    """The line of the program whose call failed."""
    path = os.path.join(folder, "where")
    if not os.path.exists(path):
        return "nowhere"
    with open(path) as f:
        lines = subprocess.run(["addr2line", "-i", "-s", "-e", BINARY, f.read().strip()], capture_output=True, text=True).stdout.split()
    return " in ".join(lines)


def each(calls, hands, attempt):
    """attempt(hand, at) for the calls that are to fail, by whichever hand is free. Goes on after a failure: all are told together. Says what they ended with."""
    free, wrong = queue.SimpleQueue(), []
    for hand in hands:
        free.put(hand)

    def once(at):
        if len(wrong) >= ENOUGH:
            return None
        hand = free.get()
        try:
            return attempt(hand, at)
        except (Fail, subprocess.TimeoutExpired) as reason:
            wrong.append("call %d: %s" % (at, reason))
        finally:
            free.put(hand)

    places = spread(calls)
    with concurrent.futures.ThreadPoolExecutor(len(hands)) as pool:
        ends = collections.Counter(pool.map(once, places))
    require(not wrong, "%d of %d: %s" % (len(wrong), len(places), " | ".join(sorted(set(wrong)))))
    return "%d calls, %d failed; ended with %s" % (calls, len(places), ", ".join("%d (%d times)" % pair for pair in sorted(ends.items())))


@contextlib.contextmanager
def folders():
    """One for each hand."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(tempfile.TemporaryDirectory(prefix="inferscope-host-")) for _ in range(HANDS)]


@contextlib.contextmanager
def targets():
    """A folder and a busy process for each hand."""
    with contextlib.ExitStack() as stack, folders() as places:
        yield [(place, stack.enter_context(python_target(sys.executable, "busy"))) for place in places]


def library_closed(pid):
    """The thread of an attacher that gave up in the middle waits for a word for some seconds, and takes its descriptor with it."""
    until = time.monotonic() + 15
    while True:
        links = []
        for name in os.listdir("/proc/%d/fd" % pid):
            with contextlib.suppress(FileNotFoundError):
                links.append(os.readlink("/proc/%d/fd/%s" % (pid, name)))
        if not any(link.startswith("/memfd:inferscope") for link in links):
            return
        require(time.monotonic() < until, "the library's descriptor stays: %s" % links)
        time.sleep(0.1)


def work_on(hands):
    """None of the processes has noticed anything."""
    for _, target in hands:
        library_closed(target.pid)
    return "; ".join(target.end(stop=True, timeout=120) for _, target in hands)


def spread(calls):
    """Which calls are to fail: the first ones, where most happens, and others at equal distances."""
    first = list(range(1, min(calls, ROUNDS // 2) + 1))
    step = max(1, (calls - len(first)) // max(1, ROUNDS - len(first)))
    return first + list(range(len(first) + 1, calls + 1, step))[:ROUNDS - len(first)]


def is_json(text):
    try:
        return bool(json.loads(text))
    except ValueError:
        return False


def judge(folder, trouble, at, status, said, whole):
    place = "%s %d (%s) fails: status %d" % (trouble, at, where(folder), status)
    left = [name for name in os.listdir(folder) if name not in ("count", "where", "T.iscope")]
    text = None
    if "report.json" in left:
        with open(os.path.join(folder, "report.json")) as f:
            text = f.read()
    for name in left:
        os.unlink(os.path.join(folder, name))
    require(status in DOCUMENTED, "%s: %s" % (place, said.strip()[-200:]))
    lines = [line for line in said.splitlines() if line.startswith("inferscope: ") and not line.startswith("inferscope: warning")]
    require(status == 0 or lines, "%s, and not a word of it" % place)
    require(status != 4, "%s, and no permission is missing: %s" % (place, said.strip()[-200:]))
    require(text is not None or status != 0, "%s, and there is no report" % place)
    require(text is None or (is_json(text) and whole(text)), "%s: half a report of %d bytes, or another" % (place, len(text or "")))
    require(not set(left) - {"report.json"}, "%s: files were left: %s" % (place, left))
    return status


def analyze(trouble):
    """The report of a trace is made while calls fail: no report, or the very same one."""
    kind, error, on = TROUBLES[trouble]
    words = ["analyze", "T.iscope", "-o", "report.json", "--force", "--source", "none"]  # a source file that cannot be read is left out
    with folders() as hands:
        folder = hands[0]
        with python_target(sys.executable, "busy") as target:
            status, said, _ = inferscope(folder, ["attach", target.pid, "-d", "0.3s", "--trace", "T.iscope", "-o", "report.json"])
            require(status == 0, said)
        for other in hands[1:]:
            shutil.copy(os.path.join(folder, "T.iscope"), other)
        status, said, calls = inferscope(folder, words, kind)
        require(status == 0 and (calls or kind in ("map", "remote", "process", "kernel")), "nothing fails, %d calls: %d %s" % (calls, status, said))
        with open(os.path.join(folder, "report.json")) as f:
            right = f.read()
        os.unlink(os.path.join(folder, "report.json"))

        def attempt(folder, at):
            status, said, _ = inferscope(folder, words, kind, at, error, on)
            judge(folder, trouble, at, status, said, lambda text: status != 0 or text == right)
            require(kind != "memory" or status in (0, 8), "%s %d (%s) fails: status %d: %s" % (trouble, at, where(folder), status, said[:200]))
            return status
        return each(calls, hands, attempt)


def attach(trouble):
    """A process is measured while calls of the attacher's fail."""
    kind, error, on = TROUBLES[trouble]
    with targets() as hands:
        def words(target):
            return ["attach", target.pid, "-d", "0.2s", "--trace", "none", "-o", "report.json"]
        folder, target = hands[0]
        status, said, calls = inferscope(folder, words(target), kind)
        require(status == 0 and (calls or kind == "map"), "nothing fails, %d calls: %d %s" % (calls, status, said))
        os.unlink(os.path.join(folder, "report.json"))

        def attempt(hand, at):
            folder, target = hand
            status, said, _ = inferscope(folder, words(target), kind, at, error, on)
            judge(folder, trouble, at, status, said, lambda text: True)
            require(status != 3 and "ended while" not in said, "%s %d (%s) fails: a process that lives is said to have ended: %s" % (trouble, at, where(folder), said[:200]))
            return status
        ends = each(calls, hands, attempt)
        for folder, target in hands:
            require(re.search(r"State:\s+[RS]", open("/proc/%d/status" % target.pid).read()), "the process does not run any more")
            status, said, _ = inferscope(folder, words(target))
            require(status == 0, "the next attach: %d %s" % (status, said))
        return "%s; %s" % (ends, work_on(hands))


def report(folder, words, at=0, on=False):
    """(status, the report and the summary, what was said, allocations)"""
    path = os.path.join(folder, "report")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    env = {key: value for key, value in os.environ.items() if not key.startswith("INFERSCOPE")}
    env.update(failing(folder, "memory", at, ENOMEM, on))
    done = subprocess.run([BINARY, *words, "-o", "report"], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    made = b""
    if os.path.exists(path):
        with open(path, "rb") as f:
            made = f.read()
    return done.returncode, made + done.stdout, done.stderr.decode(errors="replace"), counted(folder)


def memory(words):
    """One allocation after the other fails: an error that says so, or the very same report."""
    with folders() as hands:
        status, right, said, calls = report(hands[0], words)
        require(status == 0 and calls and right, "nothing fails: %d %s" % (status, said))

        told = []  # that it failed

        def attempt(folder, at, on):
            status, made, said, _ = report(folder, words, at, on)
            place = "allocation %d of %d fails (%s)" % (at, calls, where(folder))
            require(status in DOCUMENTED, "%s: status %d %s" % (place, status, said[-200:]))
            require(status == 0 or "inferscope: " in said, "%s: status %d, and not a word" % (place, status))
            require(status or made == right, "%s: status 0, and another report of %d bytes" % (place, len(made)))
            told.extend([at] * (status != 0))
            return status
        ends = tuple(each(calls, hands, lambda folder, at: attempt(folder, at, on)) for on in (False, True))
        require(told or ROUNDS < 20, "nothing was told of %d allocations" % calls)
        return "one: %s; all from there on: %s" % ends


def memory_tests():
    """Own traces in every format; of imported ones and of several, what is different."""
    with tempfile.TemporaryDirectory(prefix="inferscope-host-") as folder:
        trace = os.path.join(folder, "T.iscope")
        with python_target(sys.executable, "busy") as target:
            status, said, _ = inferscope(folder, ["attach", target.pid, "-d", "0.3s", "--trace", trace, "-o", "report.json"])
            require(status == 0, said)
        imported = [os.path.join(GOLDEN, name + ".json.gz") for name in ("event_sync_multi_stream", "triton_driver_launch")]
        for form in inferscope(folder, ["analyze", "-", "-f", "none"])[1].partition("give one of ")[2].strip().split(", "):
            run_test("host: memory, %s" % form, memory, ["analyze", trace, "-f", form, "--source", "none"])
        run_test("host: memory, import", memory, ["analyze", imported[0], "-f", "html"])
        run_test("host: memory, two traces", memory, ["analyze", *imported, "-f", "json"])
        run_test("host: memory, comparing", memory, ["diff", *imported, "-f", "json"])


def looked_at(trouble):
    """Stacks are printed while calls of ours fail."""
    kind, error, on = TROUBLES[trouble]
    with targets() as hands:
        def dump(hand, at=0):
            folder, target = hand
            return inferscope(folder, ["dump", target.pid, "-n", "-l"], kind, at, error, on)
        status, said, calls = dump(hands[0])
        require(status == 0, "nothing fails, %d calls: %d %s" % (calls, status, said))

        def attempt(hand, at):
            status, said, _ = dump(hand, at)
            place = "%s %d (%s) fails: status %d" % (trouble, at, where(hand[0]), status)
            require(status in DOCUMENTED - {3, 4}, "%s %s" % (place, said.strip()[-200:]))
            require(status == 0 or "inferscope: " in said, "%s, and not a word of it" % place)
            return status
        return "%s; %s" % (each(calls, hands, attempt), work_on(hands))


def launched(trouble):
    """A program is started while calls of ours fail: it runs whole, with its own status, or not at all."""
    kind, error, on = TROUBLES[trouble]
    code = "import os, sys, time\nos.environ.pop('LD_PRELOAD', 0)\nend = time.time() + 0.1\nwhile time.time() < end: sum(range(100))\nos.write(1, b'whole')\nos._exit(7)"
    words = [BINARY, "run", "--python", sys.executable, "--trace", "none", "-o", "report.json", "-c", code]
    with folders() as hands:
        def run(folder, at):
            for name in os.listdir(folder):
                os.unlink(os.path.join(folder, name))
            env = {key: value for key, value in os.environ.items() if not key.startswith("INFERSCOPE")}
            env.update(failing(folder, kind, at, error, on), FAILING_OF=os.path.basename(BINARY))
            done = subprocess.run(words, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S)
            return done.returncode, done.stdout, done.stderr.decode(errors="replace")

        def attempt(folder, at):
            status, out, said = run(folder, at)
            place = "%s %d (%s) fails: status %d, %r" % (trouble, at, where(folder), status, out)
            require((status == 7 and out == b"whole") or (status in (125, 126, 127) and out in (b"", b"whole")), "%s %s" % (place, said[-200:]))
            left = set(os.listdir(folder)) - {"count", "where"}
            require(left <= {"report.json"}, "%s: files were left: %s" % (place, left))
            require("report.json" in left or "inferscope: " in said, "%s: no report, and not a word of it" % place)
            if "report.json" in left:
                with open(os.path.join(folder, "report.json")) as f:
                    require(is_json(f.read()), "%s: half a report" % place)
            return status
        status, out, said = run(hands[0], 0)
        require(status == 7 and out == b"whole", "nothing fails: %d %r %s" % (status, out, said))
        return each(counted(hands[0]), hands, attempt)


def signals():
    """Asked to stop by a signal at any moment, once or twice, while its output goes to a pipe that nobody reads any more: a whole report or none, and the process works on."""
    dice, ends = random.Random(ROUNDS), {}
    with tempfile.TemporaryDirectory(prefix="inferscope-host-") as folder, python_target(sys.executable, "busy") as target:
        for i in range(ROUNDS):
            child = subprocess.Popen([BINARY, "attach", str(target.pid), "-d", "0.3s", "--trace", "T.iscope", "-o", "report.json"], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE)
            for pipe in (child.stdout, child.stderr) if i % 3 else (child.stdout,):
                pipe.close()
            for _ in range(dice.choice((1, 1, 2))):
                time.sleep(dice.random() * 0.6)
                number = dice.choice((signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE))
                child.send_signal(number)
            try:
                status = child.wait(timeout=60)
            except subprocess.TimeoutExpired:
                child.kill()
                raise Fail("%s after its start: not done after 60 s" % number)
            if not child.stderr.closed:
                child.stderr.close()
            require(status in DOCUMENTED | {130} or -status in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE), "%s: status %d" % (number, status))
            left = os.listdir(folder)
            require(not set(left) - {"report.json", "T.iscope"}, "%s: files were left: %s" % (number, left))
            if "report.json" in left:
                with open(os.path.join(folder, "report.json")) as f:
                    require(is_json(f.read()), "%s: half a report" % number)
            require("report.json" in left or status, "%s: status 0, and there is no report" % number)
            if "T.iscope" in left:
                read, said, _ = inferscope(folder, ["analyze", "T.iscope", "-o", "report.json", "--force"])
                require(read == 0, "%s: its trace: %d %s" % (number, read, said))
            for name in set(os.listdir(folder)):
                os.unlink(os.path.join(folder, name))
            ends[status] = ends.get(status, 0) + 1
        status, said, _ = inferscope(folder, ["attach", target.pid, "-d", "0.2s", "--trace", "none", "-o", "report.json"])
        require(status == 0, "the next attach: %d %s" % (status, said))
        return "ended with %s; %s" % (", ".join("%d (%d times)" % pair for pair in sorted(ends.items())), target.end(stop=True, timeout=120))


def slow_disk():
    """Each write takes 20 ms: the process is measured, left in time, and the report says what was lost."""
    with tempfile.TemporaryDirectory(prefix="inferscope-host-") as folder, python_target(sys.executable, "busy") as target:
        status, said, calls = inferscope(folder, ["attach", target.pid, "-d", "1s", "--max-overhead", "none", "-o", "report.json", "--trace", "T.iscope"], "write", slow=20000)
        require(status == 0, "%d %s" % (status, said))
        return "%d writes; %s" % (calls, target.end(stop=True, timeout=120))


def run():
    for trouble in TROUBLES:
        run_test("host: analyze, %s" % trouble, analyze, trouble)
        if trouble in IN_SHORT or not QUICK:
            run_test("host: attach, %s" % trouble, attach, trouble)
            run_test("host: dump, %s" % trouble, looked_at, trouble)
            run_test("host: run, %s" % trouble, launched, trouble)
    if not QUICK:
        memory_tests()
        run_test("host: attach, slow disk", slow_disk)
    run_test("host: attach, signals", signals)
