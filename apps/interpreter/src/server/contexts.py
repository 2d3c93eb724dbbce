"""Contexts: each has a kernel of its own and runs one piece of code at a time."""

import asyncio
import os
import uuid
from typing import Any, Dict, List, Optional

from events import END, error, execution_count
from kernel import Emit, Kernel, KernelDied
from languages import Language, select_language


class UnknownContext(Exception):
    """There is no context with this ID."""


class InvalidFolder(Exception):
    """The working directory of a context cannot be used."""


class Context:
    def __init__(self, language: Language, cwd: str):
        self.id = str(uuid.uuid4())
        self.language = language
        self.cwd = cwd
        self._kernel: Optional[Kernel] = None
        self._lock = asyncio.Lock()
        # Increases with each restart; an execution that sees a change was ended on purpose.
        self._restarts = 0

    def describe(self) -> Dict[str, str]:
        return {"id": self.id, "language": self.language.name, "cwd": self.cwd}

    async def start(self) -> Kernel:
        if self._kernel is None or not self._kernel.is_alive:
            self._kernel = await Kernel.start(self.language, self.cwd)
        return self._kernel

    async def execute(self, request: Dict[str, Any], emit: Emit, variables_of: Any) -> None:
        """Runs code when earlier executions have ended. Cancelling it interrupts the code."""
        async with self._lock:
            restarts = self._restarts
            try:
                kernel = await self.start()
                await emit(execution_count(kernel.execution_count + 1))
                # The kernel keeps the sandbox's variables; code may have changed them since.
                if kernel.variables_of == variables_of:
                    request = {**request, "sandbox_variables": {}}
                kernel.variables_of = variables_of
                await kernel.run(request, emit)
            except KernelDied as death:
                if restarts == self._restarts:
                    await emit(error("KernelDied", str(death)))
                else:
                    await emit(error("ContextRestarted", "The context was restarted or deleted."))
            except BaseException:
                # The client has left, or the server stops.
                if self._kernel is not None and self._kernel.is_running:
                    await self._kernel.interrupt()
                raise
            await emit(END)

    async def restart(self) -> None:
        await self.close()
        async with self._lock:
            await self.start()

    async def close(self) -> None:
        self._restarts += 1
        if self._kernel is not None:
            await self._kernel.kill()


class Contexts:
    def __init__(self, languages: Dict[str, Language], cwd: str):
        self._languages = languages
        self._cwd = cwd
        self._contexts: Dict[str, Context] = {}
        self._defaults: Dict[str, Context] = {}

    def list(self) -> List[Dict[str, str]]:
        return [context.describe() for context in self._contexts.values()]

    def find(self, context_id: str) -> Context:
        context = self._contexts.get(context_id)
        if context is None:
            raise UnknownContext(f"Context {context_id[:80]} not found")
        return context

    def find_default(self, language: Optional[str]) -> Context:
        """Returns the context of executions that name none. Its kernel starts with the first of them."""
        selected = select_language(self._languages, language or "python")
        if selected.name not in self._defaults:
            context = Context(selected, self._cwd)
            self._contexts[context.id] = self._defaults[selected.name] = context
        return self._defaults[selected.name]

    async def start_default(self, modules: List[str]) -> None:
        """Starts the default Python kernel and loads modules into it."""
        kernel = await self.find_default("python").start()
        await kernel.warm(modules)

    async def create(self, language: Optional[str], cwd: Optional[str]) -> Context:
        selected = select_language(self._languages, language or "python")
        folder = os.path.join(self._cwd, cwd or "")
        if not os.path.isdir(folder):
            raise InvalidFolder(f"cwd: {folder[:200]} is not a folder. Create it first.")
        context = Context(selected, os.path.normpath(folder))
        await context.start()
        self._contexts[context.id] = context
        return context

    async def delete(self, context_id: str) -> None:
        context = self.find(context_id)
        del self._contexts[context_id]
        self._defaults = {name: kept for name, kept in self._defaults.items() if kept is not context}
        await context.close()

    async def close(self) -> None:
        for context_id in list(self._contexts):
            await self.delete(context_id)
