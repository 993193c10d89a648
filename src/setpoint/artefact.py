"""The artefact of a run: a directory with parameters, the point and the schema, and the history.

    model.safetensors    the parameters
    setpoint.json        everything else that is needed to score new data, and what was measured
    history.jsonl        one line an epoch, of every solver

Reading it executes nothing from it.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor, nn

from setpoint.errors import BadFile
from setpoint.problem.point import OperatingPoint
from setpoint.run import Run
from setpoint.settings import MODELS, build_model, score_rows
from setpoint.table.frame import Frame
from setpoint.table.schema import Schema

FORMAT = 1
MODEL, ABOUT, HISTORY = "model.safetensors", "setpoint.json", "history.jsonl"


def version() -> str:
    """The version of the installed package."""
    try:
        return metadata.version("setpoint")
    except metadata.PackageNotFoundError:
        return "unknown (not installed)"


@dataclass(frozen=True)
class SavedRun:
    """A run read back: the model, the point to run it at, and the schema of its table."""

    model: nn.Module
    point: OperatingPoint
    schema: Schema
    about: dict[str, Any]

    def scores(self, frame: Frame) -> Tensor:
        """The score of every row; `point.predict(scores)` decides."""
        return score_rows(self.model, self.schema.encode(frame))


def check_place(path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """The path, if a run may be written there: nothing stands there yet, or, with `force`, an earlier run."""
    path = Path(path)
    if not os.path.lexists(path):
        above = next(parent for parent in path.absolute().parents if os.path.lexists(parent))
        if not above.is_dir() or not os.access(above, os.W_OK):
            raise BadFile(f"{path} cannot be made in {above}; choose another place for the run")
        return path
    if path.is_symlink() or not path.is_dir():
        raise BadFile(f"{path} is not a directory; choose another place for the run")
    inside = sorted(entry.name for entry in path.iterdir())
    if not inside:
        return path
    foreign = [name for name in inside if name not in (MODEL, ABOUT, HISTORY)]
    if foreign or ABOUT not in inside:
        raise BadFile(f"{path} holds {(foreign or inside)[0]!r}, which no run wrote; choose another place")
    if not force:
        raise BadFile(f"{path} holds an earlier run; replace it with --force (force=True) or choose another place")
    return path


def save_run(path: str | os.PathLike[str], run: Run, *, force: bool = False) -> Path:
    """Write a run to a directory that appears, or with `force` is replaced, only once it is whole."""
    path = check_place(path, force=force)
    fresh = path.absolute().with_name(f".{path.absolute().name}.{os.getpid()}")
    try:
        fresh.mkdir(parents=True)
        _write(fresh, run)
        _move(fresh, path)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return path


def _move(fresh: Path, path: Path) -> None:
    """Put one directory in the place of another, which is deleted only after that."""
    aside = fresh.with_name(f"{fresh.name}.old")
    if path.exists():
        path.rename(aside)
    try:
        fresh.rename(path)
    except OSError:
        if aside.exists():
            aside.rename(path)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _write(place: Path, run: Run) -> None:
    versions = {"setpoint": version(), "torch": torch.__version__, "python": platform.python_version()}
    settings = run.settings
    model = {"kind": settings.model, "width": len(run.schema.features), "members": settings.ensemble}
    about = {"format": FORMAT, "versions": versions, "model": model, **run.to_dict()}
    rows = [{"trained": outcome.solver, **row} for outcome in run.outcomes for row in outcome.history]
    lines = [json.dumps(row, allow_nan=False) + "\n" for row in rows]
    (place / MODEL).write_bytes(save(run.chosen.model.state_dict()))
    (place / ABOUT).write_text(json.dumps(about, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    (place / HISTORY).write_text("".join(lines), encoding="utf-8")
    for file in place.iterdir():
        with file.open("rb") as written:
            os.fsync(written.fileno())


def load_run(path: str | os.PathLike[str]) -> SavedRun:
    """Read what `save_run` wrote."""
    path = Path(path)
    if not (path / ABOUT).is_file():
        raise BadFile(f"no run at {path}: there is no {ABOUT} in it")
    try:
        about = json.loads((path / ABOUT).read_text(encoding="utf-8"))
        if about["format"] != FORMAT:
            raise BadFile(f"{path} is of format {about['format']!r}, this version reads {FORMAT}; upgrade setpoint")
        schema, point = Schema.from_dict(about["schema"]), OperatingPoint.from_dict(about["point"])
        kind, width, members = (about["model"][name] for name in ("kind", "width", "members"))
        if kind not in MODELS or not 1 <= members <= 1000 or width != len(schema.features):
            raise BadFile(f"{path} holds no model that fits {len(schema.features)} features: {about['model']}")
        model = build_model(kind, width, members=members)
        model.load_state_dict(load_file(path / MODEL))
        if not all(bool(torch.isfinite(part).all()) for part in model.state_dict().values()):
            raise BadFile(f"{path} is damaged: {MODEL} holds parameters that are not finite")
    except BadFile:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, OSError, SafetensorError) as cause:
        raise BadFile(f"{path} is damaged: {str(cause).partition(chr(10))[0] or type(cause).__name__}") from cause
    return SavedRun(model.eval(), point, schema, about)
