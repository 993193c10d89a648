"""Mixtures of snapshots: the best mixture of the models on the way, of which each row is decided by one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from setpoint.data.parts import Data
from setpoint.decide.cut import find
from setpoint.errors import BadProblem, BadSetting
from setpoint.measure.constraint import Constraint
from setpoint.measure.rate import Rate
from setpoint.measure.sample import Sample
from setpoint.problem.problem import Problem
from setpoint.serve.mixture import chosen_members
from setpoint.solve.mixture import best_mixture
from setpoint.solve.solver import Solver
from setpoint.train.by_epochs import ByEpochs
from setpoint.train.history import record, score
from setpoint.train.method import Trained
from setpoint.train.trial import judge
from setpoint.train.work import Work

#: The cuts of a snapshot that may be mixed are the best ones under bounds that allow so many times as much.
FACTORS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)


class Mixed(nn.Module):
    """A model that scores each row by one of several members, which a hash of the features of that row chooses.

    The score is that of the member less the cut of the member, so that one threshold suits all members. Rows with equal
    features have the same member; over rows that differ, each member has its share.

    Args:
        members: The models.
        shares: The share of each member.
        cuts: The number that is taken from the scores of each member.

    Raises:
        BadSetting: If there is no member, or the shares are none.

    Example:
        >>> import torch, setpoint as sp
        >>> first, second = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
        >>> mixed = sp.methods.Mixed([first, second], [0.5, 0.5], [0.0, 0.0])
        >>> x = torch.arange(1000.0).unsqueeze(-1)
        >>> by_first = mixed(x) == first(x).squeeze(-1)
        >>> 0.45 < float(by_first.double().mean()) < 0.55
        True
    """

    shares: Tensor
    cuts: Tensor

    def __init__(self, members: Sequence[nn.Module], shares: Sequence[float], cuts: Sequence[float]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        if not len(members) == len(shares) == len(cuts) > 0 or min(shares) < 0 or not abs(sum(shares) - 1) < 1e-6:
            raise BadSetting("a mixture needs members, each with its cut and its share, from 0 up and 1 in all")
        self.register_buffer("shares", torch.tensor(shares, dtype=torch.float64))
        self.register_buffer("cuts", torch.tensor(cuts, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        """One score per row, `(n,)`."""
        scores = torch.stack([member(x).reshape(len(x)) for member in self.members], dim=1)
        chosen = chosen_members(x, self.shares)
        own = scores.gather(1, chosen.unsqueeze(1)).squeeze(1)
        return own - self.cuts.to(own)[chosen]

    @classmethod
    def restore(cls, state: Mapping[str, Tensor], make: Callable[[], nn.Module]) -> Mixed:
        """The mixture with a stored `state_dict`, from a function that makes a member."""
        mixed = cls([make() for _ in state["shares"]], state["shares"].tolist(), state["cuts"].tolist())
        mixed.load_state_dict(dict(state))
        return mixed


@dataclass(frozen=True)
class Snapshots:
    """The choice to train by a solver, keep the models on the way, and ship the best mixture of them.

    Pass it to `sp.fit` where a solver goes; `--solver mixture` is this choice with the proxy-Lagrangian, whose
    guarantee is for such a mixture. The mixture has the lowest mean objective on the held-out rows among all whose mean
    violations are not positive, over some cuts of each snapshot. It uses at most one snapshot more than there are
    bounds. A hash of the features of a row chooses the snapshot that decides it, so that a decision depends on its own
    row alone; the means over new rows are those of the mixture. The threshold is set, and certified, on the
    calibration rows for the model as it is shipped.

    Args:
        solver: The solver, such as `sp.losses.ProxyLagrangian(problem)`.
        most: The most epochs that are kept.

    Raises:
        BadSetting: If `most` is not at least 2.

    Example:
        >>> import torch, setpoint as sp
        >>> x, labels = torch.arange(90.0).unsqueeze(-1) / 90, (torch.arange(90) % 5 > 2).float()
        >>> train, held_out, rest = (sp.Batches(x[k::3], labels[k::3]) for k in range(3))
        >>> problem = sp.ask("minimize fnr where fpr <= 30%")
        >>> choice = sp.methods.Snapshots(sp.losses.ProxyLagrangian(problem))
        >>> result = sp.fit(torch.nn.Linear(1, 1), problem, train, held_out, choice, calibration=rest, epochs=4)
        >>> result.history[-1]["solver"]
        'Mixture'
    """

    solver: Solver
    most: int = 20

    def __post_init__(self) -> None:
        if isinstance(self.most, bool) or not isinstance(self.most, int) or self.most < 2:
            raise BadSetting(f"most is the number of epochs that are kept, from 2 up, got {self.most!r}")

    def check(self, problem: Problem, members: int) -> None:
        """Refuse problems and settings that a mixture does not go with."""
        shares = all(isinstance(q, Rate) and q.has_fixed_whole for q in problem.quantities)
        if not shares or problem.over is not None or not problem.constraints:
            raise BadSetting(
                "a mixture of snapshots needs bounds, and rates that are shares of a class or of all rows, such as "
                f"fnr and fpr; '{problem}' asks for something else, so choose another solver"
            )
        if members > 1:
            raise BadSetting("a mixture of snapshots is made of several models already; leave out the ensemble")


@dataclass(frozen=True)
class OfSnapshots:
    """Train by epochs and mix the snapshots that are kept on the way.

    Args:
        method: Trains the model; its `keep` is the number of snapshots.
    """

    method: ByEpochs

    @property
    def expected_rows(self) -> int:
        """One per epoch, and one for the mixture."""
        return self.method.expected_rows + 1

    def refuses(self, problem: Problem, data: Data) -> str | None:
        """The reason why the method cannot train, or None."""
        return self.method.refuses(problem, data)

    def train(self, problem: Problem, data: Data, work: Work) -> Trained:
        """Train, judge some cuts of each snapshot on the held-out rows, and mix the best."""
        trained = self.method.train(problem, data, work)
        model = trained.model
        found: list[_Cut] = []
        for epoch, state in trained.snapshots.items():
            model.load_state_dict(state)
            found += _cuts(problem, epoch, score(model, data.held_out, work.processes))
        mixture = best_mixture([one.cost for one in found], [one.excesses for one in found])
        used = {found[place]: share for place, share in mixture.weights.items()}
        members = []
        for one in used:
            model.load_state_dict(trained.snapshots[one.epoch])
            members.append(copy.deepcopy(model))
        mixed = Mixed(members, [*used.values()], [one.cut for one in used]).eval()
        seen, held_out = (score(mixed, loader, work.processes) for loader in (data.train, data.held_out))
        judged, last = (judge(problem, seen), judge(problem, held_out)), len(trained.history)
        shares = [[one.epoch, share] for one, share in used.items()]
        row = record(problem, last, type(mixture).__name__, seen, *judged, shares=shares)
        work.tell(row)
        return replace(trained, model=mixed, history=[*trained.history, row], best=last, snapshots={})


@dataclass(frozen=True)
class _Cut:
    """A snapshot at one of its cuts, with the cost and the excesses of the bounds there."""

    epoch: int
    cut: float
    cost: float
    excesses: tuple[float, ...]


def _cuts(problem: Problem, epoch: int, sample: Sample) -> list[_Cut]:
    """The best cuts of a snapshot under bounds that allow less and more than asked."""
    found: dict[float, Tensor] = {}
    for factor in FACTORS:
        try:
            asked = replace(problem, constraints=tuple(_allowing(c, factor) for c in problem.constraints))
        except BadProblem:
            # Two bounds of one rate, from below and from above, may leave nothing when both are tightened.
            continue
        best = find(asked, sample)
        found[float(best.thresholds[0])] = best.counts
    twice = [place for place, c in enumerate(problem.constraints) if c.relation == "=="]
    made = []
    for cut, counts in found.items():
        excesses = problem.excesses(counts).tolist()
        both = (*excesses, *(-excesses[place] for place in twice))
        made.append(_Cut(epoch, cut, float(problem.cost(counts)), both))
    return made


def _allowing(constraint: Constraint, factor: float) -> Constraint:
    """The bound that allows so many times as much."""
    upwards = constraint.relation != ">="
    room = min(factor * (constraint.bound if upwards else 1 - constraint.bound), 1.0)
    return replace(constraint, bound=room if upwards else 1 - room)
