"""Inside gdb: one JSON line per thread, {"tid": 1, "frames": [[pc, sp], …]}, innermost first, without inlined functions and tail calls (both guessed from debug information)."""
import json

import gdb

LIMIT = 600
for thread in gdb.selected_inferior().threads():
    thread.switch()
    frames = []
    frame = gdb.newest_frame()
    try:
        while frame is not None and len(frames) < LIMIT:
            if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
                frames.append([frame.pc(), int(frame.read_register("rsp")) % 2 ** 64])
            frame = frame.older()
    except gdb.error as error:
        frames.append([0, str(error)])
    print("STACK " + json.dumps({"tid": thread.ptid[1], "frames": frames}))
