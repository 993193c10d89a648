"""Names that load their module when they are first asked for (PEP 562), so that `import setpoint` costs nothing."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def lazy_names(
    package: str, names: Mapping[str, str], rooms: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose `names` live in the given modules and whose `rooms` are modules.

    A name is looked up once: after that it stands in the package like any other.
    """
    modules = {room: f"{package}.{room}" for room in rooms}

    def find(name: str) -> Any:
        if name in modules:
            return importlib.import_module(modules[name])
        if name not in names:
            near = difflib.get_close_matches(name, [*names, *modules], n=1)
            hint = f"; did you mean {near[0]!r}?" if near and not name.startswith("_") else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
        value = getattr(importlib.import_module(names[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *names, *modules})

    return find, listed
