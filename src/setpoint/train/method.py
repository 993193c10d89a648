"""Methods: ways to train. Each takes a problem and data, and gives a model that makes scores."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, TypeGuard

from torch import nn

from setpoint.data.batch import in_order
from setpoint.data.parts import Data
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem
from setpoint.train.history import History, record, score
from setpoint.train.trial import Trial, judge
from setpoint.train.work import Work


class Method(Protocol):
    """A way to train a model: any class with `refuses` and `train`.

    Methods wrap one another, as in `Refit(ByEpochs(...))`, and can be passed wherever a solver can.

    Example:
        A method that sets its score to the first feature.

        >>> import torch, setpoint as sp
        >>> class FirstFeature:
        ...     def refuses(self, problem, data):
        ...         return None
        ...
        ...     def train(self, problem, data, work):
        ...         model = torch.nn.Linear(1, 1)
        ...         model.load_state_dict({"weight": torch.ones(1, 1), "bias": torch.zeros(1)})
        ...         return sp.methods.trained_once(self, model, problem, data, work)
        >>> x, labels = torch.arange(90.0).unsqueeze(-1), (torch.arange(90) >= 45).float()
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> ask = "minimize fnr where fpr <= 10%"
        >>> sp.fit(None, ask, train, held_out, FirstFeature(), calibration=rest).point.feasible
        True
    """

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """Say in one sentence why this method cannot train on these data for this problem, before any work.

        Args:
            problem: The problem to solve.
            data: The data to train on.

        Returns:
            The reason, or None if the method can train.
        """

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Train on `data.train`, and choose whatever has to be chosen by `data.held_out`.

        Args:
            problem: The problem to solve.
            data: The data to train on.
            work: The processes that take part, the store of the state, and the listener to progress.

        Returns:
            The model and its history.
        """


@dataclass(frozen=True)
class Trained:
    """The result of a method: the trained model and the history of its training.

    Attributes:
        model: The trained model.
        history: One dict per epoch or candidate.
        best: The row of `history` that `model` comes from.
        settled: The same method with every choice made (the number of epochs, the strength), ready to train on other
            rows.
        trials: The candidates that the method chose from, from simple to bold.
        again: Whether the model was retrained on training and held-out rows together.
        plain: A model by plain cross-entropy, if the method trained one as a candidate.
        out_of_fold: A score of each training row (and of each held-out row behind them, if those were trained on) by a
            model that was not trained on it, if the method cross-fits.
        held_out: The held-out rows with their scores before that retraining, if the rows are in memory.
        judged: The held-out rows in their order with the scores of `model`, if the method has them anyway.
        snapshots: The parameters after some epochs, by the number of the epoch, if the method keeps them.

    Example:
        >>> import torch, setpoint as sp
        >>> sp.methods.Trained(torch.nn.Linear(2, 1), [{"epoch": 0}], 0, sp.methods.FullBatch(None, sp.Ridge())).again
        False
    """

    model: nn.Module
    history: History
    best: int
    settled: Method
    trials: tuple[Trial, ...] = ()
    again: bool = False
    plain: nn.Module | None = None
    out_of_fold: Sample | None = None
    held_out: Sample | None = None
    judged: Sample | None = None
    snapshots: Mapping[int, dict[str, Any]] = field(default_factory=dict)


def is_method(value: Any) -> TypeGuard[Method]:
    """Whether something is a method by itself, not a solver, a recipe or a name."""
    return hasattr(value, "refuses") and hasattr(value, "train") and not isinstance(value, nn.Module | type)


def expected_rows(method: Method) -> int:
    """About how many rows of history a method will make, to show progress; 1 if the method does not say."""
    return int(getattr(method, "expected_rows", 1))


def trained_once(method: Method, model: nn.Module, problem: Problem, data: Data, work: Work) -> Trained:
    """Make the result of a method that trains one model and chooses nothing.

    Args:
        method: The method, which has nothing left to choose.
        model: The trained model.
        problem: The problem that was solved.
        data: The data that the model was trained on.
        work: The work, which is told of the one row of history.

    Returns:
        The model, with a history of one row: the exact metric on training and held-out rows.

    Example:
        >>> import torch, setpoint as sp
        >>> rows = sp.Batches(torch.tensor([[0.0], [1.0]]), torch.tensor([0.0, 1.0]))
        >>> method, model = sp.methods.FullBatch(None, sp.Ridge()), torch.nn.Linear(1, 1)
        >>> work, problem = sp.methods.Work(), sp.ask("minimize fnr where fpr <= 10%")
        >>> trained = sp.methods.trained_once(method, model, problem, sp.methods.Data(rows, rows), work)
        >>> trained.best, trained.history[0]["solver"]
        (0, 'FullBatch')
    """
    seen, held_out = (score(model, in_order(loader), work.processes) for loader in (data.train, data.held_out))
    row = record(problem, 0, type(method).__name__, seen, judge(problem, seen), judge(problem, held_out))
    work.tell(row)
    return Trained(model, [row], 0, method, judged=held_out)


@dataclass(frozen=True)
class Given:
    """Take a model as it is: it was trained already, by plain cross-entropy, beside another."""

    model: nn.Module
    again: bool
    #: It scores all labels of a row, where rows have several.
    takes_labels: ClassVar[bool] = True

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """None: there is nothing to train."""
        return None

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """The model, judged on training and held-out rows."""
        return replace(trained_once(self, self.model, problem, data, work), again=self.again)


class InPlace:
    """Gives the same model at each call, set back to the parameters that it had at the first call."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.start: dict[str, Any] | None = None

    def __call__(self) -> nn.Module:
        if self.start is None:
            self.start = copy.deepcopy(self.model.state_dict())
        else:
            self.model.load_state_dict(self.start)
        return self.model
