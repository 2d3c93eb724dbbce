"""Handlers of `/health` and `/contexts`."""

import json

from handler import Handler, optional_text


class HealthHandler(Handler):
    def get(self) -> None:
        self.write("OK")


class ContextsHandler(Handler):
    def get(self) -> None:
        self.set_header("Content-Type", "application/json")
        self.write(json.dumps(self.contexts.list()))

    async def post(self) -> None:
        body = self.read_body()
        context = await self.contexts.create(optional_text(body, "language"), optional_text(body, "cwd"))
        self.write(context.describe())


class ContextHandler(Handler):
    async def delete(self, context_id: str) -> None:
        await self.contexts.delete(context_id)
        self.set_status(204)


class RestartHandler(Handler):
    async def post(self, context_id: str) -> None:
        await self.contexts.find(context_id).restart()
        self.set_status(204)
