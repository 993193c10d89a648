"""The plan of a problem: the loss of `price.py` for rates and gaps on the processor, worked out once per problem.

The formulas are the same, but everything that does not change from step to step is kept, and rows are counted in
arrays. `price.py` stays the reference, for every metric, step and device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from torch import Tensor

from setpoint.measure.rate import Gap, Rate
from setpoint.measure.sample import Sample
from setpoint.measure.step import HingeStep, SigmoidStep, SmoothStep, SoftplusStep
from setpoint.problem.problem import Problem
from setpoint.solve.at_many import PlanAtMany
from setpoint.solve.at_one import PlanAtOne
from setpoint.solve.counted import Array
from setpoint.solve.price import Damping


class Counted(Protocol):
    """The rows of a step, whose counts are of the form that their plan takes."""

    @property
    def positives(self) -> float: ...

    @property
    def negatives(self) -> float: ...

    @property
    def mass(self) -> float: ...

    @property
    def has_both_classes(self) -> bool: ...

    def take_from(self, rows: Any, place: slice | None) -> None: ...

    def soft_counts(self, thresholds: Array, heat: float) -> Any: ...

    def counts_and_pace(self, thresholds: Array, heat: float) -> tuple[Any, Any]: ...

    def true_counts(self, thresholds: Array) -> Any: ...

    def loss(
        self, scores: Tensor, thresholds: Tensor, heat: float, value: float, slope: Any, counts: Any, share: float
    ) -> Tensor: ...


class StepPlan(Protocol):
    """A problem at one threshold, or at many."""

    @property
    def rows(self) -> type[Any]: ...

    def excesses(self, counts: Any) -> Array: ...

    def weighed(
        self, counts: Any, weight: float, prices: Array, sizes: tuple[float, float] | None = None
    ) -> tuple[float, Any]: ...

    def solved(
        self, counts: Any, pace: Any, active: Array, broken: Array, damping: Damping
    ) -> tuple[float, Any, Any]: ...


def plan_of(problem: Problem, step: Callable[[Tensor], SmoothStep], *, learned: bool = False) -> StepPlan | None:
    """The plan of a problem under a step; None if `price.py` has to do it.

    Where prices and thresholds are `learned`, one threshold may be learned by the convex steps too.
    """
    quantities = [problem.objective, *(c.quantity for c in problem.constraints)]
    if problem.over is None and problem.group is None and all(isinstance(q, Rate) for q in quantities):
        known = step in (SigmoidStep, SoftplusStep, HingeStep) if learned else step is SigmoidStep
        return PlanAtOne(problem) if known else None
    known = step is SigmoidStep and all(isinstance(q, Rate | Gap) for q in quantities)
    return PlanAtMany(problem) if known else None


def counted(plan: StepPlan, batch: Sample, reference: Sample) -> tuple[Counted, Counted]:
    """The rows of a batch, and those of the batch together with the memory: the same ones if it stands alone."""
    own: Counted = plan.rows(batch)
    return own, own if reference.scores.data_ptr() == batch.scores.data_ptr() else plan.rows(reference)
