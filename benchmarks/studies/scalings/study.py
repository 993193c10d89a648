"""Spambase under four scalings of its features: is the default ever below cross-entropy?

    python -m benchmarks.studies.scalings [--data DIR] [--quick]

The splits, methods and judgement of `default_study`, on 12 splits of their own. Features as they are, from 0
to 1, standardised and clipped to +-5, and log(1 + x); each scaling is set on the training rows. All methods standardise
what they get, so that the first two differ in rounding only: which is the point.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from benchmarks.common.data import Parts, Split, arguments, split, split_rows
from benchmarks.common.harness import Journal, write_result
from benchmarks.common.sets import read_table
from benchmarks.studies.default_study.study import MOST_BESIDE, SHARES, rows_of, run_split
from benchmarks.studies.default_study.verdict import summary

SEEDS = range(732, 744)


def _unit(x: np.ndarray, train: np.ndarray) -> np.ndarray:
    low, high = x[train].min(0), x[train].max(0)
    return (x - low) / np.where(high > low, high - low, 1)


SCALINGS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "as they are": lambda x, train: x,
    "from 0 to 1": _unit,
    "log(1 + x)": lambda x, train: np.log1p(x),
}
CLIPPED = "standardised, clipped"


def load(scaling: str, seed: int, data: str) -> Parts:
    x, y = read_table("spambase", data)
    if scaling == CLIPPED:
        return Parts.of(split(x, y, seed, SHARES), MOST_BESIDE)
    rows = split_rows(y, seed, SHARES)
    scaled = SCALINGS[scaling](x, rows[0])
    return Parts.of(Split(*((torch.tensor(scaled[part]), torch.tensor(y[part])) for part in rows)), MOST_BESIDE)


def main() -> None:
    options = arguments(str(__doc__).splitlines()[0]).parse_args()
    torch.set_num_threads(1)
    seeds = range(2) if options.quick else SEEDS
    names = (*SCALINGS, CLIPPED)
    journal = Journal("scalings", options.quick)
    for seed in seeds:
        for scaling in names:

            def parts(scaling: str = scaling, seed: int = seed) -> Parts:
                return load(scaling, seed, options.data)

            run_split(journal, scaling, seed, parts)
    figures = summary(rows_of(journal, names, seeds), test_share=1 - sum(SHARES), train_share=SHARES[0])
    journal.fold()
    write_result("scalings", {**figures, "seeds": list(seeds)}, options.quick)


if __name__ == "__main__":
    main()
