"""Answers `POST /execute` with one JSON line per event."""

import asyncio
from typing import Any, Dict, Optional

from tornado.iostream import StreamClosedError
from tornado.web import HTTPError

from contexts import Context
from events import KEEPALIVE, encode
from handler import Handler, optional_text

KEEPALIVE_SECONDS = 5


class ExecuteHandler(Handler):
    _execution: Optional["asyncio.Task[None]"] = None
    _is_sending = False

    async def post(self) -> None:
        body = self.read_body()
        context = self.select_context(body)
        request = {"code": required_text(body, "code"), "variables": variables_of(body)}
        self.set_header("Content-Type", "application/x-ndjson")
        self.set_header("Cache-Control", "no-store")
        # Headers now: the code may wait for others, and clients limit the wait for headers.
        await self.flush()
        self._execution = asyncio.ensure_future(self.execute(context, request))
        keepalive = asyncio.ensure_future(self.keep_alive())
        try:
            await self._execution
        except (asyncio.CancelledError, StreamClosedError):
            pass
        finally:
            keepalive.cancel()

    async def execute(self, context: Context, request: Dict[str, Any]) -> None:
        headers = self.request.headers
        identity = (headers.get("E2b-Sandbox-Id"), headers.get("X-Access-Token"))
        variables = await self.variables.read(identity)
        await context.execute({**request, "sandbox_variables": variables}, self.send, identity)

    def on_connection_close(self) -> None:
        if self._execution is not None:
            self._execution.cancel()

    def select_context(self, body: Dict[str, Any]) -> Context:
        context_id, language = optional_text(body, "context_id"), optional_text(body, "language")
        if context_id and language:
            raise HTTPError(400, reason="Give either context_id or language, not both")
        return self.contexts.find(context_id) if context_id else self.contexts.find_default(language)

    async def send(self, event: Dict[str, Any]) -> None:
        self._is_sending = True
        self.write(encode(event))
        await self.flush()
        self._is_sending = False

    async def keep_alive(self) -> None:
        while True:
            await asyncio.sleep(KEEPALIVE_SECONDS)
            if not self._is_sending:
                await self.send(KEEPALIVE)


def required_text(body: Dict[str, Any], name: str) -> str:
    value = optional_text(body, name)
    if value is None:
        raise HTTPError(400, reason=f"{name} is missing")
    return value


def variables_of(body: Dict[str, Any]) -> Dict[str, str]:
    variables = body.get("env_vars") or {}
    if not isinstance(variables, dict) or not all(isinstance(v, str) for v in variables.values()):
        raise HTTPError(400, reason="env_vars must be an object of texts")
    return variables
