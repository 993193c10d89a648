"""The artefact of a run: a directory with parameters, the point and the schema, and the history.

    model.safetensors    the parameters
    history.jsonl        one line an epoch, of every solver
    setpoint.json        everything else that is needed to score new data, what was measured, and a hash of all of it
    scores.safetensors   scores of every solver, and labels, of the calibration and test rows
    report.html, .png    written later, by `setpoint report`

Reading it executes nothing from it. A new artefact replaces an earlier one so that a kill at any moment leaves one of
them to be read: it is written to `.new`, which is renamed to `.whole`, whose files then move out one by one; a file
that is still in `.whole` is the one that counts.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.data.frame import as_frame
from setpoint.data.schema import Schema
from setpoint.data.seen import Notes
from setpoint.errors import BadFile, missing
from setpoint.files import PENDING, sync_directory, write_whole
from setpoint.lock import LOCK, locked
from setpoint.plain import brief, named, read_json, reason, text
from setpoint.problem.point import OperatingPoint
from setpoint.run.description import check_description
from setpoint.run.table import TableRun
from setpoint.train.checkpoint import STATE
from setpoint.train.models import restore_model
from setpoint.train.scoring import score_rows

try:
    from safetensors import SafetensorError
    from safetensors.torch import load, save
except ImportError as cause:
    raise missing("safetensors", "table", cause) from None

#: The first number grows when older versions cannot read what is written, the second when something is added.
FORMAT = "2.0"
MODEL, ABOUT, HISTORY = "model.safetensors", "setpoint.json", "history.jsonl"
SCORES, REPORTS = "scores.safetensors", ("report.html", "report.png")
UNFINISHED, NEW, WHOLE = "unfinished", ".new", ".whole"
#: The parts whose scores are kept: what a report draws.
JUDGED = ("calibration", "test")


def _parameters(run: TableRun) -> bytes:
    written: bytes = save(run.chosen.model.state_dict())
    return written


def _history(run: TableRun) -> bytes:
    rows = [{"trained": one.name, **row} for one in run.runs for row in one.history]
    return "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows).encode()


def _judged_scores(run: TableRun) -> bytes:
    written: bytes = save(_scores(run))
    return written


#: Every file of the artefact but setpoint.json, and what makes its content; each is hashed.
FILES: dict[str, Callable[[TableRun], bytes]] = {MODEL: _parameters, HISTORY: _history, SCORES: _judged_scores}


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

    def scores(self, data: Any, *, ignore_extra: bool = False, notes: Notes | None = None) -> Tensor:
        """The score of every row; `point.predict(scores)` decides.

        Args:
            data: A polars or pandas frame, an Arrow table, or columns by name. Columns in any order; a column of
                another kind than in training is refused by name.
            ignore_extra: Let columns that training never had be there.
            notes: Takes note of what training never saw; `schema.notes()` makes an empty one.
        """
        return score_rows(self.model, self.schema.encode(as_frame(data), ignore_extra=ignore_extra, notes=notes))


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
    inside = sorted(entry.name for entry in path.iterdir() if not entry.name.startswith((LOCK, PENDING)))
    foreign = [name for name in inside if name not in (*FILES, *REPORTS, ABOUT, UNFINISHED, NEW, WHOLE)]
    if foreign or not {ABOUT, UNFINISHED, NEW, WHOLE}.intersection(inside or [ABOUT]):
        raise BadFile(f"{path} holds {(foreign or inside)[0]!r}, which no run wrote; choose another place")
    if force:
        return path
    if _file(path, ABOUT).is_file():
        raise BadFile(f"{path} holds an earlier run; replace it with --force (force=True) or choose another place")
    if _is_unfinished(path):
        raise BadFile(
            f"{path} holds an unfinished run; finish it with: setpoint fit --resume {path}, or start "
            "anew with --force (force=True)"
        )
    return path


def save_run(path: str | os.PathLike[str], run: TableRun, *, force: bool = False) -> Path:
    """Write a run to a directory, where it appears, or with `force` replaces an earlier one, only once it is whole.

    Raises:
        BadFile: the place holds something else, or another process is writing to it.
    """
    path = check_place(path, force=True)
    with locked(path):
        return place_run(path, run, force=force)


def place_run(path: Path, run: TableRun, *, force: bool) -> Path:
    """The same for a process that holds the lock of the directory."""
    check_place(path, force=force)
    fresh = path / NEW
    try:
        _move_out(path)
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        _write(fresh, run)
        fresh.rename(path / WHOLE)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    sync_directory(path)
    _move_out(path)
    return path


def _write(place: Path, run: TableRun) -> None:
    files = {}
    for name, content in FILES.items():
        data = content(run)
        write_whole(place / name, data)
        files[name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    versions = {"setpoint": version(), "torch": torch.__version__, "python": platform.python_version()}
    settings = run.settings
    model = {"kind": settings.model, "width": len(run.schema.features), "members": settings.ensemble}
    about = {"format": FORMAT, "versions": versions, "model": model, **run.to_dict(), "files": files}
    text = json.dumps({**about, "seal": seal(about)}, indent=2, allow_nan=False) + "\n"
    write_whole(place / ABOUT, text.encode())


def _move_out(path: Path) -> None:
    """Let what is whole take the place of what was there before it."""
    whole = path / WHOLE
    if not whole.is_dir():
        return
    for name in REPORTS:
        (path / name).unlink(missing_ok=True)
    for entry in list(whole.iterdir()):
        os.replace(entry, path / entry.name)
    whole.rmdir()
    sync_directory(path)


def _one_line(name: str) -> str:
    return " ".join(name.split())[:60]


def _file(path: Path, name: str) -> Path:
    """Where a file of the artefact is: among what is whole but has not moved out, or in its place."""
    waiting = path / WHOLE / name
    return waiting if waiting.is_file() else path / name


def _is_unfinished(path: Path) -> bool:
    return (path / UNFINISHED / STATE).is_file()


def seal(about: dict[str, Any]) -> dict[str, str]:
    """A hash of every entry, and of every entry of those that have entries of their own, by name."""
    entries: dict[str, Any] = {}
    for name, value in about.items():
        if name != "seal":
            inner = {f"{name}.{key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value}
            entries.update(inner)
    texts = {name: json.dumps(value, sort_keys=True, allow_nan=False) for name, value in entries.items()}
    return {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in texts.items()}


@dataclass(frozen=True)
class SavedScores:
    """What a run was judged by: scores by solver and part, labels by part, and, where groups were compared, the number
    of each row's group by part, in the order of their thresholds."""

    scores: dict[str, dict[str, Tensor]]
    labels: dict[str, Tensor]
    groups: dict[str, Tensor]


def _scores(run: TableRun) -> dict[str, Tensor]:
    kept = {part: run.chosen.sample(part) for part in JUDGED}
    named = {f"scores/{part}/{one.name}": one.sample(part).scores for one in run.runs for part in JUDGED}
    named |= {f"labels/{part}": sample.labels.to(torch.uint8) for part, sample in kept.items()}
    named |= {f"groups/{part}": s.groups.to(torch.int32) for part, s in kept.items() if s.groups is not None}
    return {name: values.contiguous() for name, values in named.items()}


def load_scores(path: str | os.PathLike[str]) -> SavedScores:
    """The scores and labels that a run was judged by."""
    place, path = Path(path), _file(Path(path), SCORES)
    if not path.is_file():
        raise BadFile(f"{place} holds no {SCORES}: an earlier version wrote it; fit it again with --force")
    saved = SavedScores({}, {}, {})
    try:
        for name, values in load(path.read_bytes()).items():
            kind, part, *solver = name.split("/", 2)
            if kind == "scores":
                saved.scores.setdefault(solver[0], {})[part] = values
            else:
                {"labels": saved.labels, "groups": saved.groups}[kind][part] = values
        for by_part in (*saved.scores.values(), saved.groups):
            for part, values in by_part.items():
                if values.shape != saved.labels[part].shape:
                    raise ValueError(f"the {part} rows differ in number")
        for part, labels in saved.labels.items():
            if labels.dim() != 1 or labels.dtype != torch.uint8 or labels.unique().tolist() != [0, 1]:
                raise ValueError(f"the labels of the {part} rows are not 0 and 1")
        for values in (values for by_part in saved.scores.values() for values in by_part.values()):
            if values.dtype != torch.float32 or not bool(values.isfinite().all()):
                raise ValueError("it holds scores that are not finite numbers in single precision")
        if any(groups.dtype != torch.int32 or bool((groups < 0).any()) for groups in saved.groups.values()):
            raise ValueError("it numbers groups by other than whole numbers")
    except (ValueError, LookupError, OSError, SafetensorError) as cause:
        raise BadFile(f"{path} is damaged: {reason(cause)}") from cause
    return saved


def load_run(path: str | os.PathLike[str]) -> SavedRun:
    """Read what `save_run` wrote. What was changed since, by a hash that differs, is refused by name."""
    path = Path(path)
    if not _file(path, ABOUT).is_file():
        if _is_unfinished(path):
            raise BadFile(f"the run at {path} is unfinished; finish it with: setpoint fit --resume {path}")
        raise BadFile(f"no run at {path}: there is no {ABOUT} in it")
    try:
        about = read_json(_file(path, ABOUT))
        files = _checked(path, about)
        schema, point = Schema.from_dict(about["schema"]), OperatingPoint.from_dict(about["point"])
        kind, members = check_description(about, point, len(schema.features))
        model = restore_model(kind, len(schema.features), members, load(files[MODEL]))
        if not all(bool(torch.isfinite(part).all()) for part in model.state_dict().values()):
            raise BadFile(f"{MODEL} holds parameters that are not finite")
    except (ValueError, LookupError, TypeError, AttributeError, RuntimeError, OSError, SafetensorError) as cause:
        if isinstance(cause, BadFile) and str(path) in str(cause):
            raise
        raise BadFile(f"{path} is damaged: {reason(cause)}") from cause
    return SavedRun(model.eval(), point, schema, about)


def _checked(path: Path, about: dict[str, Any]) -> dict[str, bytes]:
    """The content of every file, if the format can be read and nothing differs from its hash."""
    found = re.fullmatch(r"([0-9]{1,4})\.([0-9]{1,4})", text(about["format"]))
    if found is None:
        raise BadFile(f"{path} is damaged: its format is {brief(about['format'])}")
    reads = int(FORMAT.split(".", maxsplit=1)[0])
    if int(found[1]) > reads:
        raise BadFile(f"{path} is of format {about['format']}, this version reads {reads}; upgrade setpoint")
    if int(found[1]) < reads:
        raise BadFile(
            f"{path} is of format {about['format']}, which does not say how columns are read and is no longer read; "
            "fit it again"
        )
    sealed, expected = seal(about), named(about["seal"], text)
    changed = [name for name in {**expected, **sealed} if sealed.get(name) != expected.get(name)]
    if changed:
        raise BadFile(
            f"{path / ABOUT} was changed after the run wrote it: {', '.join(map(_one_line, changed[:5]))} differs from "
            "its hash"
        )
    files = {}
    for name in FILES:
        written = about["files"][name]
        if not _file(path, name).is_file():
            raise BadFile(f"{path} is damaged: it lacks {name}, which the run wrote; fit it again with --force")
        files[name] = _file(path, name).read_bytes()
        if hashlib.sha256(files[name]).hexdigest() != written["sha256"]:
            raise BadFile(f"{path / name} was changed after the run wrote it: it differs from its hash")
    return files
