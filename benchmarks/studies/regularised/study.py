"""A noisy and a wide table: the linear default with its chosen penalty against scikit-learn's LogisticRegressionCV.

    python -m benchmarks.studies.regularised --caravan Caravan.csv [--quick]

The noisy table is Caravan (5,822 rows, 85 columns of small integers, 6 % positives), which the PyPI package ISLP holds
as `ISLP/data/Caravan.csv`: `pip download --no-deps ISLP`. It is asked for the precision of the 5 % of rows that are
flagged, on splits of 50/15/15/20. The wide table is drawn anew per seed: 1,500 rows and 2,000 columns, 10 of which
matter, asked for FNR at FPR 1 %; its test has 20,000 rows. Everybody trains on training and held-out rows together. The
rivals choose among 10 strengths by the log-loss of 5 folds. All are judged on test at the best cut, and by the rows
that were trained on, which shows overfitting. The ridge of LogisticRegressionCV is left out on the wide table, where it
takes long and, like every ridge, cannot leave columns out.
"""

from __future__ import annotations

import csv
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegressionCV
from torch import Tensor

import setpoint as sp
from benchmarks.common.data import Part, Parts, arguments, paired, split
from benchmarks.common.harness import write_result
from benchmarks.studies.default_study.study import training_rows
from setpoint.train.penalty import LinearPenalty
from setpoint.train.recipes import Recipes

ASKS = {"noisy": "maximize precision where flagged == 5%", "wide": "minimize fnr where fpr <= 1%"}
SEEDS = {"noisy": range(900, 906), "wide": range(900, 902)}
SHARES, DEFAULT = (0.5, 0.3), "default"
ROWS, COLUMNS, INFORMATIVE, TEST_ROWS = 1_500, 2_000, 10, 20_000


def load_caravan(path: str) -> tuple[np.ndarray, np.ndarray]:
    """Its columns as numbers, and whether a caravan insurance was bought."""
    with Path(path).open(newline="") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if name not in ("", "Purchase")]
    x = np.array([[float(row[name]) for name in names] for row in rows])
    return x, np.array([float(row["Purchase"] == "Yes") for row in rows])


def draw_wide(seed: int) -> Parts:
    """Normal columns; the first ten matter, less and less."""
    draw = torch.Generator().manual_seed(seed)

    def part(size: int) -> Part:
        x = torch.randn(size, COLUMNS, generator=draw, dtype=torch.float64)
        noise = torch.randn(size, generator=draw, dtype=torch.float64)
        return x, (x[:, :INFORMATIVE] @ torch.linspace(2, 0.5, INFORMATIVE).double() + noise > 2).double()

    sizes = (round(ROWS * share) for share in (0.7, 0.3, 0.3))
    return Parts(*(part(size) for size in sizes), part(TEST_ROWS))


def by_setpoint(problem: sp.Problem, parts: Parts, solver: Any) -> Any:
    """The weights and the bias as `sp.fit` gives them."""
    model = torch.nn.Linear(parts.train[0].shape[1], 1).double()
    train, held_out, calibration = (sp.Batches(*part) for part in (parts.train, parts.held_out, parts.calibration))
    sp.fit(model, problem, train, held_out, solver, calibration=calibration, refit=True)
    return lambda x: model(x).detach().squeeze(-1)


def by_fixed_ridge(problem: sp.Problem, parts: Parts) -> Any:
    """The default under the ridge 1/2 |theta|^2 on every table, as it was before penalties were chosen."""
    rows, scaling = training_rows(parts.train, parts.held_out)
    theta = Recipes(problem, rows, LinearPenalty()).anchored()
    return lambda x: scaling.with_ones(x) @ theta


def by_scikit_learn(parts: Parts, share: float) -> Any:
    """LogisticRegressionCV on standardised columns; `share` is that of the lasso."""
    rows, scaling = training_rows(parts.train, parts.held_out)
    how = {"solver": "liblinear", "intercept_scaling": 100.0} if share else {"solver": "lbfgs", "max_iter": 1000}
    model = LogisticRegressionCV(
        Cs=10, l1_ratios=(share,), cv=5, scoring="neg_log_loss", use_legacy_attributes=False, **how
    )
    model.fit(rows.x[:, :-1].numpy(), rows.labels.numpy())
    return lambda x: torch.tensor(model.decision_function(scaling.apply(x).numpy()))


def methods(problem: sp.Problem) -> dict[str, Any]:
    """Every method by name: from parts to scores."""
    return {
        DEFAULT: lambda parts: by_setpoint(problem, parts, None),
        "cross-entropy": lambda parts: by_setpoint(problem, parts, sp.Ridge()),
        "default, ridge 1": lambda parts: by_fixed_ridge(problem, parts),
        "LogisticRegressionCV, L2": lambda parts: by_scikit_learn(parts, 0.0),
        "LogisticRegressionCV, L1": lambda parts: by_scikit_learn(parts, 1.0),
    }


def run_split(problem: sp.Problem, parts: Parts) -> dict[str, dict[str, float]]:
    """All methods on one split."""
    found = {}
    wide = parts.train[0].shape[1] == COLUMNS
    for name, train in methods(problem).items():
        if wide and name.endswith("L2"):
            continue
        started = time.process_time()
        scores = train(parts)
        seconds = time.process_time() - started
        both: tuple[Tensor, ...] = tuple(torch.cat(own) for own in zip(parts.train, parts.held_out))
        found[name] = {
            "test": sp.evaluate(problem, scores(parts.test[0]), parts.test[1]).objective,
            "train": sp.evaluate(problem, scores(both[0]), both[1]).objective,
            "seconds": seconds,
        }
    return found


def summed_up(problem: sp.Problem, runs: list[dict[str, dict[str, float]]], test_share: float) -> dict[str, Any]:
    """Means, and the paired gain of the default over each other method."""
    sign = 1 if problem.maximize else -1
    return {
        name: {
            **{figure: statistics.mean(run[name][figure] for run in runs) for figure in ("test", "train", "seconds")},
            "gain of default": paired(
                [sign * (run[DEFAULT]["test"] - run[name]["test"]) for run in runs], test_share, 1 - test_share
            ),
        }
        for name in runs[0]
    }


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0])
    parser.add_argument("--caravan", help="Caravan.csv of the PyPI package ISLP; --quick does without")
    options = parser.parse_args()
    if options.caravan is None and not options.quick:
        parser.error("--caravan is missing: `pip download --no-deps ISLP` has the file as ISLP/data/Caravan.csv")
    torch.set_num_threads(1)
    asks = {name: ask for name, ask in ASKS.items() if name == "wide" or options.caravan}
    figures: dict[str, Any] = {}
    for name, ask in asks.items():
        problem, runs = sp.ask(ask), []
        for seed in SEEDS[name][: 1 if options.quick else None]:
            noisy = None if name == "wide" else load_caravan(options.caravan)
            parts = draw_wide(seed) if noisy is None else Parts.of(split(*noisy, seed, SHARES))
            runs.append(run_split(problem, parts))
            print(name, seed, {method: f"{100 * own['test']:.2f}" for method, own in runs[-1].items()}, flush=True)
        share = 0.2 if name == "noisy" else TEST_ROWS / (TEST_ROWS + ROWS)
        figures[name] = {"ask": ask, "splits": len(runs), "methods": summed_up(problem, runs, share)}
    write_result("regularised", figures, options.quick)
