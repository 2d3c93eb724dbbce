"""Runs the bash kernel, which needs no packages."""

import asyncio
import os
import signal
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import patch

from paths import ROOT
from kernel import Kernel
from languages import UnknownLanguage, find_languages, select_language

BASH = find_languages(ROOT / "kernels")["bash"]


def request(code):
    return {"code": code, "variables": {}, "sandbox_variables": {}}


class Kernels(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.kernel = await Kernel.start(BASH, "/tmp")
        self.addAsyncCleanup(self.kernel.kill)

    async def run_code(self, code):
        events = []

        async def collect(event):
            events.append(event)

        await self.kernel.run(request(code), collect)
        return "".join(event.get("text", "") for event in events)

    async def test_code_whose_client_left_before_it_was_sent_is_interrupted(self):
        await self.run_code("kept=1")
        # All threads of the server are busy.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        release = threading.Event()
        blocker = asyncio.get_running_loop().run_in_executor(None, release.wait)
        execution = asyncio.ensure_future(self.run_code("sleep 600"))
        while not self.kernel.is_running:
            await asyncio.sleep(0.01)
        execution.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await execution
        interrupt = asyncio.ensure_future(self.kernel.interrupt())
        release.set()
        await blocker
        self.assertTrue(await interrupt)
        self.assertEqual(await self.run_code("echo $kept"), "1\n")

    async def test_a_kernel_that_does_not_read_its_request_is_killed(self):
        os.kill(self.kernel._process.pid, signal.SIGSTOP)
        execution = asyncio.ensure_future(self.run_code("#" * 1_000_000))
        while not self.kernel.is_running:
            await asyncio.sleep(0.01)
        execution.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await execution
        with patch("kernel.INTERRUPT_SECONDS", 0.01):
            self.assertFalse(await self.kernel.interrupt())


class Languages(unittest.TestCase):
    def test_a_language_without_a_kernel_is_refused_with_advice(self):
        for name, advice in (("Java", "default-jdk"), ("cobol", "Use one of: bash")):
            with self.assertRaisesRegex(UnknownLanguage, advice):
                select_language({"bash": BASH}, name)
