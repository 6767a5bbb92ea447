"""Cases of cases.py: greenlets, which exchange the stack of a thread without a call or a return."""
import os
import struct
import sys
import threading
import time

from programs import *
from session import *


def greenlet_class():
    """Where it is not installed the case is skipped."""
    sys.path.insert(0, os.environ.get('GREENLETS', ''))
    try:
        from greenlet import greenlet
    except ImportError:
        print('greenlet is not installed here')
        sys.exit(77)
    return greenlet


def case_greenlets():
    """Greenlets exchange a thread's stack without a call or a return: all calls are seen, each below its caller, by every backend; results are right."""
    greenlet = greenlet_class()

    def leaf(n):
        return n

    def play(kind, rounds):
        """Two greenlets that take turns in the middle of calls, deeper and deeper; one of them throws, one is dropped while it stands."""
        names, sums, others = {}, [], []
        exec('def %s_leaf(leaf, n): return leaf(n)\ndef %s_step(leaf, turn, depth):\n  x = %s_leaf(leaf, 1)\n  if depth: x += %s_step(leaf, turn, depth - 1)\n  turn()\n  return x + %s_leaf(leaf, 1)'
             % ((kind,) * 5), names)

        def play_on():
            for i in range(rounds):
                sums.append(names[kind + '_step'](leaf, others[0].switch, i % 5))
            return 'done'
        return names, sums, others, greenlet(play_on)

    def two(rounds, results, depth=0):
        (_, a, a_others, first), (_, b, b_others, second) = play('left', rounds), play('right', rounds)
        a_others.append(second)
        b_others.append(first)
        first.switch()
        while not second.dead or not first.dead:
            (first if not first.dead else second).switch()
        assert a == b == [2 * (i % 5 + 1) for i in range(rounds)], (a, b)

        def throws():
            try:
                greenlet.getcurrent().parent.switch()
            except KeyError:
                return leaf(5)
        thrown = greenlet(throws)
        thrown.switch()
        assert thrown.throw(KeyError) == 5
        dropped = greenlet(throws)
        dropped.switch()
        del dropped  # ended by GreenletExit where it stands
        deep = greenlet(lambda: recurse(depth))
        assert deep.switch() == depth
        results.append(1)

    rounds, threads = 200, 3
    sys.setrecursionlimit(5000)
    threading.stack_size(256 << 10)
    steps = threads * sum(i % 5 + 1 for i in range(rounds))
    backends = (AUTO, SETPROFILE, SETTRACE) if MINOR <= 11 else (AUTO, SETTRACE)
    for backend in backends:
        results = []

        def work(depth=0):
            others = [threading.Thread(target=two, args=(rounds, results, depth)) for _ in range(threads - 1)]
            for t in others:
                t.start()
            two(rounds, results, depth)
            for t in others:
                t.join()
        s = Session(backend=backend, subbufs=1024).arm()
        work()
        s.disarm().read().check()
        assert results == [1] * threads and s.lost() == 0 and s.page('unmatched') == 0, (results, s.lost(), s.page('unmatched'))
        for kind in 'left', 'right':
            assert s.count('enter', kind + '_step') == steps, (backend, s.count('enter', kind + '_step'), steps)
            assert s.count('enter', kind + '_leaf') == 2 * steps
        wrong = [pair for pair in callers(s) if pair[1].endswith('_leaf') and pair[0] != pair[1].replace('leaf', 'step')]
        assert not wrong, (backend, len(wrong), wrong[:3])
        results = []
        s = Session(backend=backend, subbufs=64, max_overhead_ppm=50000, clock=1, ticks_per_second=ticks_per_second()).arm()
        end = time.process_time() + 0.7
        while time.process_time() < end:
            work(2000 if MINOR >= 11 else 200)  # more than fits these threads' C stacks, were each call to use some
        s.disarm().read()
        assert set(results) == {1}


def case_greenlets_late():
    """greenlet is imported while hooks are in, and no window ever closes: noticed soon."""
    sys.path.insert(0, os.environ.get('GREENLETS', ''))
    if not os.path.isdir(os.path.join(sys.path[0], 'greenlet')):
        print('greenlet is not installed here')
        sys.exit(77)

    def left_leaf(n):
        return n

    def right_leaf(n):
        return n

    def left_step(turn):
        left_leaf(1)
        turn()
        return left_leaf(2)

    def right_step(turn):
        right_leaf(1)
        turn()
        return right_leaf(2)

    s = Session(subbufs=1024).arm()
    from greenlet import greenlet
    end = time.monotonic() + 0.8  # calls all the time: three stretches
    while time.monotonic() < end:
        left_leaf(0)
        time.sleep(0.001)
    others = []

    def play(step):
        while True:
            step(others[0].switch)
    main = greenlet.getcurrent()
    players = [greenlet(play), greenlet(play)]
    others.append(main)
    for _ in range(200):
        players[0].switch(left_step)
        players[1].switch(right_step)
    s.disarm().read()
    wrong = [pair for pair in callers(s) if pair[1].endswith('_leaf') and pair[0].endswith('_step') and pair[0] != pair[1].replace('leaf', 'step')]
    assert s.page('unmatched') == 0 and not wrong, (s.page('unmatched'), len(wrong), wrong[:3])
    assert s.count('enter', 'right_step') >= 199, s.count('enter', 'right_step')


def case_greenlets_time():
    """A greenlet that comes back from a switch and then calls nothing: its time is its own, and not that of where the one before it switched."""
    greenlet = greenlet_class()
    main = greenlet.getcurrent()

    def pause():
        main.switch()

    def left():
        while True:
            for i in range(20000):
                pass
            pause()

    def right():
        while True:
            for i in range(5000):
                pass
            pause()

    for backend in (AUTO, SETPROFILE) if MINOR <= 11 else (AUTO,):
        players, spent = (greenlet(left), greenlet(right)), [0, 0]
        s = Session(backend=backend, subbufs=1024).arm()
        for _ in range(300):
            for i in range(2):
                begin = time.perf_counter_ns()
                players[i].switch()
                spent[i] += time.perf_counter_ns() - begin
        s.disarm().read()
        seen = innermost_ticks(s)
        share = [seen.get(name, 0) / max(1, sum(seen.get(other, 0) for other in ('left', 'right', 'pause'))) for name in ('left', 'right', 'pause')]
        assert s.lost() == 0 and abs(share[0] - spent[0] / sum(spent)) < 0.05 and share[2] < 0.05, (backend, share, spent)


def innermost_ticks(session):
    """Function to the time in which it was the innermost one, as a reader of the lanes knows it."""
    seen = {}
    for events in session.threads.values():
        stack, before = [], 0
        for ticks, kind, ref, _, payload in events:
            if stack:
                seen[stack[-1]] = seen.get(stack[-1], 0) + ticks - before
            before = ticks
            name = session.names[ref][0] if ref in session.names else ''
            if kind == 'stack_begin':
                stack = [''] * struct.unpack_from('<I', payload)[0]
            elif kind in ('enter', 'resume', 'seed'):
                stack.append(name)
            elif kind in ('leave', 'yield') and stack:
                stack.pop()
    return seen


def callers(session):
    """(caller, called) of each call, as a reader of the lanes knows them."""
    for events in session.threads.values():
        stack = []
        for _, kind, ref, _, payload in events:
            name = session.names[ref][0] if ref in session.names else ''
            if kind == 'stack_begin':
                stack = [''] * struct.unpack_from('<I', payload)[0]
            elif kind in ('enter', 'resume', 'seed'):
                if kind == 'enter':
                    yield stack[-1] if stack else '', name
                stack.append(name)
            elif kind in ('leave', 'yield') and stack:
                stack.pop()
