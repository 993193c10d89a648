"""The gradient of the implicit loss against finite differences through thresholds that are solved anew."""

import pytest
import torch
from scipy.optimize import brentq

import setpoint as sp
from setpoint.measure.count import count
from setpoint.measure.sample import Sample
from setpoint.measure.step import HingeStep, SigmoidStep, SoftplusStep
from setpoint.solve.price import Damping, count_and_pace, count_at, count_pace, expand, expand_around, solve_prices

PROBLEMS = [
    "minimize fnr where fpr <= 10%",
    "maximize precision where recall >= 80%",
    "maximize recall over fpr in [2%, 30%] with 5 points",
    "maximize precision over recall in [60%, 95%] with 5 points",
    "maximize precision where flagged == 20%",
]


def world(seed=0, size=60):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(size, 3, generator=draw, dtype=torch.float64)
    labels = (x[:, 0] + torch.randn(size, generator=draw, dtype=torch.float64) > 0.5).double()
    weights = torch.rand(size, generator=draw, dtype=torch.float64) + 0.5
    theta = torch.tensor([0.8, -0.3, 0.5], dtype=torch.float64)
    return x, labels, weights, theta


def soft_roots(problem, sample, step):
    """Thresholds at which the soft rates meet their bounds exactly, by scipy's root finder."""

    def excess(t, bound):
        counts = count(sample.scores, sample.labels, t, step, weights=sample.weights)
        return float(bound.quantity(counts)) - bound.bound

    edges = float(sample.scores.min()) - 50, float(sample.scores.max()) + 50
    roots = [brentq(excess, *edges, args=(b,), xtol=1e-14, rtol=1e-14) for b in problem.bounds]
    return torch.tensor(roots, dtype=torch.float64)


def implicit_gradient(problem, step, x, labels, weights, theta, factor=1.0):
    theta = theta.clone().requires_grad_()
    sample = Sample(x @ theta, labels, weights)
    thresholds = soft_roots(problem, sample.detach(), step)
    here = expand(problem, count_at(sample, thresholds, step))
    slopes = here.by_threshold(count_pace(sample.detach(), thresholds, step))
    active = torch.ones(len(problem.bounds), dtype=torch.bool)
    prices = factor * solve_prices(*slopes, active, Damping(1e-9, 1e9))
    loss = here.loss(prices, count_at(sample, thresholds, step), torch.tensor(1.0).double())
    (gradient,) = torch.autograd.grad(loss, theta)
    return gradient


def finite_differences(problem, step, x, labels, weights, theta, width=1e-5):
    def resolved(at):
        sample = Sample(x @ at, labels, weights)
        return float(problem.cost(count_at(sample, soft_roots(problem, sample, step), step)))

    axes = torch.eye(len(theta), dtype=torch.float64) * width
    slopes = [(resolved(theta + e) - resolved(theta - e)) / (2 * width) for e in axes]
    return torch.tensor(slopes, dtype=torch.float64)


@pytest.mark.parametrize("text", PROBLEMS)
@pytest.mark.parametrize("step", [SigmoidStep(1.3), SigmoidStep(4.0), SoftplusStep(0.7), HingeStep(0.9)], ids=str)
def test_the_gradient_is_that_of_the_resolved_objective(text, step):
    problem = sp.ask(text)
    x, labels, weights, theta = world()
    expected = finite_differences(problem, step, x, labels, weights, theta)
    found = implicit_gradient(problem, step, x, labels, weights, theta)
    assert (found - expected).norm() <= 1e-6 * expected.norm()


@pytest.mark.parametrize("text", PROBLEMS)
@pytest.mark.parametrize("factor", [0.0, -1.0])
def test_without_its_price_or_with_its_sign_flipped_the_gradient_is_wrong(text, factor):
    problem, step = sp.ask(text), SigmoidStep(1.3)
    x, labels, weights, theta = world()
    expected = finite_differences(problem, step, x, labels, weights, theta)
    wrong = implicit_gradient(problem, step, x, labels, weights, theta, factor)
    assert (wrong - expected).norm() > 1e-2 * expected.norm()


def test_the_best_threshold_is_held_when_there_is_no_bound():
    """At an inner optimum over the threshold the plain gradient is already the total one."""
    problem, step = sp.ask("maximize f1"), SigmoidStep(1.3)
    x, labels, weights, theta = world()

    def best(at):
        sample = Sample(x @ at, labels, weights)
        t = torch.zeros(1, dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.LBFGS(
            [t], max_iter=200, tolerance_grad=1e-14, tolerance_change=0, line_search_fn="strong_wolfe"
        )

        def closure():
            optimizer.zero_grad()
            cost = problem.cost(count_at(sample, t, step))
            cost.backward()
            return cost

        optimizer.step(closure)
        return t.detach(), float(problem.cost(count_at(sample, t.detach(), step)))

    axes = torch.eye(3, dtype=torch.float64) * 1e-4
    slopes = [(best(theta + e)[1] - best(theta - e)[1]) / 2e-4 for e in axes]
    expected = torch.tensor(slopes, dtype=torch.float64)
    leaf = theta.clone().requires_grad_()
    sample = Sample(x @ leaf, labels, weights)
    counts = count_at(sample, best(theta)[0], step)
    none = torch.zeros(0, dtype=torch.float64)
    loss = expand(problem, counts).loss(none, counts, torch.tensor(1.0).double())
    (found,) = torch.autograd.grad(loss, leaf)
    assert (found - expected).norm() <= 1e-6 * expected.norm()


def test_prices_of_more_bounds_than_thresholds_solve_the_system_with_least_effort():
    cost = torch.tensor([2.0, -1.0]).double()
    slopes = torch.tensor([[1.0, 0.5], [0.0, 1.0], [2.0, -1.0]]).double()
    active = torch.tensor([True, True, True])
    prices = solve_prices(cost, slopes, active, Damping(1e-8, 1e9))
    torch.testing.assert_close(slopes.T @ prices, -cost, atol=1e-6, rtol=0)
    torch.testing.assert_close(prices, -torch.linalg.pinv(slopes.T) @ cost, atol=1e-6, rtol=0)


def test_prices_are_zero_where_nothing_binds_and_bounded_where_the_slope_vanishes():
    cost, slopes = torch.tensor([1.0]).double(), torch.tensor([[0.5], [1e-300]]).double()
    assert solve_prices(cost, slopes, torch.tensor([False, False]), Damping(1e-6, 1e3)).tolist() == [0, 0]
    assert solve_prices(cost, slopes, torch.tensor([False, True]), Damping(1e-6, 1e3)).tolist() == [0, 0]
    steep = solve_prices(cost, torch.tensor([[1e-5]]).double(), torch.tensor([True]), Damping(1e-9, 1e3))
    assert steep.tolist() == [-1e3]


def test_a_small_batch_gets_the_gradient_of_the_whole_on_average():
    """The loss is linear in the batch's counts: batch gradients average to the full one even for precision."""
    problem, step = sp.ask("maximize precision where recall >= 80%"), SigmoidStep(1.3)
    x, labels, weights, theta = world()
    scores = (x @ theta).requires_grad_()
    whole = Sample(scores, labels, weights)
    thresholds = soft_roots(problem, whole.detach(), step)
    here = expand(problem, count_at(whole, thresholds, step))
    slopes = here.by_threshold(count_pace(whole.detach(), thresholds, step))
    prices = solve_prices(*slopes, torch.tensor([True]), Damping(1e-9, 1e9))
    loss = here.loss(prices, count_at(whole, thresholds, step), torch.tensor(1.0).double())
    (full,) = torch.autograd.grad(loss, scores)
    mean = torch.zeros_like(full)
    for rows in torch.arange(60).split(6):
        part = Sample(scores[rows], labels[rows], weights[rows])
        share = part.mass / whole.mass
        loss = here.loss(prices, count_at(part, thresholds, step), share)
        mean += share * torch.autograd.grad(loss, scores)[0]
    torch.testing.assert_close(mean, full)


@pytest.mark.parametrize("step", [SoftplusStep(0.7), HingeStep(0.9)], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_rates_of_steps_that_do_not_add_up_are_shares_of_the_class(step, weighted):
    draw = torch.Generator().manual_seed(0)
    scores, labels = torch.randn(40, generator=draw).double(), (torch.arange(40) % 3 == 0).double()
    weights = torch.rand(40, generator=draw).double() if weighted else None
    sample, problem = Sample(scores, labels, weights), sp.minimize(sp.fnr, sp.fpr <= 0.1)
    here = expand_around(problem, count_at(sample, torch.tensor([0.2]).double(), step), sample, step)
    each = torch.ones(40).double() if weights is None else weights
    positives, negatives = (each * labels).sum(), (each * (1 - labels)).sum()
    missed = (each * labels * step.below(scores - 0.2)).sum()
    flagged = (each * (1 - labels) * step.above(scores - 0.2)).sum()
    torch.testing.assert_close(here.cost, missed / positives)
    torch.testing.assert_close(here.excesses, (flagged / negatives - 0.1).view(1))
    torch.testing.assert_close(here.cost_slope, torch.tensor([[0, 0, 1 / float(positives), 0]]).double())


@pytest.mark.parametrize("step", [SigmoidStep(1.3), SoftplusStep(0.7), HingeStep(0.9)], ids=str)
def test_counts_and_their_pace_come_together_as_they_come_apart(step):
    draw = torch.Generator().manual_seed(1)
    sample = Sample(torch.randn(30, generator=draw), (torch.arange(30) % 2).float(), torch.rand(30, generator=draw))
    thresholds = torch.tensor([-0.5, 0.1, 2.0])
    counts, pace = count_and_pace(sample, thresholds, step)
    torch.testing.assert_close(counts, count_at(sample, thresholds, step))
    torch.testing.assert_close(pace, count_pace(sample, thresholds, step))
