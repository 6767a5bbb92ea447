"""Folders of recordings whose process ended without its exit handlers (os._exit(), a signal, a child of multiprocessing): the next process that records removes them."""
from __future__ import annotations

import contextlib
import os
import shutil

PREFIX = "inferscope-"
OWNER = "owner"  # a file in each: PLACE PID

_cleared_by = 0


def _place() -> str:
    """Where a pid means what it means here: the kernel since its boot, and the pid namespace. Others may have the same folder for temporary files."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip() + " " + os.readlink("/proc/self/ns/pid")


def _is_gone(pid: int) -> bool:
    """A pid that another process has by now is not: its folder stays for so long. /proc may hide processes (hidepid), and is not asked."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def _is_abandoned(folder: os.DirEntry[str], place: str) -> bool:
    if not folder.name.startswith(PREFIX) or not folder.is_dir(follow_symlinks=False) or folder.stat(follow_symlinks=False).st_uid != os.geteuid():
        return False
    with open(os.path.join(folder.path, OWNER), encoding="ascii") as file:
        where, _, pid = file.read().rpartition(" ")
    return where == place and pid.endswith("\n") and int(pid) > 0 and _is_gone(int(pid))


def sign(folder: str) -> None:
    """Says whose FOLDER is. Without, where it cannot be said, nobody removes it."""
    with contextlib.suppress(Exception), open(os.path.join(folder, OWNER), "w", encoding="ascii") as file:
        file.write("%s %d\n" % (_place(), os.getpid()))


def clear(where: str) -> None:
    """Removes what is abandoned in the folder WHERE, once per process. What cannot be judged or removed stays, also where an audit hook of the program says so."""
    global _cleared_by
    if _cleared_by == os.getpid():
        return
    _cleared_by = os.getpid()
    with contextlib.suppress(Exception), os.scandir(where) as folders:
        place = _place()
        for folder in folders:
            with contextlib.suppress(Exception):
                if _is_abandoned(folder, place):
                    shutil.rmtree(folder.path, ignore_errors=True)
