"""One threshold per group in training: the coupled prices against finite differences, and solvers that close a gap."""

import pytest
import torch
from scipy.optimize import minimize as scipy_minimize

import setpoint as sp
from setpoint.measure.sample import Sample
from setpoint.measure.step import SigmoidStep
from setpoint.solve.price import Damping, count_at, count_pace, expand, solve_prices


def fair(size, seed=0):
    draw = torch.Generator().manual_seed(seed)
    codes = (torch.rand(size, generator=draw) < 0.3).long()
    x = torch.randn(size, 2, generator=draw, dtype=torch.float64) + codes.unsqueeze(-1)
    labels = (x[:, 0] + torch.randn(size, generator=draw, dtype=torch.float64) > 0.8).double()
    return x, labels, codes


PARITY = sp.minimize(sp.error, sp.flagged.gap("g") == 0)


@pytest.mark.parametrize("make", [sp.ImplicitThreshold, sp.Lagrangian, sp.losses.ProxyLagrangian])
def test_solvers_close_the_gap(make):
    x, labels, codes = fair(600)
    model = torch.nn.Linear(2, 1).double()
    torch.nn.init.zeros_(model.weight)
    solver = make(PARITY, n_groups=2).double()
    result = sp.fit(model, PARITY, [{"x": x, "labels": labels, "groups": codes}] * 5,
                    [{"x": x, "labels": labels, "groups": codes}], solver, epochs=8,
                    calibration=[{"x": x, "labels": labels, "groups": codes}])  # fmt: skip
    assert result.point.feasible
    best = sp.evaluate(PARITY, x[:, 0], labels, groups=codes)
    assert result.point.objective < best.objective + 0.03


def coupled_world(groups):
    draw = torch.Generator().manual_seed(3)
    size = 40 * groups
    x = torch.randn(size, 3, generator=draw, dtype=torch.float64)
    codes = torch.arange(size) % groups
    labels = (x[:, 0] + 0.4 * codes + torch.randn(size, generator=draw, dtype=torch.float64) > 0.6).double()
    return x, labels, codes, torch.tensor([0.9, -0.4, 0.3], dtype=torch.float64)


def inner_optimum(problem, sample, step, start):
    """The best thresholds under the gap, as an equality, by scipy's SLSQP on the smooth rates."""

    def cost(t):
        leaf = torch.tensor(t, dtype=torch.float64).reshape(1, -1).requires_grad_()
        value = problem.cost(count_at(sample, leaf, step))
        return float(value.detach()), torch.autograd.grad(value, leaf)[0].detach().flatten().numpy()

    def excesses(t):
        leaf = torch.tensor(t, dtype=torch.float64).reshape(1, -1).requires_grad_()
        return problem.excesses(count_at(sample, leaf, step))

    def jacobian(t):
        leaf = torch.tensor(t, dtype=torch.float64).reshape(1, -1).requires_grad_()
        rows = problem.excesses(count_at(sample, leaf, step))
        return torch.stack([torch.autograd.grad(r, leaf, retain_graph=True)[0].flatten() for r in rows]).numpy()

    held = {"type": "eq", "fun": lambda t: excesses(t).detach().numpy(), "jac": jacobian}
    options = {"ftol": 1e-16, "maxiter": 500}
    answer = scipy_minimize(cost, start, jac=True, constraints=[held], method="SLSQP", options=options)
    return torch.tensor(answer.x, dtype=torch.float64).reshape(1, -1), float(answer.fun)


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("factor", [1.0, 0.0, -1.0], ids=["solved", "no price", "sign flipped"])
def test_coupled_prices_give_the_gradient_of_the_resolved_objective(groups, factor):
    gaps = "recall.gap(g) <= 8%" if groups == 2 else "recall.gap(g) <= 8% and fpr <= 25%"
    problem = sp.ask(f"minimize error where {gaps}")
    step = SigmoidStep(1.5)
    x, labels, codes, theta = coupled_world(groups)

    def at(parameters):
        return Sample(x @ parameters, labels, None, codes, groups)

    start, _ = inner_optimum(problem, at(theta), step, [0.1 * (g + 1) for g in range(groups)])

    def resolved(parameters):
        return inner_optimum(problem, at(parameters), step, start.flatten().numpy())[1]

    axes = torch.eye(3, dtype=torch.float64) * 1e-4
    slopes = [(resolved(theta + e) - resolved(theta - e)) / 2e-4 for e in axes]
    expected = torch.tensor(slopes, dtype=torch.float64)
    leaf = theta.clone().requires_grad_()
    sample = at(leaf)
    counts = count_at(sample, start, step)
    here = expand(problem, counts)
    by_threshold = here.by_threshold(count_pace(sample.detach(), start, step))
    active = torch.ones(len(problem.bounds), dtype=torch.bool)
    prices = factor * solve_prices(*by_threshold, active, Damping(1e-9, 1e9))
    (found,) = torch.autograd.grad(here.loss(prices, counts, torch.tensor(1.0).double()), leaf)
    distance = float((found - expected).norm() / expected.norm())
    assert distance <= 1e-6 if factor == 1.0 else distance > 1e-2


def test_a_group_absent_from_a_batch_is_ordinary():
    problem = sp.ask("minimize error where recall.gap(sex) <= 5%")
    solver = sp.ImplicitThreshold(problem, n_groups=3)
    draw = torch.Generator().manual_seed(0)
    for present in (torch.tensor([0, 1, 2]), torch.tensor([0]), torch.tensor([1, 2])):
        scores = torch.randn(30, generator=draw).requires_grad_()
        labels = (torch.rand(30, generator=draw) < 0.5).float()
        loss = solver(scores, labels, groups=present[torch.randint(len(present), (30,), generator=draw)])
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(scores.grad).all()
    assert solver.thresholds.shape == (1, 3)
