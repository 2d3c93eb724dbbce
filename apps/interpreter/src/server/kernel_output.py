"""Readers of what a kernel writes, with bounded memory."""

import codecs
import json
import os
from typing import Any, Dict, List

CHUNK_BYTES = 64 * 1024
# Kernels drop larger results themselves; this guards against other bytes in the pipe.
LONGEST_LINE_BYTES = 64 * 1024 * 1024


class DecodedStream:
    """Standard output or error, decoded in chunks that may split characters."""

    def __init__(self, name: str, fd: int):
        self.name = name
        self.fd = fd
        # Bytes of the last read.
        self.last_read = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def read(self, limit: int = CHUNK_BYTES) -> str:
        """Returns the next chunk, or an empty text when there is none."""
        data = read_available(self.fd, min(limit, CHUNK_BYTES))
        self.last_read = len(data)
        return self._decoder.decode(data)

    def finish(self) -> str:
        """Returns what is left of a character that was never completed."""
        return self._decoder.decode(b"", final=True)

    def discard(self) -> None:
        read_available(self.fd, CHUNK_BYTES)
        self._decoder.reset()


class ControlLines:
    """JSON lines that a kernel writes beside its output."""

    def __init__(self, fd: int):
        self.fd = fd
        self.is_closed = False
        self._parts: List[bytes] = []
        self._size = 0

    def read(self) -> List[Dict[str, Any]]:
        """Returns the messages that one read completes."""
        data = read_available(self.fd, CHUNK_BYTES, at_end=self._close)
        self._size += len(data)
        if self._size > LONGEST_LINE_BYTES:
            self._close()
            return []
        if b"\n" not in data:
            self._parts.append(data)
            return []
        *lines, rest = b"".join([*self._parts, data]).split(b"\n")
        self._parts = [rest]
        self._size = len(rest)
        return [message for message in map(parse, lines) if message is not None]

    def _close(self) -> None:
        self.is_closed = True


def read_available(fd: int, limit: int, at_end=lambda: None) -> bytes:
    try:
        data = os.read(fd, limit)
    except BlockingIOError:
        return b""
    if not data:
        at_end()
    return data


def parse(line: bytes) -> Any:
    """Returns a message, or None for a line that user code wrote into the pipe."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) and "type" in message else None
