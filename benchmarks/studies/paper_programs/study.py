"""Tables 1 to 4 of the paper on linear programs, on CIFAR-10: AUC, its margin, AUC of three groups, F-score.

    python -m benchmarks.studies.paper_programs [--data DIR] [--quick] [--so-far] [--seeds N]

Halves: classes 0 to 4 are positive, of the others all but a share is dropped. Groups: classes 0 to 2, 3 to 5 and 6 to
9, of the first two a share is dropped. A seed draws the training images, 1,000 more to choose the epoch and the class
weight by, the weights of the net and the order; every method of a seed sees the same. Test: all 10,000 test images. A
net of five convolutions, Adam, cosine, images mirrored and moved. The losses are the closed forms of the programs'
values: hinge, the value of program (2), and ramp, that of equation (3). The paper tunes the learning rate; here four
columns are run at a sixteenth, a quarter and four times the rate as well, all methods alike. Each finished run is a
row of `results/rows/paper_programs.parquet`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

import setpoint as sp
from benchmarks.common.data import arguments
from benchmarks.common.harness import Journal, write_result
from benchmarks.common.image_nets import five_convolutions
from benchmarks.common.small_images import Images, Judge, Plan, cifar10, scores_of, shuffled, train
from benchmarks.studies.paper_programs.published import HALVES
from benchmarks.studies.paper_programs.verdict import at_every_pace, by_rate, summary
from setpoint.measure.curve import roc_area
from setpoint.measure.multiclass import auc_mu, auc_one_vs_rest
from setpoint.solve.losses import ClassBalanced, ClassCrossEntropy
from setpoint.solve.solver import Solver

SEEDS, HELD_OUT = range(700, 703), 1000
F_SCORE = sp.maximize(sp.f_score(1))
#: A setting's name and its loss, given the training images of each class.
Settings = dict[str, Callable[[list[int]], Solver]]


@dataclass(frozen=True)
class Task:
    """One column of a table: what is trained on, how an epoch is judged, and what is written down."""

    table: str
    level: int
    methods: dict[str, Settings]

    @property
    def name(self) -> str:
        return f"{self.table} {self.level}"

    def parts(self, data: str, seed: int, most: int) -> tuple[Images, Images, Images]:
        """Training, held-out and test images; `most` is the size of the largest class, two thirds of it in groups."""
        whole, test = cifar10(data)
        groups = self.table == "groups"
        merged = [(n >= 3) + (n >= 6) if groups else int(n < 5) for n in range(10)]
        of = shuffled(torch.tensor(merged)[whole.labels], seed)
        kept = [1 - self.level / 100] * 2 + [1.0] if groups else [HALVES.get(self.level, 1.0), 1.0]
        most, aside = most * 2 // 3 if groups else most, HELD_OUT // len(of)
        chosen = [rows[aside : aside + round(share * most)] for rows, share in zip(of, kept)]

        def labelled(images: Images) -> Images:
            labels = torch.tensor(merged)[images.labels]
            return Images(images.x, labels if groups else labels.float())

        held_out = torch.cat([rows[:aside] for rows in of])
        return labelled(whole.part(torch.cat(chosen))), labelled(whole.part(held_out)), labelled(test)

    def judge(self, labels: Tensor) -> Judge:
        if self.table == "groups":
            return lambda scores: float(auc_mu(scores, labels))
        if self.table == "f-score":
            return lambda scores: at_threshold(scores, labels, 0.0)
        return lambda scores: float(roc_area(scores, labels))

    def figures(self, held_out: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor]) -> dict[str, float]:
        """What the table shows, of scores and labels."""
        if self.table == "groups":
            return {"one against all": float(auc_one_vs_rest(*test)), "AUC-mu": float(auc_mu(*test))}
        if self.table == "halves":
            return {"AUC": float(roc_area(*test))}
        calibrated = sp.calibrate(F_SCORE, *held_out).threshold
        return {
            "F at zero": at_threshold(*test, 0.0),
            "F at the held-out threshold": at_threshold(*test, float(calibrated)),
            "F at the best threshold of the test labels": float(sp.evaluate(F_SCORE, *test).objective),
        }


def at_threshold(scores: Tensor, labels: Tensor, threshold: float) -> float:
    """F1 of what is strictly above a threshold; 0 if nothing is."""
    flagged = scores > threshold
    hits = float((flagged & (labels > 0)).sum())
    return 2 * hits / float(flagged.sum() + (labels > 0).sum())


def weighted(powers: tuple[float, ...]) -> Settings:
    """Positives weighed by (negatives / positives) ^ power, or by 2 and 1 / 2 where there are as many."""

    def make(power: float) -> Callable[[list[int]], Solver]:
        def loss(counts: list[int]) -> Solver:
            balance = counts[0] / counts[1]
            return sp.CrossEntropy(2 ** (3 - 4 * power) if balance == 1 else balance**power)

        return loss

    return {f"power {power:g}": make(power) for power in powers}


def of_pairs(margins: tuple[float, ...], ramp: bool) -> dict[str, Settings]:
    name = "ramp" if ramp else "hinge"
    return {
        f"{name}, margin {margin:g}": {"": lambda _, m=margin: sp.losses.AUCLoss(m, ramp=ramp)} for margin in margins
    }


PLAIN: dict[str, Settings] = {"cross-entropy": {"": lambda _: sp.CrossEntropy()}}
WEIGHTED: dict[str, Settings] = {"weighted cross-entropy": weighted((0.5, 1.0))}
AREA: dict[str, Settings] = {
    **PLAIN,
    **WEIGHTED,
    "pairwise squared hinge": {"": lambda _: sp.losses.PairwiseArea()},
    **of_pairs((1.0, 0.01), ramp=False),
    **of_pairs((0.01,), ramp=True),
}
#: Table 2 asks for the other margins as well.
MARGINS: dict[str, Settings] = {**AREA, **of_pairs((0.1, 0.001), ramp=False), **of_pairs((0.1, 0.001), ramp=True)}
OF_GROUPS: dict[str, Settings] = {
    "cross-entropy": {"": lambda _: ClassCrossEntropy()},
    "weighted cross-entropy": {f"beta {b:g}": lambda n, b=b: ClassBalanced(n, beta=b) for b in (0.99, 0.9999)},
    "class pairs, margin 1": {"": lambda _: sp.losses.MulticlassAUCLoss(1.0)},
    "class pairs, margin 0.01": {"": lambda _: sp.losses.MulticlassAUCLoss(0.01)},
    "one against all, margin 1": {"": lambda _: sp.losses.MulticlassAUCLoss(1.0, one_vs_all=True)},
}
SHARES: dict[str, Settings] = {
    **PLAIN,
    **WEIGHTED,
    "program, margin 0 as published": {"": lambda _: sp.losses.FScoreLoss(margin=0.0)},
    "program, margin 0.4": {"": lambda _: sp.losses.FScoreLoss()},
}
TASKS = (
    Task("halves", 91, MARGINS), Task("f-score", 50, SHARES), Task("groups", 90, OF_GROUPS),
    Task("halves", 50, MARGINS), Task("halves", 83, AREA), Task("groups", 0, OF_GROUPS), Task("halves", 71, AREA),
)  # fmt: skip
#: The columns of which the learning rate is chosen too, and the multiples of it.
TUNED = (Task("halves", 91, AREA), Task("f-score", 50, SHARES), Task("groups", 90, OF_GROUPS), Task("halves", 50, AREA))
PACES = (0.0625, 0.25, 1.0, 4.0)


def runs(
    task: Task, seed: int, plan: Plan, most: int, journal: Journal, data: str, pace: float = 1.0
) -> Iterator[dict[str, Any]]:
    """One task and seed at a multiple of the plan's rate: every setting of every method, unless it is written down."""
    plan = replace(plan, rate=pace * plan.rate)
    parts: tuple[Images, Images, Images] | None = None
    for method, settings in task.methods.items():
        for setting, make in settings.items():
            key = f"{task.name} | {method} | {setting} | {seed}" + (f" | rate x {pace:g}" if pace != 1 else "")
            if key in journal:
                continue
            parts = parts or task.parts(data, seed, most)
            images, held_out, test = parts
            counts = images.labels.long().bincount().tolist()
            start = time.process_time()
            torch.manual_seed(seed)
            net = five_convolutions(plan.width, 1 if task.table != "groups" else len(counts))
            best = train(net, images, held_out.x, make(counts), task.judge(held_out.labels), plan, seed)
            scores = [(scores_of(net, part.x), part.labels) for part in (held_out, test)]
            told = {"table": task.table, "level": task.level, "method": method, "setting": setting, "seed": seed}
            told["pace"] = pace
            sizes = {"spread": float(scores[1][0].std()), "images": len(images.labels)}
            spent = {"seconds": time.process_time() - start}
            yield journal.add(key, {**told, "validation": best, **task.figures(*scores), **sizes, **spent})


def main() -> None:
    options = arguments(str(__doc__).splitlines()[0], len(SEEDS)).parse_args()
    torch.set_num_threads(1)
    plan, most, tasks, seeds = Plan(epochs=10), 3000, TASKS, SEEDS[: options.seeds]
    if options.quick:
        plan, most, seeds = Plan(epochs=1, width=4), 500, SEEDS[:1]
        tasks = (Task("halves", 91, MARGINS), Task("groups", 90, OF_GROUPS), Task("f-score", 50, SHARES))
    planned = [(task, 1.0) for task in tasks]
    planned += [(task, pace) for task in (TUNED[:1] if options.quick else TUNED) for pace in PACES if pace != 1]
    journal = Journal("paper_programs", options.quick)
    for seed in () if options.so_far else seeds:
        for task, pace in planned:
            for row in runs(task, seed, plan, most, journal, options.data, pace):
                print(f"{row['key']}: validation {row['validation']:.4f}, {row['seconds']:.1f} s", flush=True)
    found: dict[str, Any] = {"plan": str(plan), "largest class": most, "held out": HELD_OUT, "seeds": list(SEEDS)}
    rows = list(journal.rows.values())
    found["rates"] = [pace * plan.rate for pace in PACES]
    found["rows"] = summary(row for row in rows if row.get("pace", 1) == 1)
    found["by rate"] = by_rate(rows, PACES)
    found["rate chosen"] = summary(at_every_pace(rows, len(PACES)))
    journal.fold()
    write_result("paper_programs", found, options.quick)
