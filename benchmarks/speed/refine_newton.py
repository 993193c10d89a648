"""The refinement of linear models by 40 Newton steps, beside the 250 Adam steps that it took before.

    python -m benchmarks.speed.refine_newton [--data DIR] [--splits 3 4 5] [--sets NAME ...]

The tables of the default study, on its screening splits. Both have the same start, loss and anchor; only this file has
the Adam steps. The number of Newton steps and the share of the push in their curvature were chosen on splits 0 to 2 of
ijcnn1, letter and spambase among six settings; splits 3 to 5 were not looked at before. Models are judged at the best
cut of test rows. Seconds are of one thread's processor.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import setpoint as sp
from benchmarks.common.data import arguments
from benchmarks.common.harness import load_figures, write_result
from benchmarks.common.sets import CACHE, HEADS, SETS
from benchmarks.studies.default_study.study import ASKS, load_parts, training_rows
from setpoint.data.rows import Rows
from setpoint.problem.problem import Problem
from setpoint.train.adam import Descent
from setpoint.train.lean import STEPS as NEWTON_STEPS
from setpoint.train.lean import LeanLoss
from setpoint.train.linear import Anchor, anchor_strength, match, refine
from setpoint.train.recipes import KAPPA

STEPS, RATE, SEARCH_EVERY = 250, 0.05, 5


@torch.no_grad()
def refine_by_adam(problem: Problem, rows: Rows, start: Tensor, anchor: Anchor, kappa: float) -> Tensor:
    """Improve `start` on the problem, held back by the anchor, by Adam on a cosine; the mean of the last half."""
    x, loss, descent, average = rows.x, LeanLoss(problem, rows), Descent(start.clone()), torch.zeros_like(start)
    ridge = torch.full_like(start, float(anchor.weights.mean()))
    ridge[-1] = 0.0
    scores = x @ start
    loss.search(scores)
    pull = anchor.weights * (torch.sigmoid(scores) - rows.labels)
    balance = float(loss(scores)[1].norm() / pull.norm().clamp(min=1e-300))
    strength = kappa * anchor_strength(problem, rows) * balance
    weights, ridge = strength * anchor.weights, strength * ridge
    for step in range(STEPS):
        scores = x @ descent.place
        if step and step % SEARCH_EVERY == 0:
            loss.search(scores)
        push = loss(scores)[1].addcmul_(weights, torch.sigmoid(scores) - anchor.targets)
        slope = (x.T @ push).addcmul_(ridge, descent.place - anchor.centre)
        descent.step(slope, RATE / 2 * (1 + math.cos(math.pi * step / STEPS)))
        if step >= STEPS // 2:
            average += descent.place / (STEPS - STEPS // 2)
    return average


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    return work(), time.process_time() - start


def one_split(name: str, split: int, data: str, cache: str) -> list[dict[str, Any]]:
    """Both refinements of each ask on one split of a set."""
    parts = load_parts(name, split, data, cache)
    rows, scaling = training_rows(parts.train, parts.held_out)
    x, labels = scaling.with_ones(parts.test[0]), parts.test[1]
    found = []
    for ask in ASKS:
        problem = sp.ask(ask)
        (start, weights), matched = timed(lambda: match(problem, rows))  # noqa: B023
        given = problem, rows, start, Anchor(rows.labels, weights, torch.zeros_like(start)), KAPPA
        (adam, by_adam), (newton, by_newton) = timed(lambda: refine_by_adam(*given)), timed(lambda: refine(*given))  # noqa: B023
        sign = 100 if problem.maximize else -100
        values = [sign * sp.evaluate(problem, x @ theta, labels).objective for theta in (adam, newton)]
        found.append(
            {
                "set": name, "ask": ask, "gain": values[1] - values[0], "refinement": by_adam / by_newton,
                "recipe": (matched + by_adam) / (matched + by_newton),
            }
        )  # fmt: skip
    return found


def summed_up(found: list[dict[str, Any]]) -> dict[str, list[float]]:
    """By set, ask after ask: the mean gain over the splits, its standard error, and the median times."""
    sets: dict[str, list[float]] = {}
    for name, ask in dict.fromkeys((row["set"], row["ask"]) for row in found):
        own = [row for row in found if (row["set"], row["ask"]) == (name, ask)]
        gains = [row["gain"] for row in own]
        error = statistics.stdev(gains) / math.sqrt(len(gains)) if len(gains) > 1 else math.nan
        times = [round(statistics.median(row[key] for row in own), 2) for key in ("refinement", "recipe")]
        sets.setdefault(name, []).extend([round(statistics.fmean(gains), 3), round(error, 3), *times])
    return sets


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0])
    parser.add_argument("--splits", type=int, nargs="+", default=[3, 4, 5])
    parser.add_argument("--sets", nargs="+", help="measure these anew, keep the others")
    options = parser.parse_args()
    torch.set_num_threads(1)
    sets = [name for name in SETS if name not in HEADS]
    splits = options.splits[:1] if options.quick else options.splits
    found: list[dict[str, Any]] = []
    for name in sets[:1] if options.quick else options.sets or sets:
        for split in splits:
            found += one_split(name, split, options.data, str(CACHE))
            print(*found[-len(ASKS) :], sep="\n", flush=True)
    kept = load_figures("refine_newton").get("sets", {}) if options.sets else {}
    known = {**kept, **summed_up(found)}
    ordered = {name: known[name] for name in sets if name in known}
    write_result(
        "refine_newton", {"splits": splits, "steps": NEWTON_STEPS, "asks": list(ASKS), "sets": ordered}, options.quick
    )


if __name__ == "__main__":
    main()
