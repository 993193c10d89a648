"""The solver against HiGHS: right, or named; never wrong without saying so."""

import numpy as np
import pytest
import torch
from benchmarks.studies.lp_programs.study import (
    FAMILIES,
    dense,
    f_score,
    f_score_weighted,
    infeasible,
    scored,
    unbounded,
)

from setpoint import lp
from setpoint.errors import BadProgram
from setpoint.lp.solution import certify, proves_infeasible, proves_unbounded
from setpoint.lp.structure import choose


@pytest.mark.parametrize("name", FAMILIES)
def test_certified_and_equal_to_highs(name):
    make, _ = FAMILIES[name]
    for seed in range(6):
        program = make(np.random.default_rng([99, seed]))
        found, truth = lp.solve(program), lp.solve(program, lp.Highs())
        assert found.status is lp.Status.SOLVED, (seed, found.message)
        assert int(found.iterations) <= 100
        assert float(found.proof.worst) <= 1e-8
        assert float(found.value) == pytest.approx(float(truth.value), rel=1e-6, abs=1e-6)
        assert bool((found.x >= 0).all())
        assert bool((found.dual >= 0).all())


def test_the_certificate_is_that_of_the_program_as_given():
    program = dense(np.random.default_rng(3))
    found = lp.solve(program)
    a, b, c = program.matrix, program.bound, program.cost
    e, f = program.equality_matrix, program.equality_bound
    x, u, v = found.x, found.dual, found.equality_dual
    broken = max(float((a @ x - b).max()), float((e @ x - f).abs().max()), 0.0)
    reduced = c + a.T @ u + e.T @ v
    assert broken <= 1e-8 * (1 + float(torch.cat([b, f]).abs().max()))
    assert float(reduced.min()) >= -1e-8 * (1 + float(c.abs().max()))
    assert abs(float(c @ x + b @ u + f @ v)) <= 1e-8 * (1 + abs(float(c @ x)))


@pytest.mark.parametrize(("make", "status"), [(infeasible, "INFEASIBLE"), (unbounded, "UNBOUNDED")])
def test_programs_without_a_solution_are_named_and_proved(make, status):
    for seed in range(15):
        program = make(np.random.default_rng([5, seed]))
        found = lp.solve(program)
        assert found.status.name == status
        assert lp.solve(program, lp.Highs()).status.name == status
        if status == "INFEASIBLE":
            assert float(found.value) == torch.inf
            assert bool(proves_infeasible(program, found.dual, found.equality_dual, 1e-8))
            assert float((program.matrix.T @ found.dual).min()) >= 1e-8 * float(program.bound @ found.dual)
        else:
            assert float(found.value) == -torch.inf
            assert bool(proves_unbounded(program, found.x, 1e-8))
            assert float(program.cost @ found.x) < 0


def test_an_infeasible_program_whose_cost_would_fall_without_end_is_named_too():
    program = infeasible(np.random.default_rng([20261116, 0, 23]))
    found = lp.solve(program)
    assert found.status is lp.Status.INFEASIBLE
    assert bool(proves_infeasible(program, found.dual, found.equality_dual, 1e-8))


def test_too_few_steps_is_stalled_with_its_gap():
    program = dense(np.random.default_rng(0))
    found = lp.solve(program, lp.Newton(steps=3))
    assert found.status is lp.Status.STALLED
    assert not bool(found.solved)
    assert "gap" in found.message
    assert float(found.proof.worst) > 1e-8


def test_an_engine_that_lies_is_not_believed():
    class Liar:
        tolerance = 1e-8

        def run(self, program, warm=None):
            x, u = torch.ones_like(program.cost), torch.zeros_like(program.bound)
            return lp.Highs().run(program).__class__(x, u, u[:0], torch.tensor(1), (lp.Status.SOLVED,))

    program = lp.LinearProgram(torch.ones(2).double(), -torch.eye(2).double(), torch.zeros(2).double())
    assert lp.solve(program, Liar()).status is lp.Status.STALLED


def test_a_batch_gives_what_each_program_gives():
    programs = []
    for seed in range(6):
        draw = np.random.default_rng([1, seed])
        rows, x = draw.normal(size=(14, 9)), draw.random(9)
        bound = rows @ x + draw.random(14)
        cost = -rows.T @ draw.random(14)
        equal = draw.normal(size=(2, 9))
        programs.append([torch.from_numpy(p) for p in (cost, rows, bound, equal, equal @ x)])
    programs[2][0] = -torch.ones(9).double()
    programs[2][1] = -programs[2][1].abs()
    programs[2][2] = programs[2][2].abs()
    programs[2][3] = torch.zeros(2, 9).double()
    programs[2][4] = torch.zeros(2).double()
    batch = lp.solve(lp.LinearProgram(*(torch.stack(parts) for parts in zip(*programs))))
    assert batch.statuses[2] is lp.Status.UNBOUNDED
    assert batch.status is lp.Status.UNBOUNDED
    assert batch.solved.tolist() == [True, True, False, True, True, True]
    for i, parts in enumerate(programs):
        alone = lp.solve(lp.LinearProgram(*parts), lp.Highs())
        assert batch.statuses[i] is alone.status
        assert float(batch.value[i]) == pytest.approx(float(alone.value), abs=1e-6)
    highs = lp.solve(lp.LinearProgram(*(torch.stack(parts) for parts in zip(*programs))), lp.Highs())
    assert highs.statuses == batch.statuses


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_float64_inside_whatever_comes_in(dtype):
    scores, labels = scored(np.random.default_rng(0), 60, 0.3)
    program = lp.forms.f_score(scores, labels)
    parts = (
        program.cost,
        program.matrix.to_dense(),
        program.bound,
        program.equality_matrix,
        program.equality_bound,
    )
    found = lp.solve(lp.LinearProgram(*(part.to(dtype) for part in parts)))
    assert found.status is lp.Status.SOLVED
    assert found.x.dtype == found.value.dtype == dtype
    assert float(found.proof.worst) <= 1e-8
    assert float(-found.value) == pytest.approx(float(lp.closed.f_score(scores, labels)), abs=2e-2)


def test_a_warm_start_saves_steps():
    scores, labels = scored(np.random.default_rng(0), 300, 0.3)
    cold = lp.solve(lp.forms.f_score(scores, labels))
    near = lp.forms.f_score(scores + 1e-4, labels)
    warm, again = lp.solve(near, start=cold), lp.solve(near)
    assert warm.status is lp.Status.SOLVED
    assert int(warm.iterations) < int(again.iterations)
    assert float(warm.value) == pytest.approx(float(again.value), abs=1e-7)


STRUCTURES = {"dense": lp.Dense, "arrow": lp.Arrow, "products": lp.Iterative}


@pytest.mark.parametrize("name", STRUCTURES)
def test_every_structure_solves_the_same_system(name):
    draw = torch.Generator().manual_seed(0)
    scores, labels = scored(np.random.default_rng(1), 40, 0.4)
    program = lp.forms.precision_at_recall(scores, labels, 0.8, weights=torch.rand(40, generator=draw) + 0.1)
    rows, plain = STRUCTURES[name](program), lp.Dense(program)
    if name == "products":
        # As many steps as variables: enough for conjugate directions, far too few for steepest descent.
        rows.steps = 2 * program.variables
    x = torch.randn(program.variables, generator=draw, dtype=torch.float64).numpy()
    r = torch.randn(len(plain.norms), generator=draw, dtype=torch.float64).numpy()
    active = (r > 0).astype(float)
    diagonal = 1e-2 * torch.rand(program.variables, generator=draw, dtype=torch.float64).numpy() + 1e-3
    np.testing.assert_allclose(rows.gather(rows.norms), plain.norms)
    np.testing.assert_allclose(rows.gather(rows.apply(x)), plain.apply(x), atol=1e-12)
    np.testing.assert_allclose(rows.transpose(rows.spread(r)), plain.transpose(r), atol=1e-12)
    solved = rows.solve(rows.spread(active), diagonal, x)
    np.testing.assert_allclose(solved, plain.solve(active, diagonal, x), atol=1e-8, rtol=1e-6)


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_structure_can_be_named(name):
    program = lp.forms.f_score(*scored(np.random.default_rng(1), 40, 0.4))
    tolerance = 1e-6 if name == "products" else 1e-8
    found = lp.solve(program, lp.Newton(structure=STRUCTURES[name], tolerance=tolerance, steps=200))
    assert found.status is lp.Status.SOLVED
    assert float(found.value) == pytest.approx(float(lp.solve(program, lp.Highs()).value), abs=1e-5)


def test_an_arrow_that_a_program_lacks_is_refused_by_name():
    with pytest.raises(BadProgram, match="no arrow"):
        lp.solve(FAMILIES["assignment"][0](np.random.default_rng(11)), lp.Newton(structure=lp.Arrow))


def test_the_structure_is_chosen_by_the_shape_of_the_program():
    scores, labels = scored(np.random.default_rng(1), 200, 0.4)
    assert isinstance(choose(lp.forms.f_score(scores, labels)), lp.Arrow)
    assert isinstance(choose(lp.forms.recall_at_precision(scores, labels, 0.8)), lp.Arrow)
    assert isinstance(choose(lp.forms.auc(scores[::4], labels[::4])), lp.Arrow)
    assert isinstance(choose(lp.forms.f_score(scores[:20], labels[:20])), lp.Arrow)
    assert isinstance(choose(FAMILIES["assignment"][0](np.random.default_rng(11))), lp.Dense)


@pytest.mark.parametrize("make", [f_score, f_score_weighted, FAMILIES["assignment"][0]])
def test_conjugate_gradients_reach_the_same_value(make):
    program = make(np.random.default_rng(4))
    if program.variables > 400:
        program = lp.forms.f_score(*scored(np.random.default_rng(4), 150, 0.3))
    engine = lp.Newton(structure=lp.Iterative, tolerance=1e-6, steps=200)
    found, truth = lp.solve(program, engine), lp.solve(program, lp.Highs())
    assert found.status is lp.Status.SOLVED, found.message
    assert float(found.value) == pytest.approx(float(truth.value), abs=1e-5)


def test_a_matrix_that_is_never_written_down():
    """Limits on running sums: x_1 + ... + x_i <= b_i, by cumulative sums alone."""
    n = 50
    draw = torch.Generator().manual_seed(0)
    scale = (torch.rand(n, generator=draw).double() + 0.5).requires_grad_()
    cost = -torch.rand(n, generator=draw).double()
    bound = torch.linspace(1, 5, n).double()
    running = lp.Operator((n, n), lambda x: (scale * x).cumsum(0), lambda r: scale * r.flip(0).cumsum(0).flip(0))
    found = lp.solve(lp.LinearProgram(cost, running, bound), lp.Newton(tolerance=1e-7, steps=200))
    written = lp.LinearProgram(cost, torch.tril(torch.ones(n, n).double()) * scale, bound)
    truth = lp.solve(written, lp.Highs())
    assert found.status is lp.Status.SOLVED, found.message
    assert float(found.value.detach()) == pytest.approx(float(truth.value.detach()), abs=1e-6)
    (operator_gradient,) = torch.autograd.grad(found.value, scale)
    (written_gradient,) = torch.autograd.grad(truth.value, scale)
    assert torch.allclose(operator_gradient, written_gradient, atol=1e-4)


def test_the_bare_penalty_is_there_and_its_failures_are_named():
    bare, safe = lp.ExteriorPenalty(epsilon=1e-3), lp.ExteriorPenalty(epsilon=1e-3, line_search=True)
    statuses = {"bare": 0, "safe": 0}
    for seed in range(12):
        draw = np.random.default_rng([8, seed])
        rows, x, u = draw.normal(size=(9, 9)), draw.random(9) + 0.5, draw.random(9) + 0.5
        program = lp.LinearProgram(*(torch.from_numpy(p) for p in (-rows.T @ u, rows, rows @ x)))
        truth = lp.solve(program, lp.Highs())
        for name, engine in (("bare", bare), ("safe", safe)):
            found = lp.solve(program, engine)
            if found.status is lp.Status.SOLVED:
                statuses[name] += 1
                assert float(found.value) == pytest.approx(float(truth.value), abs=1e-6)
            else:
                assert found.status is lp.Status.STALLED
    assert statuses["safe"] >= 6
    assert statuses["bare"] < statuses["safe"]


def test_certify_sees_each_of_the_three_violations():
    program = lp.LinearProgram(-torch.ones(1).double(), torch.ones(1, 1).double(), torch.ones(1).double())
    x, u, none = torch.ones(1).double(), torch.ones(1).double(), torch.zeros(0).double()
    assert float(certify(program, x, u, none).worst) == 0
    assert float(certify(program, 2 * x, u, none).primal) == pytest.approx(0.5)
    assert float(certify(program, x, 0 * u, none).dual) == pytest.approx(0.5)
    assert float(certify(program, x, 3 * u, none).gap) == pytest.approx(1.0)
    assert float(certify(program, -x, u, none).primal) > 0
    assert float(certify(program, x, -u, none).primal) > 0


def test_a_proof_is_checked_not_believed():
    """x <= 1 and -x <= -2 contradict each other, with prices 1 and 1 as the proof; nothing less proves it."""
    program = lp.LinearProgram(
        torch.ones(1).double(), torch.tensor([[1.0], [-1.0]]).double(), torch.tensor([1.0, -2.0]).double()
    )
    none = torch.zeros(0).double()
    for dual, proof in (([1.0, 1.0], True), ([0.0, 0.0], False), ([1.0, 2.0], False), ([3.0, 1.0], False)):
        assert bool(proves_infeasible(program, torch.tensor(dual).double(), none, 1e-9)) is proof
    endless = lp.LinearProgram(-torch.ones(2).double(), torch.tensor([[1.0, 0.0]]).double(), torch.ones(1).double())
    for ray, proof in (([0.0, 1.0], True), ([0.0, 0.0], False), ([1.0, 1.0], False), ([0.0, -1.0], False)):
        assert bool(proves_unbounded(endless, torch.tensor(ray).double(), 1e-9)) is proof
