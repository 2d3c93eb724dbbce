"""Tests of memory_guard with files like those of /proc."""

import asyncio
import tempfile
import unittest
from pathlib import Path

import paths  # noqa: F401
from memory_guard import PAGE_BYTES, measure_session, read_memory, wait_for_shortage

MB = 1024 * 1024


class MemoryGuard(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.proc = Path(folder.name)
        (self.proc / "self").mkdir()
        self.set_memory(800)

    def set_memory(self, available_mb):
        text = f"MemTotal: {1024 * 1024} kB\nMemFree: 1 kB\nMemAvailable: {available_mb * 1024} kB\n"
        (self.proc / "meminfo").write_text(text)

    def add_process(self, pid, session, resident_mb, name="a) b (c"):
        folder = self.proc / str(pid)
        folder.mkdir(exist_ok=True)
        (folder / "stat").write_text(f"{pid} ({name}) S 1 {session} {session} 0 0\n")
        (folder / "statm").write_text(f"999999 {resident_mb * MB // PAGE_BYTES} 0 0 0 0 0\n")

    def test_the_memory_of_a_session_is_that_of_all_its_processes(self):
        self.add_process(10, 10, 100)
        self.add_process(11, 10, 50)
        self.add_process(12, 12, 500)
        (self.proc / "13").mkdir()
        self.assertEqual(measure_session(10, self.proc), 150 * MB)
        self.assertEqual(read_memory(self.proc), (800 * MB, 1024 * MB))

    def test_only_a_large_session_is_to_blame_for_a_shortage(self):
        self.add_process(10, 10, 700)
        self.add_process(12, 12, 60)

        async def watch():
            large = asyncio.ensure_future(wait_for_shortage(10, self.proc))
            small = asyncio.ensure_future(wait_for_shortage(12, self.proc))
            await asyncio.sleep(0.3)
            self.assertFalse(large.done())
            self.set_memory(50)
            self.assertRegex(await asyncio.wait_for(large, 30), r"held 700 MB .* with 1024 MB")
            await asyncio.sleep(0.3)
            self.assertFalse(small.done())
            small.cancel()

        asyncio.run(watch())
