"""A terminal to test with: a pseudo terminal whose screen is kept (what TERM=vt100 can do), and a shell's part of job control."""
import codecs
import fcntl
import os
import re
import select
import signal
import struct
import termios
import time

ESCAPE = re.compile(r"\x1b(?:\[([0-9;?]*)([A-Za-z])|[()][A-Z0-9]|([78=>DMEc]))")


class Screen:
    """Cells of a vt100: moves, erasures, a scroll region."""

    def __init__(self, width, height):
        self.decoder, self.rest = codecs.getincrementaldecoder("utf-8")("replace"), ""
        self.resize(width, height)

    def resize(self, width, height):
        self.width, self.height = width, height
        self.cells = [[" "] * width for _ in range(height)]
        self.x = self.y = 0
        self.top, self.bottom = 0, height - 1
        self.overflow = False

    def lines(self):
        return ["".join(row).rstrip() for row in self.cells]

    def feed(self, data):
        text = self.rest + self.decoder.decode(data)
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                match = ESCAPE.match(text, at)
                if not match:
                    if len(text) - at < 16:
                        break
                    raise AssertionError("an escape sequence that a vt100 does not know: %r" % text[at:at + 16])
                self.escape(match)
                at = match.end()
            else:
                self.put(text[at])
                at += 1
        self.rest = text[at:]

    def put(self, char):
        if char == "\r":
            self.x = 0
        elif char == "\n":
            self.down()
        elif char == "\t":
            self.x = min(self.width - 1, (self.x // 8 + 1) * 8)
        elif char == "\b":
            self.x = max(0, min(self.x, self.width) - 1)
        elif char >= " " and char != "\x7f":
            if self.x >= self.width:  # the next one wraps
                self.x = 0
                self.down()
            self.cells[self.y][self.x] = char
            self.x += 1

    def down(self):
        if self.y == self.bottom:
            del self.cells[self.top]
            self.cells.insert(self.bottom, [" "] * self.width)
        elif self.y < self.height - 1:
            self.y += 1

    def escape(self, match):
        if match[3] == "M":
            if self.y == self.top:
                del self.cells[self.bottom]
                self.cells.insert(self.top, [" "] * self.width)
            else:
                self.y = max(0, self.y - 1)
        if match[2] is None:
            return
        numbers = [int(n) for n in match[1].replace("?", "").split(";") if n]
        first = numbers[0] if numbers else 0
        step = max(1, first)
        if match[2] == "H":
            self.y, self.x = min(self.height, step) - 1, min(self.width, numbers[1] if len(numbers) > 1 else 1) - 1
        elif match[2] == "A":
            self.y = max(0, self.y - step)
        elif match[2] == "B":
            self.y = min(self.height - 1, self.y + step)
        elif match[2] == "C":
            self.x = min(self.width - 1, self.x + step)
        elif match[2] == "D":
            self.x = max(0, self.x - step)
        elif match[2] == "K":
            begin, end = [(self.x, self.width), (0, self.x + 1), (0, self.width)][first]
            self.cells[self.y][begin:end] = [" "] * (min(end, self.width) - begin)
        elif match[2] == "J":
            if first == 0:
                self.cells[self.y][self.x:] = [" "] * (self.width - self.x)
                self.cells[self.y + 1:] = [[" "] * self.width for _ in range(self.height - self.y - 1)]
            elif first == 2:
                self.cells = [[" "] * self.width for _ in range(self.height)]
        elif match[2] == "r":
            self.top = (first or 1) - 1
            self.bottom = min(self.height, numbers[1] if len(numbers) > 1 else self.height) - 1
            self.x = self.y = 0


class Terminal:
    """COMMAND in the foreground of a terminal of its own, as a job of something like a shell. `attributes` are what the terminal had before."""

    def __init__(self, command, env, width=100, height=30):
        self.screen, self.raw = Screen(width, height), b""
        self.master, self.slave = os.openpty()
        self.attributes = termios.tcgetattr(self.slave)
        self.size(width, height)
        self.told, tell = os.pipe()
        self.shell = os.fork()
        if self.shell == 0:
            try:
                self.be_shell(command, env, tell)
            finally:
                os._exit(126)
        os.close(tell)
        self.states = b""

    def be_shell(self, command, env, tell):
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        ready, go = os.pipe()
        job = os.fork()
        if job == 0:
            os.setpgid(0, 0)
            os.read(ready, 1)
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            for fd in (0, 1, 2):
                os.dup2(self.slave, fd)
            os.closerange(3, 256)
            os.execve(command[0], command, env)
        os.setpgid(job, job)
        os.tcsetpgrp(self.slave, job)
        os.write(tell, b"pid %d\n" % job)
        os.write(go, b"x")

        def foreground(*_):
            os.tcsetpgrp(self.slave, job)
            os.kill(-job, signal.SIGCONT)
        signal.signal(signal.SIGUSR1, foreground)
        while True:
            _, status = os.waitpid(job, os.WUNTRACED)
            if os.WIFSTOPPED(status):
                os.tcsetpgrp(self.slave, os.getpid())
                os.write(tell, b"stopped\n")
                continue
            os.write(tell, b"ended %d\n" % (os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)))
            os._exit(0)

    def size(self, width, height):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def read(self, seconds):
        end = time.monotonic() + seconds
        while True:
            ready = select.select([self.master, self.told], [], [], max(0, end - time.monotonic()))[0]
            if not ready:
                return
            if self.told in ready:
                self.states += os.read(self.told, 4096)
            if self.master in ready:
                data = os.read(self.master, 65536)
                self.raw += data
                self.screen.feed(data)
            elif b"ended" in self.states:
                return

    def wait(self, condition, seconds, why):
        """Until CONDITION() holds of the screen or the states."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise AssertionError("%s; %s; the screen:\n%s" % (why, self.states, "\n".join(self.screen.lines())))
            self.read(0.05)

    def wait_text(self, text, seconds=20):
        self.wait(lambda: any(text in line for line in self.screen.lines()), seconds, "there is no %r" % text)

    def wait_gone(self, text, seconds=20):
        self.wait(lambda: not any(text in line for line in self.screen.lines()), seconds, "there is still %r" % text)

    def key(self, keys):
        os.write(self.master, keys.encode())

    def pid(self):
        self.wait(lambda: b"pid " in self.states, 10, "the job was not started")
        return int(self.states.split()[1])

    def wait_state(self, state, seconds=20):
        self.wait(lambda: state in self.states.split(b"\n")[1:], seconds, "it is not %r" % state)

    def restored(self):
        """The terminal's settings are what they were."""
        return termios.tcgetattr(self.slave) == self.attributes

    def resume(self):
        self.states = self.states.replace(b"stopped\n", b"")
        os.kill(self.shell, signal.SIGUSR1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            if b"ended" not in self.states:
                os.kill(-self.pid(), signal.SIGKILL)
        except (ProcessLookupError, AssertionError):
            pass
        try:
            os.kill(self.shell, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.shell, 0)
        for fd in (self.master, self.slave, self.told):
            os.close(fd)
