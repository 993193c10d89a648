"""The default for linear models where no bound says how much lies beyond the threshold: F-scores, precision, errors.

    python -m benchmarks.studies.free_asks [--data DIR] [--quick] [--splits N]

Rows, rivals and judgement as in `default_study`, on the six tables. The strength of the anchor, 16 times what it was
before, was chosen among 1, 4, 16 and 64 times on the splits 0 to 3 (precision and error: 0 to 2, without 64); that of
before stands beside it. Each finished row is a row of `results/rows/free_asks.parquet`, and not run again.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

import setpoint as sp
from benchmarks.common.data import Parts, arguments
from benchmarks.common.harness import Journal, write_result
from benchmarks.common.sets import CACHE, TABLES
from benchmarks.studies.default_study.study import MOST, SHARES, Fitted, judge, load_parts, rows_of, run_split
from benchmarks.studies.default_study.verdict import DEFAULT, summary
from setpoint.train.linear import FREE_SHARE
from setpoint.train.recipes import KAPPA

ASKS = (
    "maximize f_score(1)",
    "maximize f_score(2)",
    "maximize recall where precision >= 90%",
    "minimize error",
)
SEEDS = range(740, 748)
BEFORE = "default before"


def before(problem: sp.Problem, parts: Parts, both: Fitted) -> dict[str, dict[str, Any]]:
    """The anchor as it was, all positives and negatives being said to decide."""
    theta, spent = both.default(problem, KAPPA * FREE_SHARE)
    return {BEFORE: {**judge(problem, both.scaling, theta, parts), "seconds": spent}}


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0])
    parser.add_argument("--splits", type=int, help="only the first so many")
    options = parser.parse_args()
    torch.set_num_threads(1)
    sets, seeds = tuple(TABLES), SEEDS[: options.splits]
    if options.quick:
        sets, seeds = ("letter", "german_credit"), range(2)
    journal = Journal("free_asks", options.quick)
    for seed in seeds:
        for one in sets:
            run_split(journal, one, seed, partial(load_parts, one, seed, options.data, str(CACHE)), ASKS, before)
    rows = rows_of(journal, sets, seeds, ASKS)
    figures = summary(rows, test_share=1 - sum(SHARES), train_share=SHARES[0], all_ours=(DEFAULT, BEFORE))
    figures |= {"seeds": list(seeds), "planned splits": len(SEEDS), "most training rows": MOST}
    journal.fold()
    write_result("free_asks", figures, options.quick)


if __name__ == "__main__":
    main()
