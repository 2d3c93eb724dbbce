"""Environment variables of one execution."""

import os
from contextlib import contextmanager
from typing import Dict, Iterator


@contextmanager
def temporary_variables(variables: Dict[str, str]) -> Iterator[None]:
    """Sets variables and puts back the earlier values at the end."""
    earlier = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in earlier.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
