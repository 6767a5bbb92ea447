"""One thread that never gives up the GIL, one that never has it, and a second interpreter that sleeps where there can be one.

READY PID, TRUTH {"hex": …, "spins": tid, "sleeps": tid, "other": name of the function that the other interpreter is in, or null}"""
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "programs"))
from still import wait_until_still

try:
    import _xxsubinterpreters as interpreters
except ImportError:
    try:
        import _interpreters as interpreters
    except ImportError:
        interpreters = None


def sleeper():
    time.sleep(60)


def spinner():
    end = time.monotonic() + 60
    while time.monotonic() < end:
        pass


def elsewhere():
    interpreters.run_string(interpreters.create(), "import time\ndef far_away():\n    time.sleep(60)\nfar_away()\n")


other = None
if interpreters:
    threading.Thread(target=elsewhere, daemon=True).start()
    wait_until_still()
    other = "far_away"
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
sleeps = threading.Thread(target=sleeper, daemon=True)
sleeps.start()
while not sleeps.native_id:
    time.sleep(0.01)
print("READY %d\nTRUTH %s" % (os.getpid(), json.dumps({"hex": sys.hexversion, "spins": threading.get_native_id(), "sleeps": sleeps.native_id, "other": other})), flush=True)
spinner()
