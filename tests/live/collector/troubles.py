"""Cases of cases.py: attachers that die or come twice, a page that is written over, children of every kind."""
import ctypes
import os
import random
import sys
import threading
import time

from session import *


def leaf(x):
    return x + 1


def climb(n):
    return leaf(n) if n < 2 else climb(n - 1) + climb(n - 2)


def expected_climb(n):
    a, b = 1, 1
    for _ in range(n - 1):
        a, b = b, a + b + 1
    return b


def silent_attacher(wait_ms):
    """The thread of an attacher that dies before it answers. Returns its handover and its thread."""
    handover = ctypes.create_string_buffer(LAYOUT['size.handover'][0])
    put(handover, 0, 'handover.magic', LAYOUT['magic.handover'][0])
    put(handover, 0, 'handover.command', ARM)
    put(handover, 0, 'handover.wait_ms', wait_ms)
    thread = ctypes.c_ulong()
    assert not pthread_create(ctypes.byref(thread), None, entry, ctypes.byref(handover))
    while get(handover, 0, 'handover.said') != 1:
        time.sleep(0.0005)
    return handover, thread


def case_dead_attacher():
    """Whoever comes next waits until the thread of a dead attacher has given up, and is let in then."""
    handover, thread = silent_attacher(400)
    session = Session().arm()
    climb(9)
    session.disarm().read().check()
    assert session.count('enter', 'climb') == expected_climb(9), session.count('enter', 'climb')
    assert not pthread_join(thread, None)
    assert get(handover, 0, 'handover.said') == 5, 'it did not give up'


def case_two_enter():
    """Two at once: the second is told, by the time it would have waited for an answer."""
    handover, thread = silent_attacher(60000)
    try:
        Session().command(ARM, wait_ms=100)
    except Refused as refusal:
        assert 'is entering or leaving it' in str(refusal), refusal
    else:
        raise AssertionError('a second attacher was let in')
    put(handover, 0, 'handover.answer', 2)
    assert not pthread_join(thread, None)
    Session().arm().disarm()


def case_late_gil():
    """The attacher dies while its thread waits for the GIL: nothing is armed when it gets it."""
    session = Session(deadline_ticks=time.monotonic_ns() + 100000000)
    share, held = session.share, ctypes.PyDLL(None)

    def share_and_hold():
        share()
        held.usleep(400000)  # keeps the GIL
    session.share = share_and_hold
    session.command(ARM)
    assert session.page('arm') == 2, 'arm state %d' % session.page('arm')
    assert not session.page('hooks_on')
    Session().arm().disarm()


def scribble(session, dice, spare):
    """Writes over the page and the heads of the sub-buffers, but for the ranges SPARE."""
    base = ctypes.addressof(ctypes.c_char.from_buffer(session.map))
    size = LAYOUT['page.lanes'][0]
    for start in range(0, size, 8):
        if not any(a <= start < b for a, b in spare):
            word = dice.choice([0, -1, 0x2a2a2a2a2a2a2a2a, 1, 1 << 31, dice.getrandbits(64), dice.getrandbits(8)])
            ctypes.memmove(base + start, ctypes.byref(ctypes.c_uint64(word & (2 ** 64 - 1))), 8)
    noise = os.urandom(1 << 16)
    for start in range(size, PAGE - len(noise), len(noise)):
        ctypes.memmove(base + start, noise, len(noise))
    for i in range(session.subbufs):
        ctypes.memmove(base + PAGE + i * SUBBUF, noise[i * 8:], HEAD)


def field(name):
    """The words that NAME lies in."""
    offset, size = LAYOUT['page.' + name]
    return offset & ~7, (offset + size + 7) & ~7


def case_scribble():
    """The program writes over everything that it shares with us, while the hooks work on it: it goes on."""
    seed = int(time.time())
    dice = random.Random(seed)
    print('seed', seed)  # shown only when it fails
    for may_start_thread, spare in ((1, ['deadline_ticks', 'stop']), (0, ['deadline_ticks', 'stop']), (1, []), (0, [])):
        session = Session(subbufs=16, max_overhead_ppm=900000, may_start_thread=may_start_thread).arm()
        stop = threading.Event()

        def work():
            while not stop.is_set():
                climb(8)
        threads = [threading.Thread(target=work) for _ in range(3 if may_start_thread else 0)]
        [thread.start() for thread in threads]
        ranges = [field(name) for name in spare]
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            scribble(session, dice, ranges)
            climb(8)
        stop.set()
        [thread.join() for thread in threads]
        scribble(session, dice, ranges)
        session.disarm()
    session = Session().arm()
    climb(9)
    session.disarm().read().check()
    assert session.count('enter', 'climb') == expected_climb(9), session.count('enter', 'climb')


attacher = []  # its session: this process plays it, too


def leftovers():
    """What of ours this process has, but for what it has as an attacher."""
    found = []
    if attacher:
        attacher.pop().map.close()
    with open('/proc/self/maps') as file:
        found += [line.split()[-2] for line in file if 'inferscope-lanes' in line]
    for fd in os.listdir('/proc/self/fd'):
        try:
            found += [fd] if 'inferscope' in os.readlink('/proc/self/fd/' + fd) else []
        except OSError:
            pass
    if hasattr(sys, 'monitoring'):
        for tool in range(6):
            if sys.monitoring.get_tool(tool):
                found.append('tool id %d is %s' % (tool, sys.monitoring.get_tool(tool)))
    if sys.getprofile() or sys.gettrace():
        found.append('a profile or trace function')
    if len(os.listdir('/proc/self/task')) != 1:
        found.append('threads')
    return found


def child_of(fork):
    """Forks by FORK, which returns a pid; the child says what it found by its exit status and a pipe."""
    read, write = os.pipe()
    pid = fork()
    if not pid:
        try:
            found = leftovers()
            if climb(10) != climb(10):
                found.append('wrong results')
            os.write(write, repr(found + leftovers()).encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read, 'rb') as file:
        said = file.read().decode()
    assert os.waitpid(pid, 0)[1] == 0 and said == '[]', 'in the child: ' + said


def in_thread(work):
    failed = []

    def run():
        try:
            work()
        except BaseException as error:
            failed.append(error)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def in_process(connection):
    connection.send(leftovers())


def children():
    """Every way to make one."""
    import multiprocessing
    import subprocess
    child_of(os.fork)
    in_thread(lambda: child_of(os.fork))
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context('fork').Process(target=in_process, args=(there,))
    process.start()
    found = here.recv()
    process.join()
    assert process.exitcode == 0 and found == [], found
    assert subprocess.run([sys.executable, '-c', 'print(6)'], preexec_fn=lambda: climb(6), stdout=subprocess.PIPE).stdout == b'6\n'
    assert subprocess.run([sys.executable, '-c', 'print(7)'], stdout=subprocess.PIPE, close_fds=False).stdout == b'7\n'  # vfork or posix_spawn
    pid = os.posix_spawn('/bin/true', ['true'], {})
    assert os.waitpid(pid, 0)[1] == 0


def make_flat():
    """Calls of so many functions that none of them is hot: fewer events cannot be had by leaving some out."""
    names = {}
    exec('\n'.join('def flat_%d(): pass' % i for i in range(300)), names)
    functions = [names['flat_%d' % i] for i in range(300)]

    def flat():
        for f in functions:
            f()
    return flat


flat = make_flat()


def case_children():
    """Children of every kind are clean: with hooks on, with hooks off between two windows, with and without a switch thread, dormant."""
    for backend in [MONITORING] if sys.version_info >= (3, 12) else [EVALUATOR, SETPROFILE, SETTRACE]:
        for budget, may_start_thread in ((0, 1), (1, 1), (1, 0)):
            session = Session(backend=backend, max_overhead_ppm=budget, may_start_thread=may_start_thread).arm()
            attacher.append(session)
            for _ in range(3):
                climb(9)
                flat()
            assert budget == 0 or not session.page('hooks_on') or not may_start_thread
            children()
            climb(9)
            session.disarm()
            children()
            assert leftovers() == [], leftovers()
