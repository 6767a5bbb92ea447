"""More functions than any table of ours is made for: python manyfold.py FUNCTIONS. Each gives one more than it got, so that a call that
goes wrong shows. Prints READY <pid>, at the end of stdin OK and how often all of them were called."""
import os
import sys
import threading

count, functions = int(sys.argv[1]), []
for first in range(0, count, 1000):
    made = {}
    exec(compile("\n".join("def function_%06d(x):\n    return x + 1" % i for i in range(first, first + 1000)), "/manyfold/part%d.py" % first, "exec"), made)
    functions += [made["function_%06d" % i] for i in range(first, first + 1000)]

ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
print("READY", os.getpid(), flush=True)
rounds = 0
while not ended.is_set():
    value = 0
    for function in functions:
        value = function(value)
    if value != count:
        sys.exit("%d calls gave %d" % (count, value))
    rounds += 1
print("OK %d" % rounds, flush=True)
