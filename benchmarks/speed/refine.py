"""The refinement of linear models in closed form, as a ratio to the same refinement by the solver, from one run.

    python -m benchmarks.speed.refine [--quick]

Both take all 250 steps on the same rows from the same start, on one thread, in turns. The solver's way is taken when
the solver is given. Parameters come out the same (`tests/train/test_lean.py`); the largest difference is shown.
"""

from __future__ import annotations

import argparse
import statistics

import torch

import setpoint as sp
from benchmarks.common.harness import seconds, write_result
from setpoint.data.rows import Rows
from setpoint.problem.problem import Problem
from setpoint.solve.correction import Correction
from setpoint.train.linear import SEARCH_EVERY, Anchor, match, refine

TARGET = 1 / 8
SIZES = ((600, 50), (3_000, 50), (15_000, 100))
ASKS = (
    "minimize fnr where fpr <= 1%",
    "maximize precision where recall >= 95%",
    "maximize f1",
    "maximize precision over recall in [80%, 100%]",
)


def made_rows(size: int, features: int) -> Rows:
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(size, features, generator=draw, dtype=torch.float64)
    noise = torch.randn(size, generator=draw, dtype=torch.float64)
    labels = (x[:, :5].sum(1) + 1.5 * noise > 2.5).double()
    return Rows(torch.cat([x, torch.ones(size, 1, dtype=torch.float64)], 1), labels, torch.ones_like(labels))


def solver_of(problem: Problem) -> sp.ImplicitThreshold:
    return sp.ImplicitThreshold(problem, temperature=1.0, memory=0, correction=Correction(every=SEARCH_EVERY))


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats; the ratios are then noisy")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    found = []
    for size, features in SIZES:
        rows = made_rows(size, features)
        for ask in ASKS:
            problem = sp.ask(ask)
            start, weights = match(problem, rows)
            given = problem, rows, start, Anchor(rows.labels, weights, torch.zeros_like(start)), 0.25
            apart = float((refine(*given) - refine(*given, solver_of(problem))).abs().max())
            times = [
                (seconds(lambda: refine(*given)), seconds(lambda: refine(*given, solver_of(problem))))  # noqa: B023
                for _ in range(3 if quick else 11)
            ]
            row = {
                "rows": size, "features": features, "ask": ask,
                "milliseconds": 1e3 * statistics.median(closed for closed, _ in times),
                "milliseconds by the solver": 1e3 * statistics.median(solver for _, solver in times),
                "ratio": statistics.median(closed / solver for closed, solver in times),
                "largest difference": apart,
            }  # fmt: skip
            found.append(row)
            print(row, flush=True)
    write_result("refine", {"target": TARGET, "rows": found}, quick)


if __name__ == "__main__":
    main()
