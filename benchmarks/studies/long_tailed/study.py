"""Table 4 of the paper on critical classes: long-tailed CIFAR-10, its rarest class critical, constraints (6) and (7).

    python -m benchmarks.studies.long_tailed [--data DIR] [--quick] [--so-far] [--seeds N]

The images of a class fall from class 0 to class 9 by the imbalance, 1:100 or 1:200. A seed draws them, 50 more of each
class to choose the epoch and the settings by, the weights of the net and the order. Judged as published: a threshold on
the logit of the critical class, set on the test labels so that 80 or 90 % of it pass; what passes is called critical,
the rest by its highest other logit; the error is that of the nine other classes. Also by probability in place of the
logit, which a softmax leaves free. Epoch, margin and mu are chosen by accuracy on held-out images, as published. Each
finished run is a row of `results/rows/long_tailed.parquet`. Base losses are run in the order of `BASES`, all seeds of
one before the next; the page names those that have not been run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from statistics import mean
from typing import Any

import torch
from torch import Tensor

from benchmarks.common.data import arguments, paired
from benchmarks.common.harness import Journal, write_result
from benchmarks.common.image_nets import COSINE_SCALE, five_convolutions
from benchmarks.common.small_images import Images, Plan, cifar10, scores_of, shuffled, train
from benchmarks.studies.long_tailed.published import COLUMNS, TABLE_4
from setpoint.solve.augmented_multiclass import AugmentedMulticlass, EveryOutput, OwnOutput
from setpoint.solve.losses import LDAM, ClassBalanced, ClassCrossEntropy, Focal
from setpoint.solve.sample_prices import Growth
from setpoint.solve.solver import Solver

CLASSES, CRITICAL = 10, 9
IMBALANCES = (100, 200)
SEEDS, HELD_OUT = range(720, 723), 50
TPRS = (0.8, 0.9)
#: (mu, margin) to choose from.
CHARGES = ((1e-3, 0.1), (1e-2, 0.5))
DEMANDS = {"constraint (6)": OwnOutput(), "constraint (7)": EveryOutput()}
ALONE = "alone"
BY_PROBABILITY = ", by probability"
BASES = ("CE", "LDAM", "FL", "CB-CE")


def class_counts(imbalance: int, largest: int) -> list[int]:
    """Images of each class: from `largest` down to `largest` / `imbalance`, by equal factors."""
    return [int(largest * imbalance ** (-number / (CLASSES - 1))) for number in range(CLASSES)]


def base_loss(name: str, counts: list[int], steps: int) -> Solver:
    """The losses of Table 4; LDAM with cosines as logits, and re-weighted in the last fifth."""
    made: dict[str, Callable[[], Solver]] = {
        "CE": ClassCrossEntropy,
        "FL": lambda: Focal(1.0),
        "CB-CE": lambda: ClassBalanced(counts, beta=0.9999),
        "LDAM": lambda: LDAM(counts, max_margin=0.5 * COSINE_SCALE, reweight_after=round(0.8 * steps)),
    }
    return made[name]()


def draw(whole: Images, counts: list[int], seed: int) -> tuple[Images, Images]:
    """The long-tailed training images, and as many held out of every class."""
    of = shuffled(whole.labels, seed)
    held_out = torch.cat([rows[:HELD_OUT] for rows in of])
    return whole.part(torch.cat([rows[HELD_OUT:][:n] for rows, n in zip(of, counts)])), whole.part(held_out)


def accuracy(scores: Tensor, labels: Tensor) -> float:
    return float((scores.argmax(1) == labels).double().mean())


def error_at(scores: Tensor, labels: Tensor, tpr: float, critical: Tensor) -> float:
    """Error of the non-critical classes where at least `tpr` of the critical ones are above a threshold on `critical`.

    The threshold lies just below the last score that has to pass; what ties with it passes too.
    """
    own = labels == CRITICAL
    ranked = critical[own].sort(descending=True).values
    last = ranked[math.ceil(tpr * len(ranked) - 1e-9) - 1]
    others = scores.clone()
    others[:, CRITICAL] = -torch.inf
    wrong = (critical >= last) | (others.argmax(1) != labels)
    return float(wrong[~own].double().mean())


def figures(scores: Tensor, labels: Tensor) -> dict[str, float]:
    """Table 4's columns, by the logit as published and by the probability."""
    found = {}
    for name, critical in (("", scores[:, CRITICAL]), (BY_PROBABILITY, scores.double().log_softmax(1)[:, CRITICAL])):
        for tpr, column in zip(TPRS, COLUMNS):
            found[column + name] = error_at(scores, labels, tpr, critical)
    return {**found, COLUMNS[-1]: accuracy(scores, labels)}


def run(
    parts: tuple[Images, Images, Images], base: str, demand: str, charge: tuple[float, float], seed: int, plan: Plan
) -> dict[str, Any]:
    images, held_out, test = parts
    start, counts = time.process_time(), images.labels.bincount(minlength=CLASSES).tolist()
    torch.manual_seed(seed)
    net = five_convolutions(plan.width, CLASSES, cosine=base == "LDAM")
    solver = base_loss(base, counts, plan.epochs * -(-sum(counts) // plan.batch))
    if demand != ALONE:
        mu, margin = charge
        solver = AugmentedMulticlass(
            solver, n_samples=sum(counts), critical=CRITICAL, demand=DEMANDS[demand], margin=margin, mu=mu,
            growth=Growth(limit=32 * mu),
        )  # fmt: skip
    best = train(net, images, held_out.x, solver, lambda scores: accuracy(scores, held_out.labels), plan, seed)
    found = figures(scores_of(net, test.x), test.labels)
    return {"validation": best, **found, "images": sum(counts), "seconds": time.process_time() - start}


def summary(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row an imbalance, base loss and constraint: chosen by held-out accuracy, minus the base loss alone."""
    everything, found = list(rows), []
    best: dict[tuple[int, str, str], dict[int, dict[str, Any]]] = {}
    for row in everything:
        cell = best.setdefault((row["imbalance"], row["base"], row["demand"]), {})
        if row["seed"] not in cell or row["validation"] > cell[row["seed"]]["validation"]:
            cell[row["seed"]] = row
    for (imbalance, base, demand), cell in best.items():
        alone = best.get((imbalance, base, ALONE), {})
        seeds = sorted(set(cell) & set(alone))
        if not seeds:
            continue
        share = (10_000.0, mean(cell[seed]["images"] for seed in seeds))
        row = {"imbalance": imbalance, "base": base, "demand": demand, "seeds": seeds,
               "settings": [cell[seed]["setting"] for seed in seeds],
               "seconds": mean(cell[seed]["seconds"] for seed in seeds)}  # fmt: skip
        told = dict(zip((ALONE, *DEMANDS), TABLE_4[imbalance][base]))
        for place, column in enumerate(COLUMNS):
            row[column] = compared(cell, alone, seeds, column, share)
            row[column]["published"] = told[demand][place]
            row[column]["published minus alone"] = told[demand][place] - told[ALONE][place]
        for column in COLUMNS[:-1]:
            row[column + BY_PROBABILITY] = compared(cell, alone, seeds, column + BY_PROBABILITY, share)
        found.append(row)
    return sorted(found, key=lambda row: (row["imbalance"], BASES.index(row["base"])))


def compared(cell: Any, alone: Any, seeds: list[int], column: str, share: tuple[float, float]) -> dict[str, Any]:
    """Mean over seeds in percent, and the paired difference to the base loss alone."""
    values, base = ([100 * of[seed][column] for seed in seeds] for of in (cell, alone))
    return {
        "mean": mean(values),
        "minus alone": paired([a - b for a, b in zip(values, base)], *share),
        "ratio to alone": mean(values) / mean(base),
    }


def main() -> None:
    options = arguments(str(__doc__).splitlines()[0], len(SEEDS)).parse_args()
    torch.set_num_threads(1)
    plan, largest, bases, imbalances, seeds = Plan(), 4950, BASES, IMBALANCES, SEEDS[: options.seeds]
    if options.quick:
        plan, largest, bases, imbalances, seeds = Plan(epochs=1, width=4), 300, BASES[:1], IMBALANCES[:1], SEEDS[:1]
    journal = Journal("long_tailed", options.quick)
    for base in () if options.so_far else bases:
        for seed in seeds:
            for imbalance in imbalances:
                parts = None
                for demand in (ALONE, *DEMANDS):
                    for charge in ((0.0, 0.0),) if demand == ALONE else CHARGES:
                        setting = "" if demand == ALONE else f"mu {charge[0]:g}, margin {charge[1]:g}"
                        key = f"1:{imbalance} | {base} | {demand} | {setting} | {seed}"
                        if key in journal:
                            continue
                        if parts is None:
                            whole, test = cifar10(options.data)
                            parts = (*draw(whole, class_counts(imbalance, largest), seed), test)
                        told = {"imbalance": imbalance, "base": base, "demand": demand, "setting": setting}
                        row = journal.add(key, {**told, "seed": seed, **run(parts, base, demand, charge, seed, plan)})
                        print(f"{key}: held-out {row['validation']:.3f}, {row['seconds']:.1f} s", flush=True)
    found = {"plan": str(plan), "largest class": largest, "held out of each class": HELD_OUT, "seeds": list(SEEDS)}
    counts = {str(imbalance): class_counts(imbalance, largest) for imbalance in imbalances}
    rows = summary(journal.rows.values())
    journal.fold()
    write_result("long_tailed", {**found, "images of each class": counts, "rows": rows}, options.quick)
