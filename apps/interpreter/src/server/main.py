"""Serves the code interpreter: HTTP on one port, one kernel process per context."""

import argparse
import asyncio
import logging
import signal
from pathlib import Path

from contexts import Contexts
from languages import find_languages
from routes import make_application
from sandbox_variables import SandboxVariables

KERNELS = Path(__file__).resolve().parent.parent / "kernels"


async def main() -> None:
    options = parse_arguments()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    contexts = Contexts(find_languages(KERNELS), options.cwd)
    await contexts.start_default([name for name in options.load.split(",") if name])
    application = make_application(contexts, SandboxVariables(options.envd))
    application.listen(options.port, options.address, max_buffer_size=64 * 1024 * 1024)
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await stopped.wait()
    await contexts.close()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=49999)
    parser.add_argument("--address", default="0.0.0.0")
    parser.add_argument("--cwd", default=str(Path.home()), help="working directory of new contexts")
    parser.add_argument("--envd", default="http://127.0.0.1:49983", help="where envd listens")
    parser.add_argument("--load", default="", help="Python modules to load ahead, with commas between")
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(main())
