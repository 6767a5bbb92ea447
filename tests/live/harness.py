"""What the live suites share: the Pythons of this machine, a target that is always ended, an attach whose outcome can be questioned.

A test is a function of one argument (World). It returns None or a note to print when it passes, raises Fail with the reason, or Skip."""
import glob
import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
PROGRAMS = os.path.join(HERE, "programs")
EVERYTHING = ("--memory", "--memory-native", "--counters", "--syscalls", "trace", "--gc")  # that may be measured of a CPU at once
ROOTS = ("bullseye", "trixie", "forky", "sid", "jammy", "noble")


class Fail(Exception):
    pass


class Skip(Exception):
    pass


def require(condition, why):
    if not condition:
        raise Fail(why)


class Python:
    """An interpreter, and how to start it: argv before the program's own; paths below the working directory are seen under `view`."""

    def __init__(self, name, argv, version, view=None):
        self.name, self.argv, self.version, self.view = name, argv, version, view

    def in_container(self):
        """The same interpreter in mount and pid namespaces of its own; only for those in roots."""
        argv = [self.argv[0], self.argv[1], "--container"] + self.argv[2:]
        return Python(self.name, argv, self.version, self.view)

    def backends(self):
        return ["monitoring", "settrace"] if self.version >= (3, 12) else ["evaluator", "setprofile", "settrace"]

    def command(self, path, cwd):
        return self.argv + [os.path.join(self.view, os.path.relpath(path, cwd)) if self.view else path]


def version_of(argv):
    code = "import sys; print(*sys.version_info[:2])"
    try:
        out = subprocess.run(argv + ["-c", code], capture_output=True, timeout=30, text=True, cwd="/")
        return tuple(int(x) for x in out.stdout.split())
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ()


def find_pythons():
    """Supported interpreters: pyenv's, the distribution's own, and those in the roots of contrib/roots. INFERSCOPE_PYTHONS names others."""
    found = []
    if os.environ.get("INFERSCOPE_PYTHONS"):
        paths = [(p, p) for p in os.environ["INFERSCOPE_PYTHONS"].split(":")]
    else:
        top = os.path.join(os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv")), "versions")
        paths = [(os.path.basename(v), os.path.join(v, "bin/python3")) for v in sorted(glob.glob(top + "/3.*"), key=natural)]
        paths.append(("system", "/usr/bin/python3"))
    for name, path in paths:
        version = version_of([path]) if os.access(path, os.X_OK) else ()
        if (3, 8) <= version <= (3, 15):
            found.append(Python(name, [path], version))
    if os.environ.get("INFERSCOPE_PYTHONS"):
        return found
    for name in ROOTS:
        argv = [os.path.join(TOP, "contrib/roots"), "enter", name, "python3"]
        top = os.environ.get("INFERSCOPE_ROOTS", "/var/cache/inferscope/roots")
        if os.geteuid() == 0 and os.path.exists(os.path.join(top, name, ".complete")):
            version = version_of(argv)
            if version:
                found.append(Python(name, argv, version, "/tmp/host"))
    return found


def pythons_to_text(pythons):
    return json.dumps([[p.name, p.argv, p.version, p.view] for p in pythons])


def pythons_from_text(text):
    return [Python(name, argv, tuple(version), view) for name, argv, version, view in json.loads(text)]


def natural(text):
    return [int(x) if x.isdigit() else x for x in re.split(r"(\d+)", text)]


def find_binary():
    """The inferscope under test: INFERSCOPE, the build folder the makefile names, or ./build."""
    for path in (os.environ.get("INFERSCOPE"), os.path.join(os.environ.get("BUILD", ""), "inferscope"), os.path.join(os.getcwd(), "inferscope"),
                 os.path.join(TOP, "build/inferscope")):
        if path and os.access(path, os.X_OK) and os.path.isfile(path):
            return os.path.abspath(path)
    return None


def library(source, path, *options):
    """A library of ours at PATH: compiled, or from the folder LIBRARIES, which is for machines that have no compiler."""
    if os.environ.get("LIBRARIES"):
        name = os.path.basename(source).replace(".c", "") + ("-now" if "-Wl,-z,now" in ",".join(options) else "") + ".so"
        shutil.copy(os.path.join(os.environ["LIBRARIES"], name), path)
        return path
    built = subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", path, source, *options], capture_output=True, text=True)
    if built.returncode:
        raise Skip("%s: %s" % (os.path.basename(source), built.stderr[-200:]))
    return path


TRACEPOINTS = "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id"


def tracing():
    """What to put before a command so that it sees the tracepoints: nothing where it does anyway, else a mount of its own."""
    if os.access(TRACEPOINTS, os.R_OK):
        return []
    own = ["unshare", "-m", "sh", "-c", 'mount -t tracefs tracefs /sys/kernel/tracing && exec "$@"', "sh"]
    if subprocess.run(own + ["test", "-r", TRACEPOINTS], stderr=subprocess.DEVNULL).returncode:
        raise Skip("this kernel has no tracepoints of system calls, or they must not be mounted here")
    return own


class Target:
    """A Python program that prints READY <pid>. Ended when the with block is, whatever happened in it."""

    def __init__(self, python, path, *args, cwd=TOP, env=None, ready=30):
        self.log = tempfile.TemporaryFile()
        self.lines, self.rest = [], b""
        self.child = subprocess.Popen(python.command(path, cwd) + list(args), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, cwd=cwd,
                                      env=dict(os.environ, **(env or {})))
        try:
            self.pid = int(self.expect("READY", ready).split()[1])
            if not os.path.exists("/proc/%d" % self.pid) or self.pid == 1:  # its own pid namespace: we know the launcher of that
                with open("/proc/%d/task/%d/children" % (self.child.pid, self.child.pid)) as f:
                    self.pid = int(f.read().split()[0])
        except BaseException:  # nobody else would end it
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        for f in (self.child.stdin, self.child.stdout, self.log):
            try:
                f.close()
            except OSError:
                pass

    def read_line(self, end):
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.child.stdout], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise Fail("the target said nothing in time; it is in state %s" % state_of(self.child.pid))
            got = os.read(self.child.stdout.fileno(), 65536)
            if not got:
                return None
            self.rest += got
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode(errors="replace")

    def expect(self, word, seconds):
        """The next line that begins with WORD."""
        end = time.monotonic() + seconds
        while True:
            line = self.read_line(end)
            if line is None:
                self.child.wait()
                last = self.lines[-1] if self.lines else "nothing"
                if last.startswith("SKIP"):
                    raise Skip(last[5:])
                raise Fail("the target ended (%s) before it said %s; it said: %s %s" % (status_text(self.child.returncode), word, last, self.errors()))
            self.lines.append(line)
            if line.startswith(word):
                return line

    def go(self):
        self.child.stdin.write(b"go\n")
        self.child.stdin.flush()

    def finish(self, seconds=30):
        """Lets it end by itself. Returns (exit status, last line)."""
        if not self.child.stdin.closed:
            self.child.stdin.close()
        end = time.monotonic() + seconds
        while True:
            line = self.read_line(end)
            if line is None:
                break
            self.lines.append(line)
        try:
            self.child.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Fail("the target did not end; it is in state %s" % state_of(self.child.pid))
        return self.child.returncode, self.lines[-1] if self.lines else ""

    def errors(self):
        self.log.seek(0)
        return self.log.read()[-600:].decode(errors="replace").strip()


class Attaching(subprocess.Popen):
    """A process of `inferscope attach`, started by COMMAND, which tells when it has begun to measure."""

    def __init__(self, command, **how):
        ours, theirs = os.pipe()
        self.ready = os.fdopen(ours, "rb", buffering=0)
        try:
            super().__init__([*map(str, command), "--ready-fd", str(theirs)], pass_fds=[theirs], **how)
        finally:
            os.close(theirs)

    def begun(self, processes=1, seconds=60):
        """Returns once it measures so many PROCESSES: hooks are on in them."""
        end = time.monotonic() + seconds
        while processes:
            readable, _, _ = select.select([self.ready], [], [], max(0, end - time.monotonic()))
            require(readable, "measuring did not begin within %d s" % seconds)
            told = self.ready.read(processes)
            if not told:
                said = self.communicate(timeout=60)[1] or ""
                raise Fail("measuring did not begin, exit status %s: %s" % (status_text(self.returncode), tail(said if isinstance(said, str) else said.decode(errors="replace"))))
            processes -= len(told)
        return self


class Measured:
    """An attach that measures when the constructor returns. stop() ends it; then report and err are there."""

    def __init__(self, folder, pid, *options, prefix=(), trace="none"):
        self.path = os.path.join(folder, "report.json")
        command = [*prefix, find_binary(), "attach", pid, "-d", "0", "-o", self.path, "--trace", trace, "--force", *options]
        self.child = Attaching(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=folder).begun()

    def descriptors(self):
        """What it has open."""
        links = []
        for fd in glob.glob("/proc/%d/fd/*" % self.child.pid):
            try:
                links.append(os.readlink(fd))
            except OSError:
                pass
        return links

    def stop(self):
        self.child.send_signal(signal.SIGINT)
        return self.wait()

    def wait(self):
        """The report, when it has ended."""
        self.err = self.child.communicate(timeout=120)[1]
        require(self.child.returncode == 0, "status %d: %s" % (self.child.returncode, self.err[-400:]))
        with open(self.path) as f:
            self.report = json.load(f)
        return self.report


class Attach:
    """One `inferscope` command, running. wait() gives its exit status; out and err are its text."""

    def __init__(self, world, *args, cwd=None, stdin=None):
        self.out = self.err = ""
        self.args = [world.binary] + [str(a) for a in args]
        self.started = time.monotonic()
        kind = Attaching if args[0] == "attach" else subprocess.Popen
        self.child = kind(world.prefix + self.args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd or world.folder, stdin=stdin or subprocess.DEVNULL, env=world.env())

    def wait(self, seconds=60):
        try:
            out, err = self.child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.child.send_signal(signal.SIGKILL)
            _, err = self.child.communicate()
            raise Fail("inferscope did not end within %d s: %s: %s" % (seconds, self.text(), tail(err.decode(errors="replace"))))
        self.out, self.err = out.decode(errors="replace"), err.decode(errors="replace")
        self.seconds = time.monotonic() - self.started
        return self.child.returncode

    def stop(self, number=signal.SIGINT):
        self.child.send_signal(number)

    def text(self):
        return shlex.join(["inferscope"] + self.args[1:])

    def expect(self, wanted, seconds=60):
        status = self.wait(seconds)
        require(status == wanted, "%s: exit status %s instead of %s: %s" % (self.text(), status_text(status), wanted, tail(self.err or self.out)))
        return self


class World:
    """What a test may use: the binary, the options, a folder of its own that is removed after it."""

    def __init__(self, binary, quick, folder, pythons):
        self.binary, self.quick, self.folder, self.pythons = binary, quick, folder, pythons
        self.prefix = []  # put before every command of it

    def env(self):
        keep = {k: v for k, v in os.environ.items() if not k.startswith("INFERSCOPE")}
        keep.update(NO_COLOR="1", HOME=self.folder)
        return keep

    def path(self, name):
        return os.path.join(self.folder, name)

    def attach(self, pid, *args, report="r.json", trace="none"):
        return Attach(self, "attach", pid, "-o", self.path(report), "--trace", self.path(trace) if trace != "none" else "none", "--force", *args)

    def run(self, *args, **kwargs):
        return Attach(self, *args, **kwargs)

    def report(self, name="r.json"):
        """The JSON report, parsed strictly: no NaN, no repeated keys."""
        def no_constant(text):
            raise Fail("%s holds %s, which is not JSON" % (name, text))

        def unique(pairs):
            require(len({k for k, _ in pairs}) == len(pairs), "%s repeats a key: %s" % (name, [k for k, _ in pairs][:20]))
            return dict(pairs)
        try:
            with open(self.path(name), encoding="utf-8") as f:
                return json.load(f, parse_constant=no_constant, object_pairs_hook=unique)
        except (OSError, ValueError) as error:
            raise Fail("no valid JSON report: %s" % error)


def settle(attach):
    """Waits until it measures, and some time more, so that there is something to tell of."""
    attach.child.begun()
    time.sleep(0.5)


def find_function(report, name, file=None):
    """Rows of functions[] of that name (qualified names match by their end)."""
    return [f for f in report["functions"] if (f["name"] == name or f["name"].endswith("." + name)) and (file is None or os.path.basename(f.get("file") or "") == file)]


def state_of(pid):
    try:
        with open("/proc/%s/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "gone"


def footprint(pid):
    """What of ours could pile up in a process: (mappings, fds, threads)."""
    with open("/proc/%d/maps" % pid) as f:
        maps = len(f.readlines())
    return maps, len(os.listdir("/proc/%d/fd" % pid)), len(os.listdir("/proc/%d/task" % pid))


def thread_names(pid):
    """Of all its threads; those that end meanwhile are left out."""
    names = []
    for tid in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/comm" % (pid, tid)) as f:
                names.append(f.read().strip())
        except OSError:
            pass
    return names


def switches_of(pid):
    """How often its threads were switched so far."""
    count = 0
    for path in glob.glob("/proc/%d/task/*/status" % pid):
        try:
            with open(path) as f:
                count += sum(int(line.split()[1]) for line in f if "ctxt_switches" in line)
        except OSError:
            pass  # it has ended meanwhile
    return count


def resident_kib(pid):
    with open("/proc/%d/status" % pid) as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1])


def status_text(status):
    return "none" if status is None else "signal %d" % -status if status < 0 else str(status)


def tail(text, length=400):
    text = " | ".join(line for line in text.strip().splitlines() if line.strip())
    return text if len(text) <= length else "… " + text[-length:]


def wait_for(condition, seconds, why):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Fail(why)
        time.sleep(0.02)


def wait_for_state(pid, letters, seconds=20):
    wait_for(lambda: state_of(pid) in letters, seconds, "process %d does not come to state %s" % (pid, letters))


def words_given():
    """What a runner was called with, less --quick and --list, which all have; one that it does not know is not taken for "all"."""
    unknown = [word for word in sys.argv[1:] if word.startswith("-") and word not in ("--quick", "--list")]
    if unknown:
        sys.exit("%s: no option %s: there are --quick, --list, and parts of names" % (sys.argv[0], unknown[0]))
    return [word for word in sys.argv[1:] if not word.startswith("-")]


def only_listed():
    return bool(os.environ.get("INFERSCOPE_LIVE_LIST")) or "--list" in sys.argv[1:]


def wanted(suite, name, words=None):
    """
    Whether this test is to run: its name has to hold each text of `tests/live/run -k` and, where a runner is given WORDS, one of these. With --list none does, and it is told.
    """
    whole, words = suite + "/" + name, words_given() if words is None else words
    if not all(text in whole for text in os.environ.get("INFERSCOPE_LIVE_ONLY", "").split("\n")) or (words and not any(word in name or word in (suite, whole) for word in words)):
        return False
    if only_listed():
        print("LIST", whole, flush=True)
        return False
    return True


NOTHING_CHOSEN = 5


def nothing_ran():
    """What a runner ends with that has run no test."""
    return 0 if only_listed() else NOTHING_CHOSEN


def run_tests(suite, tests):
    """Runs those that are wanted of (name, function without arguments), and prints a line for each. Returns an exit status: 1 when one failed, NOTHING_CHOSEN when none was wanted."""
    count = failed = 0
    for name, test in tests:
        if not wanted(suite, name):
            continue
        count += 1
        verdict, why = verdict_of(test)
        failed += verdict == "FAIL"
        print(verdict, suite + "/" + name + (": " + why if why else ""), flush=True)
    if not count and not only_listed():
        print("%s: no test is called that" % suite, file=sys.stderr)
    return 1 if failed else 0 if count else nothing_ran()


def verdict_of(test):
    """PASS, SKIP or FAIL, and what it says in one line; a bug of the test is a failure with its place."""
    try:
        return "PASS", " ".join(str(test() or "").split())
    except Skip as why:
        return "SKIP", " ".join(str(why).split())
    except Fail as why:
        return "FAIL", " ".join(str(why).split())
    except Exception as error:
        trace = error.__traceback__
        while trace.tb_next and trace.tb_next.tb_frame.f_code.co_filename.startswith(HERE):
            trace = trace.tb_next
        return "FAIL", "%s: %s (%s:%d)" % (type(error).__name__, " ".join(str(error).split()), os.path.basename(trace.tb_frame.f_code.co_filename), trace.tb_lineno)
