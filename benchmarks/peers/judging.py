"""How answers are judged: the candidate that is best on validation rows, on test rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

import setpoint as sp
from benchmarks.peers.contest import Case
from setpoint.decide.order import preference


def judge_scores(
    problem: sp.Problem, case: Case, names: np.ndarray, validation: np.ndarray, test: np.ndarray
) -> dict[str, Any]:
    """Candidates that are scores: on test rows at the best cut, and at the threshold set on validation rows."""
    held_out, labels = case.parts.validation[1], case.parts.test[1]
    points = {
        i: sp.evaluate(problem, scores, held_out) for i, scores in enumerate(validation) if np.isfinite(scores).all()
    }
    best = max(points, key=lambda i: preference(points[i]))
    run_at = points[best].judge(test[best], labels)
    return {
        "test": sp.evaluate(problem, test[best], labels).objective, "at threshold": run_at.objective,
        **{str(c.quantity): run_at.rates[str(c.quantity)] for c in problem.constraints},
        "chosen": str(names[best]), "candidates": len(names),
    }  # fmt: skip


@dataclass(frozen=True)
class Flags:
    """What a share of flags in each row, 0, 1 or the chance of one, comes to: the expected counts of each group."""

    problem: sp.Problem
    counts: Tensor

    @classmethod
    def of(cls, problem: sp.Problem, flags: np.ndarray, labels: Tensor, groups: Tensor) -> Flags:
        up = torch.as_tensor(flags, dtype=torch.float64)
        each = torch.stack([up * labels, up * (1 - labels), (1 - up) * labels, (1 - up) * (1 - labels)], 1)
        counts = torch.zeros(int(groups.max()) + 1, 4, dtype=torch.float64).index_add(0, groups, each)
        return cls(problem, counts.unsqueeze(0))

    @property
    def objective(self) -> float:
        return float(self.problem.objective(self.counts.sum(-2))[0])

    @property
    def gap(self) -> float:
        return float(self.problem.constraints[0].quantity(self.counts)[0])

    @property
    def feasible(self) -> bool:
        return self.problem.holds(self.counts)

    @property
    def preference(self) -> tuple[bool, float]:
        """As `setpoint.decide.order.preference`: feasible ones by the objective, others by how little they break."""
        if not self.feasible:
            return False, -max(self.problem.violations(self.counts))
        return True, self.objective if self.problem.maximize else -self.objective

    @property
    def noise(self) -> float:
        """The standard error of the gap of two recalls, from the number of positives that each is a share of."""
        positives = self.counts[0, :, 0] + self.counts[0, :, 2]
        recalls = self.counts[0, :, 0] / positives
        return float((recalls * (1 - recalls) / positives).sum().sqrt())


def judge_flags(
    problem: sp.Problem, case: Case, names: np.ndarray, validation: np.ndarray, test: np.ndarray
) -> dict[str, Any]:
    """Candidates that are flags, or the chances of flags: on test rows as expected, and in one draw."""
    assert case.groups is not None
    held_out = case.parts.validation[1], case.groups[1]
    rows = case.parts.test[1], case.groups[2]
    seen = [Flags.of(problem, flags, *held_out) for flags in validation]
    best = max(range(len(seen)), key=lambda i: seen[i].preference)
    expected = Flags.of(problem, test[best], *rows)
    drawn = Flags.of(problem, np.random.default_rng(0).random(len(test[best])) < test[best], *rows)
    return {
        "test": expected.objective, "gap": expected.gap, "held": float(expected.feasible),
        "test, one draw": drawn.objective, "gap, one draw": drawn.gap, "held, one draw": float(drawn.feasible),
        "on validation": seen[best].objective, "gap on validation": seen[best].gap,
        "noise of the gap": expected.noise, "chosen": str(names[best]), "candidates": len(names),
    }  # fmt: skip
