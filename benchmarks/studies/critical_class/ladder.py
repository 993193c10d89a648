"""Why plain BCE is weaker here than published: one thing changed at a time.

    python -m benchmarks.studies.critical_class.ladder [--data DIR] [--quick] [--so-far] [--rungs a;b]

Published (paper 003, Table 1, 1:100): ten ResNet-10, each on a split of its own, their logits averaged, have an AUC of
91.2 by BCE alone, on two classes drawn at random that are not named. The study here has single nets on ship against
aeroplane. Fixed before any result:

- The first rung is the net and plan of this study, ten seeds; a seed draws the images of the rare class anew. Read by
  itself it is the mean AUC of single models; as published it is the AUC of the mean logit of all ten.
- "one draw, four starts": the images of seed 0, other starts. Beside four of the first rung it tells whether ten models
  help by their starts or by their other images of the rare class.
- Each of "other pairs" (three pairs by `torch.randperm(10)` under seed 26), net, rate, shifts, width and epochs is
  changed alone. Seeds 0 and 1 (pairs: seed 0), compared with the same seeds of the first rung.
- "all gains": the changes that gain on both seeds by validation AUC, together, as many seeds as time allows. By this
  rule: the rate, no shifts, width and epochs.

Added after these results: the rate, the largest gain of a single change, on the other eight seeds, which had no part in
picking it out.

A width of 64, as in a usual ResNet-10, and 200 epochs would take days on one core, so that the paper's own net is not
among the rungs. The pixels are those of a JPEG copy of CIFAR-10 (30 dB); the originals cannot be had here.
Finished runs are rows of `results/rows/critical_class_ladder.parquet`, with their logits, and are not run again.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.common.data import arguments
from benchmarks.common.harness import Journal, write_result
from benchmarks.common.image_nets import five_convolutions, resnet10
from benchmarks.common.small_images import Plan
from benchmarks.studies.critical_class.published import TABLE_1
from benchmarks.studies.critical_class.study import NEGATIVE, POSITIVE, Study, labels_of_test
from benchmarks.studies.critical_class.verdict import pack, together

RATIO = 100
NAMES = ["aeroplane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
DRAWN = torch.randperm(10, generator=torch.Generator().manual_seed(26)).tolist()
FIRST, PAIR, TOGETHER, ONE_DRAW = "as in this study", " against ", "all gains", "one draw, four starts"


@dataclass(frozen=True)
class Rung:
    """One change: which classes, net and plan, and the seeds and starts that are run."""

    plan: Plan = field(default_factory=Plan)
    net: Callable[..., nn.Module] = five_convolutions
    classes: tuple[int, int] = (NEGATIVE, POSITIVE)
    runs: tuple[tuple[int, int], ...] = ((0, 0), (1, 0))


#: What costs least and may tell most comes first; a pair of a run is its seed and its start.
RUNGS = {
    FIRST: Rung(runs=tuple((seed, 0) for seed in range(10))),
    **{f"{NAMES[a]}{PAIR}{NAMES[b]}": Rung(classes=(a, b), runs=((0, 0),))
       for a, b in zip(DRAWN[0:6:2], DRAWN[1:6:2])},
    ONE_DRAW: Rung(runs=tuple((0, start) for start in range(4))),
    "ResNet-10": Rung(net=resnet10),
    "rate 0.001": Rung(Plan(rate=1e-3), runs=tuple((seed, 0) for seed in range(10))),
    "no shifts": Rung(Plan(moved=0)),
    "width 16": Rung(Plan(width=16)),
    "60 epochs": Rung(Plan(epochs=60)),
    TOGETHER: Rung(Plan(rate=1e-3, moved=0, width=16, epochs=60), runs=tuple((seed, 0) for seed in range(6))),
}  # fmt: skip


def run(journal: Journal, name: str, rung: Rung, data: str, negatives: int | None) -> None:
    for seed, start in rung.runs:
        key = f"{name} | {seed} | {start}"
        if key not in journal:
            study = Study(data, seed, RATIO, rung.plan, negatives, rung.classes)
            found = study.run("BCE", None, rung.net, start)
            told = {"rung": name, "seed": seed, "start": start, "logits": pack(found.pop("scores"))}
            row = journal.add(key, {**told, **found})
            print(f"{key}: {row['AUC']:.1f}, {row['seconds']:.0f} s", flush=True)


def summary(journal: Journal, rungs: dict[str, Rung], data: str) -> list[dict[str, Any]]:
    """A row per rung: the mean AUC of single models, the same runs of the first rung, and the mean logit of all."""

    def done(name: str, runs: tuple[tuple[int, int], ...]) -> list[dict[str, Any]]:
        return [journal[key] for seed, start in runs if (key := f"{name} | {seed} | {start}") in journal]

    rows = []
    for name, rung in rungs.items():
        if own := done(name, rung.runs):
            alone = done(FIRST, tuple((row["seed"], 0) for row in own))
            rows.append({"change": name, "runs": len(own), "seconds": statistics.mean(row["seconds"] for row in own),
                         **{key: statistics.mean(row[key] for row in own) for key in ("AUC", "validation AUC")},
                         "first rung": statistics.mean(row["AUC"] for row in alone),
                         "deviation": statistics.stdev([row["AUC"] for row in own]) if len(own) > 1 else None,
                         "together": together(own, labels_of_test(data, rung.classes)),
                         "first rung together": together(alone, labels_of_test(data))})  # fmt: skip
    return rows


def by_number(journal: Journal, labels: Tensor) -> dict[str, float]:
    """The AUC of the mean logit of the first 1, 2, ... models of the first rung."""
    own = [row for row in journal.rows.values() if row["rung"] == FIRST]
    return {str(count): together(own[:count], labels)["AUC"] for count in range(1, len(own) + 1)}


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0])
    parser.add_argument("--so-far", action="store_true", help="run nothing, sum up what is done")
    parser.add_argument("--rungs", default=";".join(RUNGS), help="some of the rungs, separated by semicolons")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rungs, negatives = RUNGS, None
    if options.quick:
        small = Plan(epochs=1, width=4)
        rungs, negatives = {FIRST: Rung(small), "ResNet-10": Rung(replace(small, batch=128), resnet10)}, 1000
    journal = Journal("critical_class_ladder", options.quick)
    for name, rung in () if options.so_far else rungs.items():
        if name in options.rungs.split(";"):
            run(journal, name, rung, options.data, negatives)
    journal.fold()
    found = {
        "published AUC": TABLE_1[RATIO]["BCE"][0][-1],
        "rows": summary(journal, rungs, options.data),
        "by number": by_number(journal, labels_of_test(options.data)),
    }
    write_result("critical_class_ladder", found, options.quick)


if __name__ == "__main__":
    main()
