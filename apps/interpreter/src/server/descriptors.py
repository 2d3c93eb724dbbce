"""Waiting for pipes without a buffer of their own."""

import array
import asyncio
import fcntl
import termios
from typing import List


async def wait_readable(fds: List[int]) -> None:
    """Waits until one of the descriptors has data or is at its end."""
    loop = asyncio.get_running_loop()
    readable = loop.create_future()

    def settle() -> None:
        if not readable.done():
            readable.set_result(None)

    for fd in fds:
        loop.add_reader(fd, settle)
    try:
        await readable
    finally:
        for fd in fds:
            loop.remove_reader(fd)


def count_readable(fd: int) -> int:
    """Returns the number of bytes in a pipe."""
    size = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, size)
    return size[0]
