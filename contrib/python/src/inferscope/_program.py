"""The packaged program `inferscope`: where it is, how to call it, what its failures are."""
from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from typing import IO, Any, Dict, Iterator, List, Optional, Sequence, cast

from ._types import Event

END_SECONDS = 20
GATES = {"E_GATE": "--fail-on", "E_PARTIAL": "--strict"}


class InferScopeError(RuntimeError):
    """A call of the program failed. `code` is a row of docs/errors.md, `hint` says what to do, `status` is the exit status."""

    def __init__(self, message: str, code: str = "E_INTERNAL", hint: str = "", status: Optional[int] = None) -> None:
        super().__init__(message + ("\n  " + hint if hint else ""))
        self.code, self.hint, self.status = code, hint, status


def program() -> str:
    """Path of the program: INFERSCOPE_PROGRAM, or the one in this package."""
    path = os.environ.get("INFERSCOPE_PROGRAM") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "_bin", "inferscope")
    if not os.access(path, os.X_OK):
        raise InferScopeError("there is no program at %s" % path, hint="install the wheel that contrib/python/build makes")
    return path


def environment() -> Dict[str, str]:
    """Ours without INFERSCOPE_ENABLED, which is the program's own business."""
    return {key: value for key, value in os.environ.items() if key != "INFERSCOPE_ENABLED"}


def error_of(text: str, status: int) -> InferScopeError:
    """The failure that the program told on stderr with --error-format json."""
    for line in reversed(text.splitlines()):
        try:
            error = json.loads(line)
            return InferScopeError(error["message"], error["code"], error["hint"], status)
        except (ValueError, KeyError, TypeError):
            continue
    return InferScopeError("inferscope ended with %s: %s" % (status, text.strip()[-500:]), status=status)


def failure_of(words: Sequence[object], text: str, status: int) -> Optional[InferScopeError]:
    """The same; None when WORDS do not ask for the condition that ended it so, but the settings do: it did what it was called for."""
    error = error_of(text, status)
    if error.code == "E_GATE" and "--fail-on" not in words and "--strict" in words and "partial data: " in str(error):
        error.code = "E_PARTIAL"  # both hold, and the gate of the settings has the status
    return None if error.code in GATES and GATES[error.code] not in words else error


def call(*words: object, input: Optional[bytes] = None, timeout: Optional[float] = None) -> bytes:
    """Output of the program, as bytes. Raises InferScopeError."""
    done = subprocess.run([program(), *map(str, words), "--error-format", "json"], input=input, stdin=None if input is not None else subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=environment(), timeout=timeout)
    failure = failure_of(words, done.stderr.decode("utf-8", "replace"), done.returncode) if done.returncode else None
    if failure:
        raise failure
    return done.stdout


def started(words: Sequence[str], given: Sequence[int] = (), inherited: Sequence[int] = (), **streams: Any) -> "subprocess.Popen[bytes]":
    """The program as a child. Descriptors GIVEN are closed here, whatever happens, those INHERITED it has under their numbers. end() it."""
    try:
        variables = dict(environment(), TERM="xterm")  # of a terminal that we made, if it has one
        return subprocess.Popen([program(), *words, "--error-format", "json"], stdin=subprocess.DEVNULL, env=variables, pass_fds=inherited, **streams)
    finally:
        for descriptor in given:
            os.close(descriptor)


def events_of(trace: str) -> Iterator[Event]:
    """One by one, a line of the program's each."""
    child = started(["analyze", trace, "-f", "events", "-o", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with contextlib.ExitStack() as held:
        held.callback(end, child)
        errors = held.enter_context(cast(IO[bytes], child.stderr))
        for line in held.enter_context(cast(IO[bytes], child.stdout)):  # one event per line
            if line.startswith(b'{"event_type"'):
                yield json.loads(line.rstrip(b",\n"))
        text, status = errors.read().decode("utf-8", "replace"), child.wait()
        failure = failure_of((), text, status) if status else None
        if failure:
            raise failure


def end(child: "subprocess.Popen[bytes]") -> None:
    """CHILD is no more then. Interrupted, so that it leaves a process that it measures as it was; killed where that takes too long."""
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
        try:
            child.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
    child.wait()


def option_words(options: Dict[str, Any]) -> List[str]:
    """max_overhead="5%", memory=True, gc=False, skip=["a", "b"] → --max-overhead 5% --memory --no-gc --skip a,b. None is not given."""
    words = []
    for name, value in options.items():
        word = name.replace("_", "-")
        if value is True or value is False:
            words.append("--" + ("" if value else "no-") + word)
        elif value is not None:
            words += ["--" + word, ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)]
    return words


def main() -> None:
    """`inferscope …` as a command of this environment."""
    try:
        path = program()
    except InferScopeError as error:
        sys.exit("inferscope: %s" % error)
    os.execv(path, [path] + sys.argv[1:])
