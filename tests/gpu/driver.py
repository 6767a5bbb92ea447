"""A program for the GPU that needs no torch: the driver and the CUDA runtime by ctypes, kernels in PTX. The same on a GPU and on the doubles of tests/fakecuda.

Kernels take their time as their first argument, in ns, and spin so long. `done` counts what was launched, by name."""
import collections
import ctypes
import glob
import os
import site
import sys
import threading
import time

SPIN = """
.visible .entry %s(.param .u64 ns)
{
	.reg .u64 %%begun, %%now, %%ns;
	.reg .pred %%more;
	ld.param.u64 %%ns, [ns];
	mov.u64 %%begun, %%globaltimer;
AGAIN:
	mov.u64 %%now, %%globaltimer;
	sub.u64 %%now, %%now, %%begun;
	setp.lt.u64 %%more, %%now, %%ns;
	@%%more bra AGAIN;
	ret;
}
"""
# out[i] = 3 i, for as many as there are threads.
FILL = """
.visible .entry fill(.param .u64 ns, .param .u64 out)
{
	.reg .u32 %x, %y, %n;
	.reg .u64 %out, %at;
	ld.param.u64 %out, [out];
	cvta.to.global.u64 %out, %out;
	mov.u32 %x, %ctaid.x;
	mov.u32 %n, %ntid.x;
	mov.u32 %y, %tid.x;
	mad.lo.u32 %x, %x, %n, %y;
	mul.wide.u32 %at, %x, 4;
	add.u64 %out, %out, %at;
	mul.lo.u32 %x, %x, 3;
	st.global.u32 [%out], %x;
	ret;
}
"""
NAMES = ("gemm_layer", "attention", "small_add", "spin_kernel")
PTX = ".version 7.0\n.target sm_75\n.address_size 64\n" + "".join(SPIN % name for name in NAMES) + FILL
LAYERS, WIDTH, COPIED = 7, 1024, 1 << 20
TO_DEVICE, FROM_DEVICE = 1, 2
void, size = ctypes.c_void_p, ctypes.c_size_t


def runtimes():
    """Where a CUDA runtime may lie: as wheels and the toolkit put it."""
    if os.environ.get("FAKECUDA_FOLDER"):
        return glob.glob(os.environ["FAKECUDA_FOLDER"] + "/**/libcudart.so.*", recursive=True)
    places = [os.environ.get("INFERSCOPE_CUDART", "")]
    for folder in site.getsitepackages() + [site.getusersitepackages()] + sys.path:
        places += glob.glob(folder + "/nvidia/*/lib/libcudart.so.*")
    return [place for place in places if place] + sorted(glob.glob("/usr/local/cuda*/lib64/libcudart.so.1[1-9]*"), reverse=True) + ["libcudart.so.13", "libcudart.so.12"]


def load(paths):
    for path in paths:
        try:
            return ctypes.CDLL(path)
        except OSError:
            pass
    print("SKIP none of these can be loaded: %s" % " ".join(paths), flush=True)
    sys.exit(77)


class Driver:
    def __init__(self, mode):
        self.mode, self.local, self.done = mode, threading.local(), collections.Counter()
        folder = os.environ.get("FAKECUDA_FOLDER")
        self.cuda = load([folder + "/driver/libcuda.so.1"] if folder else ["libcuda.so.1"])
        self.cudart = load(runtimes())
        self.cuda.cuLaunchKernel.argtypes = [void] + [ctypes.c_uint] * 7 + [void, void, void]
        for name, types in {"cudaMalloc": [void, size], "cudaMallocHost": [void, size], "cudaMemcpyAsync": [void, void, size, ctypes.c_int, void], "cudaMemsetAsync": [void, ctypes.c_int, size, void],
                            "cudaMemcpy": [void, void, size, ctypes.c_int], "cudaStreamSynchronize": [void], "cudaStreamBeginCapture": [void, ctypes.c_int], "cudaStreamEndCapture": [void, void],
                            "cudaGraphInstantiateWithFlags": [void, void, ctypes.c_ulonglong], "cudaGraphLaunch": [void, void], "cudaFree": [void]}.items():
            getattr(self.cudart, name).argtypes = types
        if self.cudart.cudaSetDevice(0) or self.cudart.cudaFree(None):  # makes the context, whatever the runtime's version
            print("SKIP no CUDA device that can be used", flush=True)
            sys.exit(77)
        module, self.kernels = void(), {}
        self.check(self.cuda.cuModuleLoadData(ctypes.byref(module), PTX.encode()))
        for name in NAMES + ("fill",):
            self.kernels[name] = void()
            self.check(self.cuda.cuModuleGetFunction(ctypes.byref(self.kernels[name]), module, name.encode()))
        self.out, self.memory, self.pinned = self.allocate(WIDTH * 4), self.allocate(COPIED), self.allocate(COPIED, pinned=True)
        self.pageable = ctypes.create_string_buffer(COPIED)
        self.graph, self.nodes = void(), collections.Counter()

    def check(self, error):
        if error:
            raise RuntimeError("CUDA error %d" % error)

    def allocate(self, count, pinned=False):
        out = void()
        self.check((self.cudart.cudaMallocHost if pinned else self.cudart.cudaMalloc)(ctypes.byref(out), count))
        return out

    def launch(self, name, ns, stream=None, *rest, grid=4, block=32):
        values = [ctypes.c_uint64(ns)] + list(rest)
        arguments = (void * len(values))(*[ctypes.cast(ctypes.pointer(value), void) for value in values])
        self.check(self.cuda.cuLaunchKernel(self.kernels[name], grid, 1, 1, block, 1, 1, 0, stream, arguments, None))
        self.done[name] += 1

    def forward(self, stream=None):
        for _ in range(LAYERS):
            self.launch("gemm_layer", 20000, stream)
            self.launch("attention", 10000, stream)
        self.launch("fill", 1000, stream, ctypes.c_uint64(self.out.value), grid=WIDTH // 256, block=256)

    def capture(self):
        stream, graph = void(), void()
        self.check(self.cudart.cudaStreamCreate(ctypes.byref(stream)))
        before, self.done = self.done, collections.Counter()
        self.check(self.cudart.cudaStreamBeginCapture(stream, 0))
        self.forward(stream)
        self.check(self.cudart.cudaStreamEndCapture(stream, ctypes.byref(graph)))
        self.check(self.cudart.cudaGraphInstantiateWithFlags(ctypes.byref(self.graph), graph, 0))
        self.nodes, self.done = self.done, before

    def step(self):
        if self.mode == "graph":
            self.check(self.cudart.cudaGraphLaunch(self.graph, None))
            self.done.update(self.nodes)
        elif self.mode == "copies":
            self.check(self.cudart.cudaMemcpyAsync(self.memory, self.pageable, COPIED, TO_DEVICE, None))
            self.check(self.cudart.cudaMemcpyAsync(self.memory, self.pinned, COPIED, TO_DEVICE, None))
            self.check(self.cudart.cudaMemcpyAsync(self.pinned, self.memory, COPIED, FROM_DEVICE, None))
        elif self.mode == "tiny":
            for _ in range(50):
                self.launch("small_add", 2000)
        else:
            self.forward(getattr(self.local, "stream", None))
        if self.mode == "sync":
            self.checksum()

    def sync(self):
        self.check(self.cudart.cudaDeviceSynchronize())

    def checksum(self):
        back = (ctypes.c_uint32 * WIDTH)()
        self.check(self.cudart.cudaMemcpy(back, self.out, WIDTH * 4, FROM_DEVICE))
        return sum(back)

    def profile(self, work):
        """What it launched and copied meanwhile: it knows."""
        self.done.clear()
        count = work()
        self.sync()
        moved = {"Memcpy HtoD (Pageable -> Device)": COPIED * count, "Memcpy HtoD (Pinned -> Device)": COPIED * count, "Memcpy DtoH (Device -> Pinned)": COPIED * count}
        return {"kernels": dict(self.done), "copies": moved if self.mode == "copies" else {}}

    def spin(self, ms):
        self.launch("spin_kernel", 1000)
        self.sync()
        before = time.monotonic_ns()
        self.launch("spin_kernel", ms * 1000000)
        self.sync()
        return before, time.monotonic_ns()

    def prepare_thread(self):
        self.check(self.cudart.cudaSetDevice(0))
        self.local.stream = void()
        self.check(self.cudart.cudaStreamCreate(ctypes.byref(self.local.stream)))
