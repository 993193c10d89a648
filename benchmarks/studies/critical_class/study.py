"""Table 1 of the paper on critical classes: a CIFAR-10 pair at 1:100 and 1:200, base losses alone and constrained.

    python -m benchmarks.studies.critical_class [--data DIR] [--quick] [--so-far] [--seeds N]

FPR at 98, 95 and 92 % TPR and AUC on the 2,000 test images of two classes; the cut is set on the test labels, as
published. A seed draws the training set (all but 100 images of the majority class, and every hundredth or two-hundredth
as many of the minority), the validation set (100 of each), the weights and the order; all methods of a seed see the
same. The epoch with the best validation AUC is kept.

- untuned: 1:100, a ResNet-10 of width 16, the augmented Lagrangian with the settings of `AUGMENTED`.
- tuned: both ratios, a net of five convolutions; mu, margin and what they are applied to, probabilities as the paper
  says or logits as its public code does, are the best of `CHARGES` by validation AUC. Since that is a choice of several
  runs, cross-entropy alone also has several starts to choose from.

Each finished run is a row of `results/rows/critical_class.parquet`, and is not run again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import setpoint as sp
from benchmarks.common.data import arguments, load_arrays
from benchmarks.common.harness import Journal, write_result
from benchmarks.common.image_nets import COSINE_SCALE, five_convolutions, resnet10
from benchmarks.common.small_images import Images, Plan, cifar10, scores_of, train
from benchmarks.studies.critical_class.verdict import (
    ALONE,
    CONSTRAINED,
    LISTED,
    STARTS,
    pack,
    table_row,
    tuned_rows,
    untuned_rows,
)
from setpoint.measure.curve import roc_area
from setpoint.solve.augmented import AugmentedLagrangian
from setpoint.solve.losses import LDAM, ClassBalanced, Focal, Margin, MiniBatchAUC
from setpoint.solve.sample_prices import Growth
from setpoint.solve.solver import Solver

NEGATIVE, POSITIVE, HELD_OUT = 8, 0, 100
RATIOS = (100, 200)
UNTUNED, TUNED = ("BCE", "A-FL", "LDAM"), ("BCE", "W-BCE", "CB-BCE")
SEEDS, MORE_STARTS = range(3), range(1, 4)
UNTUNED_PLAN = Plan(epochs=20, width=16, batch=128, rate=1e-3, moved=0)
UNTUNED_SETTINGS = "Settings(epochs=20, width=16, batch=128, negatives=None)"
UNTUNED_KEY = f"8-0 1:100 {UNTUNED_SETTINGS} {{'margin': 0.1, 'mu': 0.001}}"


@dataclass(frozen=True)
class Charge:
    """How the augmented Lagrangian charges: `mu`, which grows by 2 up to `most` times itself, and the margin."""

    output: str
    mu: float
    margin: float
    most: float = 32

    def __str__(self) -> str:
        return f"{self.output}, mu {self.mu:g}, margin {self.margin:g}"

    def on(self, base: Solver, samples: int) -> Solver:
        output = torch.sigmoid if self.output == "probability" else torch.clone
        growth = Growth(limit=self.most * self.mu)
        return AugmentedLagrangian(
            base, n_samples=samples, margin=self.margin, mu=self.mu, growth=growth, output=output
        )


AUGMENTED = Charge("probability", 1e-3, 0.1, most=1000)
CHARGES = (
    Charge("probability", 1e-3, 0.1), Charge("probability", 1e-2, 0.5),
    Charge("logit", 1e-5, 0.25), Charge("logit", 1e-3, 0.25),
)  # fmt: skip
#: What the authors' public code lists for cross-entropy at 1:100, to see what so small a mu does.
AS_LISTED = Charge("logit", 1e-7, 0.25)


def base_losses(counts: tuple[int, int], steps: int) -> dict[str, Callable[[], Solver]]:
    """The losses of Table 1; the weights of W-BCE and CB-BCE are those that the authors' code lists."""
    return {
        "BCE": sp.CrossEntropy,
        "S-ML": lambda: Margin(0.5),
        "S-FL": lambda: Focal(0.5),
        "A-ML": lambda: Margin(0.5, critical=1),
        "A-FL": lambda: Focal(2.0, critical=1),
        "CB-BCE": lambda: ClassBalanced(counts, beta=0.99),
        "W-BCE": lambda: sp.CrossEntropy(counts[0] / counts[1] / 3),
        "LDAM": lambda: LDAM(counts, max_margin=0.5 * COSINE_SCALE, reweight_after=round(0.8 * steps)),
        "MBAUC": MiniBatchAUC,
    }


def load_pair(folder: str, classes: tuple[int, int] = (NEGATIVE, POSITIVE)) -> tuple[Images, Images]:
    """Training and test images of the two classes; label 1 is the second of them, the minority class."""

    def pair(whole: Images) -> Images:
        rows = torch.isin(whole.labels, torch.tensor(classes)).nonzero().squeeze(1)
        return Images(whole.x[rows], (whole.labels[rows] == classes[1]).float())

    whole, test = cifar10(folder)
    return pair(whole), pair(test)


def labels_of_test(folder: str, classes: tuple[int, int] = (NEGATIVE, POSITIVE)) -> Tensor:
    """The labels of the test images of the two classes, as `load_pair` has them, without decoding an image."""
    numbers = torch.from_numpy(load_arrays("cifar10_jpeg", folder)["y_test"])
    return (numbers[torch.isin(numbers, torch.tensor(classes))] == classes[1]).float()


def draw(whole: Images, seed: int, ratio: int, negatives: int | None = None) -> tuple[Images, Images]:
    """Training rows at 1:ratio and a balanced validation set."""
    order = torch.randperm(len(whole.labels), generator=torch.Generator().manual_seed(seed))
    of = {label: order[whole.labels[order] == label] for label in (0, 1)}
    validation = torch.cat([of[label][:HELD_OUT] for label in (0, 1)])
    majority = of[0][HELD_OUT:][:negatives]
    minority = of[1][HELD_OUT:][: max(1, len(majority) // ratio)]
    return whole.part(torch.cat([majority, minority])), whole.part(validation)


class Study:
    """The images of one seed and ratio, and the run of a loss on them."""

    def __init__(
        self,
        data: str,
        seed: int,
        ratio: int,
        plan: Plan,
        negatives: int | None = None,
        classes: tuple[int, int] = (NEGATIVE, POSITIVE),
    ) -> None:
        whole, self.test = load_pair(data, classes)
        self.images, self.validation = draw(whole, seed, ratio, negatives)
        self.seed, self.plan = seed, plan

    def run(self, name: str, charge: Charge | None, net: Callable[..., nn.Module], start: int = 0) -> dict[str, Any]:
        """What is written down of a run, its scores on the test images included."""
        began, total, positives = time.process_time(), len(self.images.labels), int(self.images.labels.sum())
        first = self.seed + 1000 * start
        torch.manual_seed(first)
        model = net(self.plan.width, cosine=name == "LDAM")
        steps = math.ceil(total / self.plan.batch) * self.plan.epochs
        base = base_losses((total - positives, positives), steps)[name]()
        solver = base if charge is None else charge.on(base, total)

        def judge(scores: Tensor) -> float:
            return float(roc_area(scores, self.validation.labels))

        best = train(model, self.images, self.validation.x, solver, judge, self.plan, first)
        scores = scores_of(model, self.test.x)
        prices = {key: value for key, value in solver.status().items() if key in ("mu", "highest_price")}
        return {"validation AUC": 100 * best, **table_row(scores, self.test.labels), **prices, "images": total,
                "seconds": time.process_time() - began, "scores": scores}  # fmt: skip


def untuned(journal: Journal, data: str, so_far: bool) -> list[dict[str, Any]]:
    """The first part, its scores kept for the ensemble."""
    rows = []
    for seed in SEEDS:
        study = None
        for name in UNTUNED:
            for augmented in (False, True):
                key = f"{UNTUNED_KEY} {name} augmented={augmented} seed={seed}"
                if key not in journal and not so_far:
                    study = study or Study(data, seed, 100, UNTUNED_PLAN)
                    row = study.run(name, AUGMENTED if augmented else None, resnet10)
                    told = {"loss": name, "augmented": augmented, "seed": seed, "logits": pack(row.pop("scores"))}
                    journal.add(key, {**told, **row})
                rows += [journal[key]] if key in journal else []
    return rows


def ways(name: str) -> Iterator[tuple[str, str, Charge | None, int]]:
    """Of a base loss: the way it is trained, the setting, its charge, and the start."""
    yield ALONE, "", None, 0
    for charge in CHARGES:
        yield CONSTRAINED, str(charge), charge, 0
    if name == "BCE":
        for start in MORE_STARTS:
            yield STARTS, f"start {start}", None, start
        yield LISTED, str(AS_LISTED), AS_LISTED, 0


def main() -> None:
    options = arguments(str(__doc__).splitlines()[0], len(SEEDS)).parse_args()
    torch.set_num_threads(1)
    plan, names, ratios, negatives, seeds = Plan(), TUNED, RATIOS, None, SEEDS[: options.seeds]
    if options.quick:
        plan, names, ratios, negatives, seeds = Plan(epochs=2, width=4), TUNED[:1], RATIOS[:1], 1000, SEEDS[:1]
    journal = Journal("critical_class", options.quick)
    for name in () if options.so_far else names:
        for seed in seeds:
            for ratio in ratios:
                study = None
                for way, setting, charge, start in ways(name):
                    key = f"{NEGATIVE}-{POSITIVE} 1:{ratio} | {name} | {way} | {setting} | {seed}"
                    if key in journal:
                        continue
                    study = study or Study(options.data, seed, ratio, plan, negatives)
                    row = study.run(name, charge, five_convolutions, start)
                    row.pop("scores")
                    told = {"ratio": ratio, "loss": name, "way": way, "setting": setting, "seed": seed}
                    row = journal.add(key, {**told, **row})
                    print(f"{key}: validation {row['validation AUC']:.1f}, {row['seconds']:.1f} s", flush=True)
    found: dict[str, Any] = {"settings": UNTUNED_SETTINGS, "augmented": {"margin": 0.1, "mu": 0.001}}
    if not options.quick:
        runs = untuned(journal, options.data, options.so_far)
        found["rows"] = untuned_rows(runs, labels_of_test(options.data))
    tuned = tuned_rows(row for row in journal.rows.values() if "way" in row)
    told = {"plan": str(plan), "choices": [str(charge) for charge in CHARGES], "seeds": list(SEEDS), "tuned": tuned}
    journal.fold()
    write_result("critical_class", {**found, **told}, options.quick)
