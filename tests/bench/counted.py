"""counted.py WAY CALLS: that many calls of an empty function, hooked that way. What one costs is the difference between two numbers of calls (tests/bench/instructions)."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "live", "collector"))
import session

BACKENDS = {"monitoring": session.MONITORING, "evaluator": session.EVALUATOR, "setprofile": session.SETPROFILE, "settrace": session.SETTRACE}


def g():
    pass


def calls(n):
    for _ in range(n):
        g()


way, number = sys.argv[1], int(sys.argv[2])
calls(1000)  # specialised by then
if way in BACKENDS:
    armed = session.Session(subbufs=256, clock=1, ticks_per_second=session.ticks_per_second(), backend=BACKENDS[way], c_calls=2).arm()
    calls(number)
    armed.disarm()
elif way == "cProfile":
    import cProfile
    profile = cProfile.Profile()
    profile.enable()
    calls(number)
    profile.disable()
else:
    calls(number)
