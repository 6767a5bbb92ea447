"""What the GPU tests attach to: a Python program with the doubles of CUDA. program.py MODE; FAKECUDA_FOLDER says where they lie.

Prints READY pid; at each line of its stdin it works and prints DONE with what it did (kernel name -> count); at the end of its stdin it ends with OK, if
every kernel's data came out right."""
import collections
import ctypes
import json
import os
import sys
import threading
import time
import types

sys.path.insert(0, os.environ["FAKECUDA"])
import fakecuda

MODE = sys.argv[1] if len(sys.argv) > 1 else "eager"
ROUNDS = int(os.environ.get("ROUNDS", "100"))
gpu = fakecuda.load(cupti=MODE != "unmapped")
right = True


def forward_small(stream=None):
    gpu.gemm(20, "small_gemm<float, 4>", stream)


def forward_large(stream=None):
    gpu.gemm(200, "large_gemm", stream)


def copies():
    """Host to device and back: the data must be what was sent."""
    global right
    sent = bytes(range(256)) * 64
    memory, back = gpu.memory(len(sent)), gpu.memory(len(sent), pinned=True)
    gpu.copy(memory, sent, len(sent))
    gpu.copy(back, memory, len(sent))
    gpu.sync()
    right = right and ctypes.string_at(back, len(sent)) == sent
    gpu.memset(memory, 0, len(sent))
    gpu.free(memory)
    gpu.free(back, pinned=True)


def eager():
    for _ in range(ROUNDS):
        forward_small()
        forward_large()
        gpu.triton(30, "triton_kernel")
        gpu.stream_sync()
    copies()
    gpu.sync()


def replay():
    for _ in range(ROUNDS):
        gpu.replay(graph)
        gpu.stream_sync()


def many():
    """Two threads, each with a stream of its own, on each device."""
    def body(device, name):
        gpu.device(device)
        stream = gpu.stream()
        for _ in range(ROUNDS):
            gpu.gemm(30, name, stream)
            gpu.stream_sync(stream)
    threads = [threading.Thread(target=body, args=(i % 2, "on_device_%d" % (i % 2))) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def fork():
    child = os.fork()
    if not child:
        try:
            gpu.gemm(1)
        except RuntimeError:
            os._exit(7)
        os._exit(1)
    global right
    right = right and os.waitpid(child, 0)[1] == 7 << 8
    eager()


def nothing():
    time.sleep(0.2)


def quiet():
    """Calls that launch nothing."""
    gpu.free(gpu.memory(4096))
    gpu.sync()


def ranges():
    for _ in range(ROUNDS):
        with gpu.range("step", "app"):
            with gpu.range("forward"):
                forward_small()
            gpu.mark("token")
            gpu.stream_sync()
    gpu.sync()


def play():
    """The records of a case, line by line, as CUPTI would report them, a moment ago."""
    cbids, shift = {"cudaLaunchKernel": 211, "cudaGraphLaunch": 311}, time.monotonic_ns() - 200 * 10**6 - 10**12
    u64 = ctypes.c_uint64
    with open(os.environ["RECORDS"]) as f:
        for record in map(json.loads, f):
            if record["kind"] == "dropped":
                gpu.cuda.fakecuda_play_lost(ctypes.c_size_t(record["count"]))
                continue
            start, end = (u64(at + shift if at else 0) for at in (record["start"], record["end"]))
            if record["kind"] == "kernel":
                gpu.cuda.fakecuda_play_kernel(record["name"].encode(), record["device"], record["stream"], record["correlation"], start, end)
            else:
                gpu.cuda.fakecuda_play_call(record["name"].encode(), cbids[record["name"]], record["correlation"], start, end)


def kernels_of(client):
    """What a client of CUPTI saw so far, by name."""
    seen, count = {}, ctypes.c_uint64()
    client.client_name.restype = ctypes.c_char_p
    client.client_flush(0)
    while True:
        name = client.client_name(len(seen), ctypes.byref(count))
        if name is None:
            return seen
        seen[name.decode()] = count.value


class Profiler:
    """What torch.profiler is to CUPTI: a client that does not subscribe, and a flag in a module."""
    KINDS = 1 << 1 | 1 << 2 | 1 << 5 | 1 << 10 | 1 << 17 | 1 << 38

    def __init__(self):
        self.module = types.ModuleType("torch.autograd.profiler")
        self.module._is_profiler_enabled = False
        sys.modules["torch.autograd.profiler"] = self.module
        self.client = ctypes.CDLL(os.environ["CLIENT"])
        assert self.client.client_open(gpu.cupti_path.encode()) == 0
        self.launched = collections.Counter()

    def on(self):
        self.launched.clear()
        self.module._is_profiler_enabled = True
        assert self.client.client_start(ctypes.c_uint64(self.KINDS), 0) == 0
        self.client.client_flush(0)  # Kineto does, when its warm-up ends: buffers of a client before it go back

    def off(self):
        """What it saw, and what was launched meanwhile."""
        assert self.client.client_stop(0) == 0
        self.module._is_profiler_enabled = False
        return {"seen": kernels_of(self.client), "launched": dict(self.launched)}


WORK = {"eager": eager, "unmapped": eager, "replay": replay, "many": many, "fork": fork, "nothing": nothing, "broken": nothing, "quiet": quiet, "ranges": ranges, "play": play}
if MODE == "broken":  # CUDA was tried, and is not there
    assert gpu.cuda.cuInit(0)
elif MODE != "late":
    gpu.gemm(1, "warm_up")
    gpu.sync()
graph = gpu.capture(lambda stream: [gpu.gemm(5, "node_%d" % i, stream) for i in range(5)]) if MODE == "replay" else None
if os.environ.get("HOLDER"):  # another client of CUPTI, before us
    holder = ctypes.CDLL(os.environ["HOLDER"])
    assert holder.client_open(gpu.cupti_path.encode()) == 0
    assert holder.client_start(ctypes.c_uint64(int(os.environ.get("HOLDER_KINDS", str(1 << 10 | 1 << 5)))), int(os.environ.get("HOLDER_FLAGS", "1"))) == 0
    total = collections.Counter()
profiler = Profiler() if os.environ.get("CLIENT") else None
print("READY", os.getpid(), flush=True)
for line in sys.stdin:
    command, _, argument = line.strip().partition(" ")
    gpu.done.clear()
    if command == "set":
        gpu.set(argument.split()[0], int(argument.split()[1]))
        print("DONE", flush=True)
        continue
    if command == "profile":
        print("DONE", json.dumps(profiler.on() if argument == "on" else profiler.off()), flush=True)
        continue
    if command == "jump":  # the clock that the other client gave to CUPTI
        holder.fakecuda_set(b"STEP_NS", ctypes.c_int64(int(argument)))
        print("DONE", flush=True)
        continue
    if command in ("holder", "total"):
        print("DONE", json.dumps(total if command == "total" else kernels_of(holder)), flush=True)
        continue
    WORK.get(MODE, eager)()
    if os.environ.get("HOLDER"):
        total.update(gpu.done)
    if profiler:
        profiler.launched.update(gpu.done)
    print("DONE", json.dumps(dict(gpu.done)), flush=True)
if os.environ.get("HOLDER") and os.environ.get("HOLDER_KINDS") != "0":
    right = right and holder.client_stop(0) == 0
print("OK" if right else "FAIL the data were wrong", flush=True)
