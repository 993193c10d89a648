"""A run on a table that is larger than memory: read in chunks, as often as training needs it.

    pass 0    text columns only: what their values spell, numbers, booleans, times or words
    pass 1    what training saw in each column, and the classes of the target
    pass 2    the rows that are kept: held-out, calibration and test, and as many of the training rows, to judge by
    then      one pass an epoch: chunks in random order, `JOINED` of them mixed, cut into batches

Each row belongs to a part by a hash of its number and the seed, so nothing has to be remembered of it. No part but
train is larger than `most_kept`; what is beyond goes to training.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setpoint.capacity import amount, refuse_beyond_memory
from setpoint.data.batch import Batch
from setpoint.data.learn import Learner, Levels
from setpoint.data.reading import apply_readings
from setpoint.data.scan import CHUNK, Chunk, Scan, learn_readings_of
from setpoint.data.schema import Schema, Target, missing_labels, refuse_odd_target
from setpoint.errors import BadSetting, TooFewSamples
from setpoint.problem.problem import Problem
from setpoint.run.settings import PARTS, Settings
from setpoint.run.side_by_side import Told
from setpoint.run.table import SplitTable, TableRun, fit_parts, instead
from setpoint.train.work import Work

#: The most rows of a part that are kept, and the most bytes that their features may take.
MOST_ROWS, MOST_BYTES = 131_072, 32_000_000
#: Chunks that are mixed before they are cut into batches.
JOINED = 4
#: Rows of a batch, steps in all and the fewest passes over the table, unless told.
BATCH, STEPS, EPOCHS = 512, 2000, 3
#: The budget of streaming: the four parts, the chunks that are mixed and read, what judging a part takes for a moment,
#: and the program itself. The sum has been held against the peak of whole runs, on files of up to 4 GB; its terms not.
MEMORY = 4 * MOST_BYTES + 12 * CHUNK + 200_000_000 + 450_000_000


def memory_note(path: str | Path) -> str:
    """What streaming a file will take, told before it starts."""
    size = Path(path).stat().st_size if Path(path).is_file() else 0
    return f"streaming {path}, {amount(size)}, with a budget of about {amount(MEMORY)} of memory"


@dataclass(frozen=True)
class Division:
    """Which part each row of a table belongs to: `edges` cut the numbers from 0 to 1 that rows are hashed to."""

    seed: int
    edges: tuple[float, ...]
    sample: float

    @classmethod
    def of(cls, rows: int, shares: tuple[float, ...], seed: int, most: int = MOST_ROWS) -> Division:
        """Shares of the rows, but of no part beside train more than `most`."""
        kept = [min(share, most / rows) for share in shares[1:]]
        train = 1 - sum(kept)
        edges = np.cumsum([train, *kept[:-1]])
        return cls(seed, tuple(edges.tolist()), min(train, most / rows))

    def parts(self, chunk: Chunk) -> NDArray[np.int64]:
        """The place of each row's part among `PARTS`."""
        return np.searchsorted(np.array(self.edges), self._place(chunk), side="right")

    def sampled(self, chunk: Chunk) -> NDArray[np.bool_]:
        """The training rows that are kept to judge by."""
        return self._place(chunk) < self.sample

    def _place(self, chunk: Chunk) -> NDArray[np.float64]:
        """A number from 0 to 1 a row, by the finaliser of SplitMix64."""
        rows = np.arange(chunk.first, chunk.first + chunk.rows, dtype=np.uint64)
        mixed = _mix(rows + _mix(np.array([(self.seed + 0x9E3779B97F4A7C15) % 2**64], dtype=np.uint64)))
        return (mixed >> np.uint64(11)).astype(np.float64) / 2.0**53


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


class StreamedBatches:
    """A loader over the training rows of a table on disk.

    Each pass draws a new order of the chunks, and of the rows of every `JOINED` chunks together: rows that lie far
    apart in the file never meet in a batch, so a table sorted by its target should be shuffled once beforehand.
    """

    def __init__(self, scan: Scan, schema: Schema, division: Division, rows: int, batch_size: int, seed: int) -> None:
        self.scan, self.schema, self.division = scan, schema, division
        self.rows, self.batch_size = rows, batch_size
        self.generator = torch.Generator().manual_seed(seed)
        #: No rows in memory: methods that need them all refuse this loader.
        self.resident = None

    def __len__(self) -> int:
        return math.ceil(self.rows / self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        order = torch.randperm(len(self.scan.chunks), generator=self.generator)
        left: list[Batch] = []
        groups = order.split(JOINED)
        for place, group in enumerate(groups, start=1):
            read = [*left, *(self._read(self.scan.chunks[chunk]) for chunk in group.tolist())]
            x, labels = torch.cat([part.x for part in read]), torch.cat([part.labels for part in read])
            rows = torch.randperm(len(labels), generator=self.generator)
            whole = len(rows) if place == len(groups) else len(rows) // self.batch_size * self.batch_size
            for some in rows[:whole].split(self.batch_size):
                yield Batch(x.index_select(0, some), labels.index_select(0, some))
            left = [Batch(x[rows[whole:]], labels[rows[whole:]])]

    def _read(self, chunk: Chunk) -> Batch:
        frame = self.scan.read(chunk).filter(self.division.parts(chunk) == 0)
        return Batch(self.schema.encode(frame), self.schema.labels(frame))


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
    """As `fit_table`, on a file that need not fit into memory; linear models are trained in batches too."""
    work, settings = work or Work(), settings or Settings()
    if settings.over_splits:
        raise BadSetting("over_splits deals the rows out anew, which needs them in memory; leave out --stream")
    if problem.group is not None:
        raise BadSetting(f"'{problem}' compares groups, which --stream does not; leave out --stream or the gap")
    division = Division.of(scan.rows, settings.shares, settings.seed)
    schema = learn(scan, division, target, positive)
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
        return StreamedBatches(scan, schema, division, rows, batch_size, seed)

    work.identity = {"data": data, "target": target, "positive": positive, "solvers": [], "stream": True}
    run = fit_parts(
        SplitTable(parts, named=True, stream=loader, streamed=rows), problem, settings, on_row=on_row, work=work
    )
    used = {one.name: one.history[-1]["solver"] for one in (run, *run.beside)}
    notes = (
        *(f"column {name!r} is not used: {why}" for name, why in schema.dropped),
        *instead(run, settings),
        f"streamed: trained in batches of {settings.batch_size} by "
        + ", ".join(f"{method} ({name})" if method != name else name for name, method in used.items())
        + f"; train was judged on {len(parts['train'].labels)} of its {rows} rows",
    )
    return TableRun(run, settings, schema, sizes, notes, data)


def learn(scan: Scan, division: Division, target: str, positive: str | None = None) -> Schema:
    """What the training rows hold in each column, in one pass; the classes are counted in all rows."""
    learners: dict[str, Learner] = {}
    readings, classes = learn_readings_of(scan), Levels()
    for chunk, raw in scan.frames():
        if not learners:
            refuse_odd_target(raw, target)
        frame = apply_readings(raw, readings)
        if not learners:
            learners = {c.name: Learner(c, readings.get(c.name)) for c in frame if c.name != target}
        classes.add(frame[target])
        train = frame.filter(division.parts(chunk) == 0)
        for name, learner in learners.items():
            learner.add(train[name])
    if classes.missing:
        raise missing_labels(target, classes.missing, classes.rows)
    found = Target.with_classes(target, classes.found(4), readings[target], positive)
    return Schema.with_columns(found, {name: learner.found() for name, learner in learners.items()}, readings)


def keep(
    scan: Scan, division: Division, schema: Schema, most: int
) -> tuple[dict[str, Batch], dict[str, dict[str, int]]]:
    """The rows that stay in memory, at most so many a part, and the number of rows and positives in each part."""
    kept: dict[str, list[Batch]] = {part: [] for part in PARTS}
    sizes = {part: {"rows": 0, "positives": 0} for part in PARTS}
    held = dict.fromkeys(PARTS, 0)
    for chunk, frame in scan.frames():
        labels, places, sampled = schema.labels(frame), division.parts(chunk), division.sampled(chunk)
        for place, part in enumerate(PARTS):
            own = places == place
            sizes[part]["rows"] += int(own.sum())
            sizes[part]["positives"] += int(labels[torch.from_numpy(own)].sum())
            rows = np.flatnonzero(own & sampled if part == "train" else own)[: most - held[part]]
            if len(rows):
                held[part] += len(rows)
                kept[part].append(Batch(schema.encode(frame[rows]), labels[torch.from_numpy(rows)]))
    return {part: _joined(own) for part, own in kept.items() if own}, sizes


def _joined(parts: list[Batch]) -> Batch:
    """One batch; the parts are let go of on the way."""
    x = torch.empty((sum(len(p.labels) for p in parts), parts[0].x.shape[1]), dtype=parts[0].x.dtype)
    labels: list[Tensor] = []
    start = 0
    while parts:
        part = parts.pop(0)
        x[start : start + len(part.labels)] = part.x
        labels.append(part.labels)
        start += len(part.labels)
    return Batch(x, torch.cat(labels))


def _refuse_absent_classes(sizes: dict[str, dict[str, int]]) -> None:
    for part, size in sizes.items():
        for kind, rows in (("positive", size["positives"]), ("negative", size["rows"] - size["positives"])):
            if rows == 0:
                raise TooFewSamples(
                    f"no {kind} row among the {size['rows']} {part.replace('_', '-')} rows; bring more rows of that "
                    "class, or fit without --stream, which splits each class apart"
                )
