"""Kernel loop: reads requests, runs cells in one event loop, writes answers."""

import asyncio
import importlib
import json
import os
import signal
import sys
from contextlib import suppress
from typing import Any, Dict, List

from .answers import Answers
from .shell import make_shell
from .streams import replace_streams
from .variables import temporary_variables


def serve(requests_fd: int, answers_fd: int) -> None:
    for fd in (requests_fd, answers_fd):
        os.set_inheritable(fd, False)
    sys.argv = [""]
    # Figures become results. Programs that user code starts inherit this, as in other notebooks.
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    answers = Answers(answers_fd)
    Kernel(answers, replace_streams()).run(requests_fd)


class Kernel:
    def __init__(self, answers: Answers, streams):
        self._answers = answers
        self._streams = streams
        self._shell = make_shell(answers)
        self._is_running = False
        signal.signal(signal.SIGINT, self._on_interrupt)

    def run(self, requests_fd: int) -> None:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        self._answers.send({"type": "ready"})
        with open(requests_fd, "rb") as requests:
            while True:
                # Reads in a thread, so that tasks of earlier cells keep running.
                line = loop.run_until_complete(loop.run_in_executor(None, requests.readline))
                if not line:
                    return
                request = json.loads(line)
                if request["op"] == "warm":
                    self._warm(request["modules"])
                else:
                    self._execute(loop, request)

    def _execute(self, loop: asyncio.AbstractEventLoop, request: Dict[str, Any]) -> None:
        os.environ.update(request["sandbox_variables"])
        with temporary_variables(request["variables"]):
            self._complete(loop, loop.create_task(self._shell.run_request(request["code"])))
        for stream in self._streams:
            stream.flush()
        self._answers.send({"type": "done"})

    def _complete(self, loop: asyncio.AbstractEventLoop, task: "asyncio.Task[None]") -> None:
        is_complete = False
        while not is_complete:
            # An interrupt may also arrive between any two of these lines. It must not end the kernel.
            with suppress(KeyboardInterrupt):
                self._is_running = True
                self._run_until_done(loop, task)
                self._is_running = False
                is_complete = True

    def _run_until_done(self, loop: asyncio.AbstractEventLoop, task: "asyncio.Task[None]") -> None:
        while not task.done():
            try:
                loop.run_until_complete(task)
            except (KeyboardInterrupt, asyncio.CancelledError):
                # Interrupted while the cell awaits something.
                task.cancel()

    def _warm(self, modules: List[str]) -> None:
        """Loads what code will probably need, so that a checkpoint of this process has it."""
        for name in modules:
            with suppress(ImportError):
                importlib.import_module(name)
        try:
            raise RuntimeError
        except RuntimeError:
            self._shell.InteractiveTB.structured_traceback(*sys.exc_info())
        self._answers.send({"type": "done"})

    def _on_interrupt(self, _number: int, _frame: Any) -> None:
        if self._is_running:
            raise KeyboardInterrupt
