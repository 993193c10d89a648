"""Each part of the algorithm, switched and tested alone."""

import pytest
import torch
from torch import nn

import setpoint as sp
from setpoint.errors import BadProblem, BadSetting
from setpoint.measure.count import count
from setpoint.measure.sample import Sample
from setpoint.measure.step import SigmoidStep
from setpoint.solve.correction import find_soft
from setpoint.solve.price import count_at

PROBLEM = sp.ask("minimize fnr where fpr <= 20%")


def batch(seed, size=60):
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(size, generator=draw) < 0.4).double()
    return torch.randn(size, generator=draw, dtype=torch.float64) + labels, labels


def test_the_correction_uses_the_latest_batches_that_came_since_it_was_due():
    solver = sp.ImplicitThreshold(PROBLEM, correction=sp.losses.Correction(every=5, latest=3), temperature=1.0).double()
    found = []
    for seed in range(9):
        solver(*batch(seed))
        found.append(solver.thresholds.item())
    assert found[0] == found[1] != found[2] == found[3] == found[6] != found[7] == found[8]
    for last in (2, 7):
        recent = [batch(seed) for seed in range(last - 2, last + 1)]
        scores, labels = (torch.cat(parts) for parts in zip(*recent))
        assert found[last] == pytest.approx(sp.evaluate(PROBLEM, scores, labels).threshold)


def test_the_latest_batches_must_all_be_remembered():
    """Batches of 512, ten of them: 5,120 scores, where memory holds 2,048 unless it is told to hold more."""
    ten = [batch(seed, size=512) for seed in range(10)]
    correction = sp.losses.Correction(every=10, latest=10)
    with pytest.raises(BadSetting, match="needs memory=5120 or more, but memory holds 2048"):
        sp.ImplicitThreshold(PROBLEM, correction=correction)(*ten[0])
    solver = sp.ImplicitThreshold(PROBLEM, correction=correction, memory=5120).double()
    for one in ten:
        solver(*one)
    scores, labels = (torch.cat(parts) for parts in zip(*ten))
    assert solver.thresholds.item() == sp.evaluate(PROBLEM, scores, labels).threshold


@pytest.mark.parametrize("ask", ["minimize fnr where fpr <= 20%", "maximize precision over recall in [70%, 95%]"])
def test_soft_correction_meets_the_smooth_rates_exactly(ask):
    problem, step = sp.ask(ask), SigmoidStep(2.0)
    sample = Sample(*batch(0))
    thresholds = find_soft(problem, sample, step)
    assert problem.excesses(count_at(sample, thresholds, step)).abs().max() < 1e-12
    solver = sp.ImplicitThreshold(
        problem, correction=sp.losses.Correction(soft=True), temperature=2.0, memory=0
    ).double()
    solver(*batch(0))
    torch.testing.assert_close(solver.thresholds, thresholds)


def test_true_correction_meets_the_true_rates():
    solver = sp.ImplicitThreshold(PROBLEM, memory=0).double()
    scores, labels = batch(0)
    solver(scores, labels)
    assert (scores[labels == 0] > solver.thresholds).double().mean() <= 0.2


@pytest.mark.parametrize("ask", ["maximize f1", "maximize recall where precision >= 50%",
                                 "maximize recall where fpr <= 10% and precision >= 5%"])  # fmt: skip
def test_soft_correction_needs_a_bound_with_a_root(ask):
    with pytest.raises(BadProblem, match="one bound a threshold"):
        sp.ImplicitThreshold(sp.ask(ask), correction=sp.losses.Correction(soft=True))(*batch(0))


def test_between_corrections_the_threshold_follows_the_model():
    """After a small step, the followed threshold is the re-solved one to second order; a held one to first."""
    torch.manual_seed(0)
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(300, 4, generator=draw, dtype=torch.float64)
    labels = (x[:, 0] > 0.3).double()
    step = SigmoidStep(1.0)
    errors = {}
    for rate in (1e-2, 1e-3):
        for followed in (True, False):
            torch.manual_seed(0)
            model = nn.Linear(4, 1).double()
            settings = {"correction": sp.losses.Correction(every=100, soft=True), "temperature": 1.0, "memory": 0}
            solver = sp.ImplicitThreshold(PROBLEM, **settings).double()
            optimizer = torch.optim.SGD(model.parameters(), lr=rate)
            if followed:
                solver.follow(optimizer)
            loss = solver(model(x).squeeze(-1), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            resolved = find_soft(PROBLEM, Sample(model(x).squeeze(-1).detach(), labels), step)
            errors[rate, followed] = float((solver.thresholds - resolved).abs())
    assert errors[1e-2, True] < 0.1 * errors[1e-2, False]
    assert errors[1e-3, True] < 0.02 * errors[1e-2, True]
    assert errors[1e-3, False] > 0.05 * errors[1e-2, False]


def test_following_is_refused_where_it_means_nothing():
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    with pytest.raises(BadSetting, match=r"correction\.every"):
        sp.ImplicitThreshold(PROBLEM).follow(optimizer)
    with pytest.raises(BadSetting, match="one bound a threshold"):
        sp.ImplicitThreshold(sp.ask("maximize f1"), correction=sp.losses.Correction(every=5)).follow(optimizer)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("ask", ["minimize fnr where fpr <= 20%", "maximize precision over recall in [70%, 95%]"])
def test_the_slope_penalty_is_the_squared_derivative_of_the_excesses_by_their_thresholds(ask, temperature):
    """Its value and its gradient by the scores, against finite differences in the thresholds."""
    problem, (scores, labels) = sp.ask(ask), batch(0)
    settings = {"memory": 0, "temperature": temperature}
    plain = sp.ImplicitThreshold(problem, **settings).double()
    penalised = sp.ImplicitThreshold(problem, **settings, slope_penalty=0.05).double()
    leaf = scores.clone().requires_grad_()
    difference = penalised(leaf, labels) - plain(leaf, labels)

    def by_differences(scores):
        sample, step, h = Sample(scores, labels), SigmoidStep(temperature), 1e-5
        up, down = (problem.excesses(count_at(sample, plain.thresholds + move, step)) for move in (h, -h))
        return 0.05 * ((up - down) / (2 * h)).square().sum()

    assert difference.item() == pytest.approx(by_differences(scores).item(), rel=1e-6)
    own, expected = (torch.autograd.grad(one, leaf)[0] for one in (difference, by_differences(leaf)))
    torch.testing.assert_close(own, expected, rtol=1e-4, atol=1e-9)


def test_the_price_is_clipped_and_the_slope_floored():
    scores, labels = batch(0)
    clipped = sp.ImplicitThreshold(PROBLEM, memory=0, damping=sp.losses.Damping(price_limit=0.5)).double()
    clipped(scores, labels)
    assert clipped.prices.item() == 0.5
    floored = sp.ImplicitThreshold(PROBLEM, memory=0, damping=sp.losses.Damping(slope_floor=1e3)).double()
    floored(scores, labels)
    assert abs(floored.prices.item()) < 1e-6


def test_a_slack_variable_shrinks_to_zero_where_the_bound_costs_and_grows_where_it_does_not():
    scores, labels = batch(0, size=400)
    for ask, grows in (("minimize fnr where fpr <= 20%", False), ("minimize fpr where fpr <= 20%", True)):
        solver = sp.ImplicitThreshold(
            sp.ask(ask), correction=sp.losses.Correction(slack=sp.losses.Slack(rate=0.01)), memory=0, temperature=2.0
        ).double()
        solver.slacks.fill_(0.05)
        for _ in range(20):
            solver(scores, labels)
        slack = solver.slacks.item()
        assert slack > 0.15 if grows else slack == 0
        reached = (scores[labels == 0] > solver.thresholds).double().mean()
        assert reached == pytest.approx(0.2 - slack, abs=0.02)


def test_slack_never_leaves_the_range_of_the_rate():
    solver = sp.ImplicitThreshold(
        sp.ask("minimize fpr where fpr <= 20%"),
        correction=sp.losses.Correction(slack=sp.losses.Slack(rate=10.0)),
        memory=0,
    ).double()
    for _ in range(5):
        solver(*batch(0))
    assert 0 <= solver.slacks.item() <= 0.2


@pytest.mark.parametrize(
    "ask",
    [
        "minimize fnr where fpr <= 20% and recall >= 30%",
        "minimize fnr where recall >= 30% and fpr <= 20%",
        "minimize fnr where flagged <= 90% and recall >= 30% and fpr <= 20%",
        "minimize error where recall >= 5% and flagged <= 95% and fpr <= 90%",
    ],
)
def test_a_slack_each_ends_at_the_best_feasible_cut(ask):
    """The bound in force ends without slack, the others with what their equations leave."""
    problem, (scores, labels) = sp.ask(ask), batch(0, size=400)
    solver = sp.ImplicitThreshold(
        problem, correction=sp.losses.Correction(slack=sp.losses.Slack(rate=0.02)), memory=0, temperature=3.0
    ).double()
    for _ in range(300):
        solver(scores, labels)
        counts = count(scores, labels, solver.thresholds)
        assert problem.excesses(counts).max() <= 1e-9, "every bound holds at every step"
    torch.testing.assert_close(-problem.excesses(counts), solver.slacks.double(), atol=0.02, rtol=0)
    best = sp.evaluate(problem, scores, labels)
    assert float(problem.objective(counts)[0]) <= best.objective + 0.02
    assert (solver.slacks.min() == 0) == ask.startswith("minimize fnr")


def test_bounds_that_no_cut_meets_have_the_flat_price_with_slack_too():
    problem = sp.ask("minimize fnr where fpr <= 1% and recall >= 99%")
    solver = sp.ImplicitThreshold(problem, correction=sp.losses.Correction(slack=sp.losses.Slack()), memory=0).double()
    solver(*batch(0))
    assert 10.0 in solver.prices.tolist()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: sp.losses.Correction(every=0), "every >= 1"),
        (lambda: sp.losses.Correction(every=3, latest=4), "latest <= every"),
        (lambda: sp.losses.Correction(every=3, latest=2, batches=2), "not on both"),
        (
            lambda: sp.ImplicitThreshold(PROBLEM, correction=sp.losses.Correction(9, latest=2), memory=0),
            "memory holds 0",
        ),
        (lambda: sp.losses.Slack(rate=0.0), "rate must be above 0"),
        (
            lambda: sp.ImplicitThreshold(
                sp.ask("maximize f1"), correction=sp.losses.Correction(slack=sp.losses.Slack())
            ),
            "inequalities alone",
        ),
        (
            lambda: sp.ImplicitThreshold(
                sp.ask("minimize fnr where fpr == 5%"), correction=sp.losses.Correction(slack=sp.losses.Slack())
            ),
            "inequalities alone",
        ),
        (
            lambda: sp.losses.Correction(soft=True, slack=sp.losses.Slack()),
            "soft=True",
        ),
        (lambda: sp.ImplicitThreshold(PROBLEM, slope_penalty=-1.0), "slope_penalty"),
    ],
)
def test_bad_choices_are_refused_by_name(make, says):
    with pytest.raises((BadSetting, BadProblem), match=says):
        make()
