"""A run on a table that is larger than memory, which is read in chunks, once or more per stage.

    pass 0    find the kind of each text column: numbers, booleans, times or words
    pass 1    learn the columns from the training rows, and the classes of the target
    pass 2    keep the held-out, calibration and test rows, and some training rows to judge by
    then      one pass per epoch: chunks in random order, `JOINED` of them mixed, cut into batches

The part of each row follows from a hash of its number and the seed, so it need not be stored. Only the training part
may have more than `MOST_ROWS` rows; further rows of other parts are trained on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np
import torch

from setpoint.capacity import amount, refuse_beyond_memory
from setpoint.data.columns import refuse_odd_kinds
from setpoint.data.counts import Levels
from setpoint.data.frame import Frame
from setpoint.data.learn import TARGET, Learner, make_learner
from setpoint.data.many_files import files_of
from setpoint.data.reading import Readings, apply_readings
from setpoint.data.rows import Rows
from setpoint.data.scan import CHUNK, Chunk, Scan, learn_readings_of
from setpoint.data.schema import Schema
from setpoint.data.stream import JOINED, MOST_ROWS, Division, Labelled, StreamedBatches
from setpoint.data.target import MOST_CLASSES, Target, missing_labels, refuse_odd_target
from setpoint.errors import BadSetting, TooFewSamples
from setpoint.measure.classes import CLASSES
from setpoint.measure.in_first import LISTS
from setpoint.measure.labels import LABELS
from setpoint.problem.problem import Problem
from setpoint.run.settings import Settings
from setpoint.run.side_by_side import Told
from setpoint.run.table import SplitTable, TableRun, chosen, fit_parts, instead, named_targets
from setpoint.serve.description import PARTS
from setpoint.train.best_kind import BestKind
from setpoint.train.by_sums import BySums
from setpoint.train.method import Given
from setpoint.train.trees import Trees
from setpoint.train.trees_by_workers import TreesByWorkers
from setpoint.train.work import Work

#: The largest size in bytes of the features of a part that is kept.
MOST_BYTES = 32_000_000
#: The default batch size, number of steps, and least number of passes over the table.
BATCH, STEPS, EPOCHS = 512, 2000, 3
#: The solver that trains linear models by sums over all rows, as workers do by default.
SUMS = "sums"
#: The kinds of models and the solvers that workers train.
BY_WORKERS = {"linear": ("default", SUMS, "cross-entropy", "weighted"), "trees": ("default",)}
#: Methods that train on the sample of the training rows that is in memory.
IN_MEMORY = (BestKind, Trees, Given)
#: The memory budget of streaming: the four parts, the chunks that are read and mixed, the judging of a part, and the
#: program itself. Only the sum was compared with the peak of whole runs, on files of up to 4 GB, not its terms.
MEMORY = 4 * MOST_BYTES + 12 * CHUNK + 200_000_000 + 450_000_000


def memory_note(paths: Sequence[str]) -> str:
    """A sentence about the size of files and the memory budget of streaming them."""
    size = sum(path.stat().st_size for path in files_of(paths, []) if path.is_file())
    return f"streaming {', '.join(paths)}, {amount(size)}, with a budget of about {amount(MEMORY)} of memory"


def refuse_to_stream(problem: Problem, settings: Settings) -> None:
    """Refuse several classes, labels, lists and columns encoded by the target, which need all rows in memory."""
    encoded = [name for name, kind in settings.kinds.items() if kind == TARGET]
    if encoded:
        raise BadSetting(
            f"--stream cannot encode column {encoded[0]!r} by the target; leave out --stream, or use --hash"
        )
    what = {CLASSES: "several classes", LABELS: "several labels", LISTS: "lists"}.get(problem.kind)
    if what is not None:
        raise BadSetting(f"'{problem}' is about {what}, which --stream does not train; leave out --stream")


def refuse_workers(settings: Settings) -> None:
    """Refuse models and solvers that are not trained by workers."""
    solvers = BY_WORKERS.get(settings.model)
    if solvers is None:
        raise BadSetting(
            f"--workers trains linear models and trees, not --model {settings.model}; choose --model linear or trees, "
            "or train a network in several processes with torchrun"
        )
    if settings.solver not in solvers:
        raise BadSetting(f"--workers trains --model {settings.model} by {', '.join(solvers)}, not {settings.solver!r}")


def fit_stream(
    scan: Scan,
    target: str,
    problem: Problem,
    settings: Settings | None = None,
    *,
    positive: str | None = None,
    on_row: Told | None = None,
    work: Work | None = None,
) -> TableRun:
    """`fit_table` for a file that need not fit into memory; linear models are trained in batches."""
    work, settings = work or Work(), settings or Settings()
    if settings.over_splits:
        raise BadSetting("over_splits gives each member another split of rows in memory; leave out --stream")
    if settings.cluster or settings.time:
        raise BadSetting("--cluster and --time split rows in memory; leave out --stream")
    if problem.columns:
        raise BadSetting(f"'{problem}' counts the values of columns, which --stream does not; leave --stream out")
    if problem.group is not None:
        raise BadSetting(f"'{problem}' compares groups, which --stream does not; leave out --stream or the gap")
    if len(named_targets(target, scan.columns, problem)) > 1:
        raise BadSetting(f"{target} are several labels, which --stream does not train; leave out --stream")
    refuse_to_stream(problem, settings)
    if scan.workers is not None:
        refuse_workers(settings)
    left_out, rows_read = settings.left_out(scan.columns, (target,)), scan.rows
    scan = Labelled(scan, target) if settings.drop_missing_target else scan
    division = Division.of(scan.rows, settings.shares, settings.seed)
    schema = learn(scan, division, target, positive, left_out, settings.kinds)
    width = len(schema.features)
    most = max(min(MOST_ROWS, MOST_BYTES // (4 * width)), 1)
    refuse_beyond_memory(
        f"streaming {scan.rows} rows of {width} features",
        (JOINED + 1) * 4 * width * max(chunk.rows for chunk in scan.chunks),
        "leave out columns with many levels",
    )
    parts, sizes = keep(scan, division, schema, most)
    _refuse_absent_classes(sizes)
    rows = sizes["train"]["rows"]
    size = min(settings.batch_size or BATCH, rows)
    epochs = settings.epochs or min(max(STEPS // math.ceil(rows / size), EPOCHS), 400)
    settings = replace(settings, batch_size=size, epochs=epochs)
    data = scan.fingerprint()

    def loader(batch_size: int, seed: int) -> StreamedBatches:
        batches = StreamedBatches(scan, schema, division, rows, batch_size, seed)
        batches.by_sums = scan.workers is not None or settings.solver == SUMS
        return batches

    work.identity = {"data": data, "target": target, "positive": positive, "solvers": [], "stream": True}
    run = fit_parts(
        SplitTable(parts, named=True, stream=loader, streamed=rows, blocks=tuple(schema.blocks)),
        problem,
        settings,
        on_row=on_row,
        work=work,
    )
    kept = len(parts["train"].labels)
    sampled = [one.name for one in (run, *run.beside) if isinstance(one.trained.settled, IN_MEMORY)]
    summed = [one.name for one in (run, *run.beside) if isinstance(one.trained.settled, BySums | TreesByWorkers)]
    others = [one for one in (run, *run.beside) if one.name not in (*sampled, *summed)]
    used = {one.name: one.history[-1]["solver"] for one in others}
    by = ", ".join(f"{method} ({name})" if method != name else name for name, method in used.items())
    told = [
        f"trained in batches of {settings.batch_size} by {by}" if used else "",
        f"{' and '.join(sampled)} trained on a sample of {kept} training rows in memory" if sampled else "",
        f"{' and '.join(summed)} trained on all {rows} training rows at once" if summed else "",
        f"train was judged on {kept} of its {rows} rows",
    ]
    notes = (
        *chosen(schema, rows_read - scan.rows),
        *schema.spellings(),
        *instead(run, settings),
        f"streamed: {'; '.join(filter(None, told))}",
    )
    return TableRun(run, settings, schema, sizes, notes, data)


def learn(
    scan: Scan,
    division: Division,
    target: str,
    positive: str | None = None,
    left_out: Mapping[str, str] = MappingProxyType({}),
    kinds: Mapping[str, str] = MappingProxyType({}),
) -> Schema:
    """Learn the columns from the training rows, and the classes from all rows, in one pass.

    `left_out` says why columns are not learned from.
    """
    learners: dict[str, Learner] = {}
    readings, classes = learn_readings_of(scan), Levels()
    empty = scan.schema.to_frame()
    refuse_odd_target(empty, target)
    refuse_odd_kinds(empty, target, kinds)
    for here, found_here in scan.map(partial(_learn_chunk, division, target, tuple(left_out), dict(kinds), readings)):
        classes.merge(found_here)
        for name, learner in here.items():
            if name in learners:
                learners[name].merge(learner)
        learners = learners or here
    if classes.missing:
        raise missing_labels(target, classes.missing, classes.rows)
    found = Target.with_classes(target, classes.found(MOST_CLASSES), readings[target], positive)
    described = {name: learner.found() for name, learner in learners.items()}
    return Schema.with_columns(found, {**described, **left_out}, readings)


def _learn_chunk(
    division: Division,
    target: str,
    left_out: Sequence[str],
    kinds: Mapping[str, str],
    readings: Readings,
    chunk: Chunk,
    raw: Frame,
) -> tuple[dict[str, Learner], Levels]:
    """What the training rows of a chunk say of each column, and the classes of all its rows."""
    frame = apply_readings(raw, readings)
    used = [column for column in frame if column.name != target and column.name not in left_out]
    learners = {c.name: make_learner(c, readings.get(c.name), kinds.get(c.name)) for c in used}
    train = frame.filter(division.parts(chunk) == 0)
    for name, learner in learners.items():
        learner.add(train[name])
    return learners, Levels().add(frame[target])


def keep(
    scan: Scan, division: Division, schema: Schema, most: int
) -> tuple[dict[str, Rows], dict[str, dict[str, int]]]:
    """The rows that stay in memory, at most `most` per part, and the number of rows and positives of each part."""
    kept: dict[str, list[Rows]] = {part: [] for part in PARTS}
    sizes = {part: {"rows": 0, "positives": 0} for part in PARTS}
    held = dict.fromkeys(PARTS, 0)
    for here in scan.map(partial(_parts_of_chunk, division, schema, most)):
        for part, (rows, number, positives) in here.items():
            sizes[part]["rows"] += number
            sizes[part]["positives"] += positives
            some = rows.take(slice(most - held[part]))
            if len(some.labels):
                held[part] += len(some.labels)
                kept[part].append(some)
    return {part: Rows.join(own) for part in PARTS if (own := kept.pop(part))}, sizes


def _parts_of_chunk(
    division: Division, schema: Schema, most: int, chunk: Chunk, frame: Frame
) -> dict[str, tuple[Rows, int, int]]:
    """The rows of each part that a chunk holds, of the training part a sample, and their number and positives."""
    labels, places, sampled = schema.labels(frame), division.parts(chunk), division.sampled(chunk)
    found = {}
    for place, part in enumerate(PARTS):
        own = places == place
        rows = np.flatnonzero(own & sampled if part == "train" else own)[:most]
        positives = int(labels[torch.from_numpy(own)].sum())
        found[part] = (Rows(schema.encode(frame[rows]), labels[torch.from_numpy(rows)]), int(own.sum()), positives)
    return found


def _refuse_absent_classes(sizes: dict[str, dict[str, int]]) -> None:
    for part, size in sizes.items():
        for kind, rows in (("positive", size["positives"]), ("negative", size["rows"] - size["positives"])):
            if rows == 0:
                raise TooFewSamples(
                    f"no {kind} row among the {size['rows']} {part.replace('_', '-')} rows; bring more rows of that "
                    "class, or fit without --stream, which gives every part rows of both classes"
                )
