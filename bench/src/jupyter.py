"""Bare Jupyter kernel as a baseline: `jupyter.py serve FILE` runs one, `jupyter.py time FILE COUNT` times executions."""

import json
import signal
import sys
import time

from jupyter_client import BlockingKernelClient, KernelManager


def serve(connection_file):
    # libzmq over TCP breaks when a gVisor sandbox is resumed.
    manager = KernelManager(transport="ipc", connection_file=connection_file)
    manager.start_kernel()
    manager.blocking_client().wait_for_ready(timeout=300)
    print("ready", flush=True)
    signal.pause()


def time_executions(connection_file, count):
    client = BlockingKernelClient(connection_file=connection_file)
    client.load_connection_file()
    client.start_channels()
    client.wait_for_ready(timeout=300)
    print(json.dumps([time_execution(client) for _ in range(count)]))
    client.stop_channels()


def time_execution(client):
    results = []

    def collect(message):
        if message["msg_type"] == "execute_result":
            results.append(message["content"]["data"]["text/plain"])

    began = time.perf_counter()
    client.execute_interactive("1 + 1", output_hook=collect, timeout=300)
    elapsed_ms = (time.perf_counter() - began) * 1000
    assert results == ["2"], results
    return elapsed_ms


if sys.argv[1] == "serve":
    serve(sys.argv[2])
else:
    time_executions(sys.argv[2], int(sys.argv[3]))
