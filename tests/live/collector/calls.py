"""Cases of cases.py: every call and return is seen, of functions, generators, coroutines and threads, with its name."""
import asyncio
import gc
import threading
import time
import weakref

from programs import *
from session import *


def case_counts():
    s = during(lambda: tree(15))
    assert s.count('enter', 'tree') == s.count('leave', 'tree') == expected_tree(15), s.count('enter', 'tree')
    assert s.count('enter', 'leaf') == s.count('leave', 'leaf') == (expected_tree(15) + 1) // 2
    assert s.page('unmatched') == 0
    assert s.page('state') == 3 and s.page('arm') == 4
    name, qualname, file = next(n for n in s.names.values() if n[0] == 'leaf')
    assert file == leaf.__code__.co_filename and qualname == ('leaf' if MINOR >= 11 else ''), (name, qualname, file)


def delegating(n):
    yield from gen(n)


def broken(n):
    for i in range(n):
        yield i
    raise KeyError(n)


def case_generators():
    def work():
        assert sum(gen(100)) == 4950
        assert sum(delegating(50)) == 1225
        list(gen(0))
        try:
            list(broken(3))
        except KeyError:
            pass
        g = gen(10)
        next(g)
        next(g)
        g.close()
        h = gen(5)
        next(h)
        try:
            h.throw(ValueError)
        except ValueError:
            pass
        gen(3)  # never started
        k = gen(3)
        next(k)
        del k  # collected while suspended
    s = during(work)
    assert s.count('enter', 'gen') == 6, s.count('enter', 'gen')
    yields = 100 + 50 + 2 + 1 + 1
    assert s.count('yield', 'gen') == yields, (s.count('yield', 'gen'), yields)
    assert s.count('enter', 'delegating') == 1
    assert s.count('enter', 'broken') == 1 and s.count('yield', 'broken') == 3
    raised = [e for lane in s.threads.values() for e in lane if e[1] == 'leave' and e[3] & 1 and s.names[e[2]][0] == 'broken']
    assert len(raised) == 1
    # What begins or goes on, suspends or ends.
    for name in ('gen', 'delegating', 'broken'):
        assert s.count('enter', name) + s.count('resume', name) == s.count('yield', name) + s.count('leave', name), name
    assert s.page('unmatched') == 0


def thrower(n):
    if n == 0:
        raise ValueError
    thrower(n - 1)


def catcher():
    try:
        thrower(4)
    except ValueError:
        pass


def case_exceptions():
    s = during(lambda: [catcher() for _ in range(100)])
    assert s.count('enter', 'thrower') == s.count('leave', 'thrower') == 500
    flagged = [e for lane in s.threads.values() for e in lane if e[1] == 'leave' and e[3] & 1 and s.names[e[2]][0] == 'thrower']
    assert len(flagged) == 500, len(flagged)
    assert s.count('leave', 'catcher') == 100
    assert not [e for lane in s.threads.values() for e in lane if e[1] == 'leave' and e[3] & 1 and s.names[e[2]][0] == 'catcher']


async def inner(n):
    await asyncio.sleep(0)
    return n


async def outer(n):
    total = 0
    for i in range(n):
        total += await inner(i)
    return total


async def agen(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i


async def aconsumer(n):
    return sum([i async for i in agen(n)])


def case_asyncio():
    async def main():
        return await asyncio.gather(*[outer(10) for _ in range(20)], aconsumer(30))
    s = during(lambda: asyncio.run(main()))
    assert s.count('enter', 'inner') == 200 and s.count('leave', 'inner') == 200
    assert s.count('enter', 'outer') == 20 and s.count('leave', 'outer') == 20
    assert s.count('enter', 'aconsumer') == s.count('leave', 'aconsumer') == 1
    assert s.count('enter', 'agen') == s.count('leave', 'agen') == 1
    assert s.count('resume', 'agen') == s.count('yield', 'agen') == 60, s.count('yield', 'agen')
    assert s.page('unmatched') == 0


def case_threads():
    def work():
        def worker():
            for _ in range(200):
                tree(5)
        threads = [threading.Thread(target=worker) for _ in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    s = during(work)
    assert s.count('enter', 'tree') == s.count('leave', 'tree') == 8 * 200 * expected_tree(5)
    assert len([1 for lane in s.threads.values() for e in lane if e[1] == 'enter' and s.names[e[2]][0] == 'worker']) == 8


def case_churn():
    def work():
        for _ in range(150):
            threads = [threading.Thread(target=tree, args=(3,)) for _ in range(4)]
            [t.start() for t in threads]
            [t.join() for t in threads]
    s = during(work, subbufs=1400)
    assert s.count('enter', 'tree') == 600 * expected_tree(3), (s.count('enter', 'tree'), 600 * expected_tree(3))
    gone = [slot for _, slot in s.slots() if slot['kind'] == 2 and slot['gone']]
    assert len(gone) >= 600, len(gone)


def case_old_threads():
    """Threads from before the arm are watched, their stacks are seeded, and what returns matches."""
    go, arrived = threading.Event(), []

    def deep(n):
        if n:
            return deep(n - 1)
        arrived.append(n)
        go.wait()
        return tree(6)
    threads = [threading.Thread(target=deep, args=(20,)) for _ in range(5)]
    [t.start() for t in threads]
    while len(arrived) < len(threads):
        time.sleep(0.01)

    def work():
        go.set()
        [t.join() for t in threads]
    s = during(work)
    assert s.count('enter', 'tree') == 5 * expected_tree(6)
    assert s.count('seed', 'deep') == 5 * 21, s.count('seed', 'deep')
    if MINOR >= 12:
        assert s.count('leave', 'deep') == 5 * 21, s.count('leave', 'deep')


def case_skip():
    s = during(lambda: tree(10), skip=('lea?',))
    assert s.count('enter', 'tree') == expected_tree(10)
    assert not any(n[0] == 'leaf' for n in s.names.values())
    s = during(lambda: tree(10), skip=('nothing', '*/programs.py'))
    assert not any(n[2] == leaf.__code__.co_filename for n in s.names.values())


def case_names():
    code = "def f\u00e9\u4e16():\n    return 1\ndef x():\n    return 2\n"
    space = {}
    exec(compile(code, '/tmp/sch\u00f6n \udc80.py', 'exec'), space)
    long = 'a' * 3000
    exec('def %s(): pass' % long, space)

    def work():
        space['f\u00e9\u4e16']()
        space[long]()
    s = during(work)
    assert s.count('enter', 'f\u00e9\u4e16') == 1
    assert s.count('enter', 'a' * 1024) == 1
    assert any(n[2] == '/tmp/sch\u00f6n \ufffd.py' for n in s.names.values()), list(s.names.values())


def rss_kib():
    with open('/proc/self/status') as file:
        return next(int(line.split()[1]) for line in file if line.startswith('VmRSS:'))


def case_codes_come_and_go():
    """Code that a program makes, runs and forgets goes while we look, with what stands in it; and is the same function when it is made again."""
    rounds, kinds, kept = 400, 8, []  # text that could be a name lives for ever on 3.12

    def request(i):
        name = 'made_%d' % (i % kinds)
        source = 'def %s():\n    return %r\n%s()\n' % (name, '-' * 100000 + str(i), name)
        space, code = {}, compile(source, '<request>', 'exec')
        exec(code, space)
        seen = [weakref.ref(code), weakref.ref(space.pop(name).__code__)]
        return seen

    def work():
        for i in range(rounds):
            kept.extend(one for one in request(i) if one() is not None)
    before = rss_kib()
    s = Session(subbufs=64).arm()
    work()
    grown = rss_kib() - before
    s.disarm().read().check()
    assert not kept, '%d code objects live on' % len(kept)
    assert grown < 16384, 'grown by %d KiB' % grown
    for kind in range(kinds):
        name = 'made_%d' % kind
        assert len([n for n in s.names.values() if n[0] == name]) == 1, [n for n in s.names.values() if n[0] == name]
        assert s.count('enter', name) == rounds // kinds, (name, s.count('enter', name))


@on(12)
def case_classes_come_and_go():
    """A class that comes to lie where another one was has its own calls."""
    def use(made):
        for _ in range(3):
            made()

    def work():
        for i in range(300):
            use(type('Made_%03d' % i, (), {}))
            if i % 20 == 0:
                gc.collect()
    s = during(work, c_calls=1)
    counts = [s.count('c_enter', 'Made_%03d' % i) for i in range(300)]
    assert counts == [3] * 300, counts


def case_loss():
    """A pool that nobody drains: the oldest go, every event is counted."""
    s = Session(subbufs=6).arm()
    for _ in range(40):
        tree(12)
    s.disarm().read()
    kept = sum(len(e) for e in s.threads.values())
    total = sum(slot['events'] for _, slot in s.slots() if slot['kind'] == 2)
    assert s.lost() > 0
    assert kept + s.lost() == total, (kept, s.lost(), total)
    enters = 40 * (expected_tree(12) + (expected_tree(12) + 1) // 2)
    assert total >= 2 * enters, (total, enters)
