"""Standard streams that flush soon after a write, but not at each."""

import io
import os
import sys
import threading
import time
from typing import List

FLUSH_SECONDS = 0.05


class SoonFlushed(io.TextIOWrapper):
    def __init__(self, fd: int, dirty: threading.Event):
        raw = open(fd, "wb", closefd=False)
        super().__init__(raw, encoding="utf-8", errors="backslashreplace", newline="\n")
        self._dirty = dirty

    def write(self, text: str) -> int:
        written = super().write(text)
        if not self._dirty.is_set():
            self._dirty.set()
        return written


def replace_streams() -> List[SoonFlushed]:
    """Replaces sys.stdout and sys.stderr. Their descriptors stay, so programs write to the same pipes."""
    dirty = threading.Event()
    streams = [SoonFlushed(1, dirty), SoonFlushed(2, dirty)]
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__ = streams
    # A copied process must not print again what its parent has in its buffer.
    os.register_at_fork(before=lambda: flush_all(streams))
    threading.Thread(target=flush_when_dirty, args=(streams, dirty), daemon=True).start()
    return streams


def flush_when_dirty(streams: List[SoonFlushed], dirty: threading.Event) -> None:
    while True:
        dirty.wait()
        time.sleep(FLUSH_SECONDS)
        dirty.clear()
        flush_all(streams)


def flush_all(streams: List[SoonFlushed]) -> None:
    for stream in streams:
        try:
            stream.flush()
        except (OSError, ValueError):
            # User code closed it.
            pass
