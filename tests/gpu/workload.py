"""What tests/gpu/accept measures: a small model on the GPU, or on the doubles when FAKECUDA_FOLDER is set. workload.py MODE [STEPS].

MODE: eager, graph (captured before anybody attaches), copies, sync, threads, tiny (many short kernels), spin (one long kernel), idle.
Prints READY pid; a line `run N` on stdin makes N steps and prints DONE {"steps", "ns_per_step", "checksum", "error"}; `profile N` does the same under torch.profiler
and adds its kernels; `spin MS` prints the host's clock around one kernel; the end of stdin ends it."""
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

    def profile(self, steps):
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as session:
            steps()
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


class Fake:
    """The doubles; what a step launches is written down, as a profiler would have it."""

    def __init__(self):
        sys.path.insert(0, os.environ["FAKECUDA"])
        import fakecuda
        self.gpu = fakecuda.load()
        self.memory, self.pinned = self.gpu.memory(1 << 16), self.gpu.memory(1 << 16, pinned=True)
        self.graph = None
        self.local = threading.local()

    def forward(self, stream=None):
        for i in range(7):
            self.gpu.gemm(20, "gemm_layer", stream)
            self.gpu.gemm(10, "attention", stream)

    def capture(self):
        self.graph = self.gpu.capture(self.forward)

    def step(self):
        if MODE == "graph":
            self.gpu.replay(self.graph)
        elif MODE == "copies":
            self.gpu.copy(self.memory, bytes(1 << 16), 1 << 16)
            self.gpu.copy(self.memory, self.pinned, 1 << 16)
        elif MODE == "tiny":
            for _ in range(50):
                self.gpu.gemm(2, "add")
        else:
            self.forward(getattr(self.local, "stream", None))
        if MODE == "sync":
            self.sync()

    def sync(self):
        self.gpu.sync()

    def checksum(self):
        return 1.0

    def profile(self, steps):
        self.gpu.done.clear()
        steps()
        self.sync()
        return {"kernels": self.gpu.done, "copies": {}}

    def spin(self, ms):
        before = time.monotonic_ns()
        self.gpu.gemm(ms * 1000, "spin_kernel")
        self.sync()
        return before, time.monotonic_ns()

    def prepare_thread(self):
        self.local.stream = self.gpu.stream()


device = Fake() if os.environ.get("FAKECUDA_FOLDER") else Torch()
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


print("READY", os.getpid(), flush=True)
for line in sys.stdin:
    command, _, argument = line.strip().partition(" ")
    answer = {"error": None}
    try:
        if command == "run":
            answer.update(steps=int(argument), ns_per_step=statistics.median(steps(int(argument))), checksum=device.checksum())
        elif command == "profile":
            answer.update(device.profile(lambda: steps(int(argument))), checksum=device.checksum())
        elif command == "spin":
            answer.update(zip(("before_ns", "after_ns"), device.spin(int(argument))))
    except Exception as error:
        answer["error"] = repr(error)
    print("DONE", json.dumps(answer), flush=True)
print("OK", flush=True)
