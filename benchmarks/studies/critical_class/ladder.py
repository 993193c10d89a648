"""Why plain BCE is weaker here than published: one thing changed at a time, from the ResNet-10 of this study.

    python -m benchmarks.studies.critical_class.ladder [--data DIR] [--quick] [--seeds N]

Published (paper 003, Table 1, 1:100): an ensemble of ten ResNet-10 has an AUC of 91.2 by BCE alone. Fixed before any
result: ship against aeroplane at 1:100; from 20 epochs, width 16, a rate of 0.001 and no shifts of the images, each of
epochs (60, 200), width (32, 64), rate (0.0003, 0.003) and shifts by up to 4 pixels is changed alone, then all of the
best together; 3 seeds, the mean of single models and the AUC of their mean score. On one core a run of 200 epochs takes
hours; it has not been run yet.
"""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Any

import torch

from benchmarks.common.data import arguments
from benchmarks.common.harness import Journal, write_result
from benchmarks.common.image_nets import resnet10
from benchmarks.common.small_images import Plan
from benchmarks.studies.critical_class.published import TABLE_1
from benchmarks.studies.critical_class.study import UNTUNED_PLAN, Study
from setpoint.measure.curve import roc_area

SEEDS = range(3)
CHANGES: dict[str, dict[str, Any]] = {
    "as in this study": {},
    "60 epochs": {"epochs": 60},
    "200 epochs": {"epochs": 200},
    "width 32": {"width": 32},
    "width 64": {"width": 64},
    "rate 0.0003": {"rate": 3e-4},
    "rate 0.003": {"rate": 3e-3},
    "shifts by 4 pixels": {"moved": 4},
    "200 epochs, width 64, shifts": {"epochs": 200, "width": 64, "moved": 4},
}


def ladder(journal: Journal, changes: dict[str, Plan], seeds: range, data: str, negatives: int | None) -> list[Any]:
    """A row per change: the mean AUC of single models, and that of their mean score."""
    rows = []
    for name, plan in changes.items():
        areas, scores = [], []
        for seed in seeds:
            study = Study(data, seed, 100, plan, negatives)
            found = study.run("BCE", None, resnet10)
            scores.append(found.pop("scores").sigmoid())
            areas.append(journal.add(f"{name} | {seed}", {"change": name, "seed": seed, **found})["AUC"])
            print(f"{name} | {seed}: {areas[-1]:.1f}", flush=True)
        together = 100 * float(roc_area(torch.stack(scores).mean(0), study.test.labels))
        rows.append({"change": name, "seeds": len(seeds), "AUC": statistics.mean(areas), "ensemble": together})
    return rows


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0])
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="how many of the seeds")
    options = parser.parse_args()
    torch.set_num_threads(1)
    plans = {name: replace(UNTUNED_PLAN, **change) for name, change in CHANGES.items()}
    seeds, negatives = SEEDS[: options.seeds], None
    if options.quick:
        plans = {name: replace(plan, epochs=1, width=4) for name, plan in list(plans.items())[:2]}
        seeds, negatives = SEEDS[:1], 1000
    journal = Journal("critical_class_ladder", options.quick)
    rows = ladder(journal, plans, seeds, options.data, negatives)
    journal.fold()
    published = TABLE_1[100]["BCE"][0][-1]
    write_result("critical_class_ladder", {"published AUC": published, "rows": rows}, options.quick)


if __name__ == "__main__":
    main()
