"""Lines of the answer to an execution."""

import json
import time
from typing import Any, Dict

FIELDS = {
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "text/latex": "latex",
    "application/json": "json",
    "application/javascript": "javascript",
    "application/vnd.atoll.data+json": "data",
    "application/vnd.atoll.chart+json": "chart",
}

KEEPALIVE = {"type": "keepalive"}
END = {"type": "end_of_execution"}


def encode(event: Dict[str, Any]) -> bytes:
    """Encodes one line. ASCII only: clients decode each chunk by itself and would break split characters."""
    return json.dumps(event, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"


def execution_count(count: int) -> Dict[str, Any]:
    return {"type": "number_of_executions", "execution_count": count}


def output(stream: str, text: str) -> Dict[str, Any]:
    return {"type": stream, "text": text, "timestamp": time.time_ns()}


def error(name: str, value: str, traceback: str = "") -> Dict[str, Any]:
    return {"type": "error", "name": name, "value": value, "traceback": traceback}


def result(bundle: Dict[str, Any], is_main: bool) -> Dict[str, Any]:
    """Turns a bundle of media types into the fields of a result."""
    event: Dict[str, Any] = {"type": "result", "is_main_result": is_main}
    extra = {}
    for media_type, content in bundle.items():
        field = FIELDS.get(media_type)
        if field is None:
            extra[media_type] = content
        else:
            event[field] = content
    if isinstance(event.get("text"), str):
        event["text"] = strip_quotes(event["text"])
    if extra:
        event["extra"] = extra
    return event


def strip_quotes(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if is_quoted else text
