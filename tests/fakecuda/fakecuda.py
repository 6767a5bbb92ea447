"""The doubles of tests/fakecuda for Python: install() lays them out as wheels or a toolkit would, load() gives a program a Gpu to work with.

A Gpu knows what it did (gpu.done: kernel name -> count), so that a test can compare. Needs nothing but ctypes, on Python 3.8 and later."""
import collections
import ctypes
import os
import shutil

# The functions that a version of CUPTI brought; older ones do not export them.
SINCE = {"cuptiActivityEnableRuntimeApi": 24, "cuptiActivityEnableDriverApi": 24, "cuptiSubscribe_v2": 130000}
SINCE.update(("cuptiActivity" + name, 130200) for name in ("Enable_v2", "EnableAndDump_v2", "Disable_v2", "RegisterCallbacks_v2", "SetAttribute_v2", "GetAttribute_v2"))
SINCE.update(("cupti" + name, 130300) for name in ("ActivityEnableRuntimeApi_v2", "ActivityEnableDriverApi_v2", "ActivityGetNextRecord_v2", "ActivityGetNumDroppedRecords_v2",
                                                   "GetTimestamp_v2", "IsTracingSessionRunning"))
# layout: where libcudart and libcupti lie; the driver is in `driver`.
LAYOUTS = {"wheel12": ("nvidia/cuda_runtime/lib", "nvidia/cuda_cupti/lib"), "wheel13": ("nvidia/cu13/lib", "nvidia/cu13/lib"), "toolkit": ("cuda/lib64", "cuda/lib64"),
           "cupti_extras": ("cuda/lib64", "cuda/extras/CUPTI/lib64"), "none": ("cuda/lib64", None)}


def default_version(cuda):
    return {11: 18, 12: 28, 13: 130001}[cuda]


def install(built, folder, cuda=13, version=None, layout=None, missing=()):
    """Copies the libraries from the build folder BUILT to FOLDER, for CUDA major CUDA and CUPTI VERSION: without the functions that it does not have,
    and without those in MISSING. Returns the variables that a program which load()s them must have in its environment."""
    version = version or default_version(cuda)
    layout = layout or ("wheel13" if cuda >= 13 else "wheel12")
    runtime, cupti = LAYOUTS[layout]
    for name in ("driver", runtime, cupti):
        if name:
            os.makedirs(os.path.join(folder, name), exist_ok=True)
    shutil.copy(os.path.join(built, "libcuda.so.1"), os.path.join(folder, "driver"))
    shutil.copy(os.path.join(built, "libcudart.so." + {11: "11.0"}.get(cuda, str(cuda))), os.path.join(folder, runtime))
    if cupti:
        name = "libcupti.so." + {11: "11.8"}.get(cuda, str(cuda))
        with open(os.path.join(built, name), "rb") as f:
            image = f.read()
        for gone in sorted(set(missing) | {name for name, since in SINCE.items() if version < since}):
            image = image.replace(b"\0" + gone.encode() + b"\0", b"\0-" + gone.encode()[1:] + b"\0")
        with open(os.path.join(folder, cupti, name), "wb") as f:
            f.write(image)
    return {"FAKECUDA_FOLDER": folder, "FAKECUDA_VERSION": str(version)}


def find(folder, prefix):
    for place, _, names in os.walk(folder):
        for name in sorted(names):
            if name.startswith(prefix):
                return os.path.join(place, name)
    return None


class Shape(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


class Gpu:
    """What a program sees of CUDA. Times are in µs; streams and graphs are handles that its own methods give."""

    def __init__(self, folder, cupti=True):
        self.done = collections.Counter()
        self.cuda = ctypes.CDLL(find(folder, "libcuda.so"))
        self.cudart = ctypes.CDLL(find(folder, "libcudart.so"))
        self.cupti_path = find(folder, "libcupti.so")
        self.cupti = ctypes.CDLL(self.cupti_path, mode=os.RTLD_LOCAL | os.RTLD_NOW) if cupti and self.cupti_path else None
        self.cuda.fakecuda_name.restype = ctypes.c_void_p
        self.cuda.fakecuda_name.argtypes = [ctypes.c_char_p]
        void, size = ctypes.c_void_p, ctypes.c_size_t
        for name, types in {"cudaLaunchKernel": [void, Shape, Shape, void, size, void], "__cudaLaunchKernel": [void, Shape, Shape, void, size, void],
                            "cudaGraphLaunch": [void, void], "cudaMemcpyAsync": [void, void, size, ctypes.c_int, void], "cudaMemcpy": [void, void, size, ctypes.c_int],
                            "cudaMemcpyPeerAsync": [void, ctypes.c_int, void, ctypes.c_int, size, void], "cudaMemsetAsync": [void, ctypes.c_int, size, void],
                            "cudaStreamSynchronize": [void], "cudaEventRecord": [void, void], "cudaEventSynchronize": [void], "cudaStreamDestroy": [void],
                            "cudaStreamBeginCapture": [void, ctypes.c_int], "cudaStreamEndCapture": [void, void],
                            "cudaGraphInstantiateWithFlags": [void, void, ctypes.c_ulonglong], "cudaMalloc": [void, size], "cudaMallocHost": [void, size],
                            "cudaFree": [void], "cudaFreeHost": [void]}.items():
            if hasattr(self.cudart, name):
                getattr(self.cudart, name).argtypes = types
        unsigned = ctypes.c_uint
        self.cuda.cuLaunchKernel.argtypes = [void] + [unsigned] * 7 + [void, void, void]
        self.cuda.cuGraphLaunch.argtypes = [void, void]
        # What <<<>>> compiles to.
        self.launch = getattr(self.cudart, "__cudaLaunchKernel", self.cudart.cudaLaunchKernel)
        self.names = {}

    def set(self, name, value):
        """A switch of settings.def, now."""
        for library in (self.cuda, self.cudart, self.cupti):
            if library and library.fakecuda_set(name.encode(), ctypes.c_int64(value)) != 0:
                raise KeyError(name)

    def check(self, error):
        if error:
            raise RuntimeError("CUDA error %d" % error)

    def kernel(self, name):
        if name not in self.names:
            self.names[name] = self.cuda.fakecuda_name(name.encode())
        return self.names[name]

    def arguments(self, us):
        duration = ctypes.c_uint64(int(us * 1000))
        pointer = ctypes.pointer(duration)
        return (ctypes.c_void_p * 1)(ctypes.cast(pointer, ctypes.c_void_p)), pointer

    def gemm(self, us=50, name="gemm", stream=None, grid=(8, 4, 1), block=(256, 1, 1)):
        """A kernel by the runtime API."""
        arguments, _keep = self.arguments(us)
        self.check(self.launch(self.kernel(name), Shape(*grid), Shape(*block), arguments, 0, stream))
        self.done[name] += 1

    def triton(self, us=50, name="triton_kernel", stream=None):
        """A kernel by the driver API."""
        arguments, _keep = self.arguments(us)
        self.check(self.cuda.cuLaunchKernel(self.kernel(name), 16, 1, 1, 128, 1, 1, 0, stream, arguments, None))
        self.done[name] += 1

    def stream(self):
        out = ctypes.c_void_p()
        self.check(self.cudart.cudaStreamCreate(ctypes.byref(out)))
        return out

    def device(self, number):
        self.check(self.cudart.cudaSetDevice(number))

    def sync(self):
        self.check(self.cudart.cudaDeviceSynchronize())

    def stream_sync(self, stream=None):
        self.check(self.cudart.cudaStreamSynchronize(stream))

    def memory(self, size, pinned=False):
        """Device memory, or pinned host memory."""
        out = ctypes.c_void_p()
        self.check((self.cudart.cudaMallocHost if pinned else self.cudart.cudaMalloc)(ctypes.byref(out), size))
        return out

    def free(self, at, pinned=False):
        self.check((self.cudart.cudaFreeHost if pinned else self.cudart.cudaFree)(at))

    def copy(self, to, source, size, stream=None, wait=False):
        """Addresses, or bytes-like objects of the host."""
        if wait:
            self.check(self.cudart.cudaMemcpy(to, source, size, 4))
        else:
            self.check(self.cudart.cudaMemcpyAsync(to, source, size, 4, stream))

    def copy_peer(self, to, to_device, source, from_device, size, stream=None):
        self.check(self.cudart.cudaMemcpyPeerAsync(to, to_device, source, from_device, size, stream))

    def memset(self, at, value, size, stream=None):
        self.check(self.cudart.cudaMemsetAsync(at, value, size, stream))

    def range(self, name, domain=None):
        """A range of NVTX, as a with block; where NVTX_INJECTION64_PATH was set when the first one began."""
        return Range(self, name, domain)

    def mark(self, name):
        self.cuda.fakecuda_mark(name.encode())

    def module(self, text):
        """A module of PTX: kernel(name) of it."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.cuda.cuModuleLoadData(ctypes.byref(module), text.encode()))

        def kernel(name):
            self.check(self.cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
            return function.value
        return kernel

    def capture(self, work):
        """A graph of what work(stream) does: (executable, its kernels' names)."""
        stream, graph, executable = self.stream(), ctypes.c_void_p(), ctypes.c_void_p()
        before = self.done
        self.done = collections.Counter()
        self.check(self.cudart.cudaStreamBeginCapture(stream, 0))
        work(stream)
        self.check(self.cudart.cudaStreamEndCapture(stream, ctypes.byref(graph)))
        self.check(self.cudart.cudaGraphInstantiateWithFlags(ctypes.byref(executable), graph, 0))
        nodes, self.done = self.done, before
        return executable, nodes

    def replay(self, graph, stream=None, driver=False):
        executable, nodes = graph
        self.check((self.cuda if driver else self.cudart).__getattr__("cuGraphLaunch" if driver else "cudaGraphLaunch")(executable, stream))
        self.done.update(nodes)


class Range:
    def __init__(self, gpu, name, domain):
        self.gpu, self.name, self.domain = gpu, name, domain

    def __enter__(self):
        self.gpu.cuda.fakecuda_range_push(self.name.encode(), self.domain.encode() if self.domain else None)

    def __exit__(self, *_):
        self.gpu.cuda.fakecuda_range_pop()


def load(folder=None, cupti=True):
    """The libraries that install() laid out in FOLDER (else FAKECUDA_FOLDER), loaded as torch loads the real ones: CUPTI RTLD_LOCAL, or not at all."""
    return Gpu(folder or os.environ["FAKECUDA_FOLDER"], cupti)
