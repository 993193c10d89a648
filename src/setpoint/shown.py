"""How objects show themselves in a notebook. The room that draws them is loaded when one is shown."""

from __future__ import annotations

import importlib
from typing import Any


def html_of(thing: Any) -> str:
    """The HTML of an operating point or a run, self-contained, for `_repr_html_`."""
    return str(importlib.import_module("setpoint.report.notebook").html_of(thing))
