"""Base of all HTTP handlers: reads the request body and sends errors."""

import json
from typing import Any, Dict, Optional

from tornado.web import HTTPError, RequestHandler

from contexts import Contexts, InvalidFolder, UnknownContext
from languages import UnknownLanguage
from sandbox_variables import SandboxVariables


STATUSES = {UnknownContext: 404, UnknownLanguage: 400, InvalidFolder: 400}


class Handler(RequestHandler):
    """Answers errors as plain text, which clients show."""

    def initialize(self, contexts: Contexts, variables: SandboxVariables) -> None:
        self.contexts = contexts
        self.variables = variables

    def read_body(self) -> Dict[str, Any]:
        try:
            body = json.loads(self.request.body or b"{}")
        except ValueError:
            raise HTTPError(400, reason="The body is not valid JSON") from None
        if not isinstance(body, dict):
            raise HTTPError(400, reason="The body must be a JSON object")
        return body

    def write_error(self, status_code: int, **context: Any) -> None:
        failure = context.get("exc_info", (None, None))[1]
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        if type(failure) in STATUSES:
            # The published package shows the status line of an execution, not the body.
            self.set_status(STATUSES[type(failure)], to_reason(str(failure)))
            self.finish(str(failure))
        else:
            self.finish(self._reason)

    def log_exception(self, kind: Any, failure: Any, trace: Any) -> None:
        if kind not in STATUSES:
            super().log_exception(kind, failure, trace)


def to_reason(text: str) -> str:
    """Returns text that a status line can hold."""
    return "".join(character if " " <= character <= "~" else "?" for character in text)


def optional_text(body: Dict[str, Any], name: str) -> Optional[str]:
    value = body.get(name)
    if value is None or isinstance(value, str):
        return value
    raise HTTPError(400, reason=f"{name} must be a text")
