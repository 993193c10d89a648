"""Ranking: the best k documents of each query, with one implicit threshold per query.

The threshold of a query is passed by k of its documents. Its bound, "k pass", is priced query by query in
closed form, so that thousands of queries are thousands of rows of a tensor, not of Lagrange multipliers.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from setpoint.errors import BadProblem, BadScores, BadSetting, ShapeMismatch
from setpoint.measure.rate import Metric, Rate
from setpoint.measure.sample import Sample, check_sample, refuse_odd_weights
from setpoint.measure.step import SigmoidStep, SmoothStep
from setpoint.solve.refuse import above_zero, whole_number
from setpoint.solve.solver import Solver, full_precision, settle_temperature, temperature_buffer


class ImplicitTopK(Solver):
    """Train precision or recall among the k best documents of each query, with one implicit threshold per query.

        loss = -mean_q [rate_q - price_q (passing_q - k)]

    in soft counts, at the threshold half way between the k-th and the (k+1)-th score of the query. The gradient of a
    document is then proportional to its relevance minus that of the documents near the threshold.

    Scores and labels are `(Q, L)`, padded to L documents per query. A query with k documents or fewer counts with what
    it is (a place left empty is a miss) and moves nothing; a query without relevant documents, or with no others, moves
    nothing by itself; a query without documents is not there. A batch holds whole queries, so there is no memory.

    Args:
        rate: `sp.precision` or `sp.recall`.
        k: Number of places.
        temperature: Steepness of the step. None sets it once, from the spread of the first scores within their queries.
        slope_floor: Slopes below this count for little, so that prices stay finite.

    Raises:
        BadProblem: If `rate` is not a rate.
        BadSetting: If a setting is out of its range.

    Example:
        >>> import torch, setpoint as sp
        >>> solver = sp.losses.ImplicitTopK(sp.precision, k=1)
        >>> loss = solver(torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([[0.0, 1.0, 0.0]]))
        >>> sorted(solver.status())
        ['price', 'temperature']
    """

    takes_parts = True
    temperature: Tensor
    mean_price: Tensor

    def __init__(self, rate: Rate, k: int, *, temperature: float | None = None, slope_floor: float = 1e-6) -> None:
        super().__init__()
        if not isinstance(rate, Rate):
            raise BadProblem(f"ImplicitTopK trains a rate such as sp.precision or sp.recall, but got {rate!r}")
        above_zero(slope_floor=slope_floor)
        self.rate, self.k, self.slope_floor = rate, whole_number("k", k), slope_floor
        self.register_buffer("temperature", temperature_buffer(temperature))
        self.register_buffer("mean_price", torch.zeros(()))

    def forward(
        self,
        scores: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        *,
        weights: Tensor | None = None,
        groups: Tensor | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """The loss of a batch of queries, a scalar.

        Args:
            scores: Score of each document, `(Q, L)`.
            labels: 1 for a relevant document, 0 for another.
            mask: True where there is a document; padding may hold anything.
            weights: Weight of each query.
            groups: Not used.
            index: Not used.

        Returns:
            The loss, with a gradient to the scores.
        """
        with full_precision(scores):
            return self.judged(_check(scores, labels, mask, weights), index)

    def loss(self, batch: Sample, index: Tensor | None = None) -> Tensor:
        """The loss of a checked batch: padding has weight 0, documents that of their query."""
        assert batch.weights is not None
        # Lists of no length have no largest weight.
        present, by_query = (
            batch.weights > 0,
            batch.weights.amax(-1) if batch.weights.shape[1] else batch.weights.sum(-1),
        )
        whole = batch.processes.sum(by_query.sum())
        if float(whole) <= 0:
            return (0.0 * batch.scores).sum()
        thresholds = top_k_thresholds(batch.scores, self.k, present)
        temperature = settle_temperature(
            self.temperature, lambda: query_spread(batch, present), batch.dtype, keep=self.training
        )
        # The slope by a threshold grows with the temperature, and so does the slope that counts as none.
        losses, prices = price_top_k(
            self.rate, self.k, batch.scores, batch.labels, present, thresholds,
            SigmoidStep(temperature), floor=self.slope_floor * float(temperature),
        )  # fmt: skip
        share = by_query / whole
        if self.training:
            self.mean_price.copy_(batch.processes.sum(share @ prices.to(share.dtype)))
        return batch.processes.sum(share.to(losses.dtype) @ losses)

    def status(self) -> dict[str, Any]:
        return {"price": float(self.mean_price), "temperature": float(self.temperature)}


def query_spread(batch: Sample, present: Tensor) -> Tensor:
    """The standard deviation of scores within their queries, of all processes, in float64."""
    scores = batch.scores.detach().double() * present
    size = present.sum(-1, keepdim=True).clamp(min=1)
    centred = (scores - scores.sum(-1, keepdim=True) / size) * present
    squares, documents = batch.processes.sum(torch.stack([centred.square().sum(), present.sum().double()]))
    spread: Tensor = (squares / documents).sqrt()
    return spread


@torch.no_grad()
def top_k_thresholds(scores: Tensor, k: int, present: Tensor) -> Tensor:
    """Half way between the k-th and the (k+1)-th score of each query, `(Q,)`; -inf where there are not so many.

    Where floating point has no number between the two (a tie, say), the lower one, which does not pass.
    """
    if scores.shape[1] <= k:
        return torch.full_like(scores.sum(-1), -torch.inf)
    best = scores.detach().masked_fill(~present, -torch.inf).topk(k + 1, dim=-1).values
    upper, lower = best[:, k - 1], best[:, k]
    middle = upper / 2 + lower / 2
    return torch.where((middle < upper) & (middle > lower), middle, lower)


def price_top_k(
    rate: Rate | Metric,
    k: int,
    scores: Tensor,
    labels: Tensor,
    present: Tensor,
    thresholds: Tensor,
    step: SmoothStep,
    *,
    floor: float = 1e-6,
) -> tuple[Tensor, Tensor]:
    """The loss of each query, and what one place more in its list would bring: `(Q,)` each.

    The price of "k pass" is that at which no small move of the query's threshold pays: rate' / passing', 0 where
    the slope vanishes.
    """
    short = present.sum(-1, keepdim=True) <= k
    dtype = torch.promote_types(scores.dtype, torch.float32)
    margin = torch.where(present & ~short, scores - thresholds.unsqueeze(-1), 0.0).to(dtype)
    there = present.to(dtype)
    relevant = torch.where(present, labels, 0).to(dtype)
    sides = torch.stack([relevant, there - relevant], dim=-1)
    passing = torch.einsum("ql,qlc->qc", step.above(margin), sides)
    missing = torch.einsum("ql,qlc->qc", step.below(margin), sides)
    # A short list passes whole, and each place that it leaves empty counts as one more that is not relevant.
    whole = sides.sum(1)
    empty = torch.stack([torch.zeros_like(whole[:, 0]), (k - whole.sum(-1)).clamp(min=0)], dim=-1)
    counts = torch.cat([torch.where(short, whole + empty, passing), torch.where(short, 0.0, missing)], dim=-1)

    anchor = counts.detach().requires_grad_()
    with torch.enable_grad():
        (slope,) = torch.autograd.grad(rate(anchor).sum(), anchor)
    with torch.no_grad():
        pace = -torch.einsum("ql,qlc->qc", step.slope.above(margin), sides)
        pace = torch.where(short, 0.0, pace)
        gain = (slope[:, :2] * pace - slope[:, 2:] * pace).sum(-1)
        moved = pace.sum(-1)
        prices = gain * moved / (moved.square() + floor**2)
    excess = counts[:, :2].sum(-1) - k
    return prices * excess - rate(counts), prices


def _check(scores: Tensor, labels: Tensor, mask: Tensor | None, weights: Tensor | None) -> Sample:
    """Lists of documents as a sample of shape (Q, L) in which padding has score, label and weight 0."""
    if scores.dim() != 2:
        raise ShapeMismatch(f"scores have shape {tuple(scores.shape)}; give (queries, documents)")
    for name, other in (("labels", labels), ("mask", mask)):
        if other is not None and other.shape != scores.shape:
            raise ShapeMismatch(f"scores {tuple(scores.shape)} and {name} {tuple(other.shape)} must match")
    if mask is not None and mask.dtype != torch.bool:
        raise BadSetting(f"mask has dtype {mask.dtype}; give a boolean one, True where there is a document")
    if not scores.is_floating_point():
        raise BadScores(f"scores have dtype {scores.dtype}; give floating-point numbers")
    present = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
    flat = check_sample(
        torch.where(present, scores, 0.0).flatten(),
        torch.where(present, labels, torch.zeros_like(labels)).flatten(),
        to_train=True,
    )
    by_query = torch.ones_like(scores.detach().sum(-1)) if weights is None else weights.detach().to(scores)
    if by_query.shape != scores.shape[:1]:
        raise ShapeMismatch(f"{len(scores)} queries came with weights of shape {tuple(by_query.shape)}")
    refuse_odd_weights(by_query)
    return Sample(
        flat.scores.view(scores.shape), flat.labels.view(scores.shape), present.to(scores.dtype) * by_query[:, None]
    )
