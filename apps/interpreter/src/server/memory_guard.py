"""Ends a kernel before the sandbox runs out of memory.

Under gVisor the host's OOM killer may end the whole sandbox, with all its kernels and files in memory. A kernel that
ends instead costs its own variables only. Under runc /proc/meminfo shows the host, where no kernel holds the share
that this guard asks for: there the OOM killer ends single processes.
"""

import asyncio
import os
from pathlib import Path
from typing import Tuple

INTERVAL_SECONDS = 0.05
# Code can take gigabytes per second, so the guard checks more often while memory is short.
SHORT_INTERVAL_SECONDS = 0.01
SHORT_SHARE = 0.5
# gVisor itself needs some of the sandbox's memory, and code keeps running between two checks.
RESERVE_BYTES = 128 * 1024 * 1024
# Small sandboxes reserve less.
RESERVE_SHARE = 0.125
# Many small kernels may use up the memory together. None of them is to blame.
LARGE_SHARE = 0.25
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


async def wait_for_shortage(session: int, proc: Path = Path("/proc")) -> str:
    """Returns when little memory is left and the processes of the session hold much of it. The result explains this to the user."""
    interval = INTERVAL_SECONDS
    while True:
        await asyncio.sleep(interval)
        available, total = read_memory(proc)
        interval = SHORT_INTERVAL_SECONDS if available < total * SHORT_SHARE else INTERVAL_SECONDS
        if available >= min(RESERVE_BYTES, total * RESERVE_SHARE):
            continue
        held = measure_session(session, proc)
        if held > total * LARGE_SHARE:
            return f"It held {held >> 20} MB when the sandbox, with {total >> 20} MB, ran out of memory."


def read_memory(proc: Path) -> Tuple[int, int]:
    """Returns available and total memory in bytes."""
    fields = {}
    for line in (proc / "meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        fields[name] = value.split()
    return tuple(int(fields[name][0]) * 1024 for name in ("MemAvailable", "MemTotal"))


def measure_session(session: int, proc: Path) -> int:
    """Returns the resident memory of all processes of a session."""
    total = 0
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # The name of the program, in parentheses, may contain anything.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                total += int((folder / "statm").read_text().split()[1]) * PAGE_BYTES
        except (OSError, ValueError, IndexError):
            # The process has ended.
            continue
    return total
