"""Runs code after a module is imported for the first time."""

import importlib.util
import sys
from importlib.abc import Loader, MetaPathFinder
from typing import Any, Callable


def after_import(name: str, change: Callable[[Any], None]) -> None:
    if name in sys.modules:
        change(sys.modules[name])
    else:
        sys.meta_path.insert(0, Finder(name, change))


class Finder(MetaPathFinder):
    def __init__(self, name: str, change: Callable[[Any], None]):
        self._name = name
        self._change = change

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = ChangingLoader(spec.loader, self._change)
        return spec


class ChangingLoader(Loader):
    def __init__(self, loader: Any, change: Callable[[Any], None]):
        self._loader = loader
        self._change = change

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        self._loader.exec_module(module)
        self._change(module)
