"""The ask of a command: its text, or a file with the ask of each of several labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from setpoint.errors import BadAsk
from setpoint.problem.labels import LabelProblem
from setpoint.problem.language import read_problem
from setpoint.problem.problem import Problem

ENDINGS = (".json", ".yaml", ".yml")
_FORM = "write one line 'label: ask' per label, or a line 'ask: ...' and a line 'labels: [a, b]'"


def read_asks(text: str) -> Problem:
    """The problem of an ask, or of a file with one ask per label.

    A file is JSON, or lines of `label: ask` as in YAML; a line `ask: ...` with a line `labels: [a, b]` asks the same
    for each label.

    Raises:
        BadAsk: If the file cannot be read, or an ask in it.
    """
    if not text.strip().lower().endswith(ENDINGS):
        return read_problem(text)
    path = Path(text.strip())
    try:
        content = path.read_text(encoding="utf-8")
        found = json.loads(content) if path.suffix.lower() == ".json" else _lines(path, content)
    except (OSError, ValueError) as cause:
        if isinstance(cause, BadAsk):
            raise
        raise BadAsk(f"{path} cannot be read as asks of labels ({cause}); {_FORM}") from cause
    if isinstance(found, dict) and found.keys() == {"ask", "labels"} and isinstance(found["labels"], list):
        return LabelProblem.same(read_problem(found["ask"]), list(map(str, found["labels"])))
    if isinstance(found, dict) and found.keys() == {"labels"}:
        found = found["labels"]
    if not isinstance(found, dict) or not all(isinstance(own, str) for own in found.values()):
        raise BadAsk(f"{path} holds no ask for each label; {_FORM}")
    return read_problem(found)


def _lines(path: Path, content: str) -> dict[str, Any]:
    """The entries of a file of lines `name: text`, of which a line `labels:` may be the head."""
    found: dict[str, Any] = {}
    for number, line in enumerate(content.splitlines(), 1):
        name, colon, own = (part.strip() for part in line.partition(":"))
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if name == "labels" and not own:
            continue
        name, own = (part[1:-1] if part[:1] == part[-1:] and part[:1] in ("'", '"') else part for part in (name, own))
        if not colon or not name or not own or name in found:
            raise BadAsk(f"line {number} of {path} is {line.strip()!r}; {_FORM}")
        listed = name == "labels" and own.startswith("[") and own.endswith("]")
        found[name] = [part.strip().strip("'\"") for part in own[1:-1].split(",")] if listed else own
    return found
