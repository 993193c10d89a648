"""Implicit shifts: gradients through shifts solved anew, and what a solver must do."""

import itertools

import numpy as np
import pytest
import torch
from scipy.optimize import root
from torch.nn import functional as F

import setpoint as sp
import worlds_of_many
from marks import quick_first, slow
from setpoint.errors import BadLabels, BadProblem, BadScores, BadSetting, ShapeMismatch
from setpoint.measure.classes import Macro, Micro, OfClass, check_classes, class_shares, count_classes, predict_class
from setpoint.solve import shifts as module
from setpoint.solve.price import Damping
from setpoint.solve.shifts import ImplicitShifts, shift_pace


def cover(k):
    return OfClass(sp.flagged, k)


ERROR, RECALL, F1 = Micro(sp.fnr), Macro(sp.recall), Macro(sp.f_score(1))


#: Each problem of four classes with the shifts that its bounds move in `world()`.
BOUND = {
    "one fixed": (sp.minimize(ERROR, cover(1) == 0.3), [1]),
    "three fixed": (sp.minimize(ERROR, cover(0) == 0.3, cover(2) == 0.1, cover(3) == 0.2), [0, 2, 3]),
    "all fixed": (sp.minimize(ERROR, *(cover(k) == c for k, c in enumerate((0.3, 0.3, 0.2, 0.2)))), [0, 1, 2, 3]),
    "ceiling and floor": (sp.minimize(ERROR, cover(0) <= 0.2, cover(3) >= 0.4, cover(2) <= 0.9), [0, 3]),
    "between": (sp.minimize(ERROR, cover(0) <= 0.2, cover(0) >= 0.1), [0]),
    "macro recall": (sp.maximize(RECALL, cover(1) == 0.3, cover(2) == 0.2, cover(3) == 0.1), [1, 2, 3]),
    "macro f": (sp.maximize(F1, cover(0) == 0.3, cover(2) == 0.2, cover(3) == 0.1), [0, 2, 3]),
}


TEMPERATURE = 1.3


def world(seed=0, size=60, n_classes=4):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(size, 3, generator=draw, dtype=torch.float64)
    truth = torch.randn(3, n_classes, generator=draw, dtype=torch.float64)
    labels = (x @ truth + torch.randn(size, n_classes, generator=draw)).argmax(1)
    weights = torch.rand(size, generator=draw, dtype=torch.float64) + 0.5
    theta = truth + 0.5 * torch.randn(3, n_classes, generator=draw, dtype=torch.float64)
    return x, labels, weights, theta


def resolved_cost(problem, moved, x, labels, weights, theta):
    """The soft cost at shifts that scipy solves for: each moved class at its bound, the others at 0."""
    scores, bounds = x @ theta, {c.quantity.k: c for c in reversed(problem.constraints)}
    free = moved[1:] if len(moved) == theta.shape[1] else moved

    def shifts_at(values):
        shifts = torch.zeros(theta.shape[1], dtype=torch.float64)
        shifts[free] = torch.as_tensor(values, dtype=torch.float64)
        return shifts

    def excess(values):
        covered = weights @ class_shares(scores, shifts_at(values), TEMPERATURE) / weights.sum()
        return [float(covered[k]) - bounds[k].bound for k in free]

    solution = root(excess, np.zeros(len(free)), tol=1e-14)
    assert max(map(abs, excess(solution.x))) < 1e-12
    counts = count_classes(scores, labels, shifts_at(solution.x), TEMPERATURE, weights=weights)
    return float(problem.cost(counts.unsqueeze(0)))


def finite_differences(problem, moved, x, labels, weights, theta, width=1e-5):
    slopes = torch.zeros_like(theta)
    for i, j in itertools.product(*map(range, theta.shape)):
        step = torch.zeros_like(theta)
        step[i, j] = width
        ends = [resolved_cost(problem, moved, x, labels, weights, theta + s) for s in (step, -step)]
        slopes[i, j] = (ends[0] - ends[1]) / (2 * width)
    return slopes


def implicit_gradient(problem, x, labels, weights, theta):
    leaf = theta.clone().requires_grad_()
    settings = {"temperature": TEMPERATURE, "memory": 0, "soft": True, "damping": Damping(1e-10, 1e9)}
    solver = ImplicitShifts(problem, theta.shape[1], **settings).double()
    (gradient,) = torch.autograd.grad(solver(x @ leaf, labels, weights=weights), leaf)
    return gradient


@pytest.mark.parametrize(("problem", "moved"), BOUND.values(), ids=BOUND)
def test_the_gradient_is_that_of_the_cost_at_shifts_solved_anew(problem, moved):
    expected = finite_differences(problem, moved, *world())
    found = implicit_gradient(problem, *world())
    assert (found - expected).norm() <= 1e-6 * expected.norm()


@pytest.mark.parametrize("factor", [0.0, -1.0])
@pytest.mark.parametrize(("problem", "moved"), BOUND.values(), ids=BOUND)
def test_without_its_prices_or_with_their_sign_flipped_the_gradient_is_wrong(problem, moved, factor, monkeypatch):
    right = module.solve_prices
    monkeypatch.setattr(module, "solve_prices", lambda *args, **limits: factor * right(*args, **limits))
    expected = finite_differences(problem, moved, *world())
    assert (implicit_gradient(problem, *world()) - expected).norm() > 1e-2 * expected.norm()


def test_the_pace_of_the_counts_is_their_derivative_by_the_shifts():
    x, labels, weights, theta = world()
    sample = check_classes(x @ theta, labels, weights)
    shifts = torch.tensor([0.3, -0.2, 0.0, 1.0], dtype=torch.float64)
    count_at = lambda t: count_classes(sample.scores, labels, t, TEMPERATURE, weights=weights)
    jacobian = torch.autograd.functional.jacobian(count_at, shifts)
    torch.testing.assert_close(shift_pace(sample, shifts, TEMPERATURE), jacobian.movedim(-1, 0))


# What every solver must do
SOLVERS = {
    "error": lambda: ImplicitShifts(sp.minimize(ERROR), 4),
    "coverage": lambda: ImplicitShifts(sp.minimize(ERROR, cover(0) <= 0.2, cover(3) >= 0.4), 4),
    "soft": lambda: ImplicitShifts(sp.minimize(ERROR, cover(0) <= 0.2), 4, soft=True),
    "every third": lambda: ImplicitShifts(sp.minimize(ERROR, cover(1) == 0.5), 4, every=3, memory=100),
    "macro recall": lambda: ImplicitShifts(sp.maximize(RECALL), 4),
    "macro f, bound": lambda: ImplicitShifts(sp.maximize(F1, cover(2) <= 0.1), 4),
}


every_solver = pytest.mark.parametrize("make", SOLVERS.values(), ids=SOLVERS)


def batch(seed=0, size=40, dtype=torch.float64):
    x, labels, _, theta = world(seed, size)
    return (x @ theta).to(dtype).requires_grad_(), labels


def state(solver):
    return {name: value.clone() for name, value in solver.state_dict().items()}


def same(left, right):
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


@every_solver
def test_eval_changes_no_state_and_a_state_carries_on_where_it_stopped(make):
    solver, twin = make().double(), make().double()
    for seed in range(4):
        solver(*batch(seed))
    twin.load_state_dict(state(solver))
    before = state(solver)
    solver.eval()
    solver(*batch(9))
    assert same(before, state(solver))
    solver.train()
    for seed in (5, 6, 7):
        scores, labels = batch(seed)
        (left,) = torch.autograd.grad(solver(scores, labels), scores)
        (right,) = torch.autograd.grad(twin(scores, labels), scores)
        assert torch.equal(left, right)
        assert left.abs().sum() > 0
    assert same(state(solver), state(twin))


@every_solver
def test_the_gradient_is_that_of_the_loss_with_its_state_held(make):
    solver = make().double()
    for seed in range(3):
        solver(*batch(seed))
    solver.eval()
    scores, labels = batch(5, size=12)
    remembered = solver.memory.joined(check_classes(scores.detach().clone(), labels))
    solver.memory.joined = lambda _: remembered
    assert torch.autograd.gradcheck(lambda s: solver(s, labels), (scores,), eps=1e-6, atol=1e-6)


@every_solver
def test_neither_order_nor_a_number_added_to_a_row_of_scores_matters(make):
    scores, labels = batch()
    order = torch.randperm(len(scores), generator=torch.Generator().manual_seed(3))
    moved = (scores.detach() + torch.randn(len(scores), 1, generator=torch.Generator().manual_seed(4)).double())[order]
    moved.requires_grad_()
    (there,) = torch.autograd.grad(make().double()(scores, labels), scores)
    (here,) = torch.autograd.grad(make().double()(moved, labels[order]), moved)
    torch.testing.assert_close(here, there[order], atol=1e-7, rtol=1e-4)


def test_a_class_that_no_sample_has_and_none_is_near_to_has_a_finite_loss():
    solver = ImplicitShifts(sp.maximize(F1), 4, temperature=5.0, memory=0)
    scores, labels = batch(dtype=torch.float32)
    for far in (2.0, 18.5, 19.0, 19.5, 40.0):
        moved = (scores.detach() - far * F.one_hot(torch.tensor(3), 4)).requires_grad_()
        loss = solver(moved, labels.clamp(max=2))
        (slope,) = torch.autograd.grad(loss, moved)
        assert torch.isfinite(slope).all()


@every_solver
def test_one_class_ties_nothing_and_half_precision_are_ordinary(make):
    solver = make()
    solver(*batch(dtype=torch.float32))
    scores, labels = batch(1, dtype=torch.float32)
    ties = torch.zeros_like(scores).detach().requires_grad_()
    far = (1e4 * scores.detach()).requires_grad_()
    half = scores.detach().bfloat16().requires_grad_()
    for leaf, target in ((scores, torch.full_like(labels, 2)), (ties, labels), (far, labels), (half, labels)):
        loss = solver(leaf, target)
        (slope,) = torch.autograd.grad(loss, leaf)
        assert torch.isfinite(loss)
        assert torch.isfinite(slope).all()
        assert slope.dtype == leaf.dtype
    assert solver(torch.zeros(0, 4), torch.zeros(0, dtype=torch.long)).item() == 0


@every_solver
def test_bad_batches_are_refused_and_leave_the_state_alone(make):
    solver = make().double()
    solver(*batch())
    before = state(solver)
    scores, labels = batch(1)
    nan = scores.detach().clone()
    nan[3, 1] = float("nan")
    for s, y, error in (
        (nan, labels, BadScores),
        (scores, labels + 1, BadLabels),
        (scores[:, :3], labels, ShapeMismatch),
        (scores, labels[1:], ShapeMismatch),
    ):
        with pytest.raises(error):
            solver(s, y)
    assert same(before, state(solver))


def test_a_small_batch_gets_its_shifts_and_prices_from_memory():
    problem = sp.minimize(ERROR, cover(0) <= 0.2)
    solver = ImplicitShifts(problem, 4, memory=400, temperature=1.0).double()
    whole, labels = batch(size=404)
    for rows in torch.arange(400).split(4):
        solver(whole[rows], labels[rows])
    (part,) = torch.autograd.grad(solver(whole[400:], labels[400:]), whole)
    lone = ImplicitShifts(problem, 4, memory=0, temperature=1.0).double()
    (full,) = torch.autograd.grad(lone(whole[4:], labels[4:]), whole)
    # A hundredth of the samples, each a hundred times as heavy: on average over batches the gradient of the whole.
    torch.testing.assert_close(part[400:], 100 * full[400:], atol=0.01, rtol=0.05)
    # The same samples, met from another side: the shifts lie between the same two margins.
    assert torch.equal(predict_class(whole[4:], solver.shifts), predict_class(whole[4:], lone.shifts))
    torch.testing.assert_close(solver.prices, lone.prices, atol=1e-2, rtol=0)
    alone = ImplicitShifts(problem, 4, memory=0, temperature=1.0).double()
    alone(whole[400:], labels[400:])
    assert (alone.prices - lone.prices).abs().max() > 0.05


def test_shifts_are_searched_every_so_many_steps_and_prices_at_each():
    solver, seen = ImplicitShifts(sp.minimize(ERROR, cover(1) == 0.5), 4, every=3, memory=0).double(), []
    for seed in range(6):
        solver(*batch(seed))
        seen.append((solver.shifts.tolist(), solver.prices.tolist()))
    assert [a[0] == b[0] for a, b in itertools.pairwise(seen)] == [True, True, False, True, True]
    assert not any(a[1] == b[1] for a, b in itertools.pairwise(seen))


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda: ImplicitShifts(sp.minimize(sp.fnr, sp.fpr <= 0.1), 3), BadProblem),
        (lambda: ImplicitShifts(sp.minimize(ERROR, OfClass(sp.recall, 0) >= 0.1), 3), BadProblem),
        (lambda: ImplicitShifts("minimize fnr", 3), BadProblem),
        (lambda: ImplicitShifts(sp.minimize(ERROR), 1), BadSetting),
        (lambda: ImplicitShifts(sp.minimize(ERROR), 3, temperature=-1.0), BadSetting),
        (lambda: ImplicitShifts(sp.minimize(ERROR), 3, every=0), BadSetting),
        (lambda: sp.evaluate(sp.minimize(ERROR), torch.zeros(0, 3), torch.zeros(0)), BadScores),
    ],
)
def test_what_cannot_be_asked_is_refused(build, error):
    with pytest.raises(error):
        build()


# The world
def cross_entropy(x, labels):
    """Trained to the end, full batch: a control that loses because of what it asks, not for want of effort."""
    model = torch.nn.Linear(x.shape[1], 3)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=200, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        return loss

    optimizer.step(closure)
    return model


def implicit(x, labels, start, problem, seed, steps=200):
    """From cross-entropy, in batches of 512 with memory."""
    model, solver = torch.nn.Linear(x.shape[1], 3), ImplicitShifts(problem, 3, every=5)
    model.load_state_dict(start.state_dict())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    draw = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        rows = torch.randint(len(x), (512,), generator=draw)
        loss = solver(model(x[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model


@slow
@pytest.mark.parametrize("seed", quick_first(range(2)))
def test_two_desks(seed):
    problem = sp.minimize(ERROR, cover(1) <= worlds_of_many.DESK, cover(2) <= worlds_of_many.DESK)
    x, labels = worlds_of_many.two_desks(10_000, seed)
    fresh, truth = worlds_of_many.two_desks(50_000, 1000 + seed)
    plain = cross_entropy(x, labels)
    ours = implicit(x, labels, plain, problem, seed)
    with torch.no_grad():
        lost, won = (sp.evaluate(problem, model(fresh), truth) for model in (plain, ours))
    optimum = worlds_of_many.two_desks_optimum()
    print(f"two desks: optimum {optimum:.4f}, implicit {won.objective:.4f}, cross-entropy {lost.objective:.4f}")
    assert optimum == pytest.approx(0.1266, abs=1e-4)
    assert won.feasible
    assert won.objective <= optimum + 0.005
    assert lost.objective >= optimum + 0.015
