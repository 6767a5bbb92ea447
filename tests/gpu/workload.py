"""What tests/gpu/accept measures: a small model of torch, or without torch (WORKLOAD=driver) one of PTX kernels. workload.py MODE.

MODE: eager, graph (captured before anybody attaches), copies, sync, threads, tiny (many short kernels), idle.
Prints READY pid; a line `run N` on stdin makes N steps and prints DONE {"steps", "ns_per_step", "checksum", "error"}; `profile N` adds what they launched and copied, by torch.profiler or
by own count; `beside N` (or `beside 5s`) has them watched by torch.profiler or by another client of CUPTI (CLIENT) and adds what that saw; `record N PATH` keeps CUPTI's raw records of them;
`spin MS` prints the host's clock around one kernel; the end of stdin ends it."""
import collections
import json
import os
import statistics
import sys
import threading
import time

MODE = sys.argv[1] if len(sys.argv) > 1 else "eager"


class Torch:
    """The real thing: seven layers in bf16, with attention."""

    def __init__(self):
        import torch
        self.torch = torch
        if not torch.cuda.is_available():
            print("SKIP torch sees no CUDA device", flush=True)
            sys.exit(77)
        torch.manual_seed(1)
        self.weights = [torch.randn(512, 512, device="cuda", dtype=torch.bfloat16) / 22 for _ in range(7)]
        self.start = torch.randn(4, 64, 512, device="cuda", dtype=torch.bfloat16)
        self.host = torch.randn(1 << 20)
        self.pinned = torch.randn(1 << 20).pin_memory()
        self.small = torch.zeros(16, device="cuda")
        self.graph = self.out = None

    def forward(self):
        functional, x = self.torch.nn.functional, self.start
        for weight in self.weights:
            x = functional.gelu(x @ weight) + x
            x = functional.scaled_dot_product_attention(x, x, x)
        return x

    def capture(self):
        stream = self.torch.cuda.Stream()
        with self.torch.cuda.stream(stream):
            self.forward()
        self.torch.cuda.synchronize()
        self.graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(self.graph):
            self.out = self.forward()

    def step(self):
        if MODE == "graph":
            self.graph.replay()
        elif MODE == "copies":
            self.out = self.host.to("cuda").sum() + self.pinned.to("cuda", non_blocking=True).sum()
        elif MODE == "sync":
            self.out = self.forward()
            self.out.float().sum().item()
        elif MODE == "tiny":
            for _ in range(50):
                self.small.add_(1)
            self.out = self.small
        else:
            self.out = self.forward()

    def sync(self):
        self.torch.cuda.synchronize()

    def checksum(self):
        return float(self.out.double().sum()) if self.out is not None else 0.0

    def profile(self, work):
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as session:
            work()
            self.sync()
        kernels, copies = collections.Counter(), collections.Counter()
        path = "/tmp/inferscope-accept-%d.json" % os.getpid()
        session.export_chrome_trace(path)
        with open(path) as f:
            for event in json.load(f)["traceEvents"]:
                if event.get("cat") == "kernel":
                    kernels[event["name"]] += 1
                elif event.get("cat") == "gpu_memcpy":
                    copies[event["name"]] += event["args"].get("bytes", 0)
        os.unlink(path)
        return {"kernels": kernels, "copies": copies}

    def spin(self, ms):
        torch, cycles = self.torch, int(ms * 1.7e6)
        torch.cuda._sleep(1000)
        self.sync()
        before = time.monotonic_ns()
        torch.cuda._sleep(cycles)
        self.sync()
        return before, time.monotonic_ns()

    def prepare_thread(self):
        self.torch.cuda.set_stream(self.torch.cuda.Stream())


if os.environ.get("WORKLOAD") == "driver":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from driver import Driver
    device = Driver(MODE)
else:
    device = Torch()
if MODE == "graph":
    device.capture()
device.step()
device.sync()


def steps(count):
    """ns of each step, the device's work included."""
    took = []

    def one_thread(number):
        device.prepare_thread()
        for _ in range(number):
            device.step()
        device.sync()
    if MODE == "threads":
        begun = time.perf_counter_ns()
        threads = [threading.Thread(target=one_thread, args=(count // 4,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [(time.perf_counter_ns() - begun) / count]
    for _ in range(count):
        begun = time.perf_counter_ns()
        device.step()
        device.sync()
        took.append(time.perf_counter_ns() - begun)
    return took


def some(count):
    """Makes COUNT steps ("500"), or as many as so many seconds allow ("5s"). Returns how many."""
    if not count.endswith("s"):
        return len(steps(int(count)))
    end, made = time.monotonic() + float(count[:-1]), 0
    while time.monotonic() < end:
        made += len(steps(20))
    return made


def other():
    """The other client, made when it is first asked for."""
    global client
    if not client:
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        from client import Client
        client = Client()
    return client


def answer_to(command, arguments):
    made = []

    def work():
        made.append(some(arguments[0]))
        return made[-1]
    if command == "run":
        return {"steps": int(arguments[0]), "ns_per_step": statistics.median(steps(int(arguments[0]))), "checksum": device.checksum()}
    if command == "profile":
        return dict(device.profile(work), checksum=device.checksum())
    if command == "beside":
        seen = (other() if os.environ.get("CLIENT") else device).profile(work)
        return dict(seen, steps=sum(made))
    if command == "record":
        return other().record(arguments[1], work)
    if command == "spin":
        return dict(zip(("before_ns", "after_ns"), device.spin(int(arguments[0]))))
    raise ValueError(command)


client = None
print("READY", os.getpid(), flush=True)
for line in sys.stdin:
    answer = {"error": None}
    try:
        answer.update(answer_to(line.split()[0], line.split()[1:]))
    except Exception as error:
        answer["error"] = repr(error)
    print("DONE", json.dumps(answer), flush=True)
print("OK", flush=True)
