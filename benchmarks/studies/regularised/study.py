"""A noisy and a wide table: the linear default and `auto` against scikit-learn's LogisticRegressionCV.

    python -m benchmarks.studies.regularised --caravan Caravan.csv [--quick]

The noisy table is Caravan (5,822 rows, 85 columns of small integers, 6 % positives), which the PyPI package ISLP holds
as `ISLP/data/Caravan.csv`: `pip download --no-deps ISLP`. It is asked for the precision of the 5 % of rows that are
flagged, on splits of 50/15/15/20. The wide table is drawn anew per seed: 1,500 rows and 2,000 columns, 10 of which
matter, asked for FNR at FPR 1 %; its test has 20,000 rows. Everybody trains on training and held-out rows together. The
rivals choose among 10 strengths by the log-loss of 5 folds. All are judged on test at the best cut, and by the rows
that were trained on, which shows overfitting.

The linear default is `sp.fit` on numbers. `auto` is what `setpoint fit` does to the table as it is: it also chooses
which integers are taken as levels. Both see the same rows, because a column with the order of the parts splits them.
"""

from __future__ import annotations

import csv
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from sklearn.linear_model import LogisticRegressionCV
from torch import Tensor

import setpoint as sp
from benchmarks.common.data import Part, Parts, arguments, halves_of, paired, split, split_rows
from benchmarks.common.harness import write_result
from benchmarks.studies.default_study.study import training_rows
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table
from setpoint.train.penalty import LinearPenalty
from setpoint.train.recipes import Recipes

ASKS = {"noisy": "maximize precision where flagged == 5%", "wide": "minimize fnr where fpr <= 1%"}
SEEDS = {"noisy": range(900, 906), "wide": range(900, 906)}
SHARES, OURS = (0.5, 0.3), ("default", "auto")
DEFAULT, AUTO = OURS
#: The parts that are trained on, and the one that judges.
SEEN = ("train", "held_out")
ROWS, COLUMNS, INFORMATIVE, TEST_ROWS = 1_500, 2_000, 10, 20_000
#: The columns of the wide table in the short form, which is to take less than a minute.
QUICK_COLUMNS = 400


def load_caravan(path: str) -> tuple[np.ndarray, np.ndarray]:
    """Its columns as numbers, and whether a caravan insurance was bought."""
    with Path(path).open(newline="") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if name not in ("", "Purchase")]
    x = np.array([[float(row[name]) for name in names] for row in rows])
    return x, np.array([float(row["Purchase"] == "Yes") for row in rows])


def draw_wide(seed: int, columns: int) -> Parts:
    """Normal columns; the first ten matter, less and less."""
    draw = torch.Generator().manual_seed(seed)

    def part(size: int) -> Part:
        x = torch.randn(size, columns, generator=draw, dtype=torch.float64)
        noise = torch.randn(size, generator=draw, dtype=torch.float64)
        return x, (x[:, :INFORMATIVE] @ torch.linspace(2, 0.5, INFORMATIVE).double() + noise > 2).double()

    train, held_out, calibration = (part(round(ROWS * share)) for share in (0.7, 0.3, 0.3))
    return Parts(train, held_out, calibration, part(TEST_ROWS))


def by_setpoint(problem: sp.Problem, parts: Parts, solver: Any) -> Any:
    """The weights and the bias as `sp.fit` gives them."""
    model = torch.nn.Linear(parts.train[0].shape[1], 1).double()
    train, held_out, calibration = (sp.Batches(*part) for part in (parts.train, parts.held_out, parts.calibration))
    sp.fit(model, problem, train, held_out, solver, calibration=calibration, refit=True)
    return lambda x: model(x).detach().squeeze(-1)


def in_parts(x: np.ndarray, y: np.ndarray, seed: int) -> pl.DataFrame:
    """The table, its parts one behind the other in the rows that `Parts.of` gives them; `part` numbers them."""
    train, validation, test = split_rows(y, seed, SHARES)
    rows = [train, *(validation[half.numpy()] for half in halves_of(torch.tensor(y[validation]))), test]
    return pl.concat(framed(x[own], y[own], place) for place, own in enumerate(rows))


def framed(x: Any, y: Any, part: int) -> pl.DataFrame:
    """One part as a table; whole numbers are integers, as they are in a file."""
    whole = bool((np.asarray(x) == np.round(x)).all())
    frame = pl.DataFrame(np.asarray(x).astype(np.int64 if whole else np.float64))
    return frame.with_columns(y=pl.Series(np.asarray(y).astype(np.int64)), part=pl.lit(part, dtype=pl.Int64))


def by_auto(problem: sp.Problem, frame: pl.DataFrame) -> dict[str, Any]:
    """The scores and labels of the parts that are judged by, as `setpoint fit` trains on the table."""
    sizes = frame["part"].value_counts(sort=False).sort("part")["count"].to_list()
    shares = tuple(size / len(frame) for size in sizes)
    settings = Settings(model="auto", time="part", shares=shares, confidence=None)
    run = fit_table(frame, "y", problem, settings)
    samples = {part: run.chosen.sample(part) for part in (*SEEN, "test")}
    assert [len(samples[part].labels) for part in samples] == [sizes[0], sizes[1], sizes[3]], "other rows"
    return {part: (sample.scores.double(), sample.labels.double()) for part, sample in samples.items()}


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
    """Every method on numbers by name: from parts to scores."""
    return {
        DEFAULT: lambda parts: by_setpoint(problem, parts, None),
        "cross-entropy": lambda parts: by_setpoint(problem, parts, sp.Ridge()),
        "default, ridge 1": lambda parts: by_fixed_ridge(problem, parts),
        "LogisticRegressionCV, L2": lambda parts: by_scikit_learn(parts, 0.0),
        "LogisticRegressionCV, L1": lambda parts: by_scikit_learn(parts, 1.0),
    }


def run_split(problem: sp.Problem, parts: Parts, frame: pl.DataFrame) -> dict[str, dict[str, float]]:
    """All methods on one split, which is given as numbers in parts and as a table."""
    found = {}

    def judge(name: str, started: float, test: Part, seen: Part) -> None:
        seconds = time.process_time() - started
        each = {"test": test, "train": seen}
        found[name] = {part: sp.evaluate(problem, *own).objective for part, own in each.items()} | {"seconds": seconds}

    started = time.process_time()
    by_part = by_auto(problem, frame)
    assert torch.equal(by_part["test"][1], parts.test[1]), "other rows"
    scores, labels = (torch.cat([by_part[part][place] for part in SEEN]) for place in (0, 1))
    judge(AUTO, started, by_part["test"], (scores, labels))
    both: tuple[Tensor, ...] = tuple(torch.cat(own) for own in zip(parts.train, parts.held_out))
    for name, train in methods(problem).items():
        started = time.process_time()
        score = train(parts)
        judge(name, started, (score(parts.test[0]), parts.test[1]), (score(both[0]), both[1]))
    return found


def summed_up(problem: sp.Problem, runs: list[dict[str, dict[str, float]]], test_share: float) -> dict[str, Any]:
    """Means, and the paired gains of the linear default and of `auto` over each other method."""
    sign = 1 if problem.maximize else -1

    def gain(ours: str, name: str) -> dict[str, float]:
        return paired([sign * (run[ours]["test"] - run[name]["test"]) for run in runs], test_share, 1 - test_share)

    return {
        name: {
            **{figure: statistics.mean(run[name][figure] for run in runs) for figure in ("test", "train", "seconds")},
            **{f"gain of {ours}": gain(ours, name) for ours in OURS},
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
            if noisy is None:
                parts = draw_wide(seed, QUICK_COLUMNS if options.quick else COLUMNS)
                each = (parts.train, parts.held_out, parts.calibration, parts.test)
                frame = pl.concat(framed(*own, place) for place, own in enumerate(each))
            else:
                parts, frame = Parts.of(split(*noisy, seed, SHARES)), in_parts(*noisy, seed)
            runs.append(run_split(problem, parts, frame))
            print(name, seed, {method: f"{100 * own['test']:.2f}" for method, own in runs[-1].items()}, flush=True)
        share = 0.2 if name == "noisy" else TEST_ROWS / (TEST_ROWS + ROWS)
        figures[name] = {"ask": ask, "splits": len(runs), "methods": summed_up(problem, runs, share)}
    write_result("regularised", figures, options.quick)
