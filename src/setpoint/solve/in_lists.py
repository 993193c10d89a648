"""Training asks about lists: the rates in the first rows, with one implicit threshold per list."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from setpoint.errors import BadProblem
from setpoint.measure.in_first import LISTS, InFirst
from setpoint.measure.lists import Ordered, with_lists
from setpoint.measure.sample import Sample, check_sample, refuse_huge_scores
from setpoint.measure.step import SigmoidStep
from setpoint.problem.problem import Problem
from setpoint.solve.solver import Solver, full_precision, settle_temperature, temperature_buffer
from setpoint.solve.top_k import price_top_k, query_spread, top_k_thresholds

#: The price of a broken bound, in units of the objective per unit of violation.
BROKEN = 10.0
FLOOR = 1e-6


class ImplicitLists(Solver):
    """Train an ask about lists, with one implicit threshold per list, as `ImplicitTopK` does for one rate.

    The objective is that of the soft counts at the threshold that the first k rows of each list pass. A bound that the
    true values of the batch break counts with ten times its excess; one that they keep does not count. A batch holds
    whole lists, each of its rows beside its score and label, so nothing is padded by the caller.

    Args:
        problem: A problem about lists, such as `sp.ask("maximize precision in the first 5")`.
        temperature: The steepness of the step; None sets it once, from the spread of the first scores in their lists.

    Raises:
        BadProblem: If the problem is not about lists.

    Example:
        >>> import torch, setpoint as sp
        >>> solver = sp.losses.ImplicitLists(sp.ask("maximize precision in the first 1"))
        >>> scores, labels = torch.tensor([2.0, 1.0, 0.5, 0.0]), torch.tensor([0.0, 1.0, 1.0, 0.0])
        >>> bool(solver(scores, labels, lists=torch.tensor([7, 7, 9, 9])) < 0)
        True
    """

    needs_lists: ClassVar[bool] = True
    temperature: Tensor

    def __init__(self, problem: Problem, *, temperature: float | None = None) -> None:
        super().__init__()
        if problem.kind != LISTS:
            raise BadProblem(
                f"ImplicitLists trains asks such as 'maximize precision in the first 5', but got '{problem}'"
            )
        self.problem = problem
        self.register_buffer("temperature", temperature_buffer(temperature))

    def forward(
        self,
        scores: Tensor,
        labels: Tensor,
        *,
        lists: Tensor | None = None,
        weights: Tensor | None = None,
        groups: Tensor | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """The loss of a batch of whole lists, a scalar.

        Args:
            scores: Score of each row, `(n,)`.
            labels: 1 for a positive, 0 for a negative.
            lists: The number of the list of each row.
            weights: Weight of each row, the same in all rows of a list.
            groups: Not used.
            index: Not used.

        Returns:
            The loss, with a gradient to the scores.
        """
        with full_precision(scores):
            sample = check_sample(scores, labels, weights)
            refuse_huge_scores(sample.scores)
            return self.refuse_odd_loss(self.loss(with_lists(sample, lists).widened()))

    def loss(self, batch: Sample, index: Tensor | None = None) -> Tensor:
        """The loss of a checked batch with lists."""
        if not len(batch.scores) or float(batch.mass) <= 0:
            return (0.0 * batch.scores).sum()
        ordered = Ordered(batch)
        wide = _padded(ordered)
        assert wide.weights is not None
        present = wide.weights > 0
        temperature = settle_temperature(
            self.temperature, lambda: query_spread(wide, present), batch.dtype, keep=self.training
        )
        share = ordered.per_list(torch.ones_like(batch.scores) if batch.weights is None else batch.weights, "amax")
        share = share.to(batch.dtype) / share.sum()

        def value(quantity: Any) -> Tensor:
            assert isinstance(quantity, InFirst)
            losses, _ = price_top_k(
                quantity.rate, quantity.k, wide.scores, wide.labels, present,
                top_k_thresholds(wide.scores, quantity.k, present), SigmoidStep(temperature),
                floor=FLOOR * float(temperature),
            )  # fmt: skip
            return -(share.to(losses.dtype) @ losses)

        cost = value(self.problem.objective) * (-1 if self.problem.maximize else 1)
        counts = ordered.counts(self.problem.depth) if self.problem.constraints else None
        for constraint in self.problem.constraints:
            true = constraint.quantity(counts)  # type: ignore[arg-type]
            if float(constraint.violation_at(true)) > 0:
                worse = -1 if float(true) < constraint.bound else 1
                cost = cost + BROKEN * worse * (value(constraint.quantity) - constraint.bound)
        return cost

    def status(self) -> dict[str, Any]:
        return {"temperature": float(self.temperature)}


def _padded(ordered: Ordered) -> Sample:
    """The lists as rows of a table: scores, labels and weights `(Q, L)`, in which padding has weight 0."""
    sample, shape = ordered.sample, (len(ordered.sizes), int(ordered.sizes.max()))
    spots = ordered.numbers[ordered.order], ordered.places
    weights = torch.ones_like(sample.scores) if sample.weights is None else sample.weights

    def wide(column: Tensor) -> Tensor:
        return column.new_zeros(shape).index_put(spots, column[ordered.order])

    return Sample(wide(sample.scores), wide(sample.labels), wide(weights))
