"""Cases of cases.py: attachers that die, come twice or again and again, a page that is written over, children of every kind, a program that ends."""
import ctypes
import os
import random
import struct
import subprocess
import sys
import threading
import time

from programs import *
from session import *


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
    tree(9)
    session.disarm().read().check()
    assert session.count('enter', 'tree') == expected_tree(9), session.count('enter', 'tree')
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
                tree(8)
        threads = [threading.Thread(target=work) for _ in range(3 if may_start_thread else 0)]
        [thread.start() for thread in threads]
        ranges = [field(name) for name in spare]
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            scribble(session, dice, ranges)
            tree(8)
        stop.set()
        [thread.join() for thread in threads]
        scribble(session, dice, ranges)
        session.disarm()
    session = Session().arm()
    tree(9)
    session.disarm().read().check()
    assert session.count('enter', 'tree') == expected_tree(9), session.count('enter', 'tree')


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
            if tree(10) != tree(10):
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
    child_of(os.fork)
    in_thread(lambda: child_of(os.fork))
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context('fork').Process(target=in_process, args=(there,))
    process.start()
    found = here.recv()
    process.join()
    assert process.exitcode == 0 and found == [], found
    assert subprocess.run([sys.executable, '-c', 'print(6)'], preexec_fn=lambda: tree(6), stdout=subprocess.PIPE).stdout == b'6\n'
    assert subprocess.run([sys.executable, '-c', 'print(7)'], stdout=subprocess.PIPE, close_fds=False).stdout == b'7\n'  # vfork or posix_spawn
    pid = os.posix_spawn('/bin/true', ['true'], {})
    assert os.waitpid(pid, 0)[1] == 0


def case_children():
    """Children of every kind are clean: with hooks on, with hooks off between two windows, with and without a switch thread, dormant."""
    for backend in [MONITORING] if sys.version_info >= (3, 12) else [EVALUATOR, SETPROFILE, SETTRACE]:
        for budget, may_start_thread in ((0, 1), (1, 1), (1, 0)):
            session = Session(backend=backend, max_overhead_ppm=budget, may_start_thread=may_start_thread).arm()
            attacher.append(session)
            for _ in range(3):
                tree(9)
                flat()
            assert budget == 0 or not session.page('hooks_on') or not may_start_thread
            children()
            tree(9)
            session.disarm()
            children()
            assert leftovers() == [], leftovers()


def case_again():
    """Armed and disarmed fifty times: nothing grows, nothing is left."""
    def rss():
        return int(open('/proc/self/statm').read().split()[1]) * 4

    def once():
        s = during(lambda: tree(10), subbufs=16)
        assert s.count('enter', 'tree') == expected_tree(10)
        s.map.close()
    for _ in range(5):
        once()
    before, maps, fds = rss(), len(open('/proc/self/maps').readlines()), len(os.listdir('/proc/self/fd'))
    for _ in range(50):
        once()
    assert len(open('/proc/self/maps').readlines()) <= maps + 1
    assert len(os.listdir('/proc/self/fd')) == fds
    assert len(os.listdir('/proc/self/task')) == 1
    assert rss() - before < 1024, (before, rss())


def case_fork():
    """A forked child writes nothing to its parent's lanes, and runs on; the parent too."""
    sys.stdout.flush()
    s = Session().arm()
    tree(5)
    pids = []
    for _ in range(5):
        pid = os.fork()
        if not pid:
            ok = tree(12) > 0
            grandchild = os.fork()
            if not grandchild:
                tree(5)
                os._exit(0)
            ok = ok and os.waitpid(grandchild, 0)[1] == 0
            os._exit(0 if ok else 1)
        pids.append(pid)
        tree(5)
    assert all(os.waitpid(pid, 0)[1] == 0 for pid in pids)
    s.disarm().read().check()
    assert s.count('enter', 'tree') == 6 * expected_tree(5), s.count('enter', 'tree')
    assert s.page('fork_children') == 5


def case_fork_attached():
    """A child can be measured itself, also before it has run anything."""
    s = Session().arm()
    pid = os.fork()
    if not pid:
        own = during(lambda: tree(9))
        os._exit(0 if own.count('enter', 'tree') == expected_tree(9) else 1)
    assert os.waitpid(pid, 0)[1] == 0
    s.disarm()


def case_fork_given_up():
    """Who would measure a child gives up before it is armed: what its parent's threads wrote to is not there any more."""
    s = Session().arm()
    in_thread(lambda: tree(5))
    tree(5)
    pid = os.fork()
    if not pid:
        try:
            Session(subbufs=8, deadline_ticks=1).arm()
        except Refused:
            os._exit(0 if during(lambda: tree(9), subbufs=64).count('enter', 'tree') == expected_tree(9) else 1)
        os._exit(2)
    assert os.waitpid(pid, 0)[1] == 0
    s.disarm().read().check()


def case_deadline():
    """Nobody pushes the deadline ahead: hooks take themselves off, with and without a switch thread."""
    for thread in (0, 1):
        for _ in range(5):
            s = Session(may_start_thread=thread, max_overhead_ppm=900000).arm()
            tree(8)
            if not s.page('brake_count'):
                break
            s.disarm()  # on a busy machine an event may seem to cost so much that even this budget is used up
        s.set('deadline_ticks', time.monotonic_ns() + 50000000)
        time.sleep(0.4)  # hooks look at a deadline that comes nearer at the end of a stretch, which lasts a cycle (0.25 s) at most; an attacher only moves it away
        tree(8)
        assert s.page('hooks_on') == 0
        if thread:
            end = time.monotonic() + 20
            while len(os.listdir('/proc/self/task')) > 1 and time.monotonic() < end:
                time.sleep(0.01)
            assert len(os.listdir('/proc/self/task')) == 1, 'the switch thread stays'
        tree(8)
        s2 = during(lambda: tree(9))  # a new attacher finds it dormant
        assert s2.count('enter', 'tree') == expected_tree(9)
        s.read().check()
        assert s.count('enter', 'tree') == expected_tree(8), s.count('enter', 'tree')
        off = [struct.unpack_from('<I', e[4])[0] for e in s.meta if e[1] == 'window_off']
        assert off == [3], off


def case_two():
    s = Session().arm()
    try:
        Session().arm()
    except Refused as refusal:
        assert 'another' in str(refusal), refusal
    else:
        raise AssertionError('a second session was let in')
    s.disarm()


@on(12)
def case_disabled():
    """Places that said DISABLE in one session are seen in the next, though nothing ran in between."""
    for _ in range(3):
        during(lambda: tree(9), skip=('tree', 'leaf'), may_start_thread=0)
        s = during(lambda: tree(9), may_start_thread=0)
        assert s.count('enter', 'tree') == expected_tree(9), s.count('enter', 'tree')


def case_exit():
    """The interpreter ends with hooks on, daemon threads running."""
    code = ('import sys, threading; sys.path.insert(0, %r)\nfrom programs import *\nfrom session import *\n'
            'def forever():\n    while True: tree(3)\n'
            'for _ in range(3): threading.Thread(target=forever, daemon=True).start()\n'
            's = Session(max_overhead_ppm=%d).arm()\ntime.sleep(0.3)\n')
    for ppm in (0, 50000):
        done = subprocess.run([sys.executable, '-W', 'error', '-c', code % (os.path.dirname(os.path.abspath(__file__)), ppm)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0 and done.stdout == b'', (done.returncode, done.stdout)


def case_fork_warning():
    """No thread of ours where the target has one thread: os.fork() stays silent under -W error."""
    import warnings
    warnings.simplefilter('error')
    s = Session(may_start_thread=0, max_overhead_ppm=50000).arm()
    tree(5)
    pid = os.fork()
    if not pid:
        tree(5)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    s.disarm()


@on(12)
def case_fork_warning_later():
    """Our thread is there beside others of the program's only: it ends when these have, so that os.fork() stays silent, and comes back with them. Windows are the attacher's to open meanwhile."""
    import warnings
    warnings.simplefilter('error')

    def until(condition, why):
        end = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < end, why
            spin(0.05)

    def beside(work):
        ended = threading.Event()
        other = threading.Thread(target=ended.wait)
        other.start()
        work()
        ended.set()
        other.join()

    def with_ours():
        windows = s.page('window_count')
        s.set('may_start_thread', 2)
        s.command(REARM)
        until(lambda: s.page('window_count') > windows + 2, 'it opens no windows')
        assert s.page('switch_tid')

    def forked():
        pid = os.fork()
        if not pid:
            tree(5)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0

    s = Session(subbufs=256, may_start_thread=2, max_overhead_ppm=50000, clock=1, ticks_per_second=ticks_per_second())
    beside(s.arm)
    for _ in range(2):
        beside(with_ours)
        until(lambda: len(os.listdir('/proc/self/task')) == 1, 'it stays')
        forked()
        until(lambda: s.page('hooks_on') or s.page('rearm_wanted'), 'nobody opens the next window')
        until(lambda: s.page('rearm_wanted') and not s.page('hooks_on'), 'the window does not close')
        windows = s.page('window_count')
        s.set('may_start_thread', 0)
        spin(0.5)
        s.command(REARM)
        assert s.page('window_count') > windows and not s.page('switch_tid')
        forked()
    silent = 0
    for _ in range(6):  # at once: it goes before the fork, unless it waits for the GIL just then
        beside(with_ours)
        try:
            forked()
            silent += 1
        except DeprecationWarning:
            pass
    assert silent > 2, silent
    beside(with_ours)
    s.disarm()
    assert len(os.listdir('/proc/self/task')) == 1


def case_toggle():
    """Armed and disarmed while threads run, come and go: results stay right."""
    stop, wrong = [], []
    good = tree(8)

    def run():
        while not stop:
            if tree(8) != good or sum(gen(20)) != 190:
                wrong.append(1)

    def churn():
        while not stop:
            t = threading.Thread(target=tree, args=(3,))
            t.start()
            t.join()
    threads = [threading.Thread(target=run) for _ in range(3)] + [threading.Thread(target=churn) for _ in range(2)]
    [t.start() for t in threads]
    end, rounds = time.monotonic() + 3, 0
    while time.monotonic() < end:
        s = Session(subbufs=32, max_overhead_ppm=(0, 50000)[rounds % 2]).arm()
        time.sleep(0.02)
        s.disarm()
        s.map.close()
        rounds += 1
    stop.append(1)
    [t.join() for t in threads]
    assert not wrong and rounds > 5, (wrong, rounds)


def mappings(text):
    """Of memory with this name: [the letters of its state]."""
    found, name = [], ''
    with open('/proc/self/smaps') as file:
        for line in file:
            if '-' in line.split()[0] and ':' not in line.split()[0]:
                name = line
            elif line.startswith('VmFlags:') and text in name:
                found.append(line.split()[1:])
    return found


def locked_kib():
    with open('/proc/self/status') as file:
        return next(int(line.split()[1]) for line in file if line.startswith('VmLck:'))


def case_locked():
    """A program that has locked all its memory, also what it gets later: ours is not locked, and each session begins with nothing of the one before."""
    CURRENT, FUTURE = 1, 2
    assert during(lambda: tree(9)).count('enter', 'tree') == expected_tree(9)  # what is made once is there already
    if libc.mlockall(CURRENT | FUTURE):
        print('SKIP: memory may not be locked here')
        sys.exit(77)
    for _ in range(3):
        before = locked_kib()
        s = Session(memory_interval=4096).arm()
        assert sum('lo' in flags for flags in mappings('inferscope-lanes')) == 1, mappings('inferscope-lanes')  # the attacher's, which is this process, too
        grown = locked_kib() - before - s.map.size() // 1024
        assert grown < 16384, '%d KiB more are locked' % grown  # the stack of the thread that entered
        libc.mlockall(CURRENT | FUTURE)  # once more: what there is by now, too
        tree(9)
        s.disarm().read().check()
        assert s.count('enter', 'tree') == expected_tree(9) and s.meta and s.lost() == 0, (s.count('enter', 'tree'), len(s.meta), s.lost())
        assert [slot for slot, lane in s.slots() if lane['events']] == [0, 1], list(s.slots())
        assert s.page('memory_samples') > 0
        s.map.close()
