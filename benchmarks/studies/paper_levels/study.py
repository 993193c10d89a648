"""Why two levels of Table 5 of the implicit-thresholds paper differ from ours: cross-entropy, one change at a time.

    python -m benchmarks.studies.paper_levels [--data DIR] [--seeds N] [--so-far] [--quick]

Splits and cross-entropy are those of `paper_tabular`. A variant changes one thing of what is done there (columns, rows,
scaling, ridge, class weight, Adam instead of convergence), some change several together; an area is one way to
read the partial PR area off the scores (`areas.py`). Adam runs at the four learning rates of the paper
at once; the rate, and where it says so the epoch, are chosen on validation rows by the exact area. Of a full batch an
epoch is one step; the paper does not say how many it takes. Each finished row is a row of
`results/rows/paper_levels.parquet`, and not run again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.common.data import Part, arguments, load_arrays, paired, split_rows
from benchmarks.common.harness import Journal, write_result
from benchmarks.common.sets import read_table
from benchmarks.studies.paper_levels.areas import AREAS, EXACT, Area
from benchmarks.studies.paper_levels.columns import Table, tfco_columns
from benchmarks.studies.paper_tabular.published import IMPLICIT_TABLE_5
from benchmarks.studies.paper_tabular.study import MOST, SEEDS, SETS, SHARES
from setpoint.data.rows import Rows
from setpoint.train.class_weights import class_weights
from setpoint.train.linear import cross_entropy

PARTS = ("train", "validation", "test")
RATES, BATCH = (1e-3, 1e-2, 1e-1, 1.0), 128
FULL_STOPS, BATCH_STOPS = (30, 100, 300), (1, 5, 20, 100)


def every_row(name: str, data: str) -> Table:
    """Those of ijcnn1 that the papers leave out as well."""
    arrays = load_arrays(name, data)
    return arrays["X"].astype(np.float64), (arrays["y"] > 0).astype(np.float64)


def as_they_are(x: np.ndarray, train: np.ndarray) -> np.ndarray:
    return x


def standardised(x: np.ndarray, train: np.ndarray) -> np.ndarray:
    spread = x[train].std(0)
    return (x - x[train].mean(0)) / np.where(spread > 0, spread, 1)


def clipped(x: np.ndarray, train: np.ndarray) -> np.ndarray:
    """As `paper_tabular` does it, which standardises once more after clipping."""
    return standardised(np.clip(standardised(x, train), -5, 5), train)


def from_0_to_1(x: np.ndarray, train: np.ndarray) -> np.ndarray:
    low, high = x[train].min(0), x[train].max(0)
    return (x - low) / np.where(high > low, high - low, 1)


@dataclass(frozen=True)
class Variant:
    """How cross-entropy is trained; without `stops` to convergence, else by Adam, the best of these on validation."""

    changed: str
    name: str
    sets: tuple[str, ...] = SETS
    table: Callable[[str, str], Table] = read_table
    scale: Callable[[np.ndarray, np.ndarray], np.ndarray] = clipped
    most: int | None = MOST
    ridge: float = 1.0
    weight: float = 1.0
    stops: tuple[int, ...] = ()
    batch: int | None = None

    @property
    def areas(self) -> tuple[Area, ...]:
        """All ways to read it where that is asked: of what is done here, and of changes that are combined."""
        return AREAS if self.changed in ("nothing", "several") else (EXACT,)

    @property
    def label(self) -> str:
        return f"{self.changed}: {self.name}"


USUAL = Variant("nothing", "as in Table 5 here")
PAPER = Variant("several", "TFCO columns, all rows", table=tfco_columns, most=None)
PLAIN = replace(PAPER, scale=as_they_are)
VARIANTS = (
    USUAL,
    *(Variant("features", scale.__name__.replace("_", " "), scale=scale)
      for scale in (standardised, as_they_are, from_0_to_1)),
    *(Variant("ridge", f"{ridge:g}", ridge=ridge) for ridge in (0.01, 100.0)),
    Variant("rows", "all training rows", ("ijcnn1", "adult"), most=None),
    Variant("rows", "split of all 141,691", ("ijcnn1",), table=every_row),
    Variant("columns", "TFCO", ("adult", "communities_crime"), table=tfco_columns),
    *(Variant("class weight", f"{weight:g}", weight=weight) for weight in (0.5, 2.0, 4.0, 8.0)),
    *(Variant("Adam, full batch", f"{stop} steps", stops=(stop,)) for stop in FULL_STOPS),
    Variant("Adam, full batch", "best step", stops=FULL_STOPS),
    *(Variant(f"Adam, batches of {BATCH}", f"epochs: {stop}", stops=(stop,), batch=BATCH) for stop in BATCH_STOPS),
    Variant(f"Adam, batches of {BATCH}", "best epoch", stops=BATCH_STOPS, batch=BATCH),
    PAPER,
    *(replace(PAPER, name=f"{PAPER.name}, Adam, {stop} steps", stops=(stop,)) for stop in FULL_STOPS),
    replace(PLAIN, name=f"{PAPER.name}, features as they are"),
    *(replace(PLAIN, name=f"{PAPER.name}, features as they are, Adam, {stop} steps", stops=(stop,))
      for stop in FULL_STOPS),
)  # fmt: skip


def descend(x: Tensor, labels: Tensor, batch: int | None, stops: tuple[int, ...]) -> dict[int, Tensor]:
    """Parameters after so many epochs of Adam from zero, a column a learning rate."""
    draw = torch.Generator().manual_seed(0)
    x, labels, rates = x.float(), labels.float().unsqueeze(-1), torch.tensor(RATES)
    theta = torch.zeros(x.shape[1], len(RATES))
    mean, square, step, found = torch.zeros_like(theta), torch.zeros_like(theta), 0, {}
    for epoch in range(1, max(stops) + 1):
        order = torch.randperm(len(x), generator=draw).split(batch) if batch else (slice(None),)
        for rows in order:
            some, step = x[rows], step + 1
            slope = some.T @ (torch.sigmoid(some @ theta) - labels[rows]) / len(some)
            mean.lerp_(slope, 0.1)
            square.lerp_(slope.square(), 0.001)
            theta = theta - rates * mean / (1 - 0.9**step) / ((square / (1 - 0.999**step)).sqrt() + 1e-7)
        if epoch in stops:
            found[epoch] = theta.double()
    return found


class Study:
    """One set and split; what variants have in common is done once."""

    def __init__(self, name: str, seed: int, data: str) -> None:
        self.name, self.seed, self.data = name, seed, data
        self.made: dict[Any, Any] = {}

    def parts(self, variant: Variant) -> dict[str, Part]:
        key = (variant.table, variant.scale, variant.most)
        if key not in self.made:
            x, y = variant.table(self.name, self.data)
            rows = split_rows(y, self.seed, SHARES, variant.most)
            x = np.hstack([variant.scale(x, rows[0]), np.ones((len(x), 1))])
            self.made[key] = {part: (torch.tensor(x[own]), torch.tensor(y[own])) for part, own in zip(PARTS, rows)}
        found: dict[str, Part] = self.made[key]
        return found

    def candidates(self, variant: Variant) -> dict[str, Tensor]:
        x, labels = self.parts(variant)["train"]
        if not variant.stops:
            # Features so many times smaller are features under so many times the ridge.
            shrink = torch.ones(x.shape[1], dtype=torch.float64)
            shrink[:-1] /= math.sqrt(variant.ridge)
            rows = Rows(x * shrink, labels, torch.ones_like(labels))
            return {"converged": shrink * cross_entropy(rows, class_weights(rows, variant.weight))}
        key = (variant.table, variant.scale, variant.most, variant.batch)
        if key not in self.made:
            self.made[key] = descend(x, labels, variant.batch, BATCH_STOPS if variant.batch else FULL_STOPS)
        paths: dict[int, Tensor] = self.made[key]
        return {
            f"rate {rate:g}, {stop}": paths[stop][:, column]
            for stop in variant.stops
            for column, rate in enumerate(RATES)
        }

    def row(self, variant: Variant) -> dict[str, Any]:
        """The candidate that is best on validation rows, by every way to read the area of test rows."""
        parts, candidates = self.parts(variant), self.candidates(variant)
        x, labels = parts["validation"]
        chosen = max(candidates, key=lambda name: EXACT({"test": (x @ candidates[name], labels)}))
        scored = {part: (x @ candidates[chosen], labels) for part, (x, labels) in parts.items()}
        areas = {area.name: round(100 * area(scored), 3) for area in variant.areas}
        return {"set": self.name, "variant": variant.label, "chosen": chosen, "areas": areas}


def row_key(name: str, seed: int, variant: Variant) -> str:
    return f"{name} | {seed} | {variant.label}"


def needed_weight(levels: dict[float, float], published: float) -> float | None:
    """The class weight at which the mean level is the published one, between two that were tried, or none."""
    for (low, before), (high, after) in pairwise(sorted(levels.items())):
        if min(before, after) <= published <= max(before, after) and before != after:
            return float(low * (high / low) ** ((published - before) / (after - before)))
    return None


def summary(journal: Journal, sets: tuple[str, ...], seeds: range) -> dict[str, Any]:
    """A row a variant and area: the level on each set, its change, and whether it is the published one within errors.

    A variant that changes nothing of a set has the usual level there.
    """

    def keys(name: str, variant: Variant, among: list[int]) -> list[str]:
        return [row_key(name, seed, variant if name in variant.sets else USUAL) for seed in among]

    done = {name: [s for s in seeds if all(keys(name, v, [s])[0] in journal for v in VARIANTS)] for name in sets}
    done = {name: among for name, among in done.items() if len(among) > 1}

    def level(name: str, variant: Variant, area: Area) -> dict[str, Any]:
        values = [journal[key]["areas"][area.name] for key in keys(name, variant, done[name])]
        usual = [journal[key]["areas"][EXACT.name] for key in keys(name, USUAL, done[name])]
        found = paired(values, 0.25, 0.5)
        del found["corrected_standard_error"]
        mean, error = IMPLICIT_TABLE_5[name]["cross-entropy"]
        agrees = abs(found["mean"] - mean) <= 2 * math.hypot(error, found["standard_error"])
        if name not in variant.sets:
            return {"changed": False, "agrees": agrees}
        change = paired([a - b for a, b in zip(values, usual)], 0.25, 0.5)
        return {"area": found, "change": change, "changed": True, "agrees": agrees}

    rows = [
        {"changed": variant.changed, "variant": variant.name, "area": area.name,
         "levels": {name: level(name, variant, area) for name in done}}
        for variant in VARIANTS for area in variant.areas
    ]  # fmt: skip
    weighted = [variant for variant in VARIANTS if variant is USUAL or variant.changed == "class weight"]
    weights = {}
    for name in done:
        levels = {v.weight: level(name, v, EXACT)["area"]["mean"] for v in weighted}
        weights[name] = needed_weight(levels, IMPLICIT_TABLE_5[name]["cross-entropy"][0])
    return {
        "splits": {name: len(among) for name, among in done.items()}, "rows": rows,
        "weights tried": sorted(variant.weight for variant in weighted), "weight of the published level": weights,
        "published": {name: list(IMPLICIT_TABLE_5[name]["cross-entropy"]) for name in done},
    }  # fmt: skip


def main() -> None:
    options = arguments(str(__doc__).splitlines()[0], len(SEEDS)).parse_args()
    torch.set_num_threads(1)
    sets, seeds = SETS, SEEDS[: options.seeds]
    if options.quick:
        sets, seeds = ("spambase", "communities_crime"), range(2)
    journal = Journal("paper_levels", options.quick)
    for name in () if options.so_far else sets:
        for seed in seeds:
            study = Study(name, seed, options.data)
            for variant in VARIANTS:
                key = row_key(name, seed, variant)
                if name in variant.sets and key not in journal:
                    row = journal.add(key, study.row(variant))
                    print(f"{key}: {row['areas'][EXACT.name]:.2f} ({row['chosen']})", flush=True)
    figures = summary(journal, sets, seeds)
    journal.fold()
    write_result("paper_levels", {"seeds": list(seeds), "exact": EXACT.name, **figures}, options.quick)
