"""What tests/live/inject/run and tests/fault/run share: targets, the driver, and what must be equal before and after."""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import harness
from harness import Fail, Skip, require

BUILD = os.path.join(os.environ.get("BUILD", os.getcwd()), "tests/live/inject")
DRIVER = os.path.join(BUILD, "enter")
PAYLOAD = os.path.join(BUILD, "payload.so")
MISSING = os.path.join(BUILD, "payload_missing.so")
QUICK = bool(os.environ.get("QUICK")) or "--quick" in sys.argv
ROUNDS = int(os.environ.get("INFERSCOPE_ROUNDS", "50" if QUICK else "200"))
counts = {"PASS": 0, "FAIL": 0, "SKIP": 0}


def pythons():
    """Interpreters to try, newest first; the last is the distribution's own."""
    given = os.environ.get("PYTHONS") or os.environ.get("INFERSCOPE_PYTHONS")
    if given:
        return [path for path in given.split(":") if path]
    found = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")), key=version_key)
    found = [path for path in found if version_key(path) >= (3, 8)]
    if os.path.exists("/usr/bin/python3"):
        found.append("/usr/bin/python3")
    return found


def version_key(path):
    match = re.search(r"versions/(\d+)\.(\d+)", path)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def label(path):
    match = re.search(r"versions/([^/]+)/", path)
    return match[1] if match else os.path.basename(os.path.realpath(path))


def thread_statuses(pid):
    """/proc/PID/task/*/status of each thread; those that end meanwhile are left out."""
    texts = []
    for path in glob.glob("/proc/%d/task/*/status" % pid):
        try:
            with open(path) as f:
                texts.append(f.read())
        except (FileNotFoundError, ProcessLookupError):
            pass
    return texts


def first_thread(pid):
    """What the first thread does, and where a signal to the process is."""
    with open("/proc/%d/task/%d/syscall" % (pid, pid)) as f, open("/proc/%d/task/%d/status" % (pid, pid)) as g:
        return "first thread: %s; %s" % (f.read().strip(), " ".join(line for line in g.read().splitlines() if line.startswith(("State", "Sig", "Shd"))))


def snapshot(pid):
    """What must not change for the target; mappings are judged apart, because the library stays."""
    status = open("/proc/%d/status" % pid).read()
    return {
        "threads": len(os.listdir("/proc/%d/task" % pid)),
        "fds": sorted(os.listdir("/proc/%d/fd" % pid)),
        "blocked": sorted(set(re.findall(r"SigBlk:\s*(\S+)", "".join(thread_statuses(pid))))),
        "caught": re.findall(r"SigCgt:\s*(\S+)", status),
        "tracer": re.findall(r"TracerPid:\s*(\S+)", status),
    }


def mappings(pid):
    return len(open("/proc/%d/maps" % pid).readlines())


class Target:
    """A program that prints READY pid, and at its end OK or FAIL. Its folder, if it has one, is removed with it."""
    folder = None

    def __init__(self, *command, env=None):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ, **(env or {})))
        line = self.process.stdout.readline()
        if line.startswith("SKIP"):
            self.process.wait()
            raise Skip(line[4:].strip())
        if not line.startswith("READY"):
            self.process.kill()  # nobody else would end it
            self.process.wait()
            raise Fail("target did not start: " + line + self.process.stdout.read())
        self.pid = int(line.split()[1])

    def __enter__(self):
        return self

    def __exit__(self, *what):
        if self.process.poll() is None:
            self.process.kill()
        self.process.stdout.close()
        self.process.wait()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def end(self, stop=True, timeout=60):
        """Lets it end; raises unless it says OK and nothing else."""
        if stop and self.process.poll() is None:
            os.kill(self.pid, signal.SIGTERM)
        try:
            said, _ = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise Fail("target hangs: " + first_thread(self.pid))
        require(self.process.returncode == 0, "target ended with %s: %s" % (self.process.returncode, said))
        require(said.startswith("OK") and said.count("\n") == 1, "target said: " + said)
        return said.strip()


def python_target(python, kind, seconds=600, env=None):
    return Target(python, os.path.join(HERE, "targets.py"), kind, str(seconds), env=dict({"STORM": os.path.join(BUILD, "storm.so")}, **(env or {})))


def enter(pid, *words, library=PAYLOAD, ok=(0,), timeout=600):
    """Runs the driver. Returns (exit status, what it said)."""
    done = subprocess.run([DRIVER, str(pid), library, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
    require(done.returncode in ok, "driver ended with %d: %s" % (done.returncode, done.stdout[-400:]))
    return done.returncode, done.stdout


def preflight(pid, as_uid=None):
    command = [DRIVER, str(pid), "check"]
    if as_uid is not None:
        command = ["setpriv", "--reuid", str(as_uid), "--regid", str(as_uid), "--clear-groups"] + command
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def number(said, name):
    match = re.search(r"\b%s=([0-9.]+)" % name, said)
    require(match, "no %s in: %s" % (name, said))
    return float(match[1])


def last_line(said):
    return (said.strip().splitlines() or ["(nothing said)"])[-1]


def settle(pid, before, seconds=20):
    """Our threads end on their own; then everything must be as it was."""
    until = time.monotonic() + seconds
    while True:
        after = snapshot(pid)
        if after == before or time.monotonic() > until:
            require(after == before, "changed: %s" % {k: (before[k], after[k]) for k in before if before[k] != after[k]})
            return
        time.sleep(0.05)


SUITE = os.path.basename(os.path.dirname(os.path.abspath(sys.argv[0])))


def wanted(name):
    return harness.wanted(SUITE, name)


def run_test(name, body, *arguments):
    if wanted(name):
        tell(name, body, *arguments)


def tell(name, body, *arguments):
    verdict, why = harness.verdict_of(lambda: body(*arguments))
    counts[verdict] += 1
    print(verdict, SUITE + "/" + name + (": " + why if why else ""), flush=True)


def outcome():
    """What the runner ends with."""
    if not any(counts.values()):
        if not harness.only_listed():
            print("%s: no test is called that" % SUITE, file=sys.stderr)
        return harness.nothing_ran()
    print("%(PASS)d passed, %(FAIL)d failed, %(SKIP)d skipped" % counts)
    return 1 if counts["FAIL"] else 0
