"""Services with one thing wrong, or nothing: what was planted is known, what a report should say of it is the runner's. Numbers vary with the seed.

A cause is a function of (machine, random) that makes threads and returns what the machine was limited by: cpu_bound, gpu_bound, memory_bound, balanced or unknown.
"""
import engine

US, MS = 1_000, 1_000_000
LIB = "/usr/lib/python3.12"
SITE = "/usr/lib/python3/dist-packages"


def app(name, line=1, file="/srv/app/serve.py"):
    return engine.Function(name, file, line, False)


MAIN, LOOP, HANDLE = app("main", 200), app("Server.run", 40), app("Server.handle", 60)
FORWARD, GENERATE, RESPOND = app("Model.forward", 10, "/srv/app/model.py"), app("Model.generate", 90, "/srv/app/model.py"), app("Server.respond", 120)
LINEAR = engine.Function("Linear.forward", SITE + "/torch/nn/modules/linear.py", 110, False)
QUEUE_GET = engine.Function("Queue.get", LIB + "/queue.py", 154, False)
CONDITION = engine.Function("Condition.wait", LIB + "/threading.py", 323, False)
KERNELS = ["ampere_bf16_gemm_128x64", "flash_fwd_kernel", "vectorized_elementwise_kernel", "layer_norm_kernel", "softmax_warp_forward", "rotary_embedding_kernel"]


class Service:
    """One thread that takes requests and asks the device for work; closed loop unless EVERY says how far apart requests come."""

    def __init__(self, machine, random, every_ns=0, scopes=None, stages=()):
        self.machine, self.random, self.every_ns = machine, random, every_ns
        self.scopes = random.random() < 0.5 if scopes is None else scopes
        self.stages = stages
        self.compute, self.copies, self.queue = engine.Stream(7), engine.Stream(20), engine.Queue()
        self.thread = machine.thread("MainThread" if random.random() < 0.5 else "worker", self.serve)
        if every_ns:
            time = engine.START_NS
            while time < machine.end:
                time += int(random.expovariate(1 / every_ns))
                machine.at(time, machine.put, self.queue, 1)
        if random.random() < 0.7:
            machine.thread("metrics", self.metrics)

    def metrics(self, thread):
        """Every service has something small that runs beside it."""
        thread.enter(app("Metrics.run", 5, "/srv/app/metrics.py"))
        while True:
            yield from thread.sleep(self.random.randint(80, 300) * MS)
            yield from thread.python(self.random.randint(50, 400) * US)

    def serve(self, thread):
        thread.enter(MAIN)
        thread.enter(LOOP)
        while True:
            if self.every_ns:
                yield from thread.call(QUEUE_GET, thread.call(CONDITION, thread.get(self.queue)))
            body = thread.call(HANDLE, self.request(thread))
            yield from thread.scope("request", body) if self.scopes else body

    def request(self, thread):
        yield from thread.python(self.random.randint(20, 80) * US)
        for stage in self.stages:
            yield from stage(thread)
        yield from thread.call(RESPOND, thread.python(self.random.randint(20, 80) * US))

    # ---- stages ----

    def forward(self, kernels, kernel_ns, host_ns, grid=256, api="cudaLaunchKernel"):
        """A pass of so many kernels; the host takes HOST_NS for each."""
        def stage(thread):
            thread.enter(FORWARD)
            for i in range(kernels):
                thread.enter(LINEAR)
                yield from thread.python(host_ns * self.random.uniform(0.8, 1.2))
                yield from thread.launch(self.compute, KERNELS[i % len(KERNELS)], kernel_ns * self.random.uniform(0.7, 1.3), api_ns=self.random.randint(4, 7) * US, grid=(grid, 1, 1), api=api)
                thread.leave()
            thread.leave()
        return stage

    def read_back(self, size=4):
        """The host takes the result: it waits for the device."""
        def stage(thread):
            thread.enter(app("Model.result", 140, "/srv/app/model.py"))
            yield from thread.copy(self.compute, "d2h_copy", size, 12, 2)
            yield from thread.synchronize(self.compute)
            thread.leave()
        return stage

    def ahead(self, limit_ns=20 * MS):
        """A pipelined service reads what is done and lets the device have work for LIMIT."""
        def stage(thread):
            late = self.compute.free_ns - limit_ns
            if late > thread.machine.now:
                thread.enter(app("Pipeline.wait", 30, "/srv/app/pipeline.py"))
                start, number = thread.machine.now, next(thread.machine.correlations)
                yield engine.Block(late, engine.GPU)
                thread.machine.calls.append((start, thread.machine.now - start, number, thread.tid, "cudaEventSynchronize"))
                thread.leave()
        return stage

    def upload(self, size, gb_per_s, host, wait=False, own_stream=False, pieces=1):
        def stage(thread):
            thread.enter(app("Model.upload", 70, "/srv/app/model.py"))
            for _ in range(pieces):
                yield from thread.copy(self.copies if own_stream else self.compute, "h2d_copy", size, gb_per_s, host, wait=wait)
            thread.leave()
        return stage

    def work(self, function, ns, released=False, calls=1):
        """Time of the host in FUNCTION."""
        def stage(thread):
            for _ in range(calls):
                body = thread.released if released else thread.python
                yield from thread.call(function, body(ns / calls * self.random.uniform(0.8, 1.2)))
        return stage


def kernels_of(service, total_ns, kernels=20, host_ns=8 * US):
    return service.forward(kernels, total_ns / kernels, host_ns)


def slow_tokenizer(machine, random):
    service, device = Service(machine, random), random.randint(4, 15) * MS
    tokenizer = engine.Function("PreTrainedTokenizer._tokenize", SITE + "/transformers/tokenization_utils.py", 600, False)
    batch = engine.Function("PreTrainedTokenizer._batch_encode_plus", SITE + "/transformers/tokenization_utils.py", 780, False)
    share = random.uniform(0.6, 2.5)

    def tokenize(thread):
        yield from thread.call(batch, service.work(tokenizer, device * share, calls=20)(thread))
    service.stages = [tokenize, kernels_of(service, device), service.read_back()]
    return "cpu_bound"


def launch_bound(machine, random):
    machine.end = engine.START_NS + 2_500 * MS
    service = Service(machine, random)
    service.stages = [service.forward(random.randint(150, 400), random.randint(2, 6) * US, random.randint(25, 60) * US), service.read_back()]
    return "cpu_bound"


def sync_per_token(machine, random):
    """The device could work on; the host asks for each value before it goes on."""
    machine.end = engine.START_NS + 4_000 * MS
    service = Service(machine, random)
    step_ns, host_ns = random.randint(250, 700) * US, random.randint(120, 300) * US
    item = engine.Function("item", "torch.Tensor", 0, True)

    def decode(thread):
        thread.enter(GENERATE)
        for _ in range(random.randint(20, 60)):
            thread.enter(FORWARD)
            for i in range(4):
                yield from thread.python(10 * US)
                yield from thread.launch(service.compute, KERNELS[i], step_ns / 4 * random.uniform(0.8, 1.2))
            thread.leave()
            thread.enter(item)
            yield from thread.copy(service.compute, "d2h_copy", 8, 12, 2)
            yield from thread.synchronize(service.compute)
            thread.leave()
            yield from thread.call(app("sample_token", 170, "/srv/app/model.py"), thread.python(host_ns * random.uniform(0.8, 1.2)))
        thread.leave()
    service.stages = [decode]
    return "cpu_bound"


def pageable_copies(machine, random):
    service, device = Service(machine, random), random.randint(4, 12) * MS
    share, rate = random.uniform(0.6, 2.0), random.uniform(3, 7)
    service.stages = [service.upload(int(device * share * rate), rate, 1, wait=True), kernels_of(service, device), service.read_back()]
    return "memory_bound"


def exposed_copies(machine, random):
    service, device = Service(machine, random), random.randint(4, 12) * MS
    share, rate = random.uniform(0.6, 2.0), random.uniform(20, 26)
    service.stages = [service.ahead(), service.upload(int(device * share * rate), rate, 2), kernels_of(service, device)]
    return "memory_bound"


def small_copies(machine, random):
    machine.end = engine.START_NS + 1_500 * MS
    service = Service(machine, random)
    gather = app("Features.gather", 20, "/srv/app/features.py")

    def upload(thread):
        thread.enter(gather)
        for _ in range(random.randint(200, 500)):
            yield from thread.python(random.randint(3, 10) * US)
            yield from thread.copy(service.compute, "h2d_copy", random.randint(16, 2048), 12, 2)
        thread.leave()
    service.stages = [upload, kernels_of(service, random.randint(300, 1500) * US), service.read_back()]
    return "cpu_bound"


def gil_contention(machine, random):
    service, device = Service(machine, random), random.randint(3, 8) * MS
    service.stages = [kernels_of(service, device, 30, 20 * US), service.read_back()]

    def busy(thread, function):
        thread.enter(app("Worker.run", 12, "/srv/app/workers.py"))
        while True:
            yield from thread.call(function, thread.python(random.randint(2, 30) * MS))
            yield from thread.sleep(random.randint(20, 500) * US, engine.IO)
    for i in range(random.randint(2, 5)):
        machine.thread("cpu-%d" % i, busy, app("Worker.parse_%d" % i, 30 + i, "/srv/app/workers.py"))
    return "cpu_bound"


def gpu_bound(machine, random):
    service = Service(machine, random)
    service.stages = [service.ahead(), kernels_of(service, random.randint(4, 15) * MS, 40, random.randint(5, 30) * US)]
    return "gpu_bound"


def gpu_bound_graph(machine, random):
    """The same with one graph per request."""
    service = Service(machine, random)
    service.stages = [service.ahead(), service.forward(1, random.randint(4, 15) * MS, 30 * US, api="cudaGraphLaunch")]
    return "gpu_bound"


def unloaded(machine, random):
    """Nothing is wrong but that hardly anybody asks."""
    device = random.randint(4, 10) * MS
    service = Service(machine, random, every_ns=device * random.uniform(12, 40))
    service.stages = [kernels_of(service, device), service.read_back()]
    return "unknown"


def data_loader(machine, random):
    service, device = Service(machine, random), random.randint(5, 15) * MS
    fetch = engine.Function("_MultiProcessingDataLoaderIter._try_get_data", SITE + "/torch/utils/data/dataloader.py", 1130, False)
    step = engine.Function("_BaseDataLoaderIter.__next__", SITE + "/torch/utils/data/dataloader.py", 620, False)

    def load(thread):
        wait = thread.call(QUEUE_GET, thread.call(CONDITION, thread.sleep(device * random.uniform(0.5, 2.5), engine.LOCK)))
        yield from thread.call(step, thread.call(fetch, wait))
    service.stages = [load, kernels_of(service, device), service.read_back()]
    return "cpu_bound"


def allocation_churn(machine, random):
    machine.end = engine.START_NS + 4_000 * MS
    service, device = Service(machine, random), random.randint(1, 4) * MS
    allocate = app("Buffers.allocate", 15, "/srv/app/buffers.py")

    def churn(thread):
        thread.enter(allocate)
        for _ in range(random.randint(4, 12)):
            yield from thread.api("cudaMalloc", random.randint(150, 400) * US)
        for _ in range(random.randint(4, 12)):
            yield from thread.synchronize(service.compute, api="cudaFree")
            yield from thread.api("cudaFree", random.randint(80, 300) * US)
        thread.leave()
    service.stages = [churn, kernels_of(service, device), service.read_back()]
    return "cpu_bound"


def logging_hot(machine, random):
    service, device = Service(machine, random), random.randint(3, 8) * MS
    log, emit = (engine.Function(name, LIB + "/logging/__init__.py", line, False) for name, line in (("Logger.info", 1480), ("StreamHandler.emit", 1090)))

    def write(thread):
        for _ in range(20):
            yield from thread.call(log, thread.call(emit, thread.python(device / 20 * random.uniform(0.5, 1.5))))
    service.stages = [write, kernels_of(service, device), service.read_back()]
    return "cpu_bound"


def hot_function(machine, random):
    """A service without a device: one function of its own takes the CPU."""
    service = Service(machine, random)
    score = app("Ranker.score", 33, "/srv/app/ranker.py")
    service.stages = [service.work(score, random.randint(10, 40) * MS, calls=10), service.work(app("Ranker.sort", 60, "/srv/app/ranker.py"), random.randint(1, 4) * MS)]
    return "cpu_bound"


def lock_waits(machine, random):
    """Threads without a device wait for one lock that is held over I/O."""
    mutex = engine.Mutex()
    acquire = engine.Function("acquire", "_thread.lock", 0, True)
    read = engine.Function("recv_into", "_socket.socket", 0, True)
    update, query = app("Cache.update", 25, "/srv/app/cache.py"), app("Database.query", 40, "/srv/app/database.py")

    def serve(thread):
        thread.enter(MAIN)
        while True:
            yield from thread.python(random.randint(100, 400) * US)
            thread.enter(update)
            yield from thread.call(acquire, thread.lock(mutex))
            yield from thread.call(query, thread.call(read, thread.sleep(random.randint(2, 6) * MS, engine.IO)))
            thread.unlock(mutex)
            thread.leave()
    for i in range(random.randint(5, 9)):
        machine.thread("handler-%d" % i, serve)
    return "balanced"


def oversubscribed(machine, random):
    machine.cores = random.randint(2, 4)
    gemm = app("Model.cpu_forward", 15, "/srv/app/cpu_model.py")

    def compute(thread):
        thread.enter(MAIN)
        while True:
            yield from thread.call(gemm, thread.released(random.randint(8, 30) * MS))
            yield from thread.python(random.randint(50, 150) * US)
    for i in range(machine.cores * random.randint(2, 4)):
        machine.thread("omp-%d" % i, compute)
    return "cpu_bound"


def imports_in_requests(machine, random):
    service, device = Service(machine, random), random.randint(4, 8) * MS
    load = engine.Function("_find_and_load", "<frozen importlib._bootstrap>", 1022, False)
    body = engine.Function("<module>", "/srv/app/plugins/heavy.py", 1, False)

    def load_plugin(thread):
        yield from thread.call(app("Plugins.get", 9, "/srv/app/plugins/__init__.py"), thread.call(load, thread.call(body, thread.python(device * random.uniform(0.5, 1.5)))))
    service.stages = [load_plugin, kernels_of(service, device), service.read_back()]
    return "cpu_bound"


CAUSES = [slow_tokenizer, launch_bound, sync_per_token, pageable_copies, exposed_copies, small_copies, gil_contention, gpu_bound, gpu_bound_graph, unloaded, data_loader, allocation_churn,
          logging_hot, hot_function, lock_waits, oversubscribed, imports_in_requests]
