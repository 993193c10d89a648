"""The frame of every page: one HTML file with its style, its script and its numbers inside. It loads nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from importlib import resources
from string import Template
from typing import Any


def framed(title: str, content: str, scripts: Sequence[str] = (), data: Any = None, *, kind: str = "whole") -> str:
    """A whole page.

    Args:
        title: The title of the page, as plain text.
        content: The sections of the page, in HTML.
        scripts: The files of this room that make up the script, in their order.
        data: The numbers that the script shows.
        kind: "whole", or "brief" for a page inside a notebook.

    Returns:
        The text of the HTML file.
    """
    style, policy, inside = asset("style.css"), "", ""
    if scripts:
        script = "'use strict';\n(() => {\n" + "\n".join(asset(name) for name in scripts) + "})();\n"
        policy = f"; script-src '{_hash_of(script)}'"
        inside = f'<script type="application/json" id="data">{as_json(data)}</script>\n<script>{script}</script>\n'
    return Template(asset("frame.html")).substitute(
        title=escape(title),
        kind=kind,
        content=content,
        style=style,
        style_hash=_hash_of(style),
        policy=policy,
        scripts=inside,
    )


def as_json(data: Any) -> str:
    """JSON that can stand inside a script element, whatever names it holds: nothing in it can close the element."""
    text = json.dumps(data, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def asset(name: str) -> str:
    """The text of a file of this room."""
    return resources.files("setpoint.report").joinpath(name).read_text(encoding="utf-8")


def _hash_of(text: str) -> str:
    """The hash by which the policy of the page allows this text, and no script inside a name, to run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
