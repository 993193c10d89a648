"""Write THIRD_PARTY.md: the packages that pyproject.toml names, the extras that need each, and the licence of each.

python tools/licences.py
"""

from __future__ import annotations

import re
from collections import defaultdict
from importlib import metadata
from pathlib import Path

import tomllib

ROOT = Path(__file__).parents[1]
HEAD = """# Licences of the packages that setpoint uses

setpoint is under the Apache License 2.0 and contains no code of others. The packages below are installed beside it;
their own metadata name their licences. This page is written by `python tools/licences.py`.

| package | needed by | licence |
|---|---|---|
"""
#: Extras for those who work on setpoint; `all` and `dev` only join others.
OWN = ("all", "dev", "docs", "fuzz", "mutation")


def name_of(requirement: str) -> str:
    """The name of the package that a requirement asks for."""
    return re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0]


def needed() -> dict[str, list[str]]:
    """The extras that need each package, or "always"."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found: dict[str, list[str]] = defaultdict(list)
    groups = {"always": project["dependencies"], **project["optional-dependencies"]}
    for extra, requirements in groups.items():
        for name in map(name_of, requirements if extra not in OWN else ()):
            if name != "setpoint":
                found[name].append(extra if extra == "always" else f"`{extra}`")
    return found


def licence_of(package: str) -> str:
    """The licence in a few words: the expression, the classifiers, or the first line of the text."""
    about = metadata.metadata(package)
    named = [each.rpartition(" :: ")[2] for each in about.get_all("Classifier", []) if each.startswith("License ::")]
    first = (about.get("License") or "").strip().splitlines()[:1]
    found = (
        about.get("License-Expression") or ", ".join(each for each in named if each != "OSI Approved") or "".join(first)
    )
    return found.replace("|", "/") or "not stated"


def page() -> str:
    """The whole page."""
    rows = [f"| {name} | {', '.join(extras)} | {licence_of(name)} |" for name, extras in needed().items()]
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    (ROOT / "THIRD_PARTY.md").write_text(page())
