"""Kernel process that runs code, and the pipes to it.

A kernel reads requests and writes answers as JSON lines, on descriptors that its last two arguments name. Its standard
output and error are pipes, which are read only as fast as the client reads: a kernel that prints without end blocks and
costs no memory.
"""

import asyncio
import logging
import os
import signal
from typing import Any, Awaitable, Callable, Dict, List, Optional

from descriptors import count_readable, wait_readable
from events import error, output, result
from kernel_output import ControlLines, DecodedStream
from languages import Language
from memory_guard import wait_for_shortage

log = logging.getLogger("kernel")

Emit = Callable[[Dict[str, Any]], Awaitable[None]]

READY_SECONDS = 60
# Ten seconds: formatting the traceback of an interrupt takes seconds on a busy machine.
INTERRUPTS = 20
INTERRUPT_SECONDS = 0.5


class KernelDied(Exception):
    """The kernel process ended while it started or ran code."""


class Kernel:
    def __init__(self, process: asyncio.subprocess.Process, language: Language, fds: Dict[str, int]):
        self._process = process
        self._language = language
        self._requests = fds["requests"]
        self._control = ControlLines(fds["control"])
        self._streams = [
            DecodedStream("stdout", fds["stdout"]),
            DecodedStream("stderr", fds["stderr"]),
        ]
        self._is_closed = False
        self.is_running = False
        self.execution_count = 0
        self._writing: Optional["asyncio.Future[None]"] = None
        self._why_ended = ""
        # Identity of the sandbox whose variables the kernel has.
        self.variables_of: Any = None

    @staticmethod
    async def start(language: Language, cwd: str) -> "Kernel":
        inner, outer = open_pipes()
        try:
            process = await asyncio.create_subprocess_exec(
                *language.command,
                str(inner["requests"]),
                str(inner["control"]),
                cwd=cwd,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=inner["stdout"],
                stderr=inner["stderr"],
                pass_fds=[inner["requests"], inner["control"]],
                start_new_session=True,
            )
        except BaseException:
            close_all(outer)
            raise
        finally:
            close_all(inner)
        kernel = Kernel(process, language, outer)
        try:
            await asyncio.wait_for(kernel._wait_until_ready(), READY_SECONDS)
        except BaseException:
            await kernel.kill()
            raise
        kernel._rest()
        return kernel

    async def run(self, request: Dict[str, Any], emit: Emit) -> None:
        """Runs code and emits its output. Returns when the code has ended."""
        self.execution_count += 1
        guard = asyncio.ensure_future(self._guard_memory())
        try:
            await self._request({"op": "execute", **request}, emit)
        finally:
            guard.cancel()

    async def _guard_memory(self) -> None:
        self._why_ended = await wait_for_shortage(self._process.pid)
        self._signal(signal.SIGKILL)

    async def warm(self, modules: List[str]) -> None:
        """Loads Python modules."""
        await self._request({"op": "warm", "modules": modules}, discard)

    async def _request(self, request: Dict[str, Any], emit: Emit) -> None:
        self._stop_discarding()
        self.is_running = True
        try:
            await self._send(self._language.encode(request))
            await self._pump(emit)
        except BrokenPipeError:
            raise await self._death() from None
        self._rest()

    async def interrupt(self) -> bool:
        """Interrupts the code under way. Returns False when the kernel did not stop and had to be killed."""
        ended = asyncio.ensure_future(self._pump(discard))
        try:
            for _ in range(INTERRUPTS if await self._is_written() else 0):
                # Repeated: the kernel may not have begun with the code, or the code may catch it.
                if self._language.takes_interrupt_messages:
                    await self._send(self._language.encode({"op": "interrupt"}))
                self._signal(signal.SIGINT)
                if (await asyncio.wait([ended], timeout=INTERRUPT_SECONDS))[0]:
                    await ended
                    self._rest()
                    return True
            log.warning("The %s kernel did not stop when it was interrupted", self._language.name)
        except (KernelDied, BrokenPipeError) as death:
            log.warning("Interrupted: %s", death)
        ended.cancel()
        await self.kill()
        return False

    async def _is_written(self) -> bool:
        """Returns False when the kernel does not read the rest of its request."""
        if self._writing is None:
            return True
        done, _ = await asyncio.wait([self._writing], timeout=INTERRUPTS * INTERRUPT_SECONDS)
        return all(write.result() is None for write in done) and bool(done)

    async def kill(self) -> None:
        self._signal(signal.SIGKILL)
        await self._process.wait()
        self._close()

    @property
    def is_alive(self) -> bool:
        return self._process.returncode is None and not self._is_closed

    async def _pump(self, emit: Emit) -> None:
        sources = [self._control.fd, *(stream.fd for stream in self._streams)]
        ended = asyncio.ensure_future(self._process.wait())
        try:
            while True:
                readable = asyncio.ensure_future(wait_readable(sources))
                try:
                    await asyncio.wait([readable, ended], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    readable.cancel()
                for stream in self._streams:
                    await emit_text(stream.name, stream.read(), emit)
                for message in self._control.read():
                    if message["type"] == "done":
                        return await self._emit_rest(emit)
                    await emit(to_event(message))
                if ended.done() or self._control.is_closed:
                    await self._emit_rest(emit)
                    raise await self._death()
        finally:
            ended.cancel()

    async def _emit_rest(self, emit: Emit) -> None:
        """Emits what is in the pipes now. Programs in the background may add to them for ever."""
        for stream in self._streams:
            remaining = count_readable(stream.fd)
            while remaining > 0:
                text = stream.read(remaining)
                if not text:
                    break
                remaining -= stream.last_read
                await emit_text(stream.name, text, emit)
            await emit_text(stream.name, stream.finish(), emit)

    async def _wait_until_ready(self) -> None:
        while True:
            await wait_readable([self._control.fd])
            if any(message["type"] == "ready" for message in self._control.read()):
                return
            if self._control.is_closed:
                raise await self._death()

    async def _send(self, request: bytes) -> None:
        loop = asyncio.get_running_loop()
        # In a thread: a kernel that does not read must not block the server. Shielded: a client may leave before the
        # thread starts, and the kernel would never answer a request that it did not get.
        self._writing = loop.run_in_executor(None, write_all, self._requests, request)
        await asyncio.shield(self._writing)

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            pass

    async def _death(self) -> KernelDied:
        self._signal(signal.SIGKILL)
        code = await self._process.wait()
        self._close()
        how = f"by signal {-code}" if code < 0 else f"with status {code}"
        parts = [f"The {self._language.name} kernel ended {how}.", self._why_ended, "Its variables are lost."]
        return KernelDied(" ".join(filter(None, parts)))

    def _rest(self) -> None:
        """Drops what programs in the background print between executions, so that they do not block."""
        self.is_running = False
        for stream in self._streams:
            asyncio.get_running_loop().add_reader(stream.fd, stream.discard)

    def _stop_discarding(self) -> None:
        for stream in self._streams:
            asyncio.get_running_loop().remove_reader(stream.fd)
            stream.discard()

    def _close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self.is_running = False
        self._stop_discarding()
        close_all({"requests": self._requests, "control": self._control.fd})
        close_all({stream.name: stream.fd for stream in self._streams})


def to_event(message: Dict[str, Any]) -> Dict[str, Any]:
    if message["type"] == "result":
        return result(message["data"], message["is_main"])
    return error(message["name"], message["value"], message["traceback"])


async def emit_text(name: str, text: str, emit: Emit) -> None:
    if text:
        await emit(output(name, text))


async def discard(_event: Dict[str, Any]) -> None:
    return None


def open_pipes():
    """Returns the kernel's ends and the server's ends, by name."""
    inner, outer = {}, {}
    for name in ("stdout", "stderr", "control"):
        outer[name], inner[name] = os.pipe()
        os.set_blocking(outer[name], False)
    inner["requests"], outer["requests"] = os.pipe()
    return inner, outer


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def close_all(fds: Dict[str, int]) -> None:
    for fd in fds.values():
        os.close(fd)
