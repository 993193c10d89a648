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
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from setpoint.data.cluster_column import column_of_clusters
from setpoint.data.frame import Frame
from setpoint.data.schema import Schema
from setpoint.data.seen import Notes
from setpoint.errors import BadFile, missing
from setpoint.files import PENDING, sync_directory, write_whole
from setpoint.lock import LOCK, locked
from setpoint.plain import listed, reason, text
from setpoint.problem.point import OperatingPoint
from setpoint.run.table import TableRun
from setpoint.serve.run import Answer, ServedRun
from setpoint.serve.run import load_run as load_served
from setpoint.serve.stored import (
    ABOUT,
    FORMAT,
    HISTORY,
    MODEL,
    NEW,
    SCORES,
    UNFINISHED,
    WATCH,
    WHOLE,
    file_of,
    is_unfinished,
    seal,
)
from setpoint.train.kinds import as_tensors, restore_model
from setpoint.train.scoring import ScoredByTorch

try:
    from safetensors import SafetensorError
    from safetensors.torch import load, save
except ImportError as cause:
    raise missing("safetensors", "table", cause) from None

REPORTS = ("report.html", "report.png")
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
class SavedRun:
    """A run that was read from disk, with its model as a PyTorch module: for judging, watching and exporting it.

    To answer with a run, `sp.load_run` needs less.

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

    @cached_property
    def served(self) -> ServedRun:
        """The same run, which answers in arrays."""
        return ServedRun(ScoredByTorch(self.model), self.point, self.schema, self.about)

    def scores(self, data: Any, *, ignore_extra: bool = False, notes: Notes | None = None) -> Tensor:
        """`ServedRun.scores` as a tensor."""
        return torch.from_numpy(self.served.scores(data, ignore_extra=ignore_extra, notes=notes))

    def predict(self, data: Any, *, ignore_extra: bool = False, notes: Notes | None = None) -> Tensor:
        """`ServedRun.predict` as a tensor."""
        return torch.from_numpy(self.served.predict(data, ignore_extra=ignore_extra, notes=notes))

    def lists(self, frame: Frame) -> NDArray[np.str_] | None:
        """The list of every row, as text, if the ask is about lists."""
        return self.served.lists(frame)

    @property
    def cluster(self) -> str | None:
        """The column whose rows of one value depend on each other; None where rows are independent."""
        column: str | None = self.about["settings"].get("cluster")
        return column

    def clusters(self, frame: Frame) -> NDArray[np.str_] | None:
        """The cluster of every row, as text, if the run was fitted with `--cluster`."""
        return None if self.cluster is None else column_of_clusters(frame, self.cluster)

    def answer(self, data: Any, *, ignore_extra: bool = False) -> Answer:
        """`ServedRun.answer`."""
        return self.served.answer(data, ignore_extra=ignore_extra)


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
    if file_of(path, ABOUT).is_file():
        raise BadFile(f"{path} holds an earlier run; replace it with --force (force=True) or choose another place")
    if is_unfinished(path):
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
    place, path = Path(path), file_of(Path(path), SCORES)
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
    try:
        return with_module(load_served(path))
    except RuntimeError as cause:
        raise BadFile(f"{path} is damaged: {reason(cause)}") from cause


def with_module(served: ServedRun) -> SavedRun:
    """A run that `sp.load_run` read, with its model as a PyTorch module."""
    model, outputs = served.about["model"], len(served.point.classes or served.point.labels) or 1
    model = restore_model(model["kind"], model["width"], model["members"], as_tensors(served.state), outputs)
    saved = SavedRun(model.eval(), served.point, served.schema, served.about)
    # What `served` is computed to be, from the same parameters and faster.
    saved.__dict__["served"] = served
    return saved
