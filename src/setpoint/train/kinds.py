"""Kinds of models by name: how each is made, restored from a file, and trained if not by solvers.

The command line (`--model`), the estimator (`module=`) and the artefact read this register.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from setpoint.errors import BadSetting
from setpoint.measure.in_first import LISTS
from setpoint.problem.problem import Problem
from setpoint.serve.models import RESTORERS, State
from setpoint.train.best_kind import BestKind
from setpoint.train.boosting import Boosted
from setpoint.train.contest import ASKED, NETWORK, PLAIN, RANKED, TREES
from setpoint.train.each_label import LabelModels
from setpoint.train.ensemble import Ensemble
from setpoint.train.method import Method
from setpoint.train.models import drawn, linear, mlp
from setpoint.train.scoring import ScoredByTorch
from setpoint.train.snapshots import Mixed
from setpoint.train.stack import Stack
from setpoint.train.trees import Trees


@dataclass(frozen=True)
class Kind:
    """A kind of model.

    Args:
        make: Makes a new model for a number of features. None if the method makes the model.
        method: Makes the method that trains this kind. None if solvers train it.
        restore: Makes the model from its stored `state_dict`. None calls `make` and loads the state.
        called: The name of the own method in text.
        why: One sentence on the own method, after "it".
        only: The only kind of question that this kind of model answers; empty if it answers all.
    """

    make: Callable[..., nn.Module] | None = None
    method: Callable[[], Method] | None = None
    restore: Callable[[Mapping[str, Tensor]], nn.Module] | None = None
    called: str = "its own method"
    why: str = "is the only method for this kind of model."
    only: str = ""


def _linear(state: Mapping[str, Tensor]) -> nn.Module:
    outputs, width = state["weight"].shape
    return _loaded(linear(width, outputs), state)


def _mlps(state: Mapping[str, Tensor]) -> nn.Module:
    folds = 1 + max(int(name.split(".")[1]) for name in state)
    width, last = state["members.0.0.weight"].shape[1], max(name for name in state if name.endswith("bias"))
    return _loaded(Ensemble(mlp(width, outputs=len(state[last])) for _ in range(folds)), state)


def _under(prefix: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def _loaded(model: nn.Module, state: Mapping[str, Tensor]) -> nn.Module:
    model.load_state_dict(dict(state))
    return model


#: How the members of a stack are restored, by their names.
MEMBERS = {PLAIN: _linear, ASKED: _linear, TREES: Boosted.restore, RANKED: Boosted.restore, NETWORK: _mlps}
KINDS: dict[str, Kind] = {
    "auto": Kind(
        method=BestKind,
        restore=partial(Stack.restore, kinds=MEMBERS),
        called="the best kind of model",
        why="cross-fits linear models, trees, a network and their stack, and keeps the simplest that is not beaten.",
    ),
    "linear": Kind(linear),
    "trees": Kind(
        method=Trees,
        restore=Boosted.restore,
        called="boosted trees of several sizes, cross-fitted",
        why="minimises log-loss, because training trees for the ask gained nothing; the ask sets the threshold.",
    ),
    "mlp": Kind(mlp),
    RANKED: Kind(
        method=partial(Trees, ranked=True),
        restore=Boosted.restore,
        called="boosted trees of several sizes, cross-fitted, by lambdarank",
        why="trains the order of the rows in each list, by pairs of rows; scores of different lists do not compare.",
        only=LISTS,
    ),
}


def register(name: str, method: Callable[[], Method], restore: Callable[[Mapping[str, Tensor]], nn.Module]) -> None:
    """Make your own method known to every door, under the name of its kind of model.

    Args:
        name: The name for `setpoint fit --model` and `SetpointClassifier(module=...)`.
        method: Makes the method: a class with `refuses` and `train`.
        restore: Makes the trained model from its `state_dict`, which is all that a saved run keeps of the model.

    Raises:
        BadSetting: If the name is taken.

    Example:
        >>> import torch, setpoint as sp
        >>> sp.methods.register("linear", lambda: None, lambda state: torch.nn.Linear(2, 1))
        Traceback (most recent call last):
        setpoint.errors.BadSetting: there is a kind of model named 'linear' already; choose another name
    """
    if name in KINDS:
        raise BadSetting(f"there is a kind of model named {name!r} already; choose another name")
    KINDS[name] = Kind(method=method, restore=restore)
    RESTORERS[name] = lambda state, members, outputs: ScoredByTorch(
        restore_model(name, 0, members, as_tensors(state), outputs).eval()
    )


def as_tensors(state: State) -> dict[str, Tensor]:
    """The parameters of a saved model, for PyTorch."""
    return {name: torch.from_numpy(value.copy()) for name, value in state.items()}


def kinds_for(problem: Problem) -> list[str]:
    """The names of the kinds of models that answer a problem."""
    return [name for name, kind in KINDS.items() if kind.only in ("", problem.kind)]


def kind_of(name: str) -> Kind:
    """The kind of model with this name."""
    if name not in KINDS:
        raise BadSetting(f"model {name!r} is none of {', '.join(KINDS)}")
    return KINDS[name]


def build_model(kind: str, width: int, seed: int = 0, outputs: int = 1) -> nn.Module:
    """A new model with parameters drawn from the seed; the global random state is left alone."""
    make = kind_of(kind).make
    if make is None:
        raise BadSetting(f"a model of kind {kind!r} is made by its own method")
    return drawn(make, width, seed, outputs)


def restore_model(kind: str, width: int, members: int, state: Mapping[str, Tensor], outputs: int = 1) -> nn.Module:
    """The model with a stored `state_dict`; several members make an ensemble, and one model per label is joined."""
    if any(name.startswith("labels.") for name in state):
        per_label = [_under(f"labels.{place}.", state) for place in range(outputs)]
        return LabelModels(restore_model(kind, width, members, own) for own in per_label)
    restore = kind_of(kind).restore
    if restore is None and "shares" in state:
        return Mixed.restore(state, lambda: build_model(kind, width))
    if restore is None:
        each = [build_model(kind, width, outputs=outputs) for _ in range(members)]
        return _loaded(each[0] if members == 1 else Ensemble(each), state)
    if members == 1:
        return restore(state)
    of_each: list[dict[str, Tensor]] = [{} for _ in range(members)]
    for name, value in state.items():
        _, member, own = name.split(".", 2)
        of_each[int(member)][own] = value
    return Ensemble(map(restore, of_each))
