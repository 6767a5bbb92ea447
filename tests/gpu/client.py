"""Another client of CUPTI in the program (tests/fakecuda/client.c): what Kineto is where there is no torch, and who keeps raw records for the doubles to be compared with."""
import ctypes
import glob
import os
import sys
import types

KINDS = {"common": 1 << 1 | 1 << 2 | 1 << 5 | 1 << 10 | 1 << 17 | 1 << 38, "known": 1 << 8 | 1 << 9 | 1 << 37}
DUMP = 8


def find_cupti():
    """The one in the process, else the one beside its CUDA runtime."""
    with open("/proc/self/maps") as f:
        paths = [line.split()[-1] for line in f if "/libcupti.so" in line or "/libcudart.so" in line]
    for path in sorted(set(paths)):
        if "/libcupti.so" in path:
            return path
    for path in sorted(set(paths)):
        for place in (".", "../../cuda_cupti/lib", "../extras/CUPTI/lib64"):
            found = sorted(glob.glob(os.path.join(os.path.dirname(path), place, "libcupti.so.1*")))
            if found:
                return os.path.realpath(found[0])
    raise RuntimeError("there is no libcupti beside %s" % paths)


class Client:
    def __init__(self):
        self.library = ctypes.CDLL(os.environ["CLIENT"])
        self.library.client_name.restype = ctypes.c_char_p
        self.check(self.library.client_open(find_cupti().encode()))
        # What tells InferScope that torch.profiler is at work.
        self.module = sys.modules.setdefault("torch.autograd.profiler", types.ModuleType("torch.autograd.profiler"))
        self.module._is_profiler_enabled = False

    def check(self, error):
        if error:
            raise RuntimeError("CUPTI error %d" % error)

    def profile(self, work):
        """As Kineto does: without a subscription. Returns the kernels that it saw."""
        self.module._is_profiler_enabled = True
        self.check(self.library.client_start(ctypes.c_uint64(KINDS["common"]), 0))
        self.library.client_flush(0)  # buffers of a client before it go back
        work()
        self.check(self.library.client_stop(0))
        self.module._is_profiler_enabled = False
        return {"kernels": self.seen()}

    def record(self, path, work, limit=2 << 20):
        """Keeps the records as they come, LIMIT bytes of them."""
        self.check(self.library.client_save(path.encode(), ctypes.c_size_t(limit)))
        self.check(self.library.client_start(ctypes.c_uint64(KINDS["common"] | KINDS["known"]), DUMP))
        work()
        self.check(self.library.client_stop(0))
        self.check(self.library.client_save(None, ctypes.c_size_t(0)))
        return {"kernels": self.seen()}

    def seen(self):
        found, count = {}, ctypes.c_uint64()
        while True:
            name = self.library.client_name(len(found), ctypes.byref(count))
            if name is None:
                return found
            found[name.decode()] = count.value
