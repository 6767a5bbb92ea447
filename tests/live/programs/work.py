"""Work that can be counted from outside: python work.py fib|decode|request|handoff|calls COUNTER_FILE [--seconds N] [--threads N].

One item is one unit of work; the number done so far and the CPU time used lie in COUNTER_FILE as two 64-bit integers (items,
nanoseconds), rewritten after each item. decode is a small transformer that makes one token per item: with numpy where that is installed,
else in plain Python. request is one of a server: a document is read, a thread waits for another, a library allocates in C, files are looked at. handoff gives a thread
little to do in C, and waits for it, again and again: more than 10 000 switches per second. calls makes system calls. Prints READY <pid>; ends after the time or on SIGTERM."""
import argparse
import ctypes
import json
import math
import mmap
import os
import queue
import random
import signal
import threading
import time
import zlib

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
try:
    import numpy as np
except ImportError:
    np = None


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


class Linear:
    """y = x W; as numpy arrays, or lists of rows."""

    def __init__(self, rng, inputs, outputs):
        w = [[rng.gauss(0, 1) / math.sqrt(inputs) for _ in range(inputs)] for _ in range(outputs)]
        self.w = np.array(w, dtype=np.float32) if np is not None else w

    def __call__(self, x):
        if np is not None:
            return self.w @ x
        return [dot(row, x) for row in self.w]


def dot(a, b):
    return sum(map(float.__mul__, a, b))


def softmax(x):
    if np is not None:
        e = np.exp(x - x.max())
        return e / e.sum()
    top = max(x)
    e = [math.exp(v - top) for v in x]
    total = sum(e)
    return [v / total for v in e]


def add(a, b):
    return a + b if np is not None else [x + y for x, y in zip(a, b)]


def gelu(x):
    if np is not None:
        return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x ** 3)))
    return [0.5 * v * (1 + math.tanh(0.7978845608 * (v + 0.044715 * v ** 3))) for v in x]


def normed(x):
    if np is not None:
        return (x - x.mean()) / (x.std() + 1e-5)
    mean = sum(x) / len(x)
    spread = math.sqrt(sum((v - mean) ** 2 for v in x) / len(x)) + 1e-5
    return [(v - mean) / spread for v in x]


class Block:
    def __init__(self, rng, width):
        self.q, self.k, self.v, self.out = (Linear(rng, width, width) for _ in range(4))
        self.up, self.down = Linear(rng, width, 2 * width), Linear(rng, 2 * width, width)
        self.keys, self.values = [], []

    def attend(self, x):
        q = self.q(x)
        self.keys.append(self.k(x))
        self.values.append(self.v(x))
        if np is not None:
            weights = softmax(np.array(self.keys) @ q / math.sqrt(len(q)))
            return self.out(weights @ np.array(self.values))
        weights = softmax([dot(k, q) / math.sqrt(len(q)) for k in self.keys])
        mixed = [sum(w * v[i] for w, v in zip(weights, self.values)) for i in range(len(q))]
        return self.out(mixed)

    def __call__(self, x):
        x = add(x, self.attend(normed(x)))
        return add(x, self.down(gelu(self.up(normed(x)))))


class Model:
    def __init__(self, width, layers, vocabulary=64):
        rng = random.Random(1)
        self.embedding = [[rng.gauss(0, 1) for _ in range(width)] for _ in range(vocabulary)]
        if np is not None:
            self.embedding = [np.array(row, dtype=np.float32) for row in self.embedding]
        self.blocks = [Block(rng, width) for _ in range(layers)]
        self.head = Linear(rng, width, vocabulary)
        self.token, self.position = 0, 0

    def restart(self):
        for block in self.blocks:
            block.keys, block.values = [], []
        self.position = 0

    def decode(self):
        if self.position == 24:
            self.restart()
        x = self.embedding[self.token]
        for block in self.blocks:
            x = block(x)
        scores = list(self.head(normed(x)))
        self.token = scores.index(max(scores))
        self.position += 1
        return self.token


class Server:
    def __init__(self):
        self.z = ctypes.CDLL("libz.so.1")
        self.text = json.dumps([{"id": n, "name": "row %d" % n, "values": [n * 0.5] * 20} for n in range(60)])
        self.questions, self.answers = queue.SimpleQueue(), queue.SimpleQueue()
        threading.Thread(target=self.answer, daemon=True).start()

    def answer(self):
        while True:
            rows = self.questions.get()
            self.answers.put(sum(sum(row["values"]) for row in rows))

    def pack(self, data):
        packed, size = ctypes.create_string_buffer(len(data) + 100), ctypes.c_ulong(len(data) + 100)
        self.z.compress2(packed, ctypes.byref(size), data, ctypes.c_ulong(len(data)), 1)
        return packed.raw[:size.value]

    def request(self):
        rows = json.loads(self.text)
        self.questions.put(rows)
        self.answers.get()
        data = json.dumps(rows).encode()
        self.pack(data)
        return [os.stat(__file__).st_size for _ in range(4)]


class Relay:
    def __init__(self):
        self.text = random.Random(1).getrandbits(8 * 16384).to_bytes(16384, "big")
        self.there, self.back = queue.SimpleQueue(), queue.SimpleQueue()
        threading.Thread(target=self.answer, daemon=True).start()

    def answer(self):
        while True:
            self.back.put(zlib.compress(self.there.get(), 1))

    def handoff(self):
        for _ in range(10):
            self.there.put(self.text)
            zlib.decompress(self.back.get())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["fib", "decode", "request", "handoff", "calls"])
    parser.add_argument("counter")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--threads", type=int, default=1, help="so many do the work; the items of one are counted")
    options = parser.parse_args()
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    if options.kind == "fib":
        def item():
            fib(12)
    elif options.kind == "request":
        item = Server().request
    elif options.kind == "handoff":
        item = Relay().handoff
    elif options.kind == "calls":
        def item():
            for _ in range(1000):
                os.getppid()
    else:
        item = Model(128, 4).decode if np is not None else Model(16, 2).decode
    with open(options.counter, "r+b") as f:
        page = memoryview(mmap.mmap(f.fileno(), 16)).cast("Q")  # whole words, so that a reader never sees half of one
    end, items = time.monotonic() + options.seconds, 0

    def others():
        while not stop and time.monotonic() < end:
            item()
    for _ in range(options.threads - 1):
        threading.Thread(target=others, daemon=True).start()
    print("READY", os.getpid(), flush=True)
    while not stop and time.monotonic() < end:
        item()
        items += 1
        page[0], page[1] = items, time.process_time_ns()
    print("items", items, flush=True)


if __name__ == "__main__":
    main()
