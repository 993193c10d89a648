"""Public names that load their file when they are first asked for (PEP 562), so that `import setpoint` is quick."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Callable
from typing import Any


def lazy_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package, from the imports of the stub `__init__.pyi` beside its file.

    Each import is one line, `from MODULE import NAME as NAME`: reading them then needs no `ast`, slow to import.
    A name is looked up once: after that it stands in the package like any other.
    """
    with open(f"{file.rpartition('.')[0]}.pyi", encoding="utf-8") as stub:
        lines = [line.split() for line in stub if line.startswith("from ")]
    homes = {name: module for _, module, _, name, *_ in lines}

    def find(name: str) -> Any:
        if name not in homes:
            near = difflib.get_close_matches(name, homes, n=1)
            hint = f"; did you mean {near[0]!r}?" if near and not name.startswith("_") else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
        if homes[name] == package:
            return importlib.import_module(f"{package}.{name}")
        value = getattr(importlib.import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return find, lambda: sorted(homes)
