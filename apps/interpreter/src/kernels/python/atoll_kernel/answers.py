"""Answers of the kernel: one JSON line each."""

import base64
import json
import math
import os
import threading
from typing import Any, Dict

# The server reads lines of up to twice this size.
LARGEST_RESULT_BYTES = 32 * 1024 * 1024


class Answers:
    def __init__(self, fd: int):
        self._fd = fd
        self._lock = threading.Lock()

    def send(self, message: Dict[str, Any]) -> None:
        data = json.dumps(message, allow_nan=False).encode("ascii") + b"\n"
        with self._lock:
            view = memoryview(data)
            while view:
                view = view[os.write(self._fd, view) :]

    def send_result(self, bundle: Dict[str, Any], is_main: bool) -> None:
        data = drop_too_large({name: to_json(content) for name, content in bundle.items()})
        self.send({"type": "result", "is_main": is_main, "data": data})

    def send_error(self, name: str, value: str, traceback: str) -> None:
        self.send({"type": "error", "name": name, "value": value, "traceback": traceback})


def drop_too_large(bundle: Dict[str, Any]) -> Dict[str, Any]:
    """Drops formats, largest first, until the rest fits into one message."""
    sizes = {name: len(json.dumps(content)) for name, content in bundle.items()}
    kept = dict(bundle)
    while kept and sum(sizes[name] for name in kept) > LARGEST_RESULT_BYTES:
        largest = max(kept, key=lambda name: sizes[name])
        del kept[largest]
        print(f"The result is too large as {largest} ({sizes[largest]} bytes): left out.")
    return kept


def to_json(content: Any) -> Any:
    """Converts content to what JSON can hold: bytes as base64, NaN and infinity as null."""
    if content is None or isinstance(content, (str, bool, int)):
        return content
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, bytes):
        return base64.b64encode(content).decode("ascii")
    if isinstance(content, dict):
        return {str(key): to_json(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [to_json(value) for value in content]
    return str(content)
