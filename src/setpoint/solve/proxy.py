"""The proxy-Lagrangian: the weights of objective and bounds as the stationary state of a learned matrix."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from setpoint.errors import BadSetting
from setpoint.measure.constraint import Constraint
from setpoint.solve.ascent import Climb, Numbers, room
from setpoint.solve.lagrangian import Lagrangian

#: Shares are scaled down beyond this, so that the next one cannot overflow.
LARGE = 1e6


def stationary(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """The distribution that a left-stochastic matrix (columns of sum 1) leaves as it is.

    States are taken out one after the other (Grassmann, Taksar and Heyman); nothing is subtracted, so that the smallest
    shares have all their digits.
    """
    left = matrix.T.copy()
    for last in range(len(left) - 1, 0, -1):
        to, out_of = left[:last, last], left[last, :last]
        to /= max(out_of.sum(), 1e-300)
        if last > 1:
            left[:last, :last] += to[:, None] * out_of
    shares = np.ones(len(left))
    for place in range(1, len(left)):
        shares[place] = shares[:place].dot(left[:place, place])
        if shares[place] > LARGE:
            shares[: place + 1] /= shares[place]
    found: NDArray[np.float64] = shares / shares.sum()
    return found


def _array(numbers: Numbers) -> NDArray[np.float64]:
    """The numbers in float64, in memory of their own."""
    return (numbers.cpu().double().numpy() if isinstance(numbers, Tensor) else numbers).astype(np.float64)


class SwapRegret(nn.Module):
    """A left-stochastic matrix M over objective and bounds, moved by the true excesses: M <- M * exp(lr D l').

    l is the stationary distribution of M, D = (0, excess / room); columns are then scaled to sum 1. The matrix is
    kept as logarithms, so that no entry becomes zero. An equality stands in it twice, once per side.
    """

    log_matrix: Tensor
    _last: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None

    def __init__(self, bounds: tuple[Constraint, ...], climb: Climb) -> None:
        super().__init__()
        if climb.control is not None or climb.penalty is not None or climb.ceiling is not None:
            raise BadSetting("a proxy-Lagrangian has shares of 1 for prices: its climb takes lr and start alone")
        self.settings = climb
        size = len(bounds)
        equal = [place for place, bound in enumerate(bounds) if bound.relation == "=="]
        #: The bound of each state, with its sign, and the gain of a state per unit of excess.
        self.sides = np.concatenate([np.eye(size), -np.eye(size)[equal]])
        self.per_excess = self.sides / np.array([room(bound) for bound in bounds], np.float32)
        self.register_buffer("log_matrix", torch.zeros(1 + len(self.sides), 1 + len(self.sides)).log_softmax(0))

    @property
    def prices(self) -> Tensor:
        """The weight of each bound over that of the objective."""
        shares = self._shares()
        return self._tensor(shares[1:] @ self.sides / max(shares[0], 1e-12)).to(self.log_matrix.dtype)

    def _tensor(self, numbers: NDArray[np.float64]) -> Tensor:
        return torch.from_numpy(numbers).to(self.log_matrix.device)

    def _shares(self) -> NDArray[np.float64]:
        """The stationary distribution; that of the last matrix is kept. A device is waited for."""
        logs = _array(self.log_matrix)
        if self._last is None or not (self._last[0] == logs).all():
            self._last = (logs, stationary(np.exp(logs)))
        return self._last[1]

    def start(self, prices: Tensor) -> None:
        """Begin where the bounds weigh `prices` times the objective; at least 1 %, from which they can grow."""
        if self.settings.start is not None:
            prices = torch.full_like(prices, self.settings.start)
        weights = (self._tensor(self.sides).to(prices.dtype) @ prices).clamp(min=1e-2)
        shares = torch.cat([weights.new_ones(1), weights]).log().log_softmax(0)
        self.log_matrix.copy_(shares.unsqueeze(1).expand_as(self.log_matrix))

    def felt(self, excesses: Numbers) -> tuple[float, Numbers]:
        """The weight of the objective and those of the bounds: shares of 1 in all."""
        shares = self._shares()
        prices = shares[1:] @ self.sides
        told = self._tensor(prices).to(excesses.dtype) if isinstance(excesses, Tensor) else prices
        return float(shares[0]), told

    def climb(self, excesses: Numbers) -> None:
        """Shift weight to broken bounds, in proportion to the weight they had."""
        shares = self._shares()
        assert self._last is not None
        moved = self._last[0].copy()
        moved[1:] += (self.settings.lr * (self.per_excess @ _array(excesses)))[:, None] * shares
        moved -= moved.max(0)
        moved -= np.log(np.exp(moved).sum(0))
        self.log_matrix.copy_(torch.from_numpy(moved))

    def look(self) -> None:
        """Shares of 1 cannot diverge."""


class ProxyLagrangian(Lagrangian):
    """The Lagrangian as a game: the model minimises soft rates, the weights of the bounds answer to true ones.

        loss = l_0 objective + sum(l_i excess_i),    M l = l,    M <- M * exp(lr * true excess l')

    with the columns of M scaled to sum 1 after each step. The loss is a mean with weights l of sum 1, so no price can
    diverge. The guarantee is for a mixture of the models on the way (`best_mixture`); a single model may oscillate
    about the bound.

    Args:
        problem: The objective and its bounds.
        n_groups: Number of groups, if the problem compares groups.
        climb: `lr` (0.03 unless given) and `start` of the prices; it takes no other setting.
        threshold: The first threshold. None starts at the best feasible cut.
        step: Makes the smooth step that the model learns by, given a temperature.
        truth: The step that moves the weights.
        temperature: Steepness of the smooth step. None sets it once, from the spread of the first scores.
        memory: Number of scores remembered. None chooses it from the bounds; 0 makes every batch stand for itself.

    Raises:
        BadProblem: If `problem` is not a problem, or `n_groups` does not fit it.
        BadSetting: If a setting is out of its range, or `climb` has a control, a penalty or a ceiling.

    Example:
        >>> import torch, setpoint as sp
        >>> solver = sp.losses.ProxyLagrangian(sp.ask("minimize fnr where fpr <= 50%"))
        >>> scores = torch.tensor([2.0, 0.5, -0.3, 1.0, -1.0, -2.0], requires_grad=True)
        >>> solver(scores, torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])).backward()
        >>> bool((solver.prices >= 0).all())
        True
    """

    def _climbing(self, climb: Climb | None) -> SwapRegret:
        return SwapRegret(self.problem.bounds, climb or Climb(lr=0.03))
