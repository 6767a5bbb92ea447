"""How this process helps the program that measures it: it opens its memory to it, and loads the collector itself (src/abi/inside.h)."""
from __future__ import annotations

import array
import contextlib
import os
import select
import socket
import struct
import time
from typing import Callable, List, Optional

from . import _native

HELLO, ENTER, ENTERED, FAILED = range(0x01455349, 0x01455349 + 4)
MESSAGE = struct.Struct("=I252s")
PASSED = 2  # descriptors with ENTER
POLL_MS = 100


class Channel:
    """Our end of the conversation. `theirs` is the program's, 0 where this process cannot help: then the program does without, as it does with any process."""

    def __init__(self) -> None:
        self.theirs, self.open = 0, False
        with contextlib.ExitStack() as held:
            try:
                memory = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
                held.callback(os.close, memory)
                self.ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            except OSError:
                return
            self.ours.sendmsg([MESSAGE.pack(HELLO, b"")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [memory]))])
            self.theirs, self.open = theirs.detach(), True

    def close(self) -> None:
        if self.open:
            self.open = False
            self.ours.close()

    def received(self) -> List[int]:
        """The descriptors of the next message; none at its end."""
        passed = array.array("i")
        try:
            _, ancillary, _, _ = self.ours.recvmsg(MESSAGE.size, socket.CMSG_SPACE(PASSED * passed.itemsize), socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:  # it ended before it read our greeting; why is in what it wrote
            return []
        for _, _, data in ancillary:
            passed.frombytes(data[:len(data) - len(data) % passed.itemsize])
        return list(passed)

    def serve(self) -> None:
        """One call of the collector, or the end of the conversation."""
        passed = self.received()
        if not passed:
            self.close()
            return
        answer, text = ENTERED, b""
        try:
            _native.enter(*passed)
        except (OSError, TypeError) as error:
            answer, text = FAILED, str(error).encode("utf-8", "replace")[:250]
        finally:
            for descriptor in passed:
                os.close(descriptor)
        with contextlib.suppress(OSError):  # it is gone, and needs no answer
            self.ours.send(MESSAGE.pack(answer, text))

    def serve_until(self, done: Callable[[], bool], seconds: float, other: Optional[int] = None) -> bool:
        """Helps until DONE(), which is asked whenever something comes here or by the descriptor OTHER, and ten times a second. False: not in time."""
        limit = time.monotonic() + seconds
        while not done():
            if time.monotonic() > limit:
                return False
            poll = select.poll()
            for descriptor in ([self.ours.fileno()] if self.open else []) + ([] if other is None else [other]):
                poll.register(descriptor, select.POLLIN)
            if any(descriptor != other for descriptor, _ in poll.poll(POLL_MS)):
                self.serve()
        return True
