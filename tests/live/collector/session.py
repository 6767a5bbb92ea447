"""A session with the collector inside this very process: what the attacher does, without injection.

LIB and LAYOUT (environment COLLECTOR, LAYOUT) come from tests/live/collector/run. Works on CPython 3.8 and later.
"""
import ctypes
import mmap
import os
import struct
import time

LAYOUT = {}
with open(os.environ['LAYOUT']) as file:
    for line in file:
        key, offset, size = line.split()
        LAYOUT[key] = (int(offset), int(size))
KIND = {name[6:]: value[0] for name, value in LAYOUT.items() if name.startswith('event.')}
NAME = {number: name for name, number in KIND.items()}
PAGE, SUBBUF, HEAD = (LAYOUT['bytes.' + n][0] for n in ('page', 'subbuf', 'head'))
ARM, DISARM, REARM, NOTHING = 1, 2, 3, 4
AUTO, NONE, MONITORING, EVALUATOR, SETPROFILE, SETTRACE = range(6)
TID_OFFSET = int(os.environ.get('TID_OFFSET', '0x2d0'), 16)  # in glibc's struct pthread; 0 = unknown
FORMAT = {4: '<I', 8: '<Q'}

lib = ctypes.CDLL(os.environ['COLLECTOR'])
libc = ctypes.CDLL(None)
for name in ('pthread_create', 'pthread_join'):  # libpthread, before glibc 2.34
    if not hasattr(libc, name):
        libc = ctypes.CDLL('libpthread.so.0')
pthread_create, pthread_join = libc.pthread_create, libc.pthread_join
entry = ctypes.cast(lib.inferscope_collector_entry, ctypes.c_void_p)


def ticks_per_second():
    """Roughly, from the machine: the collector only uses it for cycles."""
    with open('/proc/cpuinfo') as file:
        for line in file:
            if line.startswith('cpu MHz'):
                return int(float(line.split(':')[1]) * 1e6)
    return 10 ** 9


def get(buffer, base, key):
    offset, size = LAYOUT[key]
    return struct.unpack_from(FORMAT[size], buffer, base + offset)[0]


def put(buffer, base, key, value):
    offset, size = LAYOUT[key]
    struct.pack_into(FORMAT[size], buffer, base + offset, value)


class Refused(Exception):
    pass


class Session:
    def __init__(self, subbufs=256, **settings):
        self.subbufs = subbufs
        self.settings = dict(backend=AUTO, c_calls=2, max_overhead_ppm=0, seed=1, skip_default=0, may_start_thread=1,
                             clock=2, ticks_per_second=10 ** 9, thread_tid_offset=TID_OFFSET, deadline_ticks=2 ** 63, pool_count=subbufs)
        self.skip = settings.pop('skip', ())
        self.words = settings.pop('words', {})  # of arrays of u64
        self.settings.update(settings)
        self.map = None

    def command(self, command, wait_ms=20000):
        self.handover = ctypes.create_string_buffer(LAYOUT['size.handover'][0])
        put(self.handover, 0, 'handover.magic', LAYOUT['magic.handover'][0])
        put(self.handover, 0, 'handover.command', command)
        put(self.handover, 0, 'handover.wait_ms', wait_ms)
        thread = ctypes.c_ulong()
        assert not pthread_create(ctypes.byref(thread), None, entry, ctypes.byref(self.handover))
        if command == ARM:
            self.share()
        assert not pthread_join(thread, None)  # ctypes releases the GIL
        said = get(self.handover, 0, 'handover.said')
        if said == 4:
            raise Refused(self.handover.raw[LAYOUT['handover.text'][0]:].split(b'\0')[0].decode())
        return said

    def share(self):
        while get(self.handover, 0, 'handover.said') not in (1, 4):
            time.sleep(0.0005)
        if get(self.handover, 0, 'handover.said') == 4:
            return
        size = PAGE + self.subbufs * SUBBUF
        fd = os.open('/proc/self/fd/%d' % get(self.handover, 0, 'handover.lanes_fd'), os.O_RDWR)
        os.ftruncate(fd, size)
        self.map = mmap.mmap(fd, size)
        os.close(fd)
        for name, value in dict(self.settings, magic=LAYOUT['magic.page'][0], version=LAYOUT['version.page'][0], page_bytes=PAGE, mapping_bytes=size,
                                subbuf_count=self.subbufs).items():
            put(self.map, 0, 'page.' + name, value)
        patterns = b''.join(p.encode() + b'\0' for p in self.skip)
        start = LAYOUT['page.skip_patterns'][0]
        self.map[start:start + len(patterns)] = patterns
        for name, words in self.words.items():
            struct.pack_into('<%dQ' % len(words), self.map, LAYOUT['page.' + name][0], *words)
        for i in range(self.settings['pool_count']):
            put(self.map, PAGE + i * SUBBUF, 'subbuf.next_free', i + 2 if i + 1 < self.settings['pool_count'] else 0)
        put(self.map, 0, 'page.free_head', 1)
        put(self.handover, 0, 'handover.lanes_bytes', size)
        put(self.handover, 0, 'handover.answer', 1)

    def arm(self):
        self.command(ARM)
        if self.page('arm') != 1:
            start = LAYOUT['page.reason_text'][0]
            raise Refused(bytes(self.map[start:start + 512]).split(b'\0')[0].decode())
        return self

    def disarm(self):
        self.command(DISARM)
        return self

    def page(self, name):
        return get(self.map, 0, 'page.' + name)

    def set(self, name, value):
        put(self.map, 0, 'page.' + name, value)

    def slots(self):
        base, size = LAYOUT['page.lanes'][0], LAYOUT['size.lane_slot'][0]
        for i in range(2048):
            at = base + i * size
            if get(self.map, at, 'lane_slot.kind'):
                yield i, {n: get(self.map, at, 'lane_slot.' + n) for n in ('kind', 'tid', 'gone', 'lost', 'events', 'skipped')}

    def lanes(self):
        """{(slot, tid): [(ticks, kind name, ref, flags, payload)]}, META as (0, 0)."""
        pieces = []
        for i in range(self.subbufs):
            base = PAGE + i * SUBBUF
            if get(self.map, base, 'subbuf.state') in (1, 2):
                lane, tid = get(self.map, base, 'subbuf.lane'), get(self.map, base, 'subbuf.tid')
                pieces.append(((lane, tid), get(self.map, base, 'subbuf.sequence'), base))
        lanes = {}
        for key, sequence, base in sorted(pieces):
            events = lanes.setdefault(key, [])
            at, end = base + HEAD, base + get(self.map, base, 'subbuf.used')
            while at < end:
                ticks, ref, size, kind, flags = struct.unpack_from('<QIHBB', self.map, at)
                assert size >= 16 and size % 8 == 0 and at + size <= end, (size, at, end)
                events.append((ticks, NAME[kind], ref, flags, self.map[at + 16:at + size]))
                at += size
        return lanes

    def read(self):
        lanes = self.lanes()
        self.meta = lanes.pop((0, 0), [])
        self.threads = lanes
        self.names = {}
        for ticks, kind, ref, flags, payload in self.meta:
            if kind in ('code', 'c_function'):
                at, strings = 16 if kind == 'code' else 8, []
                for _ in range(3 if kind == 'code' else 2):
                    length = struct.unpack_from('<H', payload, at)[0]
                    strings.append(payload[at + 2:at + 2 + length].decode())
                    at += 2 + length
                self.names[ref] = strings
        return self

    def count(self, kind, name):
        return sum(1 for events in self.threads.values() for e in events if e[1] == kind and self.names[e[2]][0] == name)

    def check(self, mismatches=0):
        """Every lane in order, every leave matching: returns the leaves that did not."""
        begins, ends = ('enter', 'resume', 'c_enter', 'seed'), ('leave', 'yield', 'c_leave')
        bad = 0
        for key, events in self.threads.items():
            stack, last = [], 0
            for ticks, kind, ref, flags, payload in events:
                assert ticks >= last, 'time runs backwards in lane %r' % (key,)
                last = ticks
                if kind == 'stack_begin':
                    stack = [0] * struct.unpack_from('<I', payload)[0]
                elif kind in begins:
                    assert ref in self.names, 'no name for ref %d' % ref
                    stack.append(ref)
                elif kind in ends:
                    if not stack or stack.pop() not in (ref, 0):
                        bad += 1
        assert bad <= mismatches, '%d leaves without their enter' % bad
        return self

    def lost(self):
        return sum(slot['lost'] for _, slot in self.slots())


def during(work, **settings):
    """Runs WORK with the hooks on and returns the session, read and checked."""
    session = Session(**settings).arm()
    try:
        work()
    finally:
        session.disarm()
    session.read().check()
    assert session.lost() == 0, 'lost %d' % session.lost()
    assert session.page('lane_overflow') == 0
    return session
