"""Inputs that somebody will pass one day: huge, tiny, tied, empty, spoiled, of the wrong type, shape or length."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

import setpoint as sp
from setpoint.measure.constraint import Constraint

FLOAT_TYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
OTHER_TYPES = (torch.int64, torch.int32, torch.uint8, torch.bool)
RATES = (
    sp.fpr, sp.fnr, sp.recall, sp.tnr, sp.precision, sp.npv, sp.rates.fdr, sp.rates.false_omission, sp.flagged,
    sp.accuracy, sp.error, sp.jaccard,
)  # fmt: skip
METRICS = (sp.g_mean, sp.mcc, sp.kappa, sp.rates.balanced_accuracy)
ODD = (math.nan, math.inf, -math.inf)

#: Any number at all, as a setting.
numbers = st.one_of(
    st.floats(0, 1),
    st.floats(1e-3, 10),
    st.integers(-2, 5),
    st.floats(),
    st.sampled_from([*ODD, 0.0, -0.0, 5e-324, 1e-300, 1e300, 1.7976931348623157e308, True, False]),
)
#: Settings: mostly of use, so that what lies behind them is reached; else impossible.
impossible = st.sampled_from([*ODD, 0.0, -0.0, -1.0, -1e-9, True, False])
positive = st.one_of(*[st.floats(1e-3, 1e3)] * 7, st.floats(1e-6, 1e6), impossible)
shares = st.one_of(*[st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5, 0.01, 0.999, 1e-12])] * 4, impossible)
small_whole = st.one_of(*[st.integers(1, 5)] * 8, st.integers(-2, 0), st.booleans(), st.just(2.5))


def one_in(times: int) -> st.SearchStrategy[bool]:
    """True about once in so many draws, and False where hypothesis looks for the simplest case."""
    return st.sampled_from([False] * (times - 1) + [True])


def values(dtype: torch.dtype, *, spoiled: bool = False) -> st.SearchStrategy[list[float]]:
    """A pool of levels for one tensor: few and tied, ordinary, tiny, huge, or of all sizes."""
    info = torch.finfo(dtype)
    smallest = float(torch.tensor(info.tiny, dtype=dtype)) * float(torch.finfo(dtype).eps)
    pools = [
        st.integers(-2, 2).map(float),
        st.floats(-10, 10),
        st.floats(-10, 10),
        st.sampled_from([0.0, -0.0, smallest, -smallest, info.tiny, -info.tiny, info.eps]),
        st.sampled_from([1e4, -1e4, math.sqrt(info.max), -math.sqrt(info.max) / 3, min(info.max, 1e34)]),
        st.sampled_from([1.0, 1.0 + info.eps, 1.0 - info.eps / 2, -1.0]),
    ]
    # Ordinary ones twice as often; beyond what can be trained on, or not finite, only when spoiled.
    beyond = st.sampled_from([*ODD, info.max, info.min, info.max / 2, info.min / 4])
    pool = st.one_of(*pools, *pools[:3], *[beyond] * 3 * spoiled)
    return st.lists(pool, min_size=1, max_size=6)


@st.composite
def score_tensors(draw: st.DrawFn, shape: tuple[int, ...], dtype: torch.dtype | None = None) -> Tensor:
    """Scores of a shape: mostly finite, of any precision, contiguous or not, with or without a gradient."""
    dtype = draw(st.sampled_from(FLOAT_TYPES)) if dtype is None else dtype
    pool = draw(values(dtype, spoiled=draw(one_in(15))))
    size = math.prod(shape)
    flat = draw(st.lists(st.sampled_from(pool), min_size=size, max_size=size))
    tensor = torch.tensor(flat, dtype=torch.float64).to(dtype).reshape(shape)
    if shape and draw(st.booleans()):
        tensor = torch.stack([tensor, -tensor], dim=-1)[..., 0]
    return tensor.requires_grad_(draw(st.booleans()))


@st.composite
def weight_tensors(draw: st.DrawFn, shape: tuple[int, ...]) -> Tensor | None:
    if draw(st.booleans()):
        return None
    dtype = draw(st.sampled_from(FLOAT_TYPES))
    info = torch.finfo(dtype)
    most, least = min(info.max, 1e12), max(info.tiny, 1e-12)
    pools = [[1.0], [0.0, 1.0, 2.0, 0.25], [0.0], [0.0, least, info.eps, 1.0], [most, 1.0, 0.0]]
    if draw(one_in(12)):
        pools = [[1.0, -1.0, *ODD], [info.max, 1.0, info.max / 2], [info.tiny, 1.0]]
    pool, size = draw(st.sampled_from(pools)), math.prod(shape)
    flat = draw(st.lists(st.sampled_from(pool), min_size=size, max_size=size))
    return torch.tensor(flat, dtype=torch.float64).to(dtype).reshape(shape)


@st.composite
def label_tensors(draw: st.DrawFn, shape: tuple[int, ...], n_classes: int = 2) -> Tensor:
    """Class numbers of any type; sometimes one class only, sometimes none of them valid."""
    size = math.prod(shape)
    pool: list[float] = list(range(n_classes))
    if draw(one_in(20)):
        pool = draw(st.sampled_from([[-1, 1], [0.5, 1.0], [n_classes, 0], [math.nan, 1]]))
    elif draw(one_in(10)):
        pool = draw(st.sampled_from([pool[:1], pool[-1:]]))
    flat = draw(st.lists(st.sampled_from(pool), min_size=size, max_size=size))
    dtype = draw(st.sampled_from((torch.float64, torch.float32, torch.int64, torch.int32, torch.bool, torch.float16)))
    numbers = torch.tensor(flat, dtype=torch.float64)
    return (
        numbers.nan_to_num(7.0).to(dtype).reshape(shape)
        if not dtype.is_floating_point
        else numbers.to(dtype).reshape(shape)
    )


@dataclass(frozen=True)
class Inputs:
    """What a criterion or a judge is called with; each may be anything."""

    scores: Any
    labels: Any
    weights: Any = None
    groups: Any = None


def sizes(most: int = 12) -> st.SearchStrategy[int]:
    return st.one_of(st.integers(2, most), st.integers(2, most), st.integers(0, 2))


@st.composite
def tensors(draw: st.DrawFn, n_classes: int | None = None, max_size: int = 12, floats_only: bool = False) -> Inputs:
    """Tensors for a solver: scores `(n,)`, or `(n, K)` with class numbers; now and then of shapes that do not fit."""
    size = draw(sizes(max_size))
    shape = (size,) if n_classes is None else (size, n_classes)
    scores = draw(score_tensors(shape))
    labels = draw(label_tensors((size,), n_classes or 2))
    odd = draw(st.sampled_from([9] * 20 + [0, 1, 2, 3]))
    if odd == 0:
        scores = scores.detach().unsqueeze(-1)
    elif odd == 1:
        scores, labels = scores.detach().sum(), labels.sum()
    elif odd == 2:
        labels = torch.cat([labels, labels[:1]])
    elif odd == 3 and not floats_only:
        scores = scores.detach().nan_to_num(0).clamp(-100, 100).to(draw(st.sampled_from(OTHER_TYPES)))
    groups = draw(st.one_of(st.none(), group_tensors(size)))
    return Inputs(scores, labels, draw(weight_tensors((size,))), groups)


@st.composite
def group_tensors(draw: st.DrawFn, size: int) -> Tensor:
    pool = draw(st.sampled_from([[0, 1]] * 6 + [[0], [1], [0, 1, 2], [-1, 0], [7, 0]]))
    flat = draw(st.lists(st.sampled_from(pool), min_size=size, max_size=size))
    return torch.tensor(flat, dtype=draw(st.sampled_from((torch.int64,) * 5 + (torch.int32, torch.float32))))


@st.composite
def anything(draw: st.DrawFn) -> Inputs:
    """The same for the judges, which also take arrays, lists, and what is none of these."""
    given = draw(tensors())
    kind = draw(st.sampled_from([0] * 10 + [4, 5, 6, 7] * 2 + [3]))
    if kind == 0:
        return given
    if kind == 3:
        scores = draw(
            st.sampled_from([None, "high", [], [[]], {}, 1.0, [None, 1], ["a"], b"\0", [1, [2]], [1j, 2j], 10**400])
        )
        return Inputs(scores, given.labels, given.weights, given.groups)
    parts = [_plain(part, kind) for part in (given.scores, given.labels, given.weights)]
    names = draw(st.sampled_from([["a", "b"], ["", "\N{SNOWMAN}"], [1.5, "x"], [None, "a"]]))
    groups = None if given.groups is None else [names[int(g) % 2] for g in given.groups.reshape(-1).tolist()]
    return Inputs(*parts, groups)


def _plain(part: Tensor | None, kind: int) -> Any:
    if part is None:
        return None
    part = part.detach()
    part = part.float() if part.dtype == torch.bfloat16 else part
    if kind == 4:
        return part.tolist()
    if kind == 5:
        return part.numpy()[::-1] if part.dim() else part.numpy()
    if kind == 6:
        return np.asfortranarray(part.numpy()).astype(object)
    return tuple(part.tolist()) if part.dim() else part.item()


@st.composite
def counts(draw: st.DrawFn, *shape: int) -> Tensor:
    """Non-negative counts `(..., 4)`: whole, soft, empty, tiny or huge."""
    dtype = draw(st.sampled_from((torch.float64, torch.float32)))
    each = st.one_of(st.integers(0, 5).map(float), st.floats(1e-12, 1e6), st.sampled_from([0.0, 1e-12, 1e-6, 1e15]))
    size = math.prod(shape) * 4
    flat = draw(st.lists(each, min_size=size, max_size=size))
    return torch.tensor(flat, dtype=torch.float64).to(dtype).reshape(*shape, 4).requires_grad_(draw(st.booleans()))


rates = st.sampled_from(RATES)
quantities = st.one_of(
    rates, rates, st.sampled_from(METRICS), st.sampled_from([0.5, 1, 2.0, 1e-6, 1e6]).map(sp.f_score)
)


@st.composite
def bounds(draw: st.DrawFn, groups: bool = True) -> Constraint:
    quantity: Any = draw(quantities)
    if groups and isinstance(quantity, sp.Rate) and draw(one_in(8)):
        quantity = quantity.gap("sex")
    bound = draw(shares if draw(one_in(15)) else st.floats(0, 1))
    relation = draw(st.sampled_from(["<=", ">=", "=="]))
    return Constraint(quantity, relation, bound)


@st.composite
def problems(draw: st.DrawFn, groups: bool = True) -> sp.Problem:
    """Any question that can be asked; those that contradict themselves are refused on the way."""
    make = draw(st.sampled_from([sp.minimize, sp.maximize]))
    objective = draw(quantities)
    if draw(one_in(4)):
        low, high = sorted(draw(st.tuples(st.floats(0, 1), st.floats(0, 1))))
        return make(objective, over=draw(rates).between(low, high, draw(st.integers(1, 4))))
    return make(objective, *draw(st.lists(bounds(groups), max_size=2)))
