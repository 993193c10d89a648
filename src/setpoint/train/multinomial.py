"""Multinomial logistic regression: a linear model of K classes, trained on all rows at once, to convergence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from setpoint.data.parts import Data
from setpoint.data.rows import Rows
from setpoint.errors import BadSetting
from setpoint.problem.problem import Problem
from setpoint.train.class_loss import class_losses
from setpoint.train.full_batch import FullBatch, read_rows, single_loaders
from setpoint.train.history import History, record, score
from setpoint.train.method import Trained
from setpoint.train.recipes import Ridge
from setpoint.train.together import every_batch
from setpoint.train.trial import judge
from setpoint.train.work import Work

#: The strengths of the ridge that are tried, from strong to weak; on standardised features 1 is the usual.
STRENGTHS = (100.0, 10.0, 1.0, 0.1)


@dataclass(frozen=True)
class Multinomial:
    """Train a linear model of K classes by cross-entropy with a ridge, and choose the ridge by the held-out log-loss.

    Args:
        make: Gives the model: one linear layer with one output per class.
        strengths: The strengths of the ridge to choose from, from strong to weak.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(90.0).unsqueeze(-1), torch.arange(90) // 30
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> method = sp.methods.Multinomial(lambda: torch.nn.Linear(1, 3))
        >>> result = sp.fit(None, "maximize macro recall", train, held_out, method, calibration=rest)
        >>> result.point.predict(result.model(torch.tensor([[10.0], [80.0]]))).tolist()
        [0, 2]
    """

    make: Callable[[], nn.Module]
    strengths: tuple[float, ...] = STRENGTHS

    @property
    def expected_rows(self) -> int:
        """One per strength."""
        return len(self.strengths)

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """The reason why all rows cannot be trained on at once, or None."""
        return FullBatch(self.make, Ridge()).refuses(problem, data)

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Fit the model under each strength, judge each on the held-out rows, keep the one with the least log-loss."""
        model = self.make()
        if not isinstance(model, nn.Linear) or model.out_features < 2:
            raise BadSetting("Multinomial trains nn.Linear models with one output per class; use a solver for others")
        loaders = [every_batch(loader, work.processes) for loader in single_loaders(data.train)]
        held_out = every_batch(data.held_out, work.processes)
        work.redraw([*loaders, held_out])
        rows, scaling = read_rows(loaders, model)
        found: list[tuple[float, Tensor]] = []
        history: History = []
        theta = torch.zeros(rows.x.shape[1], model.out_features, dtype=torch.float64)
        for strength in self.strengths:
            theta = work.once(f"ridge {strength:g}", partial(_fitted, rows, theta, strength))
            _set(model, theta, scaling.mean, scaling.spread)
            judged = score(model, held_out)
            loss = float(class_losses(judged, rescaled=False).mean())
            found.append((loss, theta))
            on_train, on_held_out = judge(problem, rows.sample(rows.x @ theta)), judge(problem, judged)
            name = f"CrossEntropy(ridge {strength:g})" if len(self.strengths) > 1 else "CrossEntropy"
            row = record(problem, len(history), name, rows.sample(rows.x @ theta), on_train, on_held_out)
            history.append({**row, "held_out_loss": loss})
            work.tell(history[-1])
        best = min(range(len(found)), key=lambda place: found[place][0])
        _set(model, found[best][1], scaling.mean, scaling.spread)
        return Trained(model, history, best, replace(self, strengths=(self.strengths[best],)))


def _fitted(rows: Rows, start: Tensor, strength: float) -> Tensor:
    """The minimum of sum w_i CE_i + strength / 2 |theta|^2 with a free bias, by L-BFGS."""
    weights, shape = rows.weights_or_ones.double(), tuple(start.shape)
    labels = rows.labels.long()

    def cost(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        theta = torch.from_numpy(flat).view(shape)
        logits = rows.x @ theta
        share = torch.softmax(logits, -1)
        value = (weights * F.cross_entropy(logits, labels, reduction="none")).sum()
        value = value + strength / 2 * theta[:-1].square().sum()
        share[torch.arange(len(labels)), labels] -= 1
        slope = rows.x.T @ (weights.unsqueeze(-1) * share)
        slope[:-1] += strength * theta[:-1]
        return float(value), slope.flatten().numpy()

    limits = {"maxiter": 2000, "maxfun": 4000, "ftol": 1e-12, "gtol": 1e-8 * len(labels)}
    found = scipy.optimize.minimize(cost, start.flatten().numpy(), jac=True, method="L-BFGS-B", options=limits)
    theta = torch.from_numpy(np.asarray(found.x, dtype=np.float64)).view(shape)
    # A number that is added to all logits changes nothing: biases of mean 0.
    return theta - theta.mean(1, keepdim=True)


@torch.no_grad()
def _set(model: nn.Linear, theta: Tensor, mean: Tensor, spread: Tensor) -> None:
    """Write parameters for standardised features, the bias last, into a layer for raw ones."""
    weight = (theta[:-1] / spread.unsqueeze(-1)).T
    model.weight.copy_(weight)
    if model.bias is not None:
        model.bias.copy_(theta[-1] - weight @ mean)
