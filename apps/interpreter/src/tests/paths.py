"""Makes the server's modules and the Python kernel importable."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "server"), str(ROOT / "kernels" / "python")]
