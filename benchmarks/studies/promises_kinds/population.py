"""The population of the study, and the true rates of decisions in it; NumPy alone, since MAPIE runs elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

Numbers = np.ndarray
POINTS, CONFIDENCE, GRID = 60_000, 0.95, 100
#: A row that is given to a person.
REVIEW = -1


@dataclass(frozen=True)
class Cell:
    """An ask, the rows that certify it, and the rates that it bounds.

    Args:
        name: The name of the cell.
        kind: "band", "classes" or "worth".
        ask: The ask.
        rows: The number of calibration rows.
        bounds: The least or the largest value of each bounded rate.
        objective: The rate that is better when it is lower.
    """

    name: str
    kind: str
    ask: str
    rows: int
    bounds: tuple[tuple[str, str, float], ...]
    objective: str


CELLS = (
    Cell("band, two bounds", "band", "minimize review where precision >= 85% and npv >= 90%", 1000,
         (("precision", ">=", 0.85), ("npv", ">=", 0.9)), "review"),
    Cell("band, one bound", "band", "minimize error where review <= 20%", 1000, (("review", "<=", 0.2),), "error"),
    Cell("one class", "classes", "maximize recall of class 2 where precision of class 2 >= 80%", 1500,
         (("precision of 2", ">=", 0.8),), "miss of 2"),
    Cell("two classes", "classes", "minimize error where recall of class 0 >= 75% and recall of class 1 >= 70%", 1500,
         (("recall of 0", ">=", 0.75), ("recall of 1", ">=", 0.7)), "error"),
    Cell("worth", "worth", "maximize recall weighted by amount where fpr <= 10%", 1000, (("fpr", "<=", 0.1),),
         "missed worth"),
)  # fmt: skip


@cache
def population() -> dict[str, Numbers]:
    """Points of three classes in a plane: the chance of each class, the scores of an imperfect model, and amounts."""
    draw = np.random.default_rng(22)
    centres, shares = np.array([[0.0, 0.0], [2.0, 0.6], [0.8, 2.2]]), np.array([0.5, 0.3, 0.2])
    x = centres[draw.choice(3, POINTS, p=shares)] + draw.normal(size=(POINTS, 2))
    logs = np.log(shares) - 0.5 * ((x[:, None] - centres) ** 2).sum(-1)
    chance = np.exp(logs - logs.max(1, keepdims=True))
    scores = (0.8 * logs + 0.4 * draw.normal(size=logs.shape)).astype(np.float32).astype(float)
    chance /= chance.sum(1, keepdims=True)
    return {"chance": chance, "scores": scores, "amount": draw.lognormal(3, 1, POINTS).round(2)}


def single(scores: Numbers) -> Numbers:
    """One score per row, for class 2 against the rest."""
    return scores[:, 2] - np.logaddexp(scores[:, 0], scores[:, 1])


def drawn(cell: Cell, seed: int) -> tuple[Numbers, Numbers, Numbers]:
    """Scores, labels and amounts of a sample of the population."""
    everyone, draw = population(), np.random.default_rng((22, seed))
    rows = draw.integers(0, POINTS, cell.rows)
    classes = (draw.random((cell.rows, 1)) > everyone["chance"][rows].cumsum(1)).sum(1).clip(max=2)
    scores, amounts = everyone["scores"][rows], everyone["amount"][rows]
    if cell.kind == "classes":
        return scores, classes, amounts
    return single(scores), (classes == 2).astype(int), amounts


def everyone(cell: Cell) -> Numbers:
    """The scores of the whole population."""
    scores = population()["scores"]
    return scores if cell.kind == "classes" else single(scores)


def true_rates(cell: Cell, decided: Numbers) -> dict[str, float]:
    """The rates in the population of a decision on each of its points: finite sums, without an error of their own."""
    chance, amount = population()["chance"], population()["amount"]
    if cell.kind == "classes":
        found = {"error": float(1 - chance[np.arange(POINTS), decided].mean())}
        for k in range(3):
            hits = chance[decided == k, k].sum()
            found[f"recall of {k}"] = float(hits / chance[:, k].sum())
            found[f"miss of {k}"] = 1 - found[f"recall of {k}"]
            found[f"precision of {k}"] = float(hits / max((decided == k).sum(), 1e-9))
        return found
    positive, flagged, passed = chance[:, 2], decided == 1, decided == 0
    return {
        "review": float((decided == REVIEW).mean()),
        "error": float((positive * passed + (1 - positive) * flagged).mean()),
        "precision": float((positive * flagged).sum() / max(flagged.sum(), 1e-9)) if flagged.any() else 1.0,
        "npv": float(((1 - positive) * passed).sum() / max(passed.sum(), 1e-9)) if passed.any() else 1.0,
        "fpr": float(((1 - positive) * flagged).sum() / (1 - positive).sum()),
        "missed worth": 1 - float((positive * amount * flagged).sum() / (positive * amount).sum()),
    }


def judged(cell: Cell, decided: Numbers | None) -> dict[str, Any]:
    """Whether a decision was given, whether it breaks a bound in the population, and its objective there."""
    if decided is None:
        return {"issued": False}
    rates = true_rates(cell, decided)
    broken = any(rates[r] > b if relation == "<=" else rates[r] < b for r, relation, b in cell.bounds)
    return {"issued": True, "broken": bool(broken), "objective": rates[cell.objective]}
