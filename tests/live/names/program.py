"""Stands still with zlib loaded, a page of generated code, and the library named as argument. Told to go, it names more of the page."""
import ctypes
import json
import mmap
import os
import struct
import sys
import zlib

print("READY", os.getpid(), flush=True)
assert zlib.crc32(b"")  == 0
page = mmap.mmap(-1, 8192, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
start = ctypes.addressof(ctypes.c_char.from_buffer(page))
truth = {"page": start, "pid": os.getpid()}
if len(sys.argv) > 1:
    library = ctypes.CDLL(sys.argv[1])
    truth["library"] = ctypes.cast(library.known, ctypes.c_void_p).value

perf_map = "/tmp/perf-%d.map" % os.getpid()
dump = "/tmp/jit-%d.dump" % os.getpid()


def record(kind, body):
    return struct.pack("<IIQ", kind, 16 + len(body), 0) + body


try:
    with open(perf_map, "w") as f:
        f.write("%x 40 py::first:/srv/app.py\ngarbage\n%x 40 py::second:/srv/app.py\n" % (start + 0x100, start + 0x80))
    with open(dump, "wb") as f:
        f.write(struct.pack("<IIIIIIQQ", 0x4a695444, 1, 40, 62, 0, os.getpid(), 0, 0))
        f.write(record(2, struct.pack("<QQ", start + 0x400, 1) + struct.pack("<QII", start + 0x400, 42, 0) + b"/srv/model.js\0"))
        f.write(record(0, struct.pack("<IIQQQQ", 1, 1, start + 0x400, start + 0x400, 0x40, 1) + b"compiled\0" + b"\x90" * 0x40))
    print("TRUTH", json.dumps(truth), flush=True)
    if sys.stdin.readline():
        with open(perf_map, "a") as f:
            f.write("%x 40 py::third:/srv/app.py\n" % (start + 0x100))
        print("MORE", flush=True)
        sys.stdin.readline()
finally:
    for path in (perf_map, dump):
        if os.path.exists(path):
            os.unlink(path)
