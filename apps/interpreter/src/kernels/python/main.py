"""Starts the Python kernel: `main.py REQUESTS_FD ANSWERS_FD`."""

import os
import sys

sys.path[0] = os.path.dirname(os.path.abspath(__file__))
from atoll_kernel.kernel import serve  # noqa: E402

# User code imports from its working directory, never from here.
sys.path[0] = ""
serve(int(sys.argv[1]), int(sys.argv[2]))
