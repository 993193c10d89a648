"""A run: split a table, train the solver and, beside it, plain cross-entropy, and judge both on every part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint.capacity import refuse_beyond_memory
from setpoint.data.column import odd_numbers_note
from setpoint.data.fingerprint import fingerprint
from setpoint.data.frame import Frame
from setpoint.data.groups import group_names
from setpoint.data.reading import learn_readings
from setpoint.data.rows import Rows
from setpoint.data.schema import Schema, Target
from setpoint.data.split import split
from setpoint.decide.calibrate import calibrate
from setpoint.decide.certify import is_certifiable
from setpoint.errors import TooFewSamples
from setpoint.measure.sample import name_groups
from setpoint.problem.problem import Problem
from setpoint.processes import ALONE, Processes
from setpoint.run.outcome import JUDGED, Named, Outcome, Stream, Told, Training, shortage
from setpoint.run.settings import PARTS, Settings
from setpoint.run.solvers import BASELINE
from setpoint.train.checkpoint import Checkpoint
from setpoint.train.identity import identity_of


@dataclass(frozen=True)
class TableRun:
    """A finished run. The first outcome is the one that was asked for, the last is plain cross-entropy."""

    problem: Problem
    settings: Settings
    schema: Schema
    outcomes: tuple[Outcome, ...]
    sizes: dict[str, dict[str, int]]
    notes: tuple[str, ...]
    data: dict[str, Any]
    labels: dict[str, Tensor] = field(default_factory=dict, compare=False, repr=False)
    groups: dict[str, Tensor] = field(default_factory=dict, compare=False, repr=False)

    @property
    def chosen(self) -> Outcome:
        return self.outcomes[0]

    @property
    def certifiable(self) -> bool:
        """Whether there is a certificate for such a problem, given enough samples."""
        return is_certifiable(self.problem)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON: everything but parameters and history."""
        return {
            "ask": str(self.problem),
            "solver": self.settings.solver,
            "point": self.chosen.point.to_dict(),
            "settings": asdict(self.settings),
            "data": self.data,
            "rows": self.sizes,
            "results": {outcome.solver: outcome.to_dict() for outcome in self.outcomes},
            "schema": self.schema.to_dict(),
            "notes": list(self.notes),
        }


def fit_table(
    frame: Frame,
    target: str,
    problem: Problem,
    settings: Settings | None = None,
    *,
    positive: str | None = None,
    solvers: Sequence[str] = (),
    on_epoch: Told | None = None,
    checkpoint: Checkpoint | None = None,
    processes: Processes = ALONE,
    data: dict[str, Any] | None = None,
) -> TableRun:
    """Train on a table for a problem; `on_epoch(solver, done, all)` is told of the progress.

    Further `solvers` are trained on the same rows after that of the settings, plain cross-entropy always the last.
    The rows are split by `settings.shares`, each class apart, and the schema is learned from the training rows.
    A `checkpoint` is begun once all is checked; the same call goes on from it, one for other data is refused.
    Several `processes`, each with the whole table, share out every batch; a recipe that needs all rows at once is left
    to the first of them. `data` is the fingerprint of the table, if it has been taken already.
    """
    data = data or fingerprint(frame)
    readings, frame = learn_readings(frame)
    classes = Target.of(frame, target, positive)
    labels = classes.labels(frame)
    settings = settings or Settings()
    rows = dict(zip(PARTS, split(labels, settings.shares, settings.seed)))
    frames = {part: frame[index.numpy()] for part, index in rows.items()}
    schema = Schema.of(frames["train"], classes, readings)
    _refuse_wide_tables(frame.height, schema)
    codes: Tensor | None = None
    groups: list[str] = []
    if problem.group is not None:
        codes, groups = name_groups(group_names(frame, problem.group))
    seen = schema.notes()
    parts = {
        part: Rows(
            schema.encode(frames[part], notes=seen),
            labels[rows[part]],
            groups=None if codes is None else codes[rows[part]],
        )
        for part in PARTS
    }
    settings = settings.settled(len(rows["train"]))
    short = shortage(settings, parts)
    sizes = {name: {"rows": len(p.labels), "positives": int(p.labels.sum())} for name, p in parts.items()}
    dropped = [f"column {name!r} is not used: {why}" for name, why in schema.dropped]
    words = [
        f"column {column.name!r} is taken as words: {odd}"
        for column in schema.columns
        if readings[column.name].kind == "words" and (odd := odd_numbers_note(frame[column.name]))
    ]
    asked = {"data": data, "target": target, "positive": positive, "solvers": list(solvers)}
    outcomes = fit_parts(
        parts, problem, settings, groups=groups, solvers=solvers, on_epoch=on_epoch, checkpoint=checkpoint, asked=asked,
        processes=processes,
    )  # fmt: skip
    again = ["the held-out rows were trained on as well, once they had chosen; --no-refit leaves them alone"]
    notes = (*dropped, *words, *seen.sentences(ranges=False), *short, *(again if outcomes[0].refitted else ()))
    kept = {part: parts[part].labels for part in JUDGED}
    codes_of = {part: own for part in JUDGED if (own := parts[part].groups) is not None}
    return TableRun(problem, settings, schema, outcomes, sizes, notes, data, kept, codes_of)


def _refuse_wide_tables(rows: int, schema: Schema) -> None:
    """Before anything is written out as numbers, four bytes a feature; a column at a time beside that."""
    widths = {column.name: len(column.features) for column in schema.columns}
    widest = max(widths, key=lambda name: widths[name])
    refuse_beyond_memory(
        f"a table of {rows} rows and {sum(widths.values())} features",
        4 * rows * (sum(widths.values()) + 2 * widths[widest]),
        f"take fewer rows, or leave out columns with many levels, such as {widest!r}",
    )


def fit_parts(
    parts: Mapping[str, Rows],
    problem: Problem,
    settings: Settings,
    *,
    groups: Sequence[str] = (),
    solvers: Sequence[str] = (),
    on_epoch: Told | None = None,
    checkpoint: Checkpoint | None = None,
    asked: Mapping[str, Any] | None = None,
    stream: Stream | None = None,
    processes: Processes = ALONE,
) -> tuple[Outcome, ...]:
    """Train the solver that was asked for, others, and plain cross-entropy, on features that are already split.

    For a problem that compares groups the parts number them, and `groups` are their names. A checkpoint has a part
    for each solver; `asked` is what else it must have been begun with. With a `stream` training rows come from there,
    and those among the parts are a sample of them to judge by.
    """
    settings = settings.settled(len(parts["train"].labels) if stream is None else stream[1])
    named = _named(parts, problem, groups)
    set_aside = parts["calibration"].labels
    # If not even perfect scores could be certified there are too few samples: better told before training.
    perfect = set_aside + torch.linspace(0, 0.5, len(set_aside))
    try:
        calibrate(problem, perfect, set_aside, confidence=settings.confidence, groups=named["calibration"])
    except TooFewSamples as cause:
        raise TooFewSamples(f"on the {len(set_aside)} calibration rows, {cause}") from cause
    names = [name for name in dict.fromkeys([settings.solver, *solvers]) if name != BASELINE]
    kept = checkpoint or Checkpoint(None, processes=processes)
    if kept.open(identity_of({"ask": problem, "settings": settings, **(asked or {})})) is None:
        kept.save({})
    training = Training(
        parts, named, problem, settings, processes, stream, tuple(groups), named_by_run=asked is not None
    )
    # Batches of tables are small: a second thread costs more than it brings, and changes the last digits.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        outcomes = tuple(training.outcome(name, on_epoch, kept.part(name)) for name in [*names, BASELINE])
    finally:
        torch.set_num_threads(threads)
    kept.close()
    return outcomes


def _named(parts: Mapping[str, Rows], problem: Problem, groups: Sequence[str]) -> Named:
    """The group of every row of each part by its name; every group must be in every part."""
    if problem.group is None:
        return dict.fromkeys(parts)
    named: Named = {}
    for name, part in parts.items():
        assert part.groups is not None
        own = np.array(groups)[part.groups.numpy()]
        absent = [group for group in groups if group not in own]
        if absent:
            raise TooFewSamples(
                f"no row of {problem.group} {absent[0]!r} among the {len(own)} {name.replace('_', '-')} rows; "
                "drop so small a group or join it to another"
            )
        named[name] = own
    return named
