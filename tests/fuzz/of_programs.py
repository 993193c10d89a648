"""Targets: linear programs, their engines and gradients, and the metrics that are programs."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import strategies as st

import setpoint as sp
from fuzz.inputs import numbers, positive, score_tensors, shares, small_whole, tensors
from fuzz.laws import Draw, finite, finite_gradient, target

engines = st.sampled_from([None, None, sp.lp.Newton(steps=40), sp.lp.Highs(), sp.lp.ExteriorPenalty()])
gradients = st.sampled_from([None, sp.lp.Envelope(), sp.lp.ActiveSet()])


def entries(*shape: int) -> st.SearchStrategy[Any]:
    """Coefficients: small whole numbers mostly, for programs that have a solution."""
    whole = st.lists(
        st.integers(-2, 3).map(float),
        min_size=max(1, torch.Size(shape).numel()),
        max_size=max(1, torch.Size(shape).numel()),
    )
    plain = whole.map(lambda flat: torch.tensor(flat, dtype=torch.float64)[: torch.Size(shape).numel()].reshape(shape))
    return st.one_of(*[plain] * 8, score_tensors(shape))


@st.composite
def programs(draw: st.DrawFn) -> sp.lp.LinearProgram:
    n, m = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    cost, matrix, bound = draw(entries(n)), draw(entries(m, n)), draw(entries(m))
    odd = draw(st.sampled_from([9] * 14 + [0, 1, 1, 2, 2, 3, 4, 4]))
    if odd == 0:
        bound = draw(entries(m + 1))
    elif odd == 1:
        matrix = matrix.detach().to_sparse()
    elif odd == 2:
        matrix = sp.lp.Entries.of(matrix.detach())
    elif odd == 3:
        cost = draw(st.sampled_from([cost.long(), cost.sum(), cost[:0], None, [1.0, 2.0]]))
    elif odd == 4:
        held = matrix.detach().double()
        matrix = sp.lp.Operator((m, n), lambda x: held @ x, lambda r: held.T @ r)
    equal = (draw(entries(1, n)), draw(entries(1))) if draw(st.booleans()) else (None, None)
    return sp.lp.LinearProgram(cost, matrix, bound, *equal)


def answered(found: sp.lp.Solution, program: sp.lp.LinearProgram) -> None:
    """Finite where solved, named where not."""
    for name in ("x", "dual", "equality_dual"):
        finite(getattr(found, name).detach(), name)
    assert found.message
    if found.status is sp.lp.Status.SOLVED:
        finite_gradient(found.value, program.cost, program.bound)
        finite(found.gap, "gap")
    else:
        assert not bool(torch.isnan(found.value).any())


@target
def solving_programs(draw: Draw) -> None:
    program = draw(programs())
    found = sp.lp.solve(program, draw(engines), draw(gradients))
    answered(found, program)
    answered(sp.lp.solve(program, start=found), program)


@target
def engine_settings(draw: Draw) -> None:
    engine = sp.lp.Newton(
        tolerance=draw(positive),
        steps=draw(small_whole),
        start=draw(positive),
        factor=draw(shares),
        sharpest=draw(positive),
    )
    program = draw(programs())
    answered(sp.lp.solve(program, engine), program)


@target
def reduced_programs(draw: Draw) -> None:
    program = draw(programs())
    basis = draw(entries(draw(st.integers(1, 3)), 2)).detach()
    answered(sp.lp.solve_reduced(program, basis).solution, program)


@target
def factorizing(draw: Draw) -> None:
    found = sp.lp.factorize(draw(entries(3, 2)).abs(), draw(small_whole))
    finite_gradient(found.product)


@target
def metrics_as_programs(draw: Draw) -> None:
    given = draw(tensors(floats_only=True, max_size=6))
    share, shortfall, margin = draw(shares), draw(positive), draw(st.one_of(*[st.floats(0, 0.5)] * 6, numbers))
    name, settings = draw(
        st.sampled_from([
            ("f_score", {"beta": draw(positive)}), ("jaccard", {}), ("auc", {}),
            ("precision_at_recall", {"recall": share, "shortfall": shortfall}),
            ("recall_at_precision", {"precision": share, "shortfall": shortfall}),
        ])
    )  # fmt: skip
    value = getattr(sp.lp.closed, name)(given.scores, given.labels, weights=given.weights, margin=margin, **settings)
    finite_gradient(value, given.scores)
    program = getattr(sp.lp.forms, name)(given.scores, given.labels, weights=given.weights, margin=margin, **settings)
    answered(sp.lp.solve(program), program)


@target
def areas_as_programs(draw: Draw) -> None:
    given = draw(tensors(3, max_size=5, floats_only=True))
    for name in ("auc_one_vs_all", "auc_mu"):
        value = getattr(sp.lp.closed, name)(given.scores, given.labels, weights=given.weights, margin=draw(positive))
        finite_gradient(value, given.scores)
        program = getattr(sp.lp.forms, name)(given.scores, given.labels, weights=given.weights)
        answered(sp.lp.solve(program), program)
