"""Few directions with a proof, and factors found by a program."""

import numpy as np
import pytest
import torch
from benchmarks.studies.lp_programs.study import dense, scored

from setpoint import lp
from setpoint.errors import BadProgram, BadSetting, ShapeMismatch


@pytest.mark.parametrize("n", [30, 150])
def test_the_forms_own_directions_hold_the_optimum_and_prove_it(n):
    scores, labels = scored(np.random.default_rng(n), n, 0.3)
    scores.requires_grad_()
    program = lp.forms.f_score(scores, labels)
    found = lp.solve_reduced(program, lp.forms.f_score_basis(scores, labels))
    assert found.certified
    assert float(found.solution.proof.worst) <= 1e-8
    exact = lp.closed.f_score(scores, labels)
    assert float(-found.solution.value.detach()) == pytest.approx(float(exact.detach()), abs=1e-7)
    (gradient,) = torch.autograd.grad(found.solution.value, scores)
    (truth,) = torch.autograd.grad(-exact, scores)
    assert float(torch.cosine_similarity(gradient, truth, dim=0)) > 0.999999


@pytest.mark.parametrize("choose", [lp.random_directions, lp.sliced_inverse_directions])
def test_directions_that_miss_the_optimum_fall_back_to_the_full_program(choose):
    scores, labels = scored(np.random.default_rng(0), 40, 0.3)
    program = lp.forms.f_score(scores, labels)
    found = lp.solve_reduced(program, choose(program, 10))
    assert not found.certified
    assert found.solution.status is lp.Status.SOLVED
    assert float(-found.solution.value) == pytest.approx(float(lp.closed.f_score(scores, labels)), abs=1e-7)


def test_more_slices_than_rows_are_one_slice_per_row():
    program = dense(np.random.default_rng(5))
    rows = len(program.bound)
    most, more = (lp.sliced_inverse_directions(program, 3, slices=slices) for slices in (rows, 2 * rows))
    assert torch.isfinite(more).all()
    assert torch.equal(most, more)


def test_feasible_but_not_optimal_directions_are_not_certified():
    program = dense(np.random.default_rng(5))
    best = lp.solve(program, lp.Highs())
    feasible = lp.solve(
        lp.LinearProgram(-program.cost.abs() - 1, program.matrix, program.bound, *_equal(program)), lp.Highs()
    )
    if feasible.status is not lp.Status.SOLVED:
        feasible = lp.solve(
            lp.LinearProgram(program.cost.abs() + 1, program.matrix, program.bound, *_equal(program)), lp.Highs()
        )
    assert float(program.cost @ feasible.x) > float(best.value) + 1e-3
    found = lp.solve_reduced(program, feasible.x.unsqueeze(1))
    assert not found.certified
    assert float(found.solution.value) == pytest.approx(float(best.value), rel=1e-6, abs=1e-6)


def _equal(program):
    return program.equality_matrix, program.equality_bound


def test_directions_are_checked():
    program = dense(np.random.default_rng(5))
    with pytest.raises(ShapeMismatch):
        lp.solve_reduced(program, torch.ones(3, 2))
    with pytest.raises(BadSetting):
        lp.random_directions(program, 0)


def separable(seed, s=8, r=3, w=10):
    draw = np.random.default_rng([41, seed])
    shares = draw.dirichlet(np.ones(r), s)
    anchors = np.sort(draw.permutation(s)[:r])
    shares[anchors] = np.eye(r)
    rows = shares @ draw.random((r, w)) * draw.uniform(0.5, 2, (s, 1))
    return torch.from_numpy(rows), anchors.tolist()


@pytest.mark.parametrize("engine", [lp.Highs(), lp.Newton()])
def test_separable_matrices_are_factored_exactly(engine):
    for seed in range(3):
        rows, anchors = separable(seed)
        found = lp.factorize(rows, 3, engine=engine)
        assert found.exact
        assert found.anchors.tolist() == anchors
        assert torch.equal(found.W, rows[found.anchors])
        assert float((found.product - rows).abs().max()) < 1e-8
        assert bool((found.F >= 0).all())


def test_noise_is_answered_with_the_nearest_anchors():
    rows, anchors = separable(5)
    noisy = rows + 0.01 * torch.rand(rows.shape, generator=torch.Generator().manual_seed(0)).double()
    found = lp.factorize(noisy, 3)
    assert not found.exact
    assert found.anchors.tolist() == anchors
    assert float((found.product - noisy).abs().max()) < 0.05


def test_factors_carry_gradients():
    rows, _ = separable(1, s=5, r=2, w=4)
    rows.requires_grad_()
    weights = torch.linspace(-1, 1, 10).double().reshape(5, 2)
    found = lp.factorize(rows, 2)
    (gradient,) = torch.autograd.grad((weights * found.F).sum() + found.W.square().sum(), rows)
    direction = rows.detach().clone()
    direction[found.anchors] = 0
    h = 1e-6

    def at(step):
        moved = lp.factorize(rows.detach() + step * direction, 2)
        return float((weights * moved.F).sum() + moved.W.square().sum())

    assert float((gradient * direction).sum()) == pytest.approx((at(h) - at(-h)) / (2 * h), rel=1e-4)


def test_matrices_that_cannot_be_factored_are_named():
    for matrix, rank in (
        (-torch.ones(3, 3), 1),
        (torch.zeros(3, 3), 1),
        (torch.ones(3, 3), 4),
        (torch.ones(3), 1),
    ):
        with pytest.raises(BadProgram):
            lp.factorize(matrix, rank)
