"""Programs whose system calls are known. The first argument says which; each prints READY <pid>, and goes on at a line of its input.

batch       COUNTS below, once; prints how long sleeping took, ns; without a pause at its beginning where the second argument is now
answers     waits for answers on a socket, again and again
spin        works for ever
touch       PAGES of fresh memory, once, then waits HOPS times for a tenth of a millisecond; prints how many pages, and how often that thread was switched
hops        two threads pass a byte to and fro for ever
pool        maps the file of its second argument, as a library is, and works in 8 native threads for ever
refill      gives memory back and takes it again, for ever
many        the same, beside 400 threads that wait
fsync, lookups, reads, churn   handle requests for ever, each of which has this trouble
loop        asyncio's loop, whose callbacks read from a socket that is not ready"""
import asyncio
import hashlib
import mmap
import os
import socket
import sys
import tempfile
import threading
import time

CALLS = 500      # of getppid, and of write to a pipe
SYNCS = 10       # of fsync
NAPS = 10        # of 50 ms
BYTES = 300      # of each write
PAGE, PAGES, HOPS = 4096, 200000, 2000


def ask():
    for _ in range(CALLS):
        os.getppid()


def send(fd, out):
    for _ in range(CALLS):
        os.write(out, b"x" * BYTES)
        os.read(fd, BYTES)


def sync(file):
    for _ in range(SYNCS):
        os.fsync(file)


def nap():
    begin = time.monotonic_ns()
    for _ in range(NAPS):
        time.sleep(0.05)
    return time.monotonic_ns() - begin


def batch():
    fd, out = os.pipe()
    with tempfile.TemporaryFile() as file:
        ask()
        send(fd, out)
        sync(file.fileno())
        print("SLEPT %d" % nap(), flush=True)


def wait_for_answer(end):
    end.recv(10)


def answers():
    near, far = socket.socketpair()

    def answer():
        while True:
            time.sleep(0.1)
            far.send(b"yes")
    threading.Thread(target=answer, daemon=True).start()
    while True:
        wait_for_answer(near)


def fresh(pages):
    memory = mmap.mmap(-1, pages * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    return memory


def touch_pages(memory, pages):
    for at in range(0, pages * PAGE, PAGE):
        memory[at] = 1


def hop(switches):
    sys.stdin.readline()  # who measures has seen this thread by now
    for _ in range(HOPS):
        time.sleep(0.0001)
    with open("/proc/thread-self/status") as file:
        switches.extend(int(line.split()[1]) for line in file if "ctxt_switches" in line)


def touch():
    pages = PAGES // 10
    memory = fresh(pages)
    for _ in range(10):
        touch_pages(memory, pages)
        memory.madvise(mmap.MADV_DONTNEED)
    switches = []
    thread = threading.Thread(target=hop, args=(switches,), name="hopper")
    thread.start()
    print("HOPPER", flush=True)
    thread.join()
    print("TOUCHED %d SWITCHED %d" % (PAGES, sum(switches)), flush=True)


def pass_on(fd, out):
    while True:
        os.write(out, os.read(fd, 1))


def hops():
    to, fro = os.pipe(), os.pipe()
    os.write(to[1], b"x")
    threading.Thread(target=pass_on, args=(to[0], fro[1]), daemon=True).start()
    pass_on(fro[0], to[1])


def derive():
    while True:
        hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 200000)


def pool():
    with open(sys.argv[2], "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    for i in range(8):
        threading.Thread(target=derive, name="pool-%d" % i, daemon=True).start()
    never = threading.Event()
    never.wait(10000)
    mapped.close()


def refill_once(memory, block):
    memory.madvise(mmap.MADV_DONTNEED)
    memory[:] = block


def refill():
    threading.Thread(target=threading.Event().wait, daemon=True).start()  # alone, a thread that is nearly always inside libc is entered seldom
    memory = fresh(4096)
    block = bytes(4096 * PAGE)
    while True:
        refill_once(memory, block)


def spin():
    while True:
        sum(range(1000))


def many():
    never = threading.Event()
    for _ in range(400):
        threading.Thread(target=never.wait, daemon=True).start()
    print("STARTED", flush=True)
    spin()


def request_fsync(file):
    os.write(file, b"x" * 4096)
    os.fsync(file)


def request_lookups(file):
    for port in range(80, 83):
        socket.getaddrinfo("localhost", port)


def request_reads(file):
    with open("/dev/zero", "rb", buffering=0) as zeros:
        for _ in range(3000):
            zeros.read(1)


def request_churn(file):
    for _ in range(200):
        bytearray(100000)


def requests():
    request = globals()["request_" + sys.argv[1]]
    with tempfile.TemporaryFile(dir="/var/tmp") as file:
        while True:
            request(file.fileno())
            sum(range(20000))


def loop():
    here, there = socket.socketpair()

    def feed():
        while True:
            time.sleep(0.05)
            there.send(b"x")

    async def handle():
        while True:
            here.recv(1)
            await asyncio.sleep(0.01)

    async def both():
        await asyncio.gather(handle(), handle())
    threading.Thread(target=feed, daemon=True).start()
    asyncio.run(both())


def main():
    if os.environ.get("WAITER"):  # where threads are borrowed only while they wait
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    print("READY %d" % os.getpid(), flush=True)
    if "now" not in sys.argv:
        sys.stdin.readline()
    {"batch": batch, "answers": answers, "spin": spin, "many": many, "pool": pool, "touch": touch, "hops": hops, "refill": refill, "loop": loop}.get(sys.argv[1], requests)()
    sys.stdin.readline()


main()
