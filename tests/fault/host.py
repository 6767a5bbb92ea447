"""A machine in trouble: calls of the attacher's fail, those of one place after another: allocations, mappings, threads, reads, writes; opening, naming and syncing files; reading
the process's memory, ptrace, starting children, other system calls. A place is a chain of return addresses (failing.c), so that each way to each call is tried. It must end with a documented
status and one or two lines that tell the cause, or with the whole report; never by a signal, never with half a file; and the process that it measures must not notice, nor a program that it
starts. INFERSCOPE_ROUNDS: so many places of each kind (all; quick 6), INFERSCOPE_SAID: a file that gets a line of each. Part of tests/fault/run."""
import collections
import concurrent.futures
import contextlib
import fcntl
import json
import os
import queue
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

from entering import Fail, QUICK, Skip, python_target, require, run_test

BUILD = os.environ.get("BUILD", os.getcwd())
BINARY = os.path.join(BUILD, "inferscope")
FAILING = os.path.join(BUILD, "tests/fault/failing.so")
# How many places a kind of call fails at, each in a run of its own.
ROUNDS = int(os.environ.get("INFERSCOPE_ROUNDS", "6" if QUICK else "1000000"))
SAID = os.environ.get("INFERSCOPE_SAID")
HANDS = 2
ENOUGH = 20  # failures, to see what they have in common
PATIENCE_S = 19  # one second less than an attach waits for a thread of its own that hangs
MARKS = {"chains", "failed"}
EVERYTHING = ["--memory", "--counters", "--syscalls", "trace", "--native", "hold"]
DOCUMENTED = {0, 2, 3, 4, 5, 6, 7, 8, 9, 10}
IN_SHORT = ["allocation", "disk full", "open", "remote memory"]
OF_PROCESSES = {"map", "remote", "trace", "request", "process", "kernel"}  # calls that an analysis makes none of
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "import")
EPERM, ENOMEM, EAGAIN, EIO, EMFILE, ENOSPC, EROFS, EDQUOT = 1, 12, 11, 5, 24, 28, 30, 122
# kind of call, what it says, what else fails: nothing, all from the same place ("chain"), all of the kind from then on ("kind")
TROUBLES = {
    "allocation": ("memory", ENOMEM, ""), "no memory any more": ("memory", ENOMEM, "kind"), "mapping": ("map", ENOMEM, ""), "no mapping any more": ("map", ENOMEM, "kind"),
    "thread": ("thread", EAGAIN, ""), "no thread any more": ("thread", EAGAIN, "kind"), "write": ("write", EIO, ""), "disk full": ("write", ENOSPC, "kind"), "quota": ("write", EDQUOT, "kind"),
    "read": ("read", EIO, ""), "reads": ("read", EIO, "chain"), "no reads any more": ("read", EIO, "kind"), "open": ("open", EMFILE, ""), "no descriptors any more": ("open", EMFILE, "kind"),
    "sync, size or name": ("place", EIO, ""), "read-only": ("place", EROFS, "kind"), "remote memory": ("remote", EIO, ""), "no remote memory": ("remote", EIO, "chain"),
    "no remote memory any more": ("remote", EIO, "kind"), "ptrace": ("trace", EIO, "chain"), "child": ("process", EAGAIN, ""), "no child any more": ("process", EAGAIN, "kind"), "system call": ("kernel", EMFILE, "chain"),
    "request": ("request", EPERM, "chain"),
}
# Of ptrace, which the processes that hold a thread make without libc.
REQUESTS = {"getregs": 12, "setregs": 13, "seize": 0x4206, "interrupt": 0x4207, "cont": 7, "detach": 17, "pokedata": 5, "pokeuser": 6, "getsiginfo": 0x4202, "listen": 0x4208, "peeksiginfo": 0x4209,
            "getsigmask": 0x420a, "setsigmask": 0x420b, "get filter": 0x420c, "get rseq": 0x420f, "syscall info": 0x420e, "getregset": 0x4204, "setregset": 0x4205}


class Place:
    """Where calls are made: a chain, as failing.c names it, and its addresses in the program."""

    def __init__(self, chain, addresses, name=None):
        self.chain, self.addresses, self.name = chain, addresses, name

    def __str__(self):
        return self.name or "%s: %s" % (self.chain, " < ".join(subprocess.run(["addr2line", "-i", "-s", "-e", BINARY, *self.addresses[:4]], capture_output=True, text=True).stdout.split()))


def environment(folder, **more):
    kept = {key: value for key, value in os.environ.items() if not key.startswith("INFERSCOPE")}
    return dict(kept, TMPDIR=folder, **more)


def failing(folder, trouble, place=None):
    """The environment in which calls from there fail; without a place the one in which places are told."""
    kind, error, lasts = TROUBLES[trouble]
    for name in MARKS:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))
    wish = {"LD_PRELOAD": FAILING, "FAILING_KIND": kind, "FAILING_ERROR": str(error), "FAILING_OF": os.path.basename(BINARY)}
    if place:
        wish.update({"FAILING_CHAIN": place.chain, "FAILING_WHERE": os.path.join(folder, "failed")}, **({"FAILING_ON": lasts} if lasts else {}))
    else:
        wish["FAILING_CHAINS"] = os.path.join(folder, "chains")
    return environment(folder, **wish)


def finished(words, folder, env, patience=PATIENCE_S):
    """What it ended with; the bytes that it said."""
    try:
        return subprocess.run([str(word) for word in words], cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=patience)
    except subprocess.TimeoutExpired:
        raise Fail("not done after %d s" % patience)


def inferscope(folder, words, env=None):
    """(status, stderr)"""
    done = finished([BINARY, *words], folder, env or environment(folder))
    return done.returncode, done.stderr.decode(errors="replace")


def places(folder, trouble):
    """What a run without failures has told."""
    found = []
    if TROUBLES[trouble][0] == "request":
        return {name: Place(str(number), [], name) for name, number in REQUESTS.items()}
    with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, "chains")) as f:
        found = [line.split() for line in f]
    return {words[0]: Place(words[0], words[1:]) for words in found}


def failed(folder):
    return os.path.exists(os.path.join(folder, "failed"))


def cause(said):
    return " / ".join(line.strip() for line in said.splitlines() if line.startswith("inferscope: "))[:300]


def each(trouble, found, hands, attempt):
    """attempt(hand, place) for the places at which calls are to fail, by whichever hand is free: (status, what was said). Goes on after a failure: all are told together. Says what they ended with."""
    if not found:
        raise Skip("it makes no such call")
    free, wrong, missed = queue.SimpleQueue(), [], []
    for hand in hands:
        free.put(hand)

    def once(place):
        if len(wrong) >= ENOUGH:
            return None
        hand, begin = free.get(), time.monotonic()
        try:
            status, said = attempt(hand, place)
            reached = not place.addresses or failed(hand if isinstance(hand, str) else hand[0])
            if not reached:
                missed.append(place)
            if SAID:
                with open(SAID, "a") as f:
                    f.write("%s | %s | %s | %.1f s | %s\n" % (trouble, place, status if reached else "not reached", time.monotonic() - begin, cause(said)))
            return status
        except Fail as reason:
            wrong.append("%s at %s: %s" % (trouble, place, reason))
        finally:
            free.put(hand)

    chosen = spread(sorted(found.values(), key=lambda place: place.chain))
    with concurrent.futures.ThreadPoolExecutor(len(hands)) as pool:
        ends = collections.Counter(pool.map(once, chosen))
    require(not wrong, "%d of %d: %s" % (len(wrong), len(chosen), " | ".join(sorted(set(wrong)))))
    require(2 * len(missed) <= len(chosen), "%d of %d places were not reached: nothing failed there" % (len(missed), len(chosen)))
    return "%d places, %d tried, %d not reached; ended with %s" % (len(found), len(chosen), len(missed), ", ".join("%d (%d times)" % pair for pair in sorted(ends.items())))


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
    """None of the processes has noticed anything. A thread that waits for a word of an attacher that gave up ends after 1.5 s."""
    time.sleep(2)
    for _, target in hands:
        library_closed(target.pid)
    return "; ".join(target.end(stop=True, timeout=120) for _, target in hands)


def spread(found):
    """ROUNDS of them, at equal distances."""
    return [found[i * len(found) // ROUNDS] for i in range(ROUNDS)] if len(found) > ROUNDS else found


def is_json(text):
    try:
        return bool(json.loads(text))
    except ValueError:
        return False


def told(trouble, status, said):
    """What is said of a failure is one sentence, and true."""
    require(status in DOCUMENTED, "status %d: %s" % (status, said.strip()[-300:]))
    lines = [line for line in said.splitlines() if line.startswith("inferscope: ") and not line.startswith("inferscope: warning")]
    require(not re.search(r"^inferscope:( warning:)?\s*$", said, re.M), "a line that says nothing: %s" % said.strip()[-300:])
    require(status == 0 or lines, "status %d, and not a word of it: %s" % (status, said.strip()[-300:]))
    untrue = {2, 3, 4, 5} - ({4} if TROUBLES[trouble][0] == "request" else set())
    require(status not in untrue and "ended while" not in said and "shutting down" not in said, "status %d, of a process that lives and may be entered: %s" % (status, said.strip()[-300:]))
    require(status == 0 or TROUBLES[trouble][0] != "memory" or "memory" in " ".join(lines), "status %d, and nothing of memory: %s" % (status, said.strip()[-300:]))


def judge(folder, trouble, status, said, whole=lambda text: True):
    left = [name for name in os.listdir(folder) if name not in MARKS]
    text = None
    if "report.json" in left:
        with open(os.path.join(folder, "report.json")) as f:
            text = f.read()
    for name in left:
        if name != "T.iscope":
            os.unlink(os.path.join(folder, name))
    told(trouble, status, said)
    require(text is not None or status != 0, "status 0, and there is no report: %s" % said.strip()[-300:])
    require(text is None or (is_json(text) and whole(text)), "status %d, and half a report of %d bytes, or another" % (status, len(text or "")))
    require(not set(left) - {"report.json", "T.iscope"}, "status %d, and files were left: %s" % (status, left))


def analyze(trouble):
    """The report of a trace is made while calls fail: no report, or the very same one."""
    kind = TROUBLES[trouble][0]
    words = ["analyze", "T.iscope", "-o", "report.json", "--force", "--source", "none"]  # a source file that cannot be read is left out
    with folders() as hands:
        folder = hands[0]
        with python_target(sys.executable, "busy") as target:
            status, said = inferscope(folder, ["attach", target.pid, "-d", "0.3s", "--trace", "T.iscope", "-o", "report.json"])
            require(status == 0, said)
        for other in hands[1:]:
            shutil.copy(os.path.join(folder, "T.iscope"), other)
        status, said = inferscope(folder, words, failing(folder, trouble))
        found = places(folder, trouble)
        require(status == 0 and found, "nothing fails: %d %s" % (status, said))
        with open(os.path.join(folder, "report.json")) as f:
            right = f.read()
        os.unlink(os.path.join(folder, "report.json"))

        def attempt(folder, place):
            status, said = inferscope(folder, words, failing(folder, trouble, place))
            judge(folder, trouble, status, said, lambda text: status != 0 or text == right)
            require(kind != "memory" or status in (0, 8), "status %d: %s" % (status, said[:200]))
            return status, said
        return each(trouble, found, hands, attempt)


def attach(trouble, *options):
    """A process is measured while calls of the attacher's fail."""
    with targets() as hands:
        def words(target):
            return ["attach", target.pid, "-d", "0.2s", "--trace", "T.iscope", "-o", "report.json", *options]
        found = {}
        for folder, target in hands:  # what happens by chance: in two runs
            status, said = inferscope(folder, words(target), failing(folder, trouble))
            require(status == 0, "nothing fails: %d %s" % (status, said))
            found.update(places(folder, trouble))
            os.unlink(os.path.join(folder, "report.json"))

        def attempt(hand, place):
            folder, target = hand
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, "T.iscope"))
            status, said = inferscope(folder, words(target), failing(folder, trouble, place))
            judge(folder, trouble, status, said)
            if os.path.exists(os.path.join(folder, "T.iscope")):
                read = inferscope(folder, ["analyze", "T.iscope", "-f", "text", "-o", "-", "--source", "none"])
                require(read[0] == 0, "status %d, and a trace that cannot be read: %s (%s)" % (status, read[1][:300], cause(said)))
            return status, said
        ends = each(trouble, found, hands, attempt)
        for folder, target in hands:
            require(re.search(r"State:\s+[RS]", open("/proc/%d/status" % target.pid).read()), "the process does not run any more")
            status, said = inferscope(folder, words(target))
            require(status == 0, "the next attach: %d %s" % (status, said))
        return "%s; %s" % (ends, work_on(hands))


def memory(words):
    """One allocation after the other fails: an error that says so, or the very same report."""
    def report(folder, env):
        """(status, the report and the summary, what was said)"""
        path = os.path.join(folder, "report")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        done = finished([BINARY, *words, "-o", "report"], folder, env, 60)
        made = b""
        if os.path.exists(path):
            with open(path, "rb") as f:
                made = f.read()
        return done.returncode, made + done.stdout, done.stderr.decode(errors="replace")

    with folders() as hands:
        status, right, said = report(hands[0], failing(hands[0], "allocation"))
        found = places(hands[0], "allocation")
        require(status == 0 and found and right, "nothing fails: %d %s" % (status, said))
        failures = []

        def attempt(folder, place, trouble):
            status, made, said = report(folder, failing(folder, trouble, place))
            if "--error-format" in words and status:
                require(is_json(said) and "memory" in json.loads(said)["message"], "status %d, and no error in JSON: %r" % (status, said))
            else:
                told(trouble, status, said)
            require(status or made == right, "status 0, and another report of %d bytes" % len(made))
            failures.extend([place] * (status != 0))
            return status, said
        ends = tuple(each(trouble, found, hands, lambda folder, place: attempt(folder, place, trouble)) for trouble in ("allocation", "no memory any more"))
        require(failures or ROUNDS < 20, "nothing was told of %d allocations" % len(found))
        return "one: %s; all from there on: %s" % ends


def memory_tests():
    """Own traces in every format; of imported ones and of several, what is different."""
    with tempfile.TemporaryDirectory(prefix="inferscope-host-") as folder:
        trace = os.path.join(folder, "T.iscope")
        with python_target(sys.executable, "busy") as target:
            status, said = inferscope(folder, ["attach", target.pid, "-d", "0.3s", "--trace", trace, "-o", "report.json"])
            require(status == 0, said)
        imported = [os.path.join(GOLDEN, name + ".json.gz") for name in ("event_sync_multi_stream", "triton_driver_launch")]
        for form in inferscope(folder, ["analyze", "-", "-f", "none"])[1].partition("give one of ")[2].strip().split(", "):
            run_test("host: memory, %s" % form, memory, ["analyze", trace, "-f", form, "--source", "none"])
        run_test("host: memory, import", memory, ["analyze", imported[0], "-f", "html"])
        run_test("host: memory, two traces", memory, ["analyze", *imported, "-f", "json"])
        run_test("host: memory, comparing", memory, ["diff", *imported, "-f", "json"])
        run_test("host: memory, errors in JSON", memory, ["analyze", trace, "-f", "json", "--source", "none", "--error-format", "json"])


def on_terminal(folder, words, env):
    """(status, stderr) of what draws on a terminal, and is given KEYS there; which must be as before in the end."""
    keys, said = [b"t", b"n", b"/x\r", b"?", b"s"], b""
    master, slave = os.openpty()
    try:
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        before = termios.tcgetattr(slave)
        child = subprocess.Popen([str(word) for word in [BINARY, *words]], cwd=folder, env=dict(env, TERM="vt100"), stdin=slave, stdout=slave, stderr=subprocess.PIPE)
        until = time.monotonic() + PATIENCE_S
        while child.poll() is None:
            if time.monotonic() > until:
                child.kill()
                child.communicate()
                raise Fail("not done after %d s" % PATIENCE_S)
            ready = select.select([master, child.stderr], [], [], 0.05)[0]
            if master in ready:
                os.read(master, 65536)
                if keys:
                    os.write(master, keys.pop(0))
            if child.stderr in ready:
                said += os.read(child.stderr.fileno(), 65536)
        said += child.communicate()[1]
        require(termios.tcgetattr(slave) == before, "status %d, and the terminal is not as before" % child.returncode)
        return child.returncode, said.decode(errors="replace")
    finally:
        os.close(master)
        os.close(slave)


def looked_at(trouble, *words, run=inferscope):
    """Stacks are printed, or drawn, while calls of ours fail: whole, or as far as they could be read, or an error."""
    with targets() as hands:
        def look(hand, place=None):
            folder, target = hand
            return run(folder, [words[0], target.pid, *words[1:]], failing(folder, trouble, place))
        found = {}
        for hand in hands:
            status, said = look(hand)
            require(status == 0, "nothing fails: %d %s" % (status, said))
            found.update(places(hand[0], trouble))

        def attempt(hand, place):
            status, said = look(hand, place)
            told(trouble, status, said)
            left = set(os.listdir(hand[0])) - MARKS
            require(not left, "files were left: %s" % left)
            return status, said
        return "%s; %s" % (each(trouble, found, hands, attempt), work_on(hands))


def drawn(trouble):
    """top draws on a terminal while calls of ours fail."""
    return looked_at(trouble, "top", "--refresh", "100ms", "-d", "0.6s", run=on_terminal)


def shown(trouble):
    """Stacks of a process that stands still are printed while calls of ours fail: what is said is said without failures, too, or tells that something is missing."""
    frame = re.compile(r"^    \S.*\(.*:\d+")

    def state_of(lines):
        return next(line for line in lines if line.startswith("Thread ")).partition('": ')[2]

    def said_of(folder, target, place=None):
        done = finished([BINARY, "dump", target.pid, "-n"], folder, failing(folder, trouble, place))
        return done.returncode, done.stdout.decode(errors="replace").splitlines(), done.stderr.decode(errors="replace")

    with folders() as hands, python_target(sys.executable, "idle") as target:
        status, right, said = said_of(hands[0], target)
        require(status == 0, "nothing fails: %d %s" % (status, said))
        found, python = places(hands[0], trouble), [line for line in right if ".py:" in line]

        def attempt(folder, place):
            status, lines, said = said_of(folder, target, place)
            told(trouble, status, said)
            if status == 0:
                require(sum(line.startswith("Thread ") for line in lines) == 1, "the thread is missing: %s" % lines)
                wrong = [line for line in lines if frame.match(line) and line not in right]
                require(not wrong, "frames that are none: %s" % wrong)
                state = state_of(lines)
                require(state == state_of(right) or state.startswith("sleeping"), "another state: %s" % state)
                require([line for line in lines if ".py:" in line] == python or any("could not be read" in line or "? (" in line or re.search(r"\.py\)", line) for line in lines), "Python frames are missing: %s" % lines)
            return status, said
        return "%s; %s" % (each(trouble, found, hands, attempt), target.end(stop=True, timeout=120))


def launched(trouble):
    """A program is started while calls of ours fail: it runs whole, with its own status, or not at all."""
    code = "import os, sys, time\nos.environ.pop('LD_PRELOAD', 0)\nend = time.time() + 0.1\nwhile time.time() < end: sum(range(100))\nos.write(1, b'whole')\nos._exit(7)"
    words = [BINARY, "run", "--python", sys.executable, "--trace", "none", "-o", "report.json", "-c", code]
    with folders() as hands:
        def run(folder, place=None):
            for name in os.listdir(folder):
                os.unlink(os.path.join(folder, name))
            done = finished(words, folder, failing(folder, trouble, place))
            return done.returncode, done.stdout, done.stderr.decode(errors="replace")

        def attempt(folder, place):
            status, out, said = run(folder, place)
            require((status == 7 and out == b"whole") or (status in (125, 126, 127) and out in (b"", b"whole")), "status %d, %r: %s" % (status, out, said[-300:]))
            left = set(os.listdir(folder)) - MARKS
            require(left <= {"report.json"}, "files were left: %s" % left)
            require("report.json" in left or "inferscope: " in said, "status %d, no report, and not a word of it" % status)
            if "report.json" in left:
                with open(os.path.join(folder, "report.json")) as f:
                    require(is_json(f.read()), "status %d, and half a report" % status)
            require(status == 7 or TROUBLES[trouble][0] != "memory" or "memory" in said, "status %d, and nothing of memory: %s" % (status, said[-300:]))
            return status, said
        found = {}
        for folder in hands:
            status, out, said = run(folder)
            require(status == 7 and out == b"whole", "nothing fails: %d %r %s" % (status, out, said))
            found.update(places(folder, trouble))
        return each(trouble, found, hands, attempt)


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
                read, said = inferscope(folder, ["analyze", "T.iscope", "-o", "report.json", "--force"])
                require(read == 0, "%s: its trace: %d %s" % (number, read, said))
            for name in set(os.listdir(folder)):
                os.unlink(os.path.join(folder, name))
            ends[status] = ends.get(status, 0) + 1
        status, said = inferscope(folder, ["attach", target.pid, "-d", "0.2s", "--trace", "none", "-o", "report.json"])
        require(status == 0, "the next attach: %d %s" % (status, said))
        return "ended with %s; %s" % (", ".join("%d (%d times)" % pair for pair in sorted(ends.items())), target.end(stop=True, timeout=120))


def slow_disk():
    """Each write takes 20 ms: the process is measured, left in time, and the report says what was lost."""
    with tempfile.TemporaryDirectory(prefix="inferscope-host-") as folder, python_target(sys.executable, "busy") as target:
        status, said = inferscope(folder, ["attach", target.pid, "-d", "1s", "--max-overhead", "none", "-o", "report.json", "--trace", "T.iscope"],
                                  environment(folder, LD_PRELOAD=FAILING, FAILING_KIND="write", FAILING_SLOW="20000"))
        require(status == 0, "%d %s" % (status, said))
        return target.end(stop=True, timeout=120)


def run():
    for trouble in TROUBLES:
        if TROUBLES[trouble][0] not in OF_PROCESSES:
            run_test("host: analyze, %s" % trouble, analyze, trouble)
        if trouble in IN_SHORT or not QUICK:
            run_test("host: attach, %s" % trouble, attach, trouble)
            run_test("host: dump, %s" % trouble, looked_at, trouble, "dump", "-n", "-l")
            run_test("host: run, %s" % trouble, launched, trouble)
            run_test("host: what dump shows, %s" % trouble, shown, trouble)
        if trouble == "no memory any more" or not QUICK:
            run_test("host: top on a terminal, %s" % trouble, drawn, trouble)
        if not QUICK:
            run_test("host: attach with everything, %s" % trouble, attach, trouble, *EVERYTHING)
            run_test("host: top, %s" % trouble, looked_at, trouble, "top", "--once", "--json")
    if not QUICK:
        memory_tests()
        run_test("host: attach, slow disk", slow_disk)
    run_test("host: attach, signals", signals)
