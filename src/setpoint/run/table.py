"""A run on a table: split it, train the named solver and plain cross-entropy, and judge both on every part."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint.capacity import refuse_beyond_memory
from setpoint.data.batch import Batches, Loader
from setpoint.data.frame import Frame, with_labels
from setpoint.data.label_columns import AnyTarget, LabelColumns
from setpoint.data.layout import Block
from setpoint.data.learn import spelling_note
from setpoint.data.parts import Data
from setpoint.data.reading import learn_readings
from setpoint.data.rows import Rows
from setpoint.data.scan import fingerprint
from setpoint.data.schema import Schema, column_values, group_names, list_names
from setpoint.data.sketch import row_hashes, sketch_of
from setpoint.data.target import Target
from setpoint.data.target_mean import Truth
from setpoint.decide.paired import Difference
from setpoint.errors import BadSetting, BadTable, TooFewSamples
from setpoint.measure.classes import CLASSES
from setpoint.measure.in_first import LISTS
from setpoint.measure.lists import number_lists
from setpoint.measure.sample import name_groups
from setpoint.problem.caution import Caution
from setpoint.problem.labels import LabelProblem
from setpoint.problem.problem import Problem
from setpoint.run.divide import divide
from setpoint.run.run import Run
from setpoint.run.sanity import cautions_of_run
from setpoint.run.settings import CHOSEN, Settings
from setpoint.run.side_by_side import SideBySide, Told, entries, one_thread
from setpoint.serve.description import PARTS
from setpoint.shown import html_of
from setpoint.train.by_sums import BySums
from setpoint.train.choose import How
from setpoint.train.default import BASELINE, Case
from setpoint.train.encodings import choose_encodings
from setpoint.train.identity import identity_of
from setpoint.train.splits import Splits
from setpoint.train.work import Work


@dataclass(frozen=True)
class TableRun:
    """A finished run on a table.

    Attributes:
        chosen: The run that is shipped: by the named solver, or plain cross-entropy where held-out rows clearly prefer
            it to the default. The last of the runs beside it is the one it is judged against.
        settings: The settings, with epochs and batch size chosen.
        schema: How each column is read and encoded.
        sizes: The number of rows of each part, and of its positives or of each of its classes.
        notes: Sentences about columns, values and choices that a user should know of.
        data: The fingerprint of the table.
        sketch: Hashes of a few rows that were trained on or set the threshold, as `sketch_of` gives them.
        list_names: The name of each list by its number, where the ask is about lists.

    Example:
        >>> import polars as pl, setpoint as sp
        >>> from setpoint.run.table import fit_table
        >>> frame = pl.DataFrame({"x": list(range(200)), "y": [row // 100 for row in range(200)]})
        >>> table = fit_table(frame, "y", sp.ask("minimize fnr where fpr <= 10%"))
        >>> table.sizes["test"], [run.name for run in table.runs]
        ({'rows': 40, 'positives': 20}, ['default', 'cross-entropy'])
    """

    chosen: Run
    settings: Settings
    schema: Schema
    sizes: dict[str, dict[str, Any]]
    notes: tuple[str, ...]
    data: dict[str, Any]
    sketch: tuple[int, ...] = ()
    list_names: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        return html_of(self.chosen)

    @property
    def problem(self) -> Problem:
        """The problem to solve."""
        return self.chosen.problem

    @property
    def runs(self) -> tuple[Run, ...]:
        """The run by the named solver, and the runs beside it."""
        return self.chosen, *self.chosen.beside

    @property
    def rival(self) -> Run | None:
        """The run that the shipped one is judged against: plain cross-entropy, or the default where that is shipped."""
        return next(iter(self.chosen.beside[-1:]), None)

    @cached_property
    def against(self) -> Difference | None:
        """The difference from the rival on the test rows, on equal terms (`Run.on_equal_terms`)."""
        return None if self.rival is None else self.chosen.against(self.rival)

    @cached_property
    def cautions(self) -> tuple[Caution, ...]:
        """The reasons to doubt the numbers of this run."""
        return cautions_of_run(self.chosen, self.sizes)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON, without parameters and history."""
        certificate = self.chosen.point.certificate
        return {
            "ask": str(self.problem),
            "solver": self.settings.solver,
            "shipped": self.chosen.name,
            "why_shipped": self.chosen.why_shipped,
            "point": self.chosen.point.to_dict(),
            "certified": self.chosen.point.certificate is not None,
            "certificate": None if certificate is None else asdict(certificate),
            "cost_of_certificate": self.chosen.cost_of_certificate,
            "against": _against(self),
            "warnings": [caution.to_dict() for caution in self.cautions],
            "settings": asdict(self.settings),
            "data": self.data,
            "sketch": list(self.sketch),
            "rows": self.sizes,
            "results": {run.name: _result(run) for run in self.runs},
            "schema": self.schema.to_dict(),
            "notes": list(self.notes),
        }


def _against(run: TableRun) -> dict[str, Any] | None:
    if run.rival is None or run.against is None:
        return None
    return {"solver": run.rival.name, **run.against.to_dict()}


def _result(run: Run) -> dict[str, Any]:
    judged = {part: run.judged(part) for part in PARTS}
    return {
        "method": run.method,
        "threshold": run.point.thresholds.stored(),
        "bare_threshold": None if run.bare is None else run.bare.thresholds.stored(),
        "best_on_test": run.best("test").objective,
        "best_epoch": run.trained.best,
        "seconds": round(run.seconds, 3),
        "refusal": run.refusal,
        "refitted": run.trained.again,
        "comparison": [trial.to_dict() for trial in run.trials],
        **{part: {"objective": p.objective, "feasible": p.feasible, "rates": p.rates} for part, p in judged.items()},
    }


@dataclass(frozen=True)
class SplitTable:
    """The rows of a table by part, as features.

    Args:
        rows: The rows of each part. The training rows of a stream are a sample, to judge by.
        group_names: The names of the groups, where groups are compared.
        class_names: The names of the classes or labels, where the ask is about several.
        named: Whether the name of a part identifies its rows, because the run stores the fingerprint of the table.
        stream: Gives a loader of the streamed training rows, from a batch size and a seed.
        streamed: The number of streamed training rows.
        blocks: The features that come from one value of a row.
        clusters: The number of the cluster of each calibration row, where rows of one cluster depend on each other.
    """

    rows: Mapping[str, Rows]
    group_names: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    named: bool = False
    stream: Callable[[int, int], Loader] | None = None
    streamed: int = 0
    blocks: tuple[Block, ...] = ()
    clusters: Tensor | None = None

    @property
    def train_rows(self) -> int:
        """The number of training rows."""
        return self.streamed or len(self.rows["train"].labels)

    def data(self, settings: Settings, work: Work) -> Data:
        """Loaders of all parts; several processes share every batch."""
        size = settings.batch_size or self.train_rows
        train: Any = self._batches("train", work, batch_size=size, shuffle=size < self.train_rows, seed=settings.seed)
        held_out, calibration, test = (self._batches(part, work) for part in PARTS[1:])
        if self.stream is None:
            classes = self.class_names
            return Data(
                train, held_out, calibration, test, self.group_names, blocks=self.blocks, class_names=classes,
                clusters=self.clusters,
            )  # fmt: skip
        seen = self._batches("train", work)
        train = self.stream(size, settings.seed)
        return Data(train, held_out, calibration, test, self.group_names, seen, self.blocks)

    def _batches(self, part: str, work: Work, **how: Any) -> Batches:
        rows, shared = self.rows[part], None if not work.processes.alone else False
        loader = Batches(rows.x, rows.labels, groups=rows.groups, process_group=shared, **how)
        loader = loader if rows.lists is None else loader.with_lists(rows.lists)
        return loader.with_values(rows.values).with_clusters(rows.clusters).known_as(part if self.named else None)


def fit_table(
    frame: Frame,
    target: str | Sequence[str],
    problem: Problem,
    settings: Settings | None = None,
    *,
    positive: str | None = None,
    solvers: Sequence[str] = (),
    on_row: Told | None = None,
    work: Work | None = None,
) -> TableRun:
    """Train on a table for a problem, with plain cross-entropy beside it.

    The rows are split by `settings.shares`, with the same mix of classes in every part. The schema is learned from the
    training rows.

    Args:
        frame: The table.
        target: The name of the column to predict; for several labels per row the names of their columns, as a sequence
            or with commas between.
        problem: The problem to solve.
        settings: How to train; None takes the defaults.
        positive: The positive class. None finds it, see `Target`.
        solvers: The names of further solvers to train on the same rows; plain cross-entropy is always the last.
        on_row: A function that is called with the solver, its rows of history so far, and the expected number of rows.
        work: The processes that take part and the store of the state. The same call resumes from the store; the state
            of other data is refused. Several processes, each with the whole table, share every batch.

    Returns:
        The run by the solver of the settings, with the other runs beside it.

    Raises:
        BadTable: If the target or a column cannot be used.
        TooFewSamples: If a class or group has too few rows for the split.
        NotEnoughMemory: If the table as features does not fit into memory.

    Example:
        >>> import polars as pl, setpoint as sp
        >>> from setpoint.run.table import fit_table
        >>> frame = pl.DataFrame({"x": list(range(200)), "y": [row // 100 for row in range(200)]})
        >>> table = fit_table(frame, "y", sp.ask("minimize fnr where fpr <= 10%"))
        >>> table.chosen.point.feasible, table.settings.batch_size
        (True, 100)
    """
    work, settings = work or Work(), settings or Settings()
    settings.refuse_other_lists(problem)
    about = (work.store.about or {}).get("fingerprint") or fingerprint(frame)
    readings, frame = learn_readings(frame)
    targets = named_targets(target, frame.columns, problem)
    left_out, rows_read = settings.left_out(frame.columns, targets), frame.height
    frame = with_labels(frame, *targets) if settings.drop_missing_target else frame
    problem, classes = about_target(problem, frame, targets, positive, settings.relevant)
    labels = classes.labels(frame)
    names = problem.labels if isinstance(problem, LabelProblem) else classes.classes
    lists, queries = number_lists(list_names(frame, settings.lists)) if settings.lists else (None, np.array([]))
    divided = divide(frame, labels, settings, names, lists)
    rows = divided.rows
    # The parts one behind the other, so that each column is encoded once.
    in_parts = frame[torch.cat([*rows.values()]).numpy()]
    train = in_parts[: len(rows["train"])].drop(left_out)
    truth = None if names else Truth(labels[rows["train"]].numpy())
    learned = Schema.of(train, classes, readings, settings.kinds)
    with one_thread():
        schema, encodings = choose_encodings(learned, train, truth, settings.kinds)
    schema = replace(schema, dropped=(*schema.dropped, *left_out.items()))
    _refuse_wide_tables(frame.height, schema)
    codes: Tensor | None = None
    groups: list[str] = []
    if problem.group is not None:
        codes, groups = name_groups(group_names(frame, problem.group))
    values = column_values(frame, problem.columns)
    seen = schema.notes()
    plain = schema.encode(in_parts, notes=seen).split([len(own) for own in rows.values()])
    first = plain[0] if truth is None else schema.of_training(plain[0], train, truth)
    parts = {
        part: Rows(
            x,
            labels[own],
            groups=None if codes is None else codes[own],
            lists=None if lists is None else lists[own],
            values=None if values is None else values[own],
            clusters=None if divided.clusters is None else divided.clusters[own],
        )
        for (part, own), x in zip(rows.items(), (first, *plain[1:]))
    }
    settings = settings.settled(len(rows["train"]))
    words = [
        f"column {column.name!r} is taken as words: {odd}"
        for column in schema.columns
        if readings[column.name].kind == "words" and (odd := spelling_note(frame[column.name]))
    ]
    work.identity = {"data": about, "target": ",".join(targets), "positive": positive, "solvers": list(solvers)}
    blocks = tuple(schema.blocks)
    cut = SplitTable(parts, tuple(groups), names, named=True, blocks=blocks, clusters=parts["calibration"].clusters)
    run = fit_parts(cut, problem, settings, solvers, on_row=on_row, work=work)
    again = ["the model was retrained on training and held-out rows together; --no-refit turns that off"]
    told = (*chosen(schema, rows_read - frame.height), *divided.notes, *schema.spellings(), *words, *encodings)
    notes = (*told, *seen.sentences(ranges=False), *instead(run, settings))
    notes = (*notes, *(again if run.trained.again else ()))
    sizes = {name: sizes_of(part, classes) for name, part in parts.items()}
    seen_rows = [row_hashes(x, parts[part].labels) for part, x in zip(PARTS[:3], plain)]
    sketch = sketch_of(np.concatenate(seen_rows))
    return TableRun(run, settings, schema, sizes, notes, about, sketch, tuple(queries.tolist()))


def named_targets(target: str | Sequence[str], columns: Sequence[str], problem: Problem) -> tuple[str, ...]:
    """The columns to predict: one, or those of several labels, which a text names with commas between.

    Where the problem is about labels and no column is named, they are those of its labels.
    """
    if isinstance(problem, LabelProblem) and not target:
        return problem.labels
    if not isinstance(target, str):
        return tuple(target)
    several = tuple(part.strip() for part in target.split(",") if part.strip())
    return several if target not in columns and len(several) > 1 else (target,)


def about_target(
    problem: Problem, frame: Frame, targets: Sequence[str], positive: str | None, relevant: float | None = None
) -> tuple[Problem, AnyTarget]:
    """The target with the classes that the problem is about, and the problem with the numbers of its classes.

    An ask of errors, such as `minimize error`, is about all classes where the target holds more than two. Several
    targets are labels, of which each has the ask, or an ask of its own. With `relevant` the target holds grades, of
    which those from there on are positive.

    Raises:
        BadSetting: If a positive class is named, but the problem is about classes.
        BadTable: If the target cannot be used.
    """
    if len(targets) > 1 or isinstance(problem, LabelProblem):
        found_labels = LabelColumns.of(frame, targets, positive)
        asked = problem if isinstance(problem, LabelProblem) else LabelProblem.same(problem, targets)
        return asked.resolved(targets), found_labels
    target = targets[0]
    if problem.kind == CLASSES and positive is not None:
        raise BadSetting(
            f"--positive sets one class against the rest, but '{problem}' is about all classes; leave out --positive"
        )
    if relevant is not None:
        if positive is not None:
            raise BadSetting("--relevant and --positive both say which rows are positive; leave one out")
        return problem, Target.of_grades(frame, target, relevant)
    if problem.kind == LISTS and positive is None and target in frame.columns:
        grades = frame[target].drop_nulls().unique()
        if grades.dtype.is_numeric() and len(grades) > 2:
            raise BadTable(
                f"target {target!r} holds {len(grades)} grades; say from which grade on a row is positive, as in "
                "--relevant 1"
            )
    if problem.kind != CLASSES:
        try:
            return problem, Target.of(frame, target, positive)
        except BadTable as cause:
            found = _classes_of(frame, target) if positive is None and problem.is_of_errors else None
            if found is None or len(found.classes) < 3:
                raise cause
    else:
        found = Target.of_classes(frame, target)
    return problem.resolved(found.classes), found


def _classes_of(frame: Frame, target: str) -> Target | None:
    try:
        return Target.of_classes(frame, target)
    except BadTable:
        return None


def sizes_of(part: Rows, target: AnyTarget) -> dict[str, Any]:
    """The number of rows of a part, of its positives or of each of its classes or labels, and of its lists."""
    labels = part.labels
    if isinstance(target, LabelColumns):
        each = zip(target.columns, labels.unbind(1))
        known = {name: {"known": int((~own.isnan()).sum()), "positives": int((own == 1).sum())} for name, own in each}
        return {"rows": len(labels), "labels": known}
    if not target.classes:
        lists = {} if part.lists is None else {"lists": len(part.lists.unique())}
        return {"rows": len(labels), "positives": int(labels.sum()), **lists}
    counts = torch.bincount(labels, minlength=len(target.classes)).tolist()
    return {"rows": len(labels), "classes": dict(zip(target.classes, counts))}


def chosen(schema: Schema, unlabelled: int) -> list[str]:
    """Notes on the classes, rows and columns that are learned from."""
    target = schema.target
    if isinstance(target, LabelColumns):
        rows = f"{unlabelled} rows without any label are left out"
        return [*([rows] if unlabelled else []), *_unused(schema)]
    rest = f"{target.name!r} holds {len(target.rest) + 2} classes: {target.positive!r} against {target.negatives}"
    rows = f"{unlabelled} rows without a label in {target.name!r} are left out"
    return [*([rest] if target.rest else []), *([rows] if unlabelled else []), *_unused(schema)]


def _unused(schema: Schema) -> list[str]:
    return [f"column {name!r} is not used: {why}" for name, why in schema.dropped if why not in CHOSEN]


def instead(run: Run, settings: Settings) -> list[str]:
    """A note for each run that was trained by another method than its name says."""
    told = [f"{one.instead}; trained in batches of {settings.batch_size} instead" for one in (run, *run.beside)]
    in_batches = [one.instead and not isinstance(one.trained.settled, BySums) for one in (run, *run.beside)]
    return list(dict.fromkeys(note for note, said in zip(told, in_batches) if said))


def _refuse_wide_tables(rows: int, schema: Schema) -> None:
    """Refuse a table before it is encoded: four bytes per feature and row, and one column at a time beside them."""
    widths = {column.name: len(column.features) for column in schema.columns}
    widest = max(widths, key=lambda name: widths[name])
    refuse_beyond_memory(
        f"a table of {rows} rows and {sum(widths.values())} features",
        4 * rows * (sum(widths.values()) + 2 * widths[widest]),
        f"take fewer rows, or leave out columns with many levels, such as {widest!r}",
    )


def fit_parts(
    parts: SplitTable,
    problem: Problem,
    settings: Settings,
    solvers: Sequence[str] = (),
    *,
    on_row: Told | None = None,
    work: Work | None = None,
) -> Run:
    """Train the named solver, further solvers and plain cross-entropy, on features that are already split."""
    work = work or Work()
    settings = settings.settled(parts.train_rows)
    _refuse_absent_groups(parts, problem)
    work.identity = identity_of({"ask": problem, "settings": settings, **work.identity})
    work.once("begun", lambda: True)
    n_groups = len(parts.group_names) if problem.group is not None else None
    whole = (settings.batch_size or 0) >= parts.train_rows
    outputs = len(parts.class_names) or 1
    n_classes = len(parts.class_names) if problem.kind == CLASSES else 0
    case = Case(problem, False, whole, parts.train_rows, n_groups, n_classes, settings.tune, settings.seed)
    members = Splits(settings.ensemble) if settings.over_splits else settings.ensemble
    how = How(settings.epochs or 1, refit=settings.refit, ensemble=members, seed=settings.seed)
    names = [*(name for name in dict.fromkeys([settings.solver, *solvers]) if name != BASELINE), BASELINE]
    width = parts.rows["train"].x.shape[1]
    ways = entries(settings.model, names, width, settings.seed, settings.of_the_method, outputs)
    together = SideBySide(problem, lambda: parts.data(settings, work), case, how, settings.confidence, on_row)
    with one_thread():
        found = together.run(ways, work)
        for one in (found, *found.beside):
            for part in PARTS:
                one.sample(part)
    work.store.close()
    return found


def _refuse_absent_groups(parts: SplitTable, problem: Problem) -> None:
    """Refuse a part that lacks a group."""
    for name, part in parts.rows.items():
        if problem.group is not None and part.groups is not None:
            present = set(part.groups.tolist())
            absent = [group for code, group in enumerate(parts.group_names) if code not in present]
            if absent:
                raise TooFewSamples(
                    f"no row of {problem.group} {absent[0]!r} among the {len(part.labels)} {name.replace('_', '-')} "
                    "rows; drop so small a group or join it to another"
                )
