"""Cases of cases.py: collections of garbage, and samples of allocations."""
import ctypes
import gc
import math
import os
import re
import struct
import tempfile
import threading
import tracemalloc

from programs import MINOR, on
from session import *

MEM, OBJECT = 1, 2
TOLD, LEFT_GC = 1, 3
NO_LAYER, TAKEN_OFF, LEFT, CUT, TOO_DEAR = 3, 4, 5, 6, 7
MEMORY_FEWER = 6  # throttle: twice as many bytes between samples
api = ctypes.pythonapi


class Allocator(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ('context', 'malloc', 'calloc', 'realloc', 'free')]


def allocators():
    found = []
    for domain in (0, MEM, OBJECT):
        allocator = Allocator()
        api.PyMem_GetAllocator(domain, ctypes.byref(allocator))
        found.append(tuple(getattr(allocator, name) for name, _ in Allocator._fields_))
    return found


def told(session, kind):
    return [e for lane in session.threads.values() for e in lane if e[1] == kind]


def make_garbage():
    for _ in range(10):
        knot = []
        knot.append(knot)


def case_collections():
    """Each collection, its generation and what it freed; other entries of gc.callbacks are called as often as without us."""
    seen = []
    other = lambda phase, info: seen.append((phase, info['generation'], info['collected']))
    late = lambda phase, info: None
    gc.disable()
    gc.callbacks.append(other)
    before = list(gc.callbacks)
    s = Session(gc=1).arm()
    assert s.page('gc_state') == TOLD and len(gc.callbacks) == len(before) + 1
    for generation in (0, 1, 2, 2):
        make_garbage()
        gc.collect(generation)
    gc.callbacks.append(late)
    s.disarm().read().check()
    assert gc.callbacks == before + [late], gc.callbacks
    assert [phase for phase, _, _ in seen] == ['start', 'stop'] * 4, seen
    events = [(e[2],) + struct.unpack('<QQQ', e[4]) for e in told(s, 'gc')]
    assert [e[0] for e in events] == [g for phase, g, _ in seen if phase == 'stop'], events
    assert [e[2] for e in events] == [c for phase, _, c in seen if phase == 'stop'] and all(e[2] >= 10 for e in events), (events, seen)
    assert all(0 < e[1] < 10 ** 10 and e[3] == 0 for e in events), events
    gc.collect()
    assert len(seen) == 10


def case_collections_not_wanted():
    before = list(gc.callbacks)
    s = Session().arm()
    assert gc.callbacks == before and s.page('gc_state') == 0
    gc.collect()
    s.disarm().read()
    assert not told(s, 'gc')


def case_collections_kept():
    """A program that keeps our entry, puts it back and calls it by itself: it does nothing, and the next session tells each collection once."""
    s = Session(gc=1).arm()
    kept = gc.callbacks[-1]
    s.disarm()
    for arguments in ((), (1,), ('start', {}), ('stop', None), (1, 2, 3), (None, None)):
        assert kept(*arguments) is None
    gc.callbacks.append(kept)
    s = Session(gc=1).arm()
    gc.disable()
    before = len(told(s.read(), 'gc'))
    for arguments in ((), ('start', 5), ('stop', 5), ('stop', None)):
        assert kept(*arguments) is None
    gc.collect()
    s.disarm().read()
    assert gc.callbacks == [] and len(told(s, 'gc')) - before == 2, (gc.callbacks, told(s, 'gc'))  # one of them made up


def case_collections_running():
    """We leave in the middle of a collection that has let go of the GIL: nobody behind us is left out, and our entry goes at the next one."""
    seen = []
    s = Session(gc=1).arm()
    state = {}

    def waits(phase, info):
        if phase == 'start':
            s.disarm()  # releases the GIL, and comes back without us
            state['left'] = s.page('gc_state')
    gc.callbacks.append(waits)
    gc.callbacks.append(lambda phase, info: seen.append(phase))
    gc.disable()
    gc.collect()
    assert seen == ['start', 'stop'], seen
    assert state['left'] == LEFT_GC, state
    del gc.callbacks[1:]
    gc.collect()
    assert gc.callbacks == [], gc.callbacks


def case_collections_fork():
    gc.disable()
    s = Session(gc=1).arm()
    pid = os.fork()
    if not pid:
        gc.collect()
        gc.collect()
        os._exit(0 if gc.callbacks == [] else 1)
    assert os.waitpid(pid, 0)[1] == 0
    s.disarm()
    assert gc.callbacks == []


def case_collections_deadline():
    """The attacher is dead: the next collection takes our entry out."""
    s = Session(gc=1).arm()
    s.set('deadline_ticks', 1)
    gc.collect()
    assert gc.callbacks == []
    s.disarm()


def big(n):
    return bytes(n)


def sum_of(session, size):
    samples = [struct.unpack_from('<QQQI', e[4]) for e in told(session, 'memory_alloc')]
    return [row for row in samples if size is None or size <= row[1] < size + 64]


def case_memory_off():
    """Not asked for: no allocator changes."""
    before = allocators()
    s = Session().arm()
    assert allocators() == before
    s.disarm()
    assert allocators() == before and s.page('memory_state') == 0


def case_memory():
    """The bytes of a known loop, within five standard deviations; its function and line; ends; the allocators are what they were."""
    before = allocators()
    interval, size, count = 65536, 20000, 40000
    s = Session(memory_interval=interval, subbufs=1024).arm()
    assert s.page('memory_state') == 1 and allocators()[0] == before[0] and allocators()[1] != before[1] and allocators()[2] != before[2]
    for _ in range(count):
        big(size)
    kept = [big(size) for _ in range(2000)]
    s.disarm()
    assert allocators() == before, (allocators(), before)
    assert s.page('memory_state') == TAKEN_OFF and s.lost() == 0
    s.read()
    rows, truth = sum_of(s, size), (count + len(kept)) * (size + 33)
    weight = sum(row[2] for row in rows)
    assert abs(weight - truth) < 5 * truth / math.sqrt(len(rows)), (weight, truth, len(rows))
    ends = {struct.unpack('<Q', e[4])[0] for e in told(s, 'memory_free')}
    alive = sum(row[2] for row in rows if row[0] not in ends)
    assert len(told(s, 'memory_free')) > len(rows) / 2
    addresses = [row[0] for row in rows]
    assert all(addresses) and s.page('memory_full') == 0
    frames = [s.names[e[2]][0] for e in told(s, 'memory_frame')]
    lines = {struct.unpack_from('<I', e[4])[0] for e in told(s, 'memory_frame') if s.names[e[2]][0] == 'big'}
    assert frames.count('big') >= len(rows) and lines == {big.__code__.co_firstlineno + 1}, (frames.count('big'), len(rows), lines)
    assert kept and alive >= 0


def grow(n):
    rows = []
    for i in range(n):
        rows.append(i)
    return rows


def case_memory_realloc():
    """Lists that grow, dicts, strings: nothing is lost of them, and each end belongs to a sample."""
    s = Session(memory_interval=2000, subbufs=1024).arm()
    rows = [grow(20000) for _ in range(50)]
    text = [('%d' % i) * 3 for i in range(50000)]
    table = {word: i for i, word in enumerate(text)}
    s.disarm().read()
    assert all(row == list(range(20000)) for row in rows) and len(table) == len(set(text))
    begun, wrong = set(), 0
    for lane in s.threads.values():
        for e in lane:
            if e[1] == 'memory_alloc':
                begun.add(struct.unpack_from('<Q', e[4])[0])
            elif e[1] == 'memory_free':
                wrong += struct.unpack('<Q', e[4])[0] not in begun
    assert not wrong and s.lost() == 0, (wrong, s.lost())


def case_memory_tracemalloc():
    """A hundred times in and out with tracemalloc at work, begun or ended meanwhile: it loses nothing."""
    tracemalloc.start()
    line = big.__code__.co_firstlineno + 1

    def traced():
        return sum(t.size for t in tracemalloc.take_snapshot().traces if t.traceback[0].lineno == line and t.traceback[0].filename == __file__)
    kept = []
    for i in range(100):
        s = Session(memory_interval=4096, subbufs=16).arm()
        kept.append(big(1000))
        s.disarm()
        assert s.page('memory_state') == TAKEN_OFF, (i, s.page('memory_state'))
        kept.append(big(1000))
        s.map.close()
    assert traced() == 200 * 1033, traced()
    del kept[:]
    assert traced() == 0, traced()
    tracemalloc.stop()
    before = allocators()
    states = []
    for i in range(40):
        s = Session(memory_interval=4096, subbufs=16).arm()
        tracemalloc.start()
        kept.append(big(1000))
        s.disarm()  # it stands on us: our functions stay, and pass on
        states.append(s.page('memory_state'))
        kept.append(big(1000))
        assert traced() == 2 * 1033, (i, traced())
        if i % 2:
            s = Session(memory_interval=4096, subbufs=16).arm()
            kept.append(big(1000))
            assert traced() == 3 * 1033
            tracemalloc.stop()  # puts back what it found: us
            kept.append(big(1000))
            s.disarm()
            states.append(s.page('memory_state'))
        else:
            tracemalloc.stop()
        del kept[:]
    assert set(states) == {LEFT, TAKEN_OFF}, states
    for i in range(20):
        tracemalloc.start()
        s = Session(memory_interval=4096, subbufs=16).arm()
        tracemalloc.stop()  # and with it us
        kept.append(big(1000))
        s.disarm()
        assert s.page('memory_state') == CUT, (i, s.page('memory_state'))
    Session(memory_interval=4096, subbufs=16).arm().disarm()
    assert allocators() == before, 'what stayed below tracemalloc goes with the next session'


def case_memory_fork():
    s = Session(memory_interval=4096).arm()
    pids = []
    for _ in range(5):
        pid = os.fork()
        if not pid:
            rows = grow(1000)
            os._exit(0 if rows == list(range(1000)) and all(a[1] == b[1] for a, b in zip(allocators(), untouched)) else 1)
        pids.append(pid)
    assert all(os.waitpid(pid, 0)[1] == 0 for pid in pids)
    s.disarm()
    assert allocators() == untouched


def case_memory_deadline():
    """The attacher is dead: the next sample takes our functions off."""
    s = Session(memory_interval=1024).arm()
    s.set('deadline_ticks', 1)
    grow(1000)
    assert allocators() == untouched
    s.disarm()


def case_memory_budget():
    """Samples that cost more than half of the budget become fewer, and say so; the sum stays unbiased."""
    s = Session(memory_interval=64, subbufs=1024, max_overhead_ppm=50000, thread_tid_offset=TID_OFFSET, clock=2).arm()
    count, size, first = 0, 4000, s.page('memory_interval_now')
    while s.page('memory_interval_now') < 16 * first and time.process_time() < 60:
        for _ in range(20000):
            big(size)
        count += 20000
    last = s.page('memory_interval_now')
    s.disarm().read()
    assert s.page('memory_state') == TAKEN_OFF and first == 64 and last >= 16 * first, (first, last)
    assert [e for e in s.meta if e[1] == 'throttle' and struct.unpack_from('<I', e[4])[0] == MEMORY_FEWER], 'it is not told'
    assert s.page('memory_cost_ns') > 0 and allocators() == untouched


def case_memory_too_dear():
    """Where passing on alone costs more than may be spent, and no thread of ours could put them back, our functions go, while the session goes on."""
    began = time.monotonic_ns()
    s = Session(memory_interval=4096, max_overhead_ppm=20, may_start_thread=0).arm()
    while s.page('memory_state') != TOO_DEAR and time.process_time() < 60:
        grow(1000)
    assert s.page('memory_state') == TOO_DEAR and allocators() == untouched, s.page('memory_state')
    s.disarm()
    assert s.page('memory_state') == TOO_DEAR and allocators() == untouched
    assert began < s.page('memory_ended_ticks') < time.monotonic_ns(), 'since when is not told'


def marks_of(session):
    """(at, off_ns, cpu_ns, on, native)"""
    return [(e[0],) + struct.unpack('<QQII', e[4]) for e in session.meta if e[1] == 'memory_sampling']


def case_memory_rests():
    """Where passing on all the time costs more than may be spent, our functions are there for a part of it."""
    s = Session(memory_interval=1 << 20, max_overhead_ppm=4000).arm()
    seen, began = [False], time.monotonic()  # changes between ours and those of before
    while (len(seen) < 5 or s.page('memory_pauses') < 2) and time.monotonic() < began + 120:
        grow(1000)
        if seen[-1] != (allocators() == untouched):
            seen.append(not seen[-1])
    s.disarm().read()
    # the last rest is cut short
    off, pauses = sum(mark[1] for mark in marks_of(s)), s.page('memory_pauses')
    assert s.page('memory_state') == TAKEN_OFF and allocators() == untouched
    assert len(seen) >= 5 and pauses >= 2, (seen, pauses)
    assert 0.025e9 * (pauses - 1) <= off < (time.monotonic() - began) * 1e9, off
    assert s.page('memory_ended_ticks') == 0
    assert s.page('memory_cost_ns') < 1.5 * 0.004 * time.process_time() * 1e9, s.page('memory_cost_ns')


def case_memory_rests_are_told():
    """What was on and what was off."""
    s = Session(memory_interval=1 << 20, max_overhead_ppm=4000).arm()
    began = time.monotonic()
    while s.page('memory_pauses') < 3 and time.monotonic() < began + 120:
        grow(1000)
    s.disarm().read()
    marks = marks_of(s)
    assert [m[3] for m in marks][:6] == [1, 0, 1, 0, 1, 0] and not any(m[4] for m in marks), marks
    assert marks[0][1] == 0 and all(m[1] > 0 for m in marks[2::2]), marks
    assert all(0 < a[2] < b[2] for a, b in zip(marks, marks[1:])), marks


def case_memory_cut_in_a_rest():
    """Another tool that put back the allocators of before took our functions off: that is told, though they were put on again after a rest."""
    s = Session(memory_interval=1 << 20, alternate_ms=500).arm()
    ours = allocators()
    for domain in (MEM, OBJECT):
        api.PyMem_SetAllocator(domain, ctypes.byref(Allocator(*untouched[domain])))
    assert allocators() != ours
    began = time.monotonic()
    while allocators() != ours and time.monotonic() < began + 60:
        grow(1000)
    assert allocators() == ours and s.page('memory_pauses') == 1
    s.disarm()
    assert s.page('memory_state') == CUT, s.page('memory_state')


def put_below(mark):
    """Allocators that differ from those of before by a context that nobody looks at."""
    for domain in (MEM, OBJECT):
        _, *functions = untouched[domain]
        api.PyMem_SetAllocator(domain, ctypes.byref(Allocator(mark, *functions)))


def case_memory_not_again():
    """Allocators that were changed too often while we rested: it was sampled before, and since when it is not is told."""
    for mark in range(1, 9):  # for each of them a layer of ours is kept
        put_below(mark)
        Session(memory_interval=1 << 20).arm().disarm()
    s = Session(memory_interval=1 << 20, alternate_ms=200).arm()
    assert s.page('memory_state') == 1 and s.page('memory_ended_ticks') == 0
    began = time.monotonic()
    while not s.page('memory_pauses') and time.monotonic() < began + 60:
        grow(1000)
    put_below(9)
    while s.page('memory_state') == 1 and time.monotonic() < began + 60:
        grow(1000)
    s.disarm().read()
    assert s.page('memory_state') == NO_LAYER, s.page('memory_state')
    assert [mark[3] for mark in marks_of(s)][-2:] == [1, 0] and s.page('memory_ended_ticks') == marks_of(s)[-1][0], (s.page('memory_ended_ticks'), marks_of(s))
    assert Session(memory_interval=1 << 20).arm().disarm().page('memory_ended_ticks') == 0, 'never sampled at all'
    put_below(untouched[MEM][0])


def case_memory_rest_of_another_session():
    """A session that ended in a rest leaves nothing for the next one to wake up for: its thread asks for the GIL seldom."""
    s = Session(memory_interval=1 << 20, max_overhead_ppm=4000).arm()
    began = time.monotonic()
    while (not s.page('memory_pauses') or allocators() != untouched) and time.monotonic() < began + 120:
        grow(1000)
    s.disarm()
    assert s.page('memory_pauses') > 0
    time.sleep(0.5)
    s = Session(max_overhead_ppm=4000).arm()
    began = time.monotonic()
    while not s.page('switch_tid') and time.monotonic() < began + 60:  # the thread itself says it
        time.sleep(0.01)
    with open('/proc/self/task/%d/status' % s.page('switch_tid')) as file:
        before = int(re.search(r'\nvoluntary_ctxt_switches:\s*(\d+)', file.read()).group(1))
        time.sleep(1)
        file.seek(0)
        woken = int(re.search(r'\nvoluntary_ctxt_switches:\s*(\d+)', file.read()).group(1)) - before
    s.disarm()
    assert woken < 50, 'it woke %d times in a second' % woken


def case_memory_alternate():
    """By turns on and off: in the turns without hooks no function of ours is there."""
    s = Session(memory_interval=4096, alternate_ms=20).arm()
    seen, end = set(), time.monotonic() + 60
    while (len(seen) < 2 or s.page('memory_pauses') < 3) and time.monotonic() < end:
        seen.add(allocators() == untouched)
        grow(1000)
        time.sleep(0.001)
    s.disarm()
    assert seen == {True, False} and s.page('memory_pauses') >= 3, (seen, s.page('memory_pauses'))
    assert allocators() == untouched and s.page('memory_state') == TAKEN_OFF


OWN_GIL = """
import os
kept = []
while os.path.exists(%r):
    for i in range(2000):
        kept = [[None] * 40, [None] * 45]
"""


def beside(work, path):
    """Runs WORK while two interpreters with GILs of their own allocate, on threads that lose their CPU at any moment."""
    if MINOR >= 13:
        import _interpreters as interpreters
        make = lambda: interpreters.create('isolated')
    else:
        import _xxsubinterpreters as interpreters
        make = lambda: interpreters.create(isolated=True)
    failed, begun = [], []

    def run():
        own = make()
        begun.append(own)
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        error = interpreters.run_string(own, OWN_GIL % path)
        interpreters.destroy(own)
        if error:
            failed.append(error)
    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        while len(begun) < len(threads):
            assert all(thread.is_alive() for thread in threads), 'a thread has failed'
            time.sleep(0.001)
        work()
    finally:
        os.unlink(path)
        for thread in threads:
            thread.join()
    assert not failed, failed


@on(12)
def case_memory_own_gil():
    """Interpreters with GILs of their own allocate while we come and go: what falls to them is missed, and told; they never see a page that has gone."""
    missed, ended = [], []

    def rounds():
        while len(missed) < 30 or (max(missed) <= 100 and len(missed) < 300):  # others may have the CPUs
            s = Session(memory_interval=64, subbufs=16).arm()
            time.sleep(0.02)
            grow(2000)
            s.disarm()
            missed.append(s.page('memory_missed'))
            ended.append((s.page('memory_state'), s.page('memory_samples') > 0))
            s.map.close()
            assert allocators() == untouched
    with tempfile.NamedTemporaryFile(delete=False) as file:
        pass
    beside(rounds, file.name)
    assert max(missed) > 100 and set(ended) == {(TAKEN_OFF, True)}, (missed, ended)


def case_memory_threads():
    """In and out while threads allocate, end and begin; results stay right."""
    stop, wrong, rounds = [], [], [0]

    def work():
        while not stop:
            if grow(300) != list(range(300)) or len(big(5000)) != 5000:
                wrong.append(1)
            rounds[0] += 1

    def churn():
        while not stop:
            t = threading.Thread(target=grow, args=(200,))
            t.start()
            t.join()
    threads = [threading.Thread(target=f) for f in (work, work, churn)]
    for t in threads:
        t.start()
    for i in range(60):
        s = Session(memory_interval=512 << (i % 6), subbufs=64, gc=1).arm()
        time.sleep(0.005)
        s.disarm()
        s.read().check(10 ** 6)
        s.map.close()
    stop.append(1)
    for t in threads:
        t.join()
    assert not wrong and rounds[0] > 0 and allocators() == untouched


untouched = allocators()
