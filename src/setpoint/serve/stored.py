"""The files of a saved run: their names, their hashes, and what is checked before any of them is believed.

`run/artefact.py` describes the files and writes them.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from setpoint.errors import BadFile
from setpoint.plain import brief, named, read_json, text

#: The first number grows when older versions cannot read the artefact, the second when something is added.
FORMAT = "3.5"
MODEL, ABOUT, HISTORY, SCORES = "model.safetensors", "setpoint.json", "history.jsonl", "scores.safetensors"
#: The files whose hashes are in setpoint.json.
HASHED = (MODEL, HISTORY, SCORES)
UNFINISHED, NEW, WHOLE = "unfinished", ".new", ".whole"
#: The file of a checkpoint.
STATE = "state.pt"
#: The folder of a run that is watched, and its record; a run that is replaced takes them along.
WATCH, RECORD, LIFE = "watch", "watch/state.json", "watch/life.html"


def file_of(path: Path, name: str) -> Path:
    """Where a file of the artefact is: in `.whole` if it has not moved out, else in the directory."""
    waiting = path / WHOLE / name
    return waiting if waiting.is_file() else path / name


def is_unfinished(path: Path) -> bool:
    """Whether a training that was interrupted is there."""
    return (path / UNFINISHED / STATE).is_file()


def seal(about: dict[str, Any]) -> dict[str, str]:
    """The hash of every entry by name; of a dict, the hash of each of its entries."""
    entries: dict[str, Any] = {}
    for name, value in about.items():
        if name != "seal":
            inner = {f"{name}.{key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value}
            entries.update(inner)
    texts = {name: json.dumps(value, sort_keys=True, allow_nan=False) for name, value in entries.items()}
    return {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in texts.items()}


def read_about(path: Path) -> dict[str, Any]:
    """The content of setpoint.json of a finished run, not yet checked."""
    if not file_of(path, ABOUT).is_file():
        if is_unfinished(path):
            raise BadFile(f"the run at {path} is unfinished; finish it with: setpoint fit --resume {path}")
        raise BadFile(f"no run at {path}: there is no {ABOUT} in it")
    found: dict[str, Any] = read_json(file_of(path, ABOUT))
    return found


def checked_files(path: Path, about: dict[str, Any]) -> dict[str, bytes]:
    """The content of every file, after a check of the format and of all hashes."""
    found = re.fullmatch(r"([0-9]{1,4})\.([0-9]{1,4})", text(about["format"]))
    if found is None:
        raise BadFile(f"{path} is damaged: its format is {brief(about['format'])}")
    reads = int(FORMAT.split(".", maxsplit=1)[0])
    if int(found[1]) > reads:
        raise BadFile(f"{path} is of format {about['format']}, this version reads {reads}; upgrade setpoint")
    if int(found[1]) < reads:
        raise BadFile(
            f"{path} is of format {about['format']}, which an earlier version wrote; this version cannot read it, fit "
            "it again"
        )
    sealed, expected = seal(about), named(about["seal"], text)
    changed = [name for name in {**expected, **sealed} if sealed.get(name) != expected.get(name)]
    if changed:
        raise BadFile(
            f"{path / ABOUT} was changed after the run wrote it: {', '.join(map(_one_line, changed[:5]))} differs from "
            "its hash"
        )
    files = {}
    for name in HASHED:
        written = about["files"][name]
        if not file_of(path, name).is_file():
            raise BadFile(f"{path} is damaged: it lacks {name}, which the run wrote; fit it again with --force")
        files[name] = file_of(path, name).read_bytes()
        if hashlib.sha256(files[name]).hexdigest() != written["sha256"]:
            raise BadFile(f"{path / name} was changed after the run wrote it: it differs from its hash")
    return files


def _one_line(name: str) -> str:
    return " ".join(name.split())[:60]
