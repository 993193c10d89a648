"""The artefact of a run: a directory with the model, the operating point, the schema and the history.

    model.safetensors    the parameters
    history.jsonl        one line per epoch, of every solver
    setpoint.json        all else that is needed to score new data, the results, and a hash of every entry
    scores.safetensors   the labels and the scores of every solver, of the calibration and test rows
    report.html, .png    written later, by `setpoint report`
    watch/               the record of `setpoint watch` and `setpoint calibrate`, if there is one

Reading an artefact executes no code from it. A kill while a new artefact replaces an earlier one leaves one of the two
readable: the new files are written to `.new`, which is renamed to `.whole`, whose files then move out one by one. A
file in `.whole` counts before the file of the same name outside.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from setpoint.data.frame import Frame, as_frame
from setpoint.data.label_columns import LabelColumns
from setpoint.data.schema import Schema
from setpoint.data.seen import Notes
from setpoint.errors import BadFile, missing
from setpoint.files import PENDING, sync_directory, write_whole
from setpoint.lock import LOCK, locked
from setpoint.measure.in_first import LISTS
from setpoint.plain import brief, listed, named, read_json, reason, text
from setpoint.problem.point import OperatingPoint
from setpoint.problem.watch import points_of
from setpoint.run.description import check_description
from setpoint.run.table import TableRun
from setpoint.train.checkpoint import STATE
from setpoint.train.kinds import restore_model
from setpoint.train.scoring import score_rows

try:
    from safetensors import SafetensorError
    from safetensors.torch import load, save
except ImportError as cause:
    raise missing("safetensors", "table", cause) from None

#: The first number grows when older versions cannot read the artefact, the second when something is added.
FORMAT = "3.3"
MODEL, ABOUT, HISTORY = "model.safetensors", "setpoint.json", "history.jsonl"
SCORES, REPORTS = "scores.safetensors", ("report.html", "report.png")
UNFINISHED, NEW, WHOLE = "unfinished", ".new", ".whole"
#: The folder of a run that is watched, and its record; a run that is replaced takes them along.
WATCH, RECORD, LIFE = "watch", "watch/state.json", "watch/life.html"
#: Scoring puts other parameters into the model for a moment (`train/scoring.py`), which no other thread may see.
_ONE_AT_A_TIME = threading.Lock()
#: The parts whose scores are kept, for the report.
JUDGED = ("calibration", "test")
#: How a label that is not known is stored.
UNKNOWN = 2


def _parameters(run: TableRun) -> bytes:
    written: bytes = save(run.chosen.model.state_dict())
    return written


def _history(run: TableRun) -> bytes:
    rows = [{"trained": one.name, **row} for one in run.runs for row in one.history]
    return "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows).encode()


def _judged_scores(run: TableRun) -> bytes:
    written: bytes = save(_scores(run))
    return written


#: The files of the artefact except setpoint.json, and the function that makes each; all are hashed.
FILES: dict[str, Callable[[TableRun], bytes]] = {MODEL: _parameters, HISTORY: _history, SCORES: _judged_scores}


def version() -> str:
    """The version of the installed package."""
    try:
        return metadata.version("setpoint")
    except metadata.PackageNotFoundError:
        return "unknown (not installed)"


@dataclass(frozen=True)
class Answer:
    """The answer of a run to some rows.

    Attributes:
        scores: One score per row, or one per row and class.
        decisions: One decision per row as `setpoint predict` writes it: 0 or 1, "review", or the name of a class; one
            column per threshold for an ask over a range.
        notes: Sentences on values that training never saw.

    Example:
        >>> import tempfile, polars as pl, setpoint as sp
        >>> from setpoint.run.artefact import load_run, save_run
        >>> from setpoint.run.table import fit_table
        >>> frame = pl.DataFrame({"x": list(range(200)), "y": [row // 100 for row in range(200)]})
        >>> table = fit_table(frame, "y", sp.ask("minimize fnr where fpr <= 10%"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     answer = load_run(save_run(folder + "/run", table)).answer([{"x": 0}, {"x": 500}])
        >>> answer.decisions.tolist(), len(answer.notes)
        ([0, 1], 1)
    """

    scores: NDArray[np.float32]
    decisions: NDArray[Any]
    notes: list[str]


@dataclass(frozen=True)
class SavedRun:
    """A run that was read from disk. Several threads may score and decide by one run at the same time.

    Attributes:
        model: The trained model.
        point: The operating point.
        schema: How the columns of new data are read and encoded.
        about: The content of setpoint.json.

    Example:
        >>> import tempfile, polars as pl, setpoint as sp
        >>> from setpoint.run.artefact import load_run, save_run
        >>> from setpoint.run.table import fit_table
        >>> frame = pl.DataFrame({"x": list(range(200)), "y": [row // 100 for row in range(200)]})
        >>> table = fit_table(frame, "y", sp.ask("minimize fnr where fpr <= 10%"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     saved = load_run(save_run(folder + "/run", table))
        >>> saved.predict({"x": [0, 199]}).tolist()
        [0, 1]
    """

    model: nn.Module
    point: OperatingPoint
    schema: Schema
    about: dict[str, Any]

    def scores(self, data: Any, *, ignore_extra: bool = False, notes: Notes | None = None) -> Tensor:
        """Score every row; `point.predict(scores)` decides.

        Args:
            data: A polars or pandas frame, an Arrow table, columns by name in any order, or a list of rows.
            ignore_extra: Whether to allow columns that training never had.
            notes: Collects values that training never saw; `schema.notes()` makes an empty one.

        Returns:
            One score per row, or one per row and class or label.

        Raises:
            BadTable: If a column is missing, unknown, or of another kind than in training.
        """
        x = self.schema.encode(as_frame(data), ignore_extra=ignore_extra, notes=notes)
        with _ONE_AT_A_TIME:
            return score_rows(self.model, x)

    def predict(self, data: Any, *, ignore_extra: bool = False, notes: Notes | None = None) -> Tensor:
        """Decide every row at the operating point.

        Args:
            data: A polars or pandas frame, an Arrow table, columns by name in any order, or a list of rows; with the
                column of the groups, if the ask compares groups, or of the lists, if it is about lists; each list must
                be whole.
            ignore_extra: Whether to allow columns that training never had.
            notes: Collects values that training never saw; `schema.notes()` makes an empty one.

        Returns:
            1 for every row that is flagged and 0 for every other; one column per threshold for an ask over a range. For
            several classes the number of the class, whose name is in `point.classes`; for several labels one column per
            label, whose name is in `point.labels`.

        Raises:
            BadTable: If a column is missing, unknown, or of another kind than in training.
        """
        frame, group = as_frame(data), self.point.problem.group
        scores = self.scores(frame, ignore_extra=ignore_extra, notes=notes)
        groups = None if group is None else self.schema.groups(frame, group)
        decisions: Tensor = self.point.predict(scores, groups, lists=self.lists(frame))
        return decisions

    def lists(self, frame: Frame) -> NDArray[np.str_] | None:
        """The list of every row, as text, if the ask is about lists."""
        if self.point.problem.kind != LISTS:
            return None
        return self.schema.lists(frame, self.about["settings"]["lists"])

    def answer(self, data: Any, *, ignore_extra: bool = False) -> Answer:
        """Scores, decisions and notes of some rows at once, for a service.

        Args:
            data: A polars or pandas frame, an Arrow table, columns by name, or a list of rows.
            ignore_extra: Whether to allow columns that training never had.

        Returns:
            The scores, the decisions as `setpoint predict` writes them, and the notes.

        Raises:
            BadTable: If a column is missing, unknown, or of another kind than in training.
        """
        frame, group, notes = as_frame(data), self.point.problem.group, self.schema.notes()
        scores = self.scores(frame, ignore_extra=ignore_extra, notes=notes)
        groups = None if group is None else self.schema.groups(frame, group)
        decided = self.point.predict(scores, groups, lists=self.lists(frame))
        decisions = self.point.thresholds.written(decided.numpy())
        return Answer(scores.numpy(), decisions, notes.sentences())


def check_place(path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """The path, if a run may be written there: it must be free, or with `force` hold an earlier run."""
    path = Path(path)
    if not os.path.lexists(path):
        above = next(parent for parent in path.absolute().parents if os.path.lexists(parent))
        if not above.is_dir() or not os.access(above, os.W_OK):
            raise BadFile(f"{path} cannot be made in {above}; choose another place for the run")
        return path
    if path.is_symlink() or not path.is_dir():
        raise BadFile(f"{path} is not a directory; choose another place for the run")
    inside = sorted(entry.name for entry in path.iterdir() if not entry.name.startswith((LOCK, PENDING)))
    foreign = [name for name in inside if name not in (*FILES, *REPORTS, ABOUT, WATCH, UNFINISHED, NEW, WHOLE)]
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
    """Write a run to a directory.

    The run appears there, or replaces an earlier one, only when all of it is written.

    Args:
        path: The directory to write.
        run: The run on a table.
        force: Whether to replace an earlier run.

    Returns:
        The path of the directory.

    Raises:
        BadFile: If the place holds something else, or another process is writing to it.

    Example:
        >>> import tempfile, polars as pl, setpoint as sp
        >>> from setpoint.run.artefact import save_run
        >>> from setpoint.run.table import fit_table
        >>> frame = pl.DataFrame({"x": list(range(200)), "y": [row // 100 for row in range(200)]})
        >>> table = fit_table(frame, "y", sp.ask("minimize fnr where fpr <= 10%"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     sorted(file.name for file in save_run(folder + "/run", table).glob("[!.]*"))
        ['history.jsonl', 'model.safetensors', 'scores.safetensors', 'setpoint.json']
    """
    path = check_place(path, force=True)
    with locked(path):
        return place_run(path, run, force=force)


def place_run(path: Path, run: TableRun, *, force: bool) -> Path:
    """`save_run` for a process that holds the lock of the directory."""
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
    today = datetime.now(timezone.utc).date().isoformat()
    about = {"format": FORMAT, "date": today, "versions": versions, "model": model, **run.to_dict(), "files": files}
    text = json.dumps({**about, "seal": seal(about)}, indent=2, allow_nan=False) + "\n"
    write_whole(place / ABOUT, text.encode())


def _move_out(path: Path) -> None:
    """Move the files of a finished artefact over those of an earlier one."""
    whole = path / WHOLE
    if not whole.is_dir():
        return
    for name in REPORTS:
        (path / name).unlink(missing_ok=True)
    shutil.rmtree(path / WATCH, ignore_errors=True)
    for entry in list(whole.iterdir()):
        os.replace(entry, path / entry.name)
    whole.rmdir()
    sync_directory(path)


def _one_line(name: str) -> str:
    return " ".join(name.split())[:60]


def _file(path: Path, name: str) -> Path:
    """Where a file of the artefact is: in `.whole` if it has not moved out, else in the directory."""
    waiting = path / WHOLE / name
    return waiting if waiting.is_file() else path / name


def _is_unfinished(path: Path) -> bool:
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


@dataclass(frozen=True)
class SavedScores:
    """The stored scores by solver and part, labels by part and, where groups are compared, group numbers by part.

    Groups are numbered in the order of their thresholds. Values are those of the columns that the ask names. Lists are
    the name of the list of each row, where the ask is about lists.
    """

    scores: dict[str, dict[str, Tensor]]
    labels: dict[str, Tensor]
    groups: dict[str, Tensor]
    values: dict[str, Tensor]
    lists: dict[str, NDArray[np.str_]]


def _scores(run: TableRun) -> dict[str, Tensor]:
    kept = {part: run.chosen.sample(part) for part in JUDGED}
    named = {f"scores/{part}/{one.name}": one.sample(part).scores for one in run.runs for part in JUDGED}
    named |= {f"labels/{part}": sample.labels.nan_to_num(UNKNOWN).to(torch.uint8) for part, sample in kept.items()}
    named |= {f"groups/{part}": s.groups.to(torch.int32) for part, s in kept.items() if s.groups is not None}
    named |= {f"values/{part}": s.values for part, s in kept.items() if s.values is not None}
    for part, sample in kept.items():
        if sample.lists is not None:
            numbers, own = sample.lists.unique(return_inverse=True)
            names = json.dumps([run.list_names[number] for number in numbers.tolist()]).encode()
            named |= {f"lists/{part}": own.to(torch.int32)}
            named |= {f"list names/{part}": torch.frombuffer(bytearray(names), dtype=torch.uint8)}
    return {name: values.contiguous() for name, values in named.items()}


def load_scores(path: str | os.PathLike[str]) -> SavedScores:
    """Read the stored scores, labels and groups of a run."""
    place, path = Path(path), _file(Path(path), SCORES)
    if not path.is_file():
        raise BadFile(f"{place} holds no {SCORES}: an earlier version wrote it; fit it again with --force")
    saved = SavedScores({}, {}, {}, {}, {})
    try:
        found = load(path.read_bytes())
        for name, values in found.items():
            kind, part, *solver = name.split("/", 2)
            if kind == "lists":
                saved.lists[part] = _named_lists(values, found[f"list names/{part}"])
            elif kind == "list names":
                continue
            elif kind == "scores":
                saved.scores.setdefault(solver[0], {})[part] = values
            else:
                {"labels": saved.labels, "groups": saved.groups, "values": saved.values}[kind][part] = values
        for by_part in (*saved.scores.values(), saved.groups):
            for part, values in by_part.items():
                if values.shape[:1] != saved.labels[part].shape[:1] or values.dim() > 1 + (by_part is not saved.groups):
                    raise ValueError(f"the {part} rows differ in number")
        if any(len(lists) != len(saved.labels[part]) for part, lists in saved.lists.items()):
            raise ValueError("its lists are not those of its rows")
        for part, labels in saved.labels.items():
            if labels.dim() == 2:
                _check_label_table(part, labels, [each[part] for each in saved.scores.values()])
                saved.labels[part] = labels.float().masked_fill(labels == UNKNOWN, torch.nan)
                continue
            widths = {1 if each[part].dim() == 1 else each[part].shape[1] for each in saved.scores.values()}
            known = labels.dim() == 1 and labels.dtype == torch.uint8
            if widths == {1} and not (known and labels.unique().tolist() == [0, 1]):
                raise ValueError(f"the labels of the {part} rows are not 0 and 1")
            if len(widths) != 1 or not known or (widths != {1} and int(labels.max()) >= max(widths)):
                raise ValueError(f"the labels of the {part} rows are not those of the scores")
        for values in (values for by_part in saved.scores.values() for values in by_part.values()):
            if values.dtype != torch.float32 or not bool(values.isfinite().all()):
                raise ValueError("it holds scores that are not finite numbers in single precision")
        for part, values in saved.values.items():
            if values.dim() != 2 or len(values) != len(saved.labels[part]) or values.dtype != torch.float64:
                raise ValueError(f"the values of the {part} rows are not numbers in double precision, one row each")
            if not bool((values.isfinite() & (values >= 0)).all()):
                raise ValueError(f"the values of the {part} rows are not finite numbers from 0 up")
        if any(groups.dtype != torch.int32 or bool((groups < 0).any()) for groups in saved.groups.values()):
            raise ValueError("its group numbers are not whole numbers from 0 up")
    except (ValueError, LookupError, OSError, SafetensorError) as cause:
        raise BadFile(f"{path} is damaged: {reason(cause)}") from cause
    return saved


def _named_lists(numbers: Tensor, names: Tensor) -> NDArray[np.str_]:
    """The name of the list of each row."""
    known = listed(json.loads(names.numpy().tobytes()), text)
    if numbers.dim() != 1 or numbers.dtype != torch.int32 or bool((numbers < 0).any()):
        raise ValueError("its numbers of lists are not whole numbers from 0 up")
    return np.asarray(np.array(known, dtype=str)[numbers.numpy()])


def _check_label_table(part: str, labels: Tensor, scores: list[Tensor]) -> None:
    """Refuse labels `(n, L)` that are not 0, 1 or unknown, or do not fit the scores."""
    if labels.dtype != torch.uint8 or bool((labels > UNKNOWN).any()):
        raise ValueError(f"the labels of the {part} rows are not 0, 1 or unknown")
    if any(each.shape != labels.shape for each in scores):
        raise ValueError(f"the labels of the {part} rows are not those of the scores")


def load_run(path: str | os.PathLike[str]) -> SavedRun:
    """Read a run that `save_run` or `setpoint fit` wrote.

    Args:
        path: The directory of the run.

    Returns:
        The model, the operating point and the schema.

    Raises:
        BadFile: If there is no finished run, or a file or entry is damaged or was changed later.

    Example:
        >>> import tempfile, polars as pl, setpoint as sp
        >>> from setpoint.run.artefact import save_run
        >>> from setpoint.run.table import fit_table
        >>> frame = pl.DataFrame({"x": list(range(200)), "y": [row // 100 for row in range(200)]})
        >>> table = fit_table(frame, "y", sp.ask("minimize fnr where fpr <= 10%"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     saved = sp.load_run(save_run(folder + "/run", table))
        >>> saved.point == table.chosen.point, saved.predict({"x": [0, 199]}).tolist()
        (True, [0, 1])
    """
    path = Path(path)
    if not _file(path, ABOUT).is_file():
        if _is_unfinished(path):
            raise BadFile(f"the run at {path} is unfinished; finish it with: setpoint fit --resume {path}")
        raise BadFile(f"no run at {path}: there is no {ABOUT} in it")
    try:
        about = read_json(_file(path, ABOUT))
        files = _checked(path, about)
        schema, first = Schema.from_dict(about["schema"]), OperatingPoint.from_dict(about["point"])
        kind, members = check_description(about, first, len(schema.features))
        point = _newest_point(path, about["point"], first)
        outputs = len(point.classes or point.labels) or 1
        if (point.problem.kind == LISTS) != (about["settings"].get("lists") is not None):
            raise BadFile("its ask and its column of lists do not agree")
        labels = schema.target.columns if isinstance(schema.target, LabelColumns) else ()
        if point.classes != schema.target.classes or point.labels != labels:
            raise BadFile("its operating point and its target have different classes")
        model = restore_model(kind, len(schema.features), members, load(files[MODEL]), outputs)
        if not all(bool(torch.isfinite(part).all()) for part in model.state_dict().values()):
            raise BadFile(f"{MODEL} holds parameters that are not finite")
    except (ValueError, LookupError, TypeError, AttributeError, RuntimeError, OSError, SafetensorError) as cause:
        if isinstance(cause, BadFile) and str(path) in str(cause):
            raise
        raise BadFile(f"{path} is damaged: {reason(cause)}") from cause
    return SavedRun(model.eval(), point, schema, about)


def _newest_point(path: Path, stored: dict[str, Any], first: OperatingPoint) -> OperatingPoint:
    """The point that `setpoint calibrate` set last; the point of the fit if there is none."""
    if not (path / RECORD).is_file():
        return first
    before, newest = points_of(path / RECORD)
    if before != stored:
        raise BadFile(f"{path / RECORD} is the watch of another run; remove the folder {path / WATCH}")
    return first if newest == stored else OperatingPoint.from_dict(newest)


def _checked(path: Path, about: dict[str, Any]) -> dict[str, bytes]:
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
    for name in FILES:
        written = about["files"][name]
        if not _file(path, name).is_file():
            raise BadFile(f"{path} is damaged: it lacks {name}, which the run wrote; fit it again with --force")
        files[name] = _file(path, name).read_bytes()
        if hashlib.sha256(files[name]).hexdigest() != written["sha256"]:
            raise BadFile(f"{path / name} was changed after the run wrote it: it differs from its hash")
    return files
