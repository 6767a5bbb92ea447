"""Cases of cases.py: what native libraries allocate."""
import _ctypes
import math
import shutil
import signal
import sys
import threading
import traceback

import slots
from session import *
from slots import NAMES

SAMPLED, OTHER, TAKEN_OUT = 1, 3, 5
NATIVE = 3
SIZE = 10048  # a multiple of 64


def base_of(path):
    with open('/proc/self/maps') as maps:
        return min(int(line.split('-')[0], 16) for line in maps if line.rstrip().endswith(os.path.basename(path)))


def slots_of(path):
    """[(address, name)]"""
    return [(base_of(path) + slot, name) for slot, name in slots.slots_of(path)]


def held(path):
    return {name: ctypes.c_uint64.from_address(at).value for at, name in slots_of(path)}


libc_itself = ctypes.CDLL('libc.so.6')
functions = [ctypes.cast(getattr(libc_itself, name), ctypes.c_void_p).value for name in NAMES]


def load(kind='STORM'):
    path = os.environ[kind]
    return load_path(path), path


def load_path(path):
    library = ctypes.CDLL(path)
    for function in (library.storm, library.storm_here):
        function.restype = ctypes.c_long
    return library


def watching(paths, interval=65536, **settings):
    slots = [at | NAMES.index(name) for path in paths for at, name in slots_of(path)] + settings.pop('extra', [])
    return Session(memory_interval=interval, heap_slot_count=len(slots), heap_unbound=1, words=dict(heap_slots=slots, heap_functions=functions), subbufs=settings.pop('subbufs', 512), **settings)


def storm(library, threads=4, count=2000, size=SIZE):
    wrong = library.storm(threads, ctypes.c_long(count), ctypes.c_size_t(size))
    assert wrong == 0, '%d blocks were damaged' % wrong


def told(session, kind):
    return [e for lane in session.threads.values() for e in lane if e[1] == kind]


def natives(session):
    return [row for row in (struct.unpack_from('<QQQI', e[4]) for e in told(session, 'memory_alloc')) if row[3] == NATIVE]


def case_native():
    """Known bytes of threads in C, within four standard deviations; every end; the slots are what they were."""
    library, path = load()
    before, count = held(path), 20000
    s = watching([path]).arm()
    assert s.page('heap_state') == SAMPLED and s.page('heap_slots_used') == 6
    assert all(held(path)[name] != before[name] for name in before), held(path)
    storm(library, 4, count)
    s.disarm().read()
    assert held(path) == before and s.page('heap_state') == TAKEN_OUT and s.page('heap_left') == 0, (held(path), before)
    rows, truth = [row for row in natives(s) if row[1] >= SIZE], 4 * count * SIZE
    weight = sum(row[2] for row in rows)
    assert s.lost() == 0, s.lost()
    assert abs(weight - truth) < (4 / math.sqrt(len(rows)) + 0.03) * truth, (weight, truth, len(rows), s.page('heap_late'))  # two threads may share a counter
    ends = {struct.unpack('<Q', e[4])[0] for e in told(s, 'memory_free')}
    alive = len([row for row in rows if row[0] and row[0] not in ends])
    assert alive <= 64 + s.page('heap_ends_missed') and s.page('heap_ends_missed') < len(ends) / 20, (alive, len(ends), s.page('heap_ends_missed'))  # its ring of 64 lives
    storm(library)


def case_native_off():
    library, path = load()
    before = held(path)
    s = Session(memory_interval=65536, heap_unbound=1, words=dict(heap_functions=functions)).arm()
    assert held(path) == before and s.page('heap_state') == 0
    s.disarm()
    assert held(path) == before


def case_native_protected():
    """Slots that are read-only after relocation, or hold something else, or lie nowhere: nothing is written, and it is counted."""
    library, path = load('STORM_NOW')
    before, other = held(path), ctypes.create_string_buffer(64)
    s = watching([path], extra=[0, 8, 1 << 46, 0xfffffffffffffff8, ctypes.addressof(other) & ~7]).arm()
    assert held(path) == before and s.page('heap_slots_used') == 0 and s.page('heap_refused') == 6, (s.page('heap_slots_used'), s.page('heap_refused'))
    storm(library)
    s.disarm()
    assert held(path) == before and other.raw == bytes(64)


def case_native_unwritable():
    """A page that is protected by hand, and not by the loader, before we come or while we are in: nothing is written, we do not die of it, and it is counted."""
    library, path = load()
    before, places = held(path), [at for at, _ in slots_of(path)]
    first, last = min(places) & ~4095, max(places) | 4095

    def protect(how):
        assert libc.mprotect(ctypes.c_void_p(first), ctypes.c_size_t(last + 1 - first), how) == 0
    protect(1)
    s = watching([path]).arm()
    assert held(path) == before and s.page('heap_slots_used') == 0 and s.page('heap_refused') == 6, (s.page('heap_slots_used'), s.page('heap_refused'))
    s.disarm()
    protect(3)
    storm(library)
    s = watching([path]).arm()
    assert s.page('heap_slots_used') == 6
    protect(1)
    s.disarm()
    assert s.page('heap_left') == 6 and all(held(path)[name] != before[name] for name in before), s.page('heap_left')
    protect(3)
    storm(library)
    s = watching([path]).arm()  # they are known as our own no more: left to pass on
    s.disarm()
    storm(library)


def case_native_foreign():
    """Another tool changes a slot while we are in: it keeps it."""
    library, path = load()
    before = held(path)
    s = watching([path]).arm()
    at = dict((name, at) for at, name in slots_of(path))['malloc']
    ctypes.c_uint64.from_address(at).value = functions[0]
    storm(library)
    s.disarm()
    assert s.page('heap_left') == 1 and held(path)['malloc'] == functions[0]
    assert all(held(path)[name] == before[name] for name in before if name != 'malloc')


def case_native_not_a_slot():
    """A word that the library may write, leading into its code like a slot that is not bound yet: not one of its slots, nothing is written."""
    library, path = load()
    word = ctypes.c_uint64.in_dll(library, 'storm_callback')
    before = word.value
    s = watching([path], extra=[ctypes.addressof(word) | which for which in range(6)]).arm()
    assert word.value == before and s.page('heap_slots_used') == 6, (word.value, before)
    s.disarm()
    assert word.value == before


def case_native_fork():
    library, path = load()
    before = held(path)
    s = watching([path], 4096).arm()
    pids = []
    for _ in range(5):
        pid = os.fork()
        if not pid:
            good = held(path) == before
            storm(library, 2, 500)
            os._exit(0 if good else 1)
        pids.append(pid)
        storm(library, 2, 500)
    assert all(os.waitpid(pid, 0)[1] == 0 for pid in pids)
    s.disarm()
    assert held(path) == before


def case_native_fork_under_the_loaders_lock():
    """A thread forks out of a callback of dl_iterate_phdr, whose lock we wait for: it forks after a while, and we go on."""
    library, path = load()
    before, forks = held(path), []

    def callback(info, size, data):
        time.sleep(0.05)
        pid = os.fork()
        if not pid:
            os._exit(0)
        forks.append(os.waitpid(pid, 0)[1])
        return 1
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)(callback)
    thread = threading.Thread(target=lambda: [libc.dl_iterate_phdr(function, None) for _ in range(4)], daemon=True)
    thread.start()
    while thread.is_alive():
        s = watching([path], 4096, subbufs=16).arm()
        s.disarm()
        s.map.close()
    assert forks == [0] * 4 and held(path) == before, forks


def case_native_pieces():
    """The loader's lock is let go between two pieces of many slots, in and out: who has it sees some exchanged and some not yet."""
    _, path = load()
    copies = [os.path.join(os.path.dirname(path), 'piece%d-%d.so' % (os.getpid(), i)) for i in range(40)]
    for copy in copies:
        shutil.copy(path, copy)
        load_path(copy)
    slots = sorted(at | NAMES.index(name) for copy in copies for at, name in slots_of(copy))
    for copy in copies:
        os.unlink(copy)
    stop, seen, ends = [], [0], []

    def callback(info, size, data):
        now = [ctypes.c_uint64.from_address(at).value == value for at, value in ends]
        seen[0] += len(set(now)) == 2
        return 1
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)(callback)
    ends += [(at & ~7, ctypes.c_uint64.from_address(at & ~7).value) for at in (slots[0], slots[-1])]
    before = [ctypes.c_uint64.from_address(at & ~7).value for at in slots]

    def look():
        while not stop:
            libc.dl_iterate_phdr(function, None)
    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    for _ in range(100):
        s = Session(memory_interval=65536, heap_slot_count=len(slots), heap_unbound=1, words=dict(heap_slots=slots, heap_functions=functions), subbufs=16).arm()
        assert s.page('heap_slots_used') == len(slots), s.page('heap_slots_used')
        into = seen[0]
        s.disarm()
        assert [ctypes.c_uint64.from_address(at & ~7).value for at in slots] == before
        s.map.close()
        if into and seen[0] > into:
            break
    stop.append(1)
    thread.join()
    assert into and seen[0] > into, (into, seen[0])


def case_native_unloaded():
    """The library goes while its slots are ours, and comes again."""
    for _ in range(20):
        library, path = load()
        storm(library, 2, 200)
        s = watching([path], 4096, subbufs=16).arm()
        assert s.page('heap_slots_used') == 6
        storm(library, 2, 200)
        _ctypes.dlclose(library._handle)
        assert not [1 for line in open('/proc/self/maps') if line.rstrip().endswith(os.path.basename(path))]
        again, _ = load()
        storm(again, 2, 200)
        s.disarm()
        assert s.page('heap_state') == TAKEN_OUT
        storm(again, 2, 200)
        s.map.close()
        _ctypes.dlclose(again._handle)


def case_native_churn():
    """Libraries come and go while slots are exchanged, also of one that is gone by then, or here again."""
    library, path = load()
    copy = os.path.join(os.path.dirname(path), 'churn%d.so' % os.getpid())
    shutil.copy(path, copy)
    before, stop, failed = held(path), [], []

    def churn():
        try:
            while not stop:
                other = load_path(copy)
                storm(other, 2, 100, 512)
                _ctypes.dlclose(other._handle)
        except Exception as error:
            failed.append(error)
    thread = threading.Thread(target=churn, daemon=True)
    thread.start()
    for i in range(60):
        other = load_path(copy)
        slots = [at | NAMES.index(name) for at, name in slots_of(copy)]
        _ctypes.dlclose(other._handle)
        s = watching([path], 512, subbufs=64, extra=slots).arm()
        assert s.page('heap_slots_used') in (6, 12), s.page('heap_slots_used')
        storm(library, 2, 100, 512)
        s.disarm()
        assert held(path) == before, (i, held(path), before)
        s.map.close()
    stop.append(1)
    thread.join()
    os.unlink(copy)
    assert not failed, failed


def case_native_deadline():
    """The attacher is dead: the switch thread puts the slots back."""
    library, path = load()
    before = held(path)
    s = watching([path], 4096, max_overhead_ppm=50000).arm()
    s.set('deadline_ticks', 1)
    storm(library)
    end = time.monotonic() + 60
    while held(path) != before and time.monotonic() < end:
        time.sleep(0.01)
    assert held(path) == before
    storm(library)
    s.disarm()
    assert held(path) == before


def case_native_alternate():
    library, path = load()
    load('STORM_NOW')
    before = held(path)
    s = watching([path], 4096, alternate_ms=20, extra=[at | NAMES.index(name) for at, name in slots_of(os.environ['STORM_NOW'])]).arm()
    seen, end = set(), time.monotonic() + 60
    while len(seen) < 2 and time.monotonic() < end:
        seen.add(held(path) == before)
        storm(library, 1, 200)
        time.sleep(0.001)
    s.disarm()
    assert seen == {True, False} and held(path) == before, seen
    assert s.page('heap_refused') == 6, 'counted once more for each turn: %d' % s.page('heap_refused')


def case_native_threads():
    """In and out while threads allocate in C, and fork: not a block is damaged, and results stay right."""
    library, path = load()
    before, stop, rounds = held(path), [], [0]

    def work():
        while not stop:
            storm(library, 3, 3000, 512)
            rounds[0] += 1
    threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
    for t in threads:
        t.start()
    for i in range(60):
        s = watching([path], 512 << (i % 8), subbufs=64, max_overhead_ppm=50000 if i % 2 else 0).arm()
        if i % 10 == 0:
            pid = os.fork()
            if not pid:
                os._exit(0 if held(path) == before else 1)
            assert os.waitpid(pid, 0)[1] == 0
        time.sleep(0.005)
        s.disarm()
        assert held(path) == before, (i, held(path), before)
        s.read().check(10 ** 6)
        s.map.close()
    stop.append(1)
    for t in threads:
        t.join()
    assert rounds[0] > 0


FAILURES = {b'memory': 12, b'map': 12, b'thread': 11, b'read': 5, b'open': 24, b'kernel': 12}


def fail_once(failing, code, kind, at):
    """In a child: the AT-th call of a kind that the collector makes fails, in a session; another one goes well after that. Returns how many calls there were."""
    library, path = load()
    storm(library, 2, 200)
    before = held(path)
    functions[:] = [before[name] for name in NAMES]  # the preloaded ones
    failing.failing_from(kind, ctypes.c_ulong(at), FAILURES[kind], *map(ctypes.c_size_t, code))
    # What passes on the program's calls to malloc would fail them.
    s = Session(memory_interval=4096, max_overhead_ppm=50000, subbufs=64) if kind == b'memory' else watching([path], 4096, max_overhead_ppm=50000, subbufs=64)
    try:
        s.arm()
    except Refused as why:
        assert str(why), 'refused, and not a word of it'
        s = None
    assert sum(range(1000)) == 499500
    storm(library, 2, 200)
    if s:
        s.disarm()
        s.read().check(10 ** 6)
    calls = failing.failing_from(None, ctypes.c_ulong(0), 0, *map(ctypes.c_size_t, code))
    after, left = held(path), s.page('heap_left') if s else 0  # a slot that the kernel says cannot be written any more is left to pass on
    assert sum(after[name] != before[name] for name in before) == left <= (kind == b'kernel'), (after, before, left)
    s = watching([path], 4096, subbufs=64).arm()
    storm(library, 2, 200)
    s.disarm()
    assert s.page('heap_slots_used') == 6 - left and held(path) == after, (s.page('heap_slots_used'), held(path), after)
    return calls


def case_every_failure():
    """Each allocation, mapping, thread, file and bare system call of the collector fails once: refused with a reason, or done without; the program does not notice."""
    preload = os.environ.get('FAILING')  # not in roots, whose glibc may be older
    if not preload:
        print('failing.so is not installed here')
        raise SystemExit(77)
    if os.environ.get('LD_PRELOAD') != preload:
        os.execve(sys.executable, [sys.executable] + sys.argv, dict(os.environ, LD_PRELOAD=preload))
    failing = ctypes.CDLL(preload)
    failing.failing_from.restype = ctypes.c_ulong
    with open('/proc/self/maps') as maps:
        code = next([int(word, 16) for word in line.split()[0].split('-')] for line in maps if 'libinferscope-collector.so' in line and ' r-xp ' in line)
    seen = {}
    for kind in FAILURES:
        at = seen[kind] = 0  # first none fails, to know how many there are
        while at <= seen[kind]:
            read, write = os.pipe()
            pid = os.fork()
            if not pid:
                try:
                    signal.alarm(60)
                    os.write(write, b'%d' % fail_once(failing, code, kind, at))
                    os._exit(0)
                finally:
                    traceback.print_exc()
                    os._exit(1)
            os.close(write)
            seen[kind] = max(seen[kind], int(os.read(read, 100) or b'0'))
            os.close(read)
            status = os.waitpid(pid, 0)[1]
            assert status == 0, '%s %d of %d fails: the process ended with %#x' % (kind.decode(), at, seen[kind], status)
            at += 1
    assert all(seen[kind] for kind in (b'memory', b'map', b'thread', b'kernel')), seen
    print('    ' + ', '.join('%d of %s' % (count, kind.decode()) for kind, count in seen.items()))
