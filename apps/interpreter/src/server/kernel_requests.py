"""Requests as kernels read them: JSON lines, or for bash a program."""

import json
import re
from shlex import quote
from typing import Any, Dict

ASSIGNABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def encode_json(request: Dict[str, Any]) -> bytes:
    return json.dumps(request).encode("ascii") + b"\n"


def encode_shell(request: Dict[str, Any]) -> bytes:
    """Returns a program that sets the variables, atoll_code and atoll_undo, ended by a NUL byte."""
    lines = ["atoll_undo="]
    for name in filter(ASSIGNABLE.fullmatch, request["variables"]):
        lines.append(f"atoll_undo+=\"$(declare -p {name} 2>/dev/null || echo unset {name})\"$'\\n'")
    for name, value in {**request["sandbox_variables"], **request["variables"]}.items():
        if ASSIGNABLE.fullmatch(name):
            lines.append(f"export {name}={quote(value)}")
    lines.append(f"atoll_code={quote(request['code'])}")
    return "\n".join(lines).replace("\0", "").encode("utf-8", "replace") + b"\0"
