"""Asks about lists on MQ2008: linear models and trees, trained for the lists or by cross-entropy and log-loss.

    python -m benchmarks.studies.lists [--data ../shared/data] [--quick]

All queries of the official fold 1, relevant is a grade above 0. They are cut into five parts at random, with the same
share of queries that have relevant documents. Each part is judged by models that were trained on the other four, of
which a fifth of the queries chooses the epoch or the number of trees; no model is retrained on those, since only some
methods can be. Every method has its own defaults, and nothing is tuned:

- `linear, cross-entropy`: converged, the default of linear models, and the one that the others are compared with;
- `linear, implicit`: `ImplicitLists` for the ask, batches of 512 rows in whole lists, 60 epochs;
- `trees, log-loss`: the default of trees;
- `trees, lambdarank`: the same trees by LightGBM's lambdarank.

Two asks: precision in the first 5, and recall in the first 10. A query without relevant documents has 0 in both. The
standard error of a difference is that over queries, paired; the difference of each of the five parts is given beside.
The defaults were chosen before, on queries of the training and validation parts alone, where no method differed from
another by more than its standard error.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import setpoint as sp
from benchmarks.common.harness import write_result
from setpoint.data.split import split
from setpoint.measure.lists import Ordered, with_lists
from setpoint.measure.sample import check_sample
from setpoint.train.scoring import score_rows

ASKS = ("maximize precision in the first 5", "maximize recall in the first 10")
FOLDS, EPOCHS, BATCH = 5, 60, 512
RIVAL = "linear, cross-entropy"
METHODS: dict[str, Callable[[sp.Problem], tuple[bool, Any]]] = {
    RIVAL: lambda problem: (True, sp.Ridge()),
    "linear, implicit": lambda problem: (True, sp.losses.ImplicitLists(problem)),
    "trees, log-loss": lambda problem: (False, sp.methods.Trees(pool=False)),
    "trees, lambdarank": lambda problem: (False, sp.methods.Trees(pool=False, ranked=True)),
}


def read(path: Path) -> tuple[Tensor, Tensor, Tensor]:
    """Features, relevance and query of every document."""
    if not path.is_file():
        sys.exit(f"no data at {path}; give the folder that holds mq2008.npz with --data")
    raw = np.load(path, allow_pickle=False)
    return torch.tensor(raw["X"]).float(), torch.tensor(raw["y"] > 0).float(), torch.tensor(raw["qid"].astype(np.int64))


def judged(problem: sp.Problem, scores: Tensor, labels: Tensor, lists: Tensor) -> np.ndarray:
    """The objective of each query, in the order of their numbers."""
    counts = Ordered(with_lists(check_sample(scores.double(), labels), lists)).counts(problem.depth)
    return problem.objective.of_each(counts).numpy()  # type: ignore[attr-defined]


def values(name: str, ask: str, rows: tuple[Tensor, Tensor, Tensor], quick: bool) -> list[np.ndarray]:
    """The objective of each query, by part, from models that were trained on the other parts."""
    x, labels, lists = rows
    problem, found = sp.ask(ask), []
    for test in split(labels, (1 / FOLDS,) * FOLDS, 0, lists=lists)[: 2 if quick else FOLDS]:
        outside = torch.ones(len(labels), dtype=torch.bool)
        outside[test] = False
        rest = outside.nonzero().squeeze(-1)
        parts = [rest[own] for own in split(labels[rest], (0.8, 0.2), 1, lists=lists[rest])]
        mean, spread = x[parts[0]].mean(0), x[parts[0]].std(0)
        scaled = (x - mean) / torch.where(spread > 0, spread, 1)
        train, held_out, last = (
            sp.Batches(scaled[own], labels[own], batch_size=size, shuffle=size is not None).with_lists(lists[own])
            for own, size in zip((*parts, test), (BATCH, None, None))
        )
        torch.manual_seed(0)
        linear, method = METHODS[name](problem)
        model = nn.Linear(x.shape[1], 1) if linear else None
        result = sp.fit(
            model, problem, train, held_out, method, calibration=last, refit=False, epochs=10 if quick else EPOCHS
        )
        found.append(judged(problem, score_rows(result.model, scaled[test]), labels[test], lists[test]))
    return found


def study(rows: tuple[Tensor, Tensor, Tensor], ask: str, quick: bool) -> dict[str, Any]:
    every, figures = {}, {}
    for name in METHODS:
        started = time.process_time()
        every[name] = values(name, ask, rows, quick)
        own, rival = np.concatenate(every[name]), np.concatenate(every[RIVAL])
        gaps = own - rival
        figures[name] = {
            "mean": own.mean(), "difference": gaps.mean(), "standard_error": gaps.std(ddof=1) / len(gaps) ** 0.5,
            "by_part": [round(float((a - b).mean()), 5) for a, b in zip(every[name], every[RIVAL])],
            "processor_seconds": round(time.process_time() - started, 1),
        }  # fmt: skip
        row = figures[name]
        print(f"{ask}: {name} {row['mean']:.4f}, {row['difference']:+.4f} ± {row['standard_error']:.4f}", flush=True)
    return {"queries": len(own), "methods": figures}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder that holds mq2008.npz")
    parser.add_argument("--quick", action="store_true", help="two parts, ten epochs; nothing is kept")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = read(arguments.data / "mq2008.npz")
    figures = {ask: study(rows, ask, arguments.quick) for ask in ASKS}
    write_result("lists", {"asks": figures}, arguments.quick)
