"""Cases of cases.py: the ways to be told of calls, and the profilers, tracers, evaluators and audit hooks that are there already."""
import ctypes
import os
import struct
import sys
import threading
import time

from programs import *
from session import *


def case_cprofile():
    """Somebody else's profiler goes on and loses nothing."""
    import cProfile
    import pstats
    profile = cProfile.Profile()
    profile.enable()
    s = Session().arm()
    tree(10)
    s.disarm()
    tree(10)
    profile.disable()
    s.read().check()
    assert s.count('enter', 'tree') == expected_tree(10)
    calls = {key[2]: value[1] for key, value in pstats.Stats(profile).stats.items()}
    assert calls['tree'] == 2 * expected_tree(10), calls['tree']


def case_tracer():
    """Somebody else's tracer goes on, sees all, and is still there."""
    seen = []

    def tracer(frame, what, argument):
        seen.append((frame.f_code.co_name, what))
        return tracer
    s = Session()
    sys.settrace(tracer)
    s.arm()
    tree(8)
    s.disarm()
    assert sys.gettrace() is tracer
    sys.settrace(None)
    s.read().check()
    assert s.count('enter', 'tree') == expected_tree(8)
    assert seen.count(('tree', 'call')) == expected_tree(8) == seen.count(('tree', 'return'))


def case_audit():
    """With an audit hook in place nothing changes, with threads coming and going."""
    seen = []
    sys.addaudithook(lambda name, args: seen.append(name) if name.startswith('sys.') else None)
    stop = []

    def churn():
        while not stop:
            t = threading.Thread(target=tree, args=(3,))
            t.start()
            t.join()
    t = threading.Thread(target=churn)
    t.start()
    for _ in range(20):
        s = during(lambda: tree(8), subbufs=512)
        assert s.count('enter', 'tree') >= expected_tree(8)
    stop.append(1)
    t.join()


@on(8, 11)
def case_setprofile():
    """3.8-3.11: Python and C calls by a profile function per thread, late threads included."""

    def late():
        tree(6)
        [abs(-1) for _ in range(50)]

    def work():
        tree(9)
        for i in range(100):
            abs(i)
        [].append(1)
        try:
            int('x')
        except ValueError:
            pass
        try:
            sorted(5)
        except TypeError:
            pass
        assert sum(gen(20)) == 190
        threads = [threading.Thread(target=late) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    s = during(work, backend=SETPROFILE, c_calls=1)
    assert s.page('backend_used') == SETPROFILE
    assert s.count('enter', 'tree') == s.count('leave', 'tree') == expected_tree(9) + 4 * expected_tree(6)
    assert s.count('c_enter', 'abs') == s.count('c_leave', 'abs') == 300, s.count('c_enter', 'abs')
    assert s.count('c_enter', 'append') >= 1 and ['append', 'list'] in s.names.values()
    assert ['abs', 'builtins'] in s.names.values()
    failed = [e for lane in s.threads.values() for e in lane if e[1] == 'c_leave' and e[3] & 1 and s.names[e[2]][0] == 'sorted']
    assert len(failed) == 1
    assert s.count('enter', 'gen') == 1 and s.count('yield', 'gen') == s.count('resume', 'gen') == 20
    assert s.page('unmatched') == 0, s.page('unmatched')
    s = during(work, backend=AUTO, c_calls=1)
    assert s.page('backend_used') == SETPROFILE


@on(8, 11)
def case_setprofile_taken():
    """A thread with a profiler of its own is left alone, and said so; the others are watched."""
    seen = []
    sys.setprofile(lambda frame, what, argument: seen.append(what))
    s = Session(backend=SETPROFILE)
    s.arm()
    tree(5)
    t = threading.Thread(target=tree, args=(7,))
    t.start()
    t.join()
    s.disarm()
    count = len(seen)
    tree(1)
    assert len(seen) > count, 'the profiler is gone'
    sys.setprofile(None)
    s.read().check()
    assert s.count('enter', 'tree') == expected_tree(7), s.count('enter', 'tree')
    said = [e for e in s.meta if e[1] == 'unhooked']
    assert len(said) == 1 and said[0][2] == os.getpid() and b'profile function' in said[0][4], said
    assert not [lane for lane in s.threads if lane[1] == os.getpid()], 'an unwatched thread has a lane'
    assert s.page('unhooked_threads') == 1


def raiser():
    raise ValueError


def lines(n):
    a = n
    b = a + 1
    try:
        raiser()
    except ValueError:
        b += 1
    return b


@on(9, 11)
def case_evaluator_taken():
    """Somebody else's evaluator is there already: it stays, and a profile function takes over."""
    other = ctypes.PyDLL(os.environ['FOREIGN'])
    other.foreign_on()
    s = during(lambda: tree(8))
    assert s.page('backend_used') == SETPROFILE and s.count('enter', 'tree') == expected_tree(8)
    try:
        Session(backend=EVALUATOR).arm()
    except Refused as refusal:
        assert 'another frame evaluator' in str(refusal)
    else:
        raise AssertionError('the evaluator was replaced')
    calls = ctypes.c_ulong.in_dll(other, 'foreign_calls')
    before = calls.value
    tree(3)
    assert calls.value == before + expected_tree(3) + (expected_tree(3) + 1) // 2
    other.foreign_off()


@on(9, 11)
def case_evaluator_covered():
    """Somebody else's evaluator comes while we measure, calls ours, and puts it back after we have left."""
    other = ctypes.PyDLL(os.environ['FOREIGN'])
    s = Session(subbufs=64, max_overhead_ppm=50000).arm()
    spin(0.1)
    other.foreign_on()
    end = time.monotonic() + 20
    while s.page('backend_used') != SETPROFILE and time.monotonic() < end:
        spin(0.1)
    assert s.page('backend_used') == SETPROFILE
    windows = s.page('window_count')
    end = time.monotonic() + 20
    while s.page('window_count') == windows and time.monotonic() < end:
        spin(0.1)
    s.disarm().read()
    opened = [e[0] for e in s.meta if e[1] == 'window_on']
    late = [e for lane in s.threads.values() for e in lane if e[1] == 'enter' and e[0] > opened[-1]]
    assert len(opened) > windows and s.page('unmatched') == 0, (windows, opened, s.page('unmatched'))
    if not s.lost():  # nobody drains
        s.check()  # calls that began by one backend end by the other, or are said anew
        assert late
    other.foreign_off()
    tree(8)  # ours, called for the last time, takes itself off
    s = during(lambda: tree(9))
    assert s.page('backend_used') == EVALUATOR and s.count('enter', 'tree') == expected_tree(9)


def case_settrace():
    """Lines and exceptions; nobody's trace function is disturbed."""
    first = lines.__code__.co_firstlineno

    def late():
        lines(1)

    def work():
        for i in range(10):
            lines(i)
        t = threading.Thread(target=late)
        t.start()
        t.join()
    s = during(work, backend=SETTRACE, lines=1)
    assert s.page('backend_used') == SETTRACE
    assert s.count('enter', 'lines') == s.count('leave', 'lines') == 11
    seen = [struct.unpack_from('<I', e[4])[0] for lane in s.threads.values() for e in lane if e[1] == 'line' and s.names[e[2]][0] == 'lines']
    assert seen.count(first + 1) == seen.count(first + 2) == seen.count(first + 6) == 11, sorted(seen)
    assert s.count('raise', 'raiser') == 11, s.count('raise', 'raiser')
    s = during(work, backend=SETTRACE)
    assert not s.count('line', 'lines') and s.count('enter', 'lines') == 11


def case_settrace_chain():
    seen = []

    def tracer(frame, what, argument):
        seen.append((frame.f_code.co_name, what))
        return tracer
    s = Session(backend=SETTRACE, lines=1)
    sys.settrace(tracer)
    s.arm()
    during_get = sys.gettrace()
    tree(8)
    s.disarm()
    after = sys.gettrace()
    tree(3)
    sys.settrace(None)
    assert during_get is tracer and after is tracer
    s.read().check()
    assert s.count('enter', 'tree') == expected_tree(8), s.count('enter', 'tree')
    assert seen.count(('tree', 'call')) == seen.count(('tree', 'return')) == expected_tree(8) + expected_tree(3)


@on(8, 11)
def case_settrace_given_up():
    """A trace function that its program takes off is gone, for us as well: not called from frames that it has seen before, and not put back."""
    called = []

    def tracer(frame, what, argument):
        called.append(what)
        return tracer

    def work():
        sys.settrace(tracer)
        s.arm()
        tree(3)
        sys.settrace(None)
        before = len(called)
        tree(5)
        tree(5)
        s.disarm()
        tree(3)
        assert len(called) == before, called[before:]
    s = Session(backend=SETTRACE, lines=1)
    sys.settrace(tracer)
    work()
    s.read().check()


@on(8, 11)
def case_settrace_audit():
    sys.addaudithook(lambda name, arguments: None)
    try:
        Session(backend=SETTRACE).arm()
    except Refused as refusal:
        assert 'audit hook' in str(refusal)
    else:
        raise AssertionError('not refused')


@on(12)
def case_c_calls():
    """3.12 and later, all: every C call, balanced."""

    def work():
        for i in range(200):
            abs(i)
        [].append(1)
        'a'.upper()
        try:
            sorted(5)
        except TypeError:
            pass
        sorted([3, 1, 2], key=leaf)
        threading.Lock()
    s = during(work, c_calls=1)
    assert s.count('c_enter', 'abs') == s.count('c_leave', 'abs') == 200, s.count('c_enter', 'abs')
    assert ['abs', 'builtins'] in s.names.values()
    assert ['append', 'list'] in s.names.values() and ['upper', 'str'] in s.names.values(), sorted(s.names.values())
    failed = [e for lane in s.threads.values() for e in lane if e[1] == 'c_leave' and e[3] & 1 and s.names[e[2]][0] == 'sorted']
    assert len(failed) == 1 and s.count('enter', 'leaf') == 3
    assert s.page('unmatched') == 0


@on(12)
def case_c_calls_auto():
    """3.12 and later, auto: what proves cheap is left alone, what takes time stays."""

    def work():
        for i in range(5000):
            abs(i)
        for _ in range(100):
            time.sleep(0.0001)
    s = during(work, c_calls=0)
    assert 60 <= s.count('c_enter', 'abs') <= 70, s.count('c_enter', 'abs')
    assert s.count('c_enter', 'sleep') == s.count('c_leave', 'sleep') == 100, s.count('c_enter', 'sleep')
