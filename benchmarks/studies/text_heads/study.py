"""A linear head on frozen text embeddings, trained for the ask, against a logistic head with the best of 21 weights.

    python -m benchmarks.studies.text_heads [--quick] [--sources sms_spam,disaster_tweets]

20 splits (train / validation / test 50/20/30, at most 6,000 training rows) of each source of `texts.py`. Both heads
see the same standardised embeddings. At first there were 10; after a look at them, and at splits 100 to 105, the
other 10 were added, with nothing changed in the heads because of them. The class weight is tuned on validation; the
default of `sp.fit` is not tuned.
Every figure is the FNR at the exact FPR on test, a point of the test curve, for all methods alike.
"""

from __future__ import annotations

import statistics

import torch

import setpoint as sp
from benchmarks.common.data import Split, arguments, paired, split, with_ones
from benchmarks.common.harness import write_result
from benchmarks.studies.fixed_fpr.study import CLASS_WEIGHTS, default, judge
from benchmarks.studies.text_heads.texts import CHARACTERS, ENCODER, SOURCES, embedded
from setpoint.data.rows import Rows
from setpoint.train.class_weights import class_weights
from setpoint.train.linear import cross_entropy

ASKS = ("minimize fnr where fpr <= 1%", "minimize fnr where fpr <= 0.1%")
SHARES, MOST, SPLITS = (0.5, 0.2), 6_000, 20
PLAIN, TUNED, OURS = "cross-entropy", "best of 21 weights", "default"


def heads(parts: Split) -> dict[float, torch.Tensor]:
    """Logistic heads under each class weight; the ask plays no part in them."""
    x, labels = parts.train
    rows, found, theta = Rows(with_ones(x), labels, torch.ones_like(labels)), {}, None
    for weight in CLASS_WEIGHTS:
        theta = cross_entropy(rows, class_weights(rows, weight), theta)
        found[weight] = theta
    return found


def figures_of(problem: sp.Problem, parts: Split, made: dict[float, torch.Tensor]) -> dict[str, float]:
    """The FNR on test of each method for one ask."""

    def on(part: tuple[torch.Tensor, torch.Tensor], theta: torch.Tensor) -> float:
        return judge(problem, with_ones(part[0]) @ theta, part[1])

    best = min(made, key=lambda weight: on(parts.validation, made[weight]))
    return {
        PLAIN: on(parts.test, made[1.0]),
        TUNED: on(parts.test, made[best]),
        OURS: default(problem, parts),
    }


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0])
    parser.add_argument("--sources", default=",".join(SOURCES), help="which texts, with commas between")
    options = parser.parse_args()
    splits, cells = 2 if options.quick else SPLITS, []
    for source in options.sources.split(","):
        x, y = embedded(source)
        found: dict[str, dict[str, list[float]]] = {ask: {PLAIN: [], TUNED: [], OURS: []} for ask in ASKS}
        for seed in range(splits):
            parts = split(x.astype("float64"), y, seed, SHARES, most=MOST)
            made = heads(parts)
            for ask in ASKS:
                for method, figure in figures_of(sp.ask(ask), parts, made).items():
                    found[ask][method].append(figure)
        for ask, figures in found.items():
            cell = {"set": source, "ask": ask, "rows": len(y), "test negatives": int((parts.test[1] == 0).sum())}
            cell["figures"] = {method: [round(value, 5) for value in values] for method, values in figures.items()}
            for rival in (TUNED, PLAIN):
                gains = [a - b for a, b in zip(figures[rival], figures[OURS])]
                cell[f"gain over {rival}"] = paired(gains, 1 - sum(SHARES), SHARES[0])
            cells.append(cell)
            means = ", ".join(f"{method} {100 * statistics.mean(values):.2f}" for method, values in figures.items())
            print(f"{source}, {ask}: {means} (percent)", flush=True)
    if not options.quick:
        write_result("text_heads", {"encoder": ENCODER, "characters": CHARACTERS, "splits": splits, "cells": cells})
