"""Precision at 5 on MQ2008 (official fold 1), a linear model: implicit top-k against pointwise cross-entropy.

    python -m benchmarks.studies.mq2008 [--data ../shared/data] [--quick]

Relevant is a grade above 0. Both methods have the same linear model, start, batches of 32 whole queries, Adam with a
learning rate that falls to 0 on a cosine, and the same grid of learning rates and weight decays; the epoch, and with
it the setting, is the one of the best precision at 5 on the validation part. The test part is looked at once. Five
seeds, two ways: a seed sets the start and the order of the batches; or also a bootstrap of the training queries.

A query without relevant documents has precision 0 (the convention of LETOR), and pulls both methods down alike; the
figure without such queries is given beside. The standard error of the paired difference is over test queries, each
averaged over the seeds; that over seeds is given beside.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import setpoint as sp
from benchmarks.common.harness import write_result
from setpoint.measure.ranking import precision_at_k
from setpoint.solve.top_k import ImplicitTopK

K = 5
SEEDS = 5
BATCH = 32
EPOCHS = 40
QUICK_SEEDS, QUICK_EPOCHS = 2, 10
LEARNING_RATES = (0.01, 0.03, 0.1)
WEIGHT_DECAYS = (0.0, 1e-3, 1e-2, 3e-2)


@dataclass(frozen=True)
class Lists:
    """Queries of one part, padded: features (Q, L, d), relevance (Q, L), mask (Q, L)."""

    x: Tensor
    labels: Tensor
    mask: Tensor

    def take(self, rows: Tensor) -> Lists:
        return Lists(self.x[rows], self.labels[rows], self.mask[rows])


class Pointwise(nn.Module):
    """Cross-entropy of each document by itself, the mean over documents."""

    def forward(self, scores: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(scores[mask], labels[mask])


METHODS = {"cross-entropy": Pointwise, "implicit top-k": lambda: ImplicitTopK(sp.precision, K)}


def read(path: Path) -> dict[str, Lists]:
    """The three parts of the official fold, features standardised on the training documents."""
    if not path.is_file():
        sys.exit(f"no data at {path}; give the folder that holds mq2008.npz with --data")
    raw = np.load(path, allow_pickle=False)
    x, train = raw["X"].astype(np.float64), raw["split"] == 0
    spread = x[train].std(0)
    x = ((x - x[train].mean(0)) / np.where(spread > 0, spread, 1)).astype(np.float32)
    parts = {}
    for number, name in enumerate(("train", "validation", "test")):
        rows = [np.flatnonzero((raw["qid"] == q) & (raw["split"] == number)) for q in np.unique(raw["qid"])]
        rows = [r for r in rows if len(r)]
        shape = len(rows), max(map(len, rows))
        features, labels, mask = np.zeros((*shape, x.shape[1])), np.zeros(shape), np.zeros(shape, dtype=bool)
        for i, r in enumerate(rows):
            features[i, : len(r)], labels[i, : len(r)], mask[i, : len(r)] = x[r], raw["y"][r] > 0, True
        parts[name] = Lists(torch.tensor(features).float(), torch.tensor(labels).float(), torch.tensor(mask))
    return parts


@torch.no_grad()
def precision(model: nn.Module, part: Lists) -> Tensor:
    """The precision at 5 of every query."""
    return precision_at_k(model(part.x).squeeze(-1), part.labels, K, part.mask)


def train(method: str, part: Lists, judge: Lists, rate: float, decay: float, seed: int, epochs: int):
    """The model of the best epoch on the validation part, its precision there, and the epoch.

    `decay` is the share of the weights taken off at a step, while the learning rate is at its height.
    """
    torch.manual_seed(seed)
    model, criterion = nn.Linear(part.x.shape[-1], 1), METHODS[method]()
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay / rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    best: tuple[float, int, dict[str, torch.Tensor]] = (-1.0, -1, {})
    for epoch in range(epochs):
        for rows in torch.randperm(len(part.labels)).split(BATCH):
            batch = part.take(rows)
            loss = criterion(model(batch.x).squeeze(-1), batch.labels, batch.mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        reached = float(precision(model, judge).mean())
        if reached > best[0]:
            best = reached, epoch, {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(best[2])
    return model, best[0], best[1]


def choose(method: str, part: Lists, judge: Lists, seed: int, quick: bool):
    """The best of the grid by the validation part."""
    grid = itertools.product(LEARNING_RATES[:2] if quick else LEARNING_RATES, WEIGHT_DECAYS[: 1 if quick else None])
    runs = []
    for rate, decay in grid:
        model, reached, epoch = train(method, part, judge, rate, decay, seed, QUICK_EPOCHS if quick else EPOCHS)
        runs.append((reached, {"learning_rate": rate, "weight_decay": decay, "epoch": epoch}, model))
    return max(runs, key=lambda run: run[0])


def mean_and_error(values: Tensor) -> dict[str, float]:
    return {"mean": float(values.mean()), "standard_error": float(values.std() / len(values) ** 0.5)}


def study(parts: dict[str, Lists], bootstrap: bool, quick: bool) -> dict[str, object]:
    test = parts["test"]
    judged: dict[str, list[Tensor]] = {method: [] for method in METHODS}
    chosen: dict[str, list[dict[str, float]]] = {method: [] for method in METHODS}
    for seed in range(QUICK_SEEDS if quick else SEEDS):
        part = parts["train"]
        if bootstrap:
            draw = torch.Generator().manual_seed(seed)
            part = part.take(torch.randint(len(part.labels), (len(part.labels),), generator=draw))
        for method in METHODS:
            reached, setting, model = choose(method, part, parts["validation"], seed, quick)
            judged[method].append(precision(model, test))
            chosen[method].append({"validation": reached, **setting})
    figures: dict[str, object] = {"chosen": chosen}
    some = test.labels.sum(-1) > 0
    for name, rows in (("all queries", torch.ones_like(some)), ("queries with relevant documents", some)):
        by_seed = {method: torch.stack(runs)[:, rows] for method, runs in judged.items()}
        ours, theirs = by_seed["implicit top-k"], by_seed["cross-entropy"]
        figures[name] = {
            "queries": int(rows.sum()),
            **{method: [round(v, 5) for v in runs.mean(1).tolist()] for method, runs in by_seed.items()},
            **{f"mean of {method}": float(runs.mean()) for method, runs in by_seed.items()},
            "difference over queries": mean_and_error((ours - theirs).mean(0)),
            "difference over seeds": mean_and_error((ours - theirs).mean(1)),
        }
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder that holds mq2008.npz")
    parser.add_argument("--quick", action="store_true", help="two seeds, a small grid, ten epochs")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    parts = read(arguments.data / "mq2008.npz")
    figures = {}
    for name, bootstrap in (("start and order", False), ("bootstrap of the training queries", True)):
        figures[name] = found = study(parts, bootstrap, arguments.quick)
        for queries in ("all queries", "queries with relevant documents"):
            row = found[queries]
            over = row["difference over queries"]
            print(
                f"{name}, {queries} ({row['queries']}): precision at {K} of cross-entropy "
                f"{row['mean of cross-entropy']:.4f}, implicit top-k {row['mean of implicit top-k']:.4f}, paired "
                f"difference {over['mean']:+.4f} +- {over['standard_error']:.4f} over queries, "
                f"+- {row['difference over seeds']['standard_error']:.4f} over seeds",
                flush=True,
            )
    seeds, epochs = (QUICK_SEEDS, QUICK_EPOCHS) if arguments.quick else (SEEDS, EPOCHS)
    write_result("mq2008", {"k": K, "seeds": seeds, "epochs": epochs, "studies": figures}, arguments.quick)
