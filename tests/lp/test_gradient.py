"""Gradients of a solution: against finite differences of HiGHS, and as subgradients where there are many."""

import numpy as np
import pytest
import torch
from benchmarks.studies.lp_programs.study import degenerate, scored

from setpoint import lp


def firm(seed, variables=12, used=7, equalities=2, rows=10):
    """A program with one optimal point and one set of prices, clear of every kink."""
    draw = np.random.default_rng([21, seed])
    a, e = draw.normal(size=(rows, variables)), draw.normal(size=(equalities, variables))
    x, u = np.zeros(variables), np.zeros(rows)
    x[:used] = draw.random(used) + 0.5
    u[: used - equalities] = draw.random(used - equalities) + 0.5
    reduced = np.where(x > 0, 0, draw.random(variables) + 0.2)
    slack = np.where(u > 0, 0, draw.random(rows) + 0.2)
    cost = reduced - a.T @ u - e.T @ draw.normal(size=equalities)
    parts = (cost, a, a @ x + slack, e, e @ x)
    return [torch.from_numpy(part).requires_grad_() for part in parts]


def slope_by_differences(of, parts, which, direction, h=1e-6):
    def at(step):
        moved = [part.detach() for part in parts]
        moved[which] = moved[which] + step * direction
        return of(lp.solve(lp.LinearProgram(*moved), lp.Highs()))

    return float(at(h) - at(-h)) / (2 * h)


def mixed(found):
    weights = torch.linspace(-1, 1, len(found.x)).double()
    return weights @ found.x + 0.3 * found.dual.sum() - 0.7 * found.equality_dual.sum()


@pytest.mark.parametrize("which", range(5))
def test_the_envelope_is_the_slope_of_the_value(which):
    parts = firm(which)
    gradients = torch.autograd.grad(lp.solve(lp.LinearProgram(*parts)).value, parts)
    direction = torch.randn_like(parts[which])
    slope = slope_by_differences(lambda found: found.value, parts, which, direction)
    assert float((gradients[which] * direction).sum()) == pytest.approx(slope, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("which", range(5))
@pytest.mark.parametrize("structure", ["dense", "sparse"])
def test_the_active_set_is_the_slope_of_point_and_prices(which, structure):
    parts = firm(10 + which)
    leaves = parts
    if structure == "sparse":
        parts = [parts[0], parts[1].to_sparse(), parts[2], parts[3].to_sparse(), parts[4]]
    found = lp.solve(lp.LinearProgram(*parts), gradient=lp.ActiveSet())
    assert not bool(found.degenerate)
    gradients = torch.autograd.grad(mixed(found), leaves)
    direction = torch.randn_like(leaves[which])
    slope = slope_by_differences(mixed, leaves, which, direction)
    assert float((gradients[which] * direction).sum()) == pytest.approx(slope, rel=1e-4, abs=1e-5)


def test_the_value_through_the_active_set_agrees_with_the_envelope():
    parts = firm(3)
    one = torch.autograd.grad(lp.solve(lp.LinearProgram(*parts)).value, parts)
    other = torch.autograd.grad(lp.solve(lp.LinearProgram(*parts), gradient=lp.ActiveSet()).value, parts)
    for left, right in zip(one, other):
        assert torch.allclose(left, right, atol=1e-6)


def test_unrolling_comes_close_as_epsilon_falls():
    parts = firm(4)
    truth = torch.cat([g.flatten() for g in torch.autograd.grad(lp.solve(lp.LinearProgram(*parts)).value, parts)])
    cosines = []
    for epsilon in (1e-1, 1e-2, 1e-4):
        found = lp.solve(lp.LinearProgram(*parts), gradient=lp.Unrolled(epsilon, steps=40))
        unrolled = torch.cat([g.flatten() for g in torch.autograd.grad(found.value, parts)])
        cosines.append(float(torch.cosine_similarity(truth, unrolled, dim=0)))
    assert cosines == sorted(cosines)
    assert cosines[-1] > 0.9999


def test_burn_in_unrolls_first_and_then_trusts_the_active_set():
    schedule = lp.BurnIn(start=1e-3, growth=2.0, steps=3)
    assert [schedule.at(step) for step in range(3)] == [lp.Unrolled(1e-3), lp.Unrolled(2e-3), lp.Unrolled(4e-3)]
    assert schedule.at(3) == lp.ActiveSet()


def test_degenerate_programs_are_flagged_and_their_gradient_is_a_subgradient():
    """The value is concave in the cost and convex in the bound: one gradient must bound all neighbours."""
    flagged = 0
    for seed in range(8):
        program = degenerate(np.random.default_rng([2, seed]))
        cost, bound = program.cost.clone().requires_grad_(), program.bound.clone().requires_grad_()
        rest = (program.equality_matrix, program.equality_bound)
        found = lp.solve(lp.LinearProgram(cost, program.matrix, bound, *rest))
        flagged += bool(lp.solve(program, gradient=lp.ActiveSet()).degenerate)
        to_cost, to_bound = torch.autograd.grad(found.value, (cost, bound))
        value = found.value.detach()
        draw = torch.Generator().manual_seed(seed)
        for scale in (1e-3, 1e-1):
            step = scale * torch.rand(len(bound), generator=draw).double()
            eased = lp.solve(lp.LinearProgram(program.cost, program.matrix, program.bound + step, *rest), lp.Highs())
            if eased.status is lp.Status.SOLVED:
                assert float(eased.value) >= float(value + to_bound @ step) - 1e-6
            step = scale * torch.rand(len(cost), generator=draw).double()
            dearer = lp.solve(lp.LinearProgram(program.cost + step, program.matrix, program.bound, *rest), lp.Highs())
            assert float(dearer.value) <= float(value + to_cost @ step) + 1e-6
    assert flagged >= 6


def test_no_gradient_comes_from_a_program_without_a_solution():
    cost = -torch.ones(2).double().requires_grad_()
    found = lp.solve(lp.LinearProgram(cost, -torch.eye(2).double(), torch.ones(2).double()))
    assert found.status is lp.Status.UNBOUNDED
    (gradient,) = torch.autograd.grad(found.value, cost)
    assert gradient.tolist() == [0, 0]


def test_a_batch_differentiates_each_program_on_its_own():
    together = [torch.stack([one.detach() for one in parts]).requires_grad_() for parts in zip(firm(1), firm(2))]
    found = lp.solve(lp.LinearProgram(*together), gradient=lp.ActiveSet())
    gradients = torch.autograd.grad(found.x[1].sum() + found.dual[1].sum(), together)
    alone = firm(2)
    one = lp.solve(lp.LinearProgram(*alone), gradient=lp.ActiveSet())
    expected = torch.autograd.grad(one.x.sum() + one.dual.sum(), alone)
    for both, one in zip(gradients, expected):
        assert torch.allclose(both[0], torch.zeros_like(both[0]), atol=1e-9)
        assert torch.allclose(both[1], one, atol=1e-6)


def test_the_envelope_of_a_form_points_where_the_exact_gradient_points():
    for seed in range(5):
        scores, labels = scored(np.random.default_rng([6, seed]), 150, 0.3)
        scores.requires_grad_()
        (exact,) = torch.autograd.grad(-lp.closed.f_score(scores, labels), scores)
        (envelope,) = torch.autograd.grad(lp.solve(lp.forms.f_score(scores, labels)).value, scores)
        assert float(torch.cosine_similarity(exact, envelope, dim=0)) >= 0.999999
