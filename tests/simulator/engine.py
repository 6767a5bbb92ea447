"""A machine with cores, a GIL, a GPU with streams, and host threads that are Python generators; what it did comes out as the text of a trace.

It knows how such a machine behaves and nothing of how a trace is judged: no thresholds, no rules. All times are whole ns. A thread yields operations:
    Cpu(ns, native)        runs for NS; Python code needs the GIL as well, native code has let it go
    Block(until, state)    waits; UNTIL is a time, or a Signal
Everything else (frames, calls of the GPU's runtime, queues) is made of these by methods of Thread.
"""
import bisect
import collections
import heapq
import itertools

SWITCH_NS = 5_000_000   # sys.getswitchinterval()
QUANTUM_NS = 4_000_000  # of the kernel's scheduler
QUEUE_MAX = 1024        # launches that a stream holds before the next one has to wait
START_NS = 1_000_000_000
CHUNK_LINES = 50_000
UNKNOWN, PYTHON, NATIVE, GIL, LOCK, IO, GPU, SLEEP, RUNNABLE, IDLE = range(10)
WAITS = {GIL: "gil", LOCK: "futex", IO: "recvfrom", GPU: "poll", SLEEP: "clock_nanosleep", IDLE: "futex"}

Cpu = collections.namedtuple("Cpu", "ns native")
Block = collections.namedtuple("Block", "until state")
Function = collections.namedtuple("Function", "name file line c")


class Signal:
    """Something to wait for; once set it stays so."""
    def __init__(self):
        self.set, self.waiters = False, []


class Queue:
    def __init__(self):
        self.items, self.signal = collections.deque(), Signal()


class Mutex:
    def __init__(self):
        self.owner, self.waiters = None, collections.deque()


class Stream:
    def __init__(self, number):
        self.number, self.free_ns, self.ends = number, START_NS, collections.deque()


class Thread:
    def __init__(self, machine, tid, name):
        self.machine, self.tid, self.name = machine, tid, name
        self.events, self.states, self.depth = [], [(START_NS, RUNNABLE)], []
        self.body = self.running = None
        self.asked_ns = self.queued_ns = None
        self.voluntary = self.involuntary = 0
        self.scopes = itertools.count(tid << 20)

    # ---- what it does ----

    def python(self, ns):
        if ns > 0:
            yield Cpu(int(ns), False)

    def native(self, ns):
        """Native code that keeps the GIL, as most of a framework's dispatch does."""
        if ns > 0:
            yield Cpu(int(ns), False)

    def released(self, ns):
        """Native code without the GIL."""
        if ns > 0:
            yield Cpu(int(ns), True)

    def call(self, function, body):
        """BODY, a generator, inside a frame of FUNCTION."""
        self.enter(function)
        result = yield from body
        self.leave()
        return result

    def enter(self, function):
        self.depth.append(function)
        self.events.append((self.machine.now, "c_enter" if function.c else "enter", function))

    def leave(self, exception=False):
        function = self.depth.pop()
        self.events.append((self.machine.now, ("c_leave" if function.c else "leave") + (" exception" if exception else ""), function))

    def sleep(self, ns, state=SLEEP):
        yield Block(self.machine.now + int(ns), state)

    def wait(self, signal, state):
        if not signal.set:
            yield Block(signal, state)

    def get(self, queue, state=IDLE):
        while not queue.items:
            queue.signal = Signal() if queue.signal.set else queue.signal
            yield Block(queue.signal, state)
        return queue.items.popleft()

    def lock(self, mutex):
        if mutex.owner is None:
            mutex.owner = self
            return
        signal = Signal()
        mutex.waiters.append((self, signal))
        yield Block(signal, LOCK)

    def unlock(self, mutex):
        mutex.owner = None
        if mutex.waiters:
            mutex.owner, signal = mutex.waiters.popleft()
            self.machine.fire(signal)

    def scope(self, name, body):
        number = next(self.scopes)
        self.events.append((self.machine.now, "scope_enter", (number, name)))
        result = yield from body
        self.events.append((self.machine.now, "scope_exit", (number, None)))
        return result

    # ---- the GPU's runtime ----

    def api(self, name, ns, native=False):
        """A call of the runtime; returns its correlation id."""
        number, start = next(self.machine.correlations), self.machine.now
        yield Cpu(int(ns), native)
        self.machine.calls.append((start, self.machine.now - start, number, self.tid, name))
        return number

    def launch(self, stream, name, ns, api_ns=6000, grid=(256, 1, 1), api="cudaLaunchKernel", after=0):
        return (yield from self.work(stream, "gpu_kernel", ns, api, api_ns, 'grid_x=%d grid_y=%d grid_z=%d block_x=256 block_y=1 block_z=1 name="%s"' % (*grid, name), after))

    def copy(self, stream, kind, size, gb_per_s, host, api_ns=8000, latency_ns=1500, wait=False):
        """HOST: 1 pageable, 2 pinned; 3 is the device. WAIT: the call lasts until the copy is done."""
        kinds = host | 3 << 8 if kind == "h2d_copy" else 3 | host << 8
        ns = latency_ns + int(size / gb_per_s)
        return (yield from self.work(stream, kind, ns, "cudaMemcpyAsync", api_ns, "bytes=%d memory_kinds=%d" % (size, kinds), 0, wait))

    def work(self, stream, kind, ns, api, api_ns, details, after=0, wait=False):
        machine = self.machine
        while stream.ends and stream.ends[0] <= machine.now:
            stream.ends.popleft()
        start, number = machine.now, next(machine.correlations)
        if len(stream.ends) >= QUEUE_MAX:
            yield Block(stream.ends[0], GPU)
        yield Cpu(int(api_ns), False)
        begin = max(machine.now + machine.random.randint(1500, 4000), stream.free_ns + machine.random.randint(700, 1300), after)
        end = begin + max(int(ns), 500)
        stream.free_ns = end
        stream.ends.append(end)
        if wait:
            yield Block(end, GPU)
        machine.calls.append((start, machine.now - start, number, self.tid, api))
        machine.device.append((begin, kind, end - begin, number, stream.number, details))
        return end

    def synchronize(self, stream, api="cudaStreamSynchronize", spin=True):
        """Spinning is what the driver does by default; the GIL is let go."""
        number, start = next(self.machine.correlations), self.machine.now
        wait = stream.free_ns - start
        if wait > 0:
            yield Cpu(int(wait), True) if spin else Block(stream.free_ns, GPU)
        yield Cpu(2500, True)
        self.machine.calls.append((start, self.machine.now - start, number, self.tid, api))


class Machine:
    def __init__(self, random, cores=8, duration_ns=6_000_000_000):
        self.random, self.cores, self.end = random, cores, START_NS + duration_ns
        self.now, self.threads, self.heap, self.order = START_NS, [], [], itertools.count()
        self.gil, self.gil_wanted, self.busy, self.runnable = None, collections.deque(), 0, collections.deque()
        self.correlations, self.calls, self.device, self.functions = itertools.count(1), [], [], {}
        self.holders = []

    def function(self, name, file, line=1, c=False):
        return Function(name, file, line, c)

    def thread(self, name, body, *arguments):
        thread = Thread(self, 1000 + len(self.threads), name)
        thread.body = body(thread, *arguments)
        self.threads.append(thread)
        self.at(START_NS + self.random.randint(0, 100_000), self.step, thread)
        return thread

    def at(self, time, action, *arguments):
        heapq.heappush(self.heap, (time, next(self.order), action, arguments))

    def fire(self, signal):
        signal.set = True
        for thread in signal.waiters:
            self.at(self.now + 3000, self.step, thread)
        signal.waiters = []

    def put(self, queue, item):
        queue.items.append(item)
        self.fire(queue.signal)

    def run(self):
        while self.heap and self.heap[0][0] < self.end:
            self.now, _, action, arguments = heapq.heappop(self.heap)
            action(*arguments)
        self.now = self.end

    # ---- one thread's next operation ----

    def mark(self, thread, state):
        if thread.states[-1][1] != state:
            thread.states.append((self.now, state))

    def step(self, thread):
        try:
            operation = next(thread.body)
        except StopIteration:
            self.release_gil(thread)
            self.mark(thread, IDLE)
            return
        if isinstance(operation, Block):
            self.block(thread, operation)
        else:
            self.compute(thread, operation.ns, operation.native)

    def block(self, thread, operation):
        self.release_gil(thread)
        thread.voluntary += 1
        self.mark(thread, operation.state)
        if isinstance(operation.until, Signal):
            operation.until.waiters.append(thread)
        else:
            self.at(max(operation.until, self.now), self.step, thread)

    def compute(self, thread, ns, native):
        if native:
            self.release_gil(thread)
        elif self.gil is not thread and self.gil is not None:
            if not self.gil_wanted:
                self.at(self.now + SWITCH_NS, self.demand_gil, self.gil)
            self.gil_wanted.append((thread, ns))
            self.mark(thread, GIL)
            return
        elif self.gil is None:
            self.take_gil(thread)
        self.take_core(thread, ns, native)

    def take_core(self, thread, ns, native):
        if self.busy >= self.cores:
            self.runnable.append((thread, ns, native))
            self.mark(thread, RUNNABLE)
            return
        self.busy += 1
        self.mark(thread, NATIVE if native else PYTHON)
        part = min(ns, QUANTUM_NS)
        self.at(self.now + part, self.end_part, thread, ns - part, native)

    def end_part(self, thread, left, native):
        self.busy -= 1
        if left and self.runnable:
            thread.involuntary += 1
            self.runnable.append((thread, left, native))
            self.mark(thread, RUNNABLE)
        if self.runnable:
            self.take_core(*self.runnable.popleft())
            if not left:
                self.advance(thread)
            return
        if left and not native and self.gil_wanted and self.gil_due:
            self.release_gil(thread)
            self.gil_wanted.append((thread, left))
            self.mark(thread, GIL)
        elif left:
            self.take_core(thread, left, native)
        else:
            self.advance(thread)

    def advance(self, thread):
        """Between two operations a holder that was asked to gives the GIL up."""
        if self.gil is thread and self.gil_wanted and self.gil_due:
            self.release_gil(thread)
        self.step(thread)

    # ---- the GIL ----

    gil_due = False

    def take_gil(self, thread):
        self.gil, self.gil_due = thread, False
        self.holders.append((self.now, thread.tid))
        if self.gil_wanted:
            self.at(self.now + SWITCH_NS, self.demand_gil, thread)

    def demand_gil(self, holder):
        self.gil_due |= self.gil is holder and bool(self.gil_wanted)

    def release_gil(self, thread):
        if self.gil is not thread:
            return
        self.gil = None
        self.holders.append((self.now, 0))
        if self.gil_wanted:
            waiter, ns = self.gil_wanted.popleft()
            self.take_gil(waiter)
            self.at(self.now, self.take_core, waiter, ns, False)

    # ---- the trace ----

    def reference(self, function):
        return self.functions.setdefault(function, len(self.functions) + 1)

    def state_at(self, thread, time):
        return thread.states[max(bisect.bisect_right(thread.states, (time, 99)) - 1, 0)][1]

    def text(self):
        """The trace, as `inferscope assemble` reads it."""
        lanes = [(3, "session", 0, self.session_lines())]
        lanes += [(lane, "thread", thread.tid, self.thread_lines(thread)) for lane, thread in enumerate(self.threads, 10)]
        lanes += [(2, "gpu", 0, self.gpu_lines()), (1, "meta", 0, self.meta_lines())]
        return "".join(line + "\n" for lane in lanes for line in self.chunks(*lane))

    def chunks(self, lane, kind, tid, lines):
        for number, line in enumerate(lines):
            if number % CHUNK_LINES == 0:
                yield "chunk process=0 lane=%d tid=%d kind=%s sequence=%d lost=0 depth=0 refs= clock=1000000000/0/0" % (lane, tid, kind, number // CHUNK_LINES + 1)
            yield line

    def meta_lines(self):
        for function, number in self.functions.items():
            if function.c:
                yield '%d c_function ref=%d name="%s" module="%s"' % (START_NS, number, function.name, function.file)
            else:
                yield '%d code ref=%d line=%d name="%s" qualname="%s" file="%s"' % (START_NS, number, function.line, function.name.split(".")[-1], function.name, function.file)
        yield "%d window_on reason=1" % START_NS
        yield "%d window_off reason=1" % self.end

    def thread_lines(self, thread):
        for time, what, value in thread.events:
            if what == "scope_enter":
                yield '%d scope_enter scope=%d name="%s" metadata=""' % (time, *value)
            elif what == "scope_exit":
                yield "%d scope_exit scope=%d" % (time, value[0])
            else:
                name, _, flag = what.partition(" ")
                yield "%d %s ref=%d%s" % (time, name, self.reference(value), " exception" if flag else "")

    def gpu_lines(self):
        for time, kind, ns, number, stream, details in sorted(self.device):
            if time < self.end:
                yield "%d %s duration_ns=%d correlation=%d device=0 stream=%d %s" % (time, kind, min(ns, self.end - time), number, stream, details)
        for call in sorted(self.calls):
            yield '%d gpu_api duration_ns=%d correlation=%d tid=%d name="%s"' % call

    def session_lines(self):
        yield '%d process ref=1000 parent=1 command="python3 serve.py" executable="/usr/bin/python3" python="3.12"' % START_NS
        yield '%d capture key="cpus" value="%d"' % (START_NS, self.cores)
        yield '%d capture key="mode" value="attach"' % START_NS
        for thread in self.threads:
            yield '%d thread ref=%d name="%s"' % (START_NS, thread.tid, thread.name)
        stacks, lines = {}, []
        for thread in self.threads:
            lines += self.readings(thread)
            lines += self.samples(thread, stacks)
        yield from (line for _, line in sorted(lines, key=lambda line: line[0]))

    def readings(self, thread):
        """The kernel's clocks of the thread, ten times a second."""
        totals, at, position = {}, START_NS, 0
        for time in range(START_NS, self.end + 1, 100_000_000):
            while position < len(thread.states):
                state = thread.states[position][1]
                until = thread.states[position + 1][0] if position + 1 < len(thread.states) else self.end
                part = min(until, time) - at
                totals[state] = totals.get(state, 0) + max(part, 0)
                at = max(at, min(until, time))
                if until > time:
                    break
                position += 1
            state = self.state_at(thread, time)
            running = state in (PYTHON, NATIVE, RUNNABLE)
            passed = (time - START_NS) / (self.end - START_NS)
            yield time, '%d thread_time ref=%d cpu_ns=%d run_wait_ns=%d voluntary=%d involuntary=%d state=%d wait="%s"' % (
                time, thread.tid, totals.get(PYTHON, 0) + totals.get(NATIVE, 0), totals.get(RUNNABLE, 0), thread.voluntary * passed, thread.involuntary * passed,
                82 if running else 83, "" if running else self.wait_name(thread, state))

    def wait_name(self, thread, state):
        return "epoll_wait" if state == IDLE and thread.name == "MainThread" else WAITS.get(state, "futex")

    def samples(self, thread, stacks):
        """Its stack and state, a hundred times a second."""
        stack, position = [], 0
        for time in range(START_NS + 5_000_000, self.end, 10_000_000):
            while position < len(thread.events) and thread.events[position][0] <= time:
                what, function = thread.events[position][1:]
                if what in ("enter", "c_enter"):
                    stack.append(function)
                elif what.startswith(("leave", "c_leave")):
                    stack.pop()
                position += 1
            parent = 0
            for function in stack:
                if function.c:
                    continue
                key = parent, function
                if key not in stacks:
                    stacks[key] = len(stacks) + 1
                    yield time, "%d stack ref=%d parent=%d frame=%d kind=0" % (time, stacks[key], parent, self.reference(function))
                parent = stacks[key]
            state = self.state_at(thread, time)
            if state == GIL:
                yield time, "%d gil ref=%d holder=%d" % (time, thread.tid, self.holders[max(bisect.bisect_right(self.holders, (time, 1 << 30)) - 1, 0)][1])
            yield time, "%d sample ref=%d tid=%d state=%d weight_ns=10000000" % (time, parent, thread.tid, state)
