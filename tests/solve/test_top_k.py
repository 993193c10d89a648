"""Precision and recall at k with one threshold a query: thresholds, prices, gradients, and a world of 200 queries."""

import pytest
import torch
from scipy.optimize import brentq
from torch.nn import functional as F

import setpoint as sp
import worlds_of_many
from setpoint.errors import BadLabels, BadProblem, BadScores, BadSetting, BadWeights, ShapeMismatch
from setpoint.measure.ranking import precision_at_k, recall_at_k
from setpoint.measure.step import SigmoidStep
from setpoint.solve.top_k import ImplicitTopK, price_top_k, top_k_thresholds

K = 3
JUDGES = {"precision": (sp.precision, precision_at_k), "recall": (sp.recall, recall_at_k)}
both_rates = pytest.mark.parametrize(("rate", "judge"), JUDGES.values(), ids=JUDGES)


def lists(seed=0, queries=12, documents=9):
    """Lists of 4 to 9 documents, some relevant, some not."""
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(queries, documents, 3, generator=draw, dtype=torch.float64)
    mask = torch.arange(documents) < torch.randint(K + 1, documents + 1, (queries, 1), generator=draw)
    labels = (x[..., 0] + torch.randn(queries, documents, generator=draw) > 0.3).double() * mask
    theta = torch.tensor([0.8, -0.3, 0.5], dtype=torch.float64)
    return x, labels, mask, theta


def slow_threshold(row, present):
    ranked = sorted((s for s, p in zip(row.tolist(), present.tolist()) if p), reverse=True)
    return (ranked[K - 1] + ranked[K]) / 2 if len(ranked) > K else float("-inf")


def test_thresholds_lie_half_way_between_rank_k_and_the_next():
    x, _, mask, theta = lists()
    mask[0, 2:] = False
    scores = (x @ theta).masked_fill(~mask, 1e9)
    found = top_k_thresholds(scores, K, mask)
    assert found.tolist() == [slow_threshold(row, present) for row, present in zip(scores, mask)]
    passing = ((scores > found[:, None]) & mask).sum(1)
    assert passing.tolist() == mask.sum(1).clamp(max=K).tolist()
    assert top_k_thresholds(scores[:, :K], K, mask[:, :K]).tolist() == [float("-inf")] * 12
    assert top_k_thresholds(torch.ones(1, 5), K, torch.ones(1, 5, dtype=torch.bool)).tolist() == [1.0]


def soft_thresholds(scores, mask, step):
    """The thresholds that k documents softly pass, query by query, by scipy's root finder."""
    found = []
    for row, present in zip(scores, mask):
        excess = lambda t, docs=row[present]: float(step.above(docs - t).sum()) - K
        found.append(brentq(excess, float(row.min()) - 60, float(row.max()) + 60, xtol=1e-14, rtol=1e-14))
    return torch.tensor(found, dtype=torch.float64)


def resolved(rate, step, x, labels, mask, theta):
    scores = x @ theta
    margin = scores - soft_thresholds(scores, mask, step)[:, None]
    above, below = step.above(margin) * mask, step.below(margin) * mask
    counts = [above * labels, above * (1 - labels), below * labels, below * (1 - labels)]
    return -float(rate(torch.stack([part.sum(1) for part in counts], dim=-1)).mean())


def finite_differences(rate, step, x, labels, mask, theta, width=1e-5):
    axes = torch.eye(3, dtype=torch.float64) * width
    ends = [[resolved(rate, step, x, labels, mask, theta + s * e) for s in (1, -1)] for e in axes]
    return torch.tensor([(up - down) / (2 * width) for up, down in ends], dtype=torch.float64)


def implicit_gradient(rate, step, x, labels, mask, theta, factor=1.0):
    leaf = theta.clone().requires_grad_()
    scores = x @ leaf
    thresholds = soft_thresholds(scores.detach(), mask, step)
    losses, prices = price_top_k(rate, K, scores, labels, mask, thresholds, step, floor=1e-12)
    passing = (step.above(scores - thresholds[:, None]) * mask).sum(1)
    losses = losses + (factor - 1) * prices * (passing - K)
    (gradient,) = torch.autograd.grad(losses.mean(), leaf)
    return gradient


@both_rates
@pytest.mark.parametrize("step", [SigmoidStep(1.3), SigmoidStep(5.0)], ids=str)
def test_the_gradient_is_that_of_the_rate_at_thresholds_solved_anew(rate, judge, step):
    expected = finite_differences(rate, step, *lists())
    found = implicit_gradient(rate, step, *lists())
    assert (found - expected).norm() <= 1e-6 * expected.norm()
    for factor in (0.0, -1.0):
        wrong = implicit_gradient(rate, step, *lists(), factor)
        assert (wrong - expected).norm() > 1e-2 * expected.norm()


@both_rates
def test_at_high_temperature_the_loss_is_the_true_rate_and_short_lists_count_as_they_are_judged(rate, judge):
    x, labels, mask, theta = lists()
    mask[0, 2:] = False
    mask[1] = False
    mask[2, K:] = False
    labels[0] = 1
    labels[3] = 0
    labels[4] = 1
    scores = (x @ theta).masked_fill(~mask, float("nan"))
    labels = labels.masked_fill(~mask, 7)
    loss = ImplicitTopK(rate, K, temperature=1e6).double()(scores, labels, mask)
    judged = judge(scores.nan_to_num(), labels, K, mask)
    assert float(loss) == pytest.approx(-float(judged[mask.any(1)].mean()), abs=1e-9)


@both_rates
def test_queries_that_nothing_can_change_move_nothing(rate, judge):
    x, labels, mask, theta = lists()
    mask[0, K:] = False
    labels[1], labels[2] = 0, 1
    mask[3] = False
    scores = (x @ theta).requires_grad_()
    (slope,) = torch.autograd.grad(ImplicitTopK(rate, K).double()(scores, labels, mask), scores)
    assert slope[:4].abs().max() <= 1e-9
    assert (slope[4:].abs().sum(1) > 1e-6).sum() >= 6
    assert slope[~mask].abs().max() == 0
    # A place is taken from another document of the same query: what rises and what falls is in balance.
    assert slope.sum(1).abs().max() <= 1e-9


def test_neither_the_order_nor_a_number_added_to_a_query_nor_padding_matters():
    x, labels, mask, theta = lists()
    scores = (x @ theta).requires_grad_()
    (there,) = torch.autograd.grad(ImplicitTopK(sp.precision, K).double()(scores, labels, mask), scores)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(1))
    moved = (scores.detach() + torch.arange(12).double()[:, None])[:, order].masked_fill(~mask[:, order], float("inf"))
    moved.requires_grad_()
    loss = ImplicitTopK(sp.precision, K).double()(moved, labels[:, order], mask[:, order])
    (here,) = torch.autograd.grad(loss, moved)
    torch.testing.assert_close(here, there[:, order])


def test_a_weight_is_a_repetition_of_the_query():
    x, labels, mask, theta = lists()
    repeats = torch.tensor([0, 1, 2, 3] * 3)
    weighted = ImplicitTopK(sp.precision, K, temperature=2.0).double()(x @ theta, labels, mask, weights=repeats)
    again = [part.repeat_interleave(repeats, 0) for part in (x @ theta, labels, mask)]
    torch.testing.assert_close(weighted, ImplicitTopK(sp.precision, K, temperature=2.0).double()(*again))


def test_the_gradient_is_that_of_the_loss_and_eval_changes_no_state():
    x, labels, mask, theta = lists()
    solver = ImplicitTopK(sp.precision, K).double()
    solver.eval()
    solver(x @ theta, labels, mask)
    assert float(solver.temperature) == 0
    solver.train()
    solver(x @ theta, labels, mask)
    assert float(solver.temperature) > 0
    assert float(solver.mean_price) != 0
    scores = (x @ theta).requires_grad_()
    (found,) = torch.autograd.grad(solver(scores, labels, mask), scores)
    # With thresholds and prices held: the slope of the step times what a place is worth.
    thresholds, step = top_k_thresholds(scores, K, mask), SigmoidStep(solver.temperature)
    held = lambda s: price_top_k(sp.precision, K, s, labels, mask, thresholds, step)
    prices = held(scores.detach())[1]
    soft = lambda s: (step.above(s - thresholds[:, None]) * mask).sum(1)
    hits = lambda s: (step.above(s - thresholds[:, None]) * mask * labels).sum(1)
    loss = lambda s: (-hits(s) / soft(s) + prices * (soft(s) - K)).mean()
    (expected,) = torch.autograd.grad(loss(scores), scores)
    torch.testing.assert_close(found, expected, atol=1e-8, rtol=1e-4)


def test_ties_empty_batches_and_half_precision_are_ordinary():
    solver = ImplicitTopK(sp.precision, K)
    labels = torch.tensor([[1.0, 0, 0, 0, 1], [0, 0, 1, 0, 0]])
    ties = torch.zeros(2, 5, requires_grad=True)
    (slope,) = torch.autograd.grad(solver(ties, labels), ties)
    assert torch.isfinite(slope).all()
    assert bool((slope[labels > 0] < 0).all())
    assert bool((slope[labels == 0] > 0).all())
    half = torch.randn(2, 5, generator=torch.Generator().manual_seed(0)).bfloat16().requires_grad_()
    (slope,) = torch.autograd.grad(solver(half, labels), half)
    assert slope.dtype == torch.bfloat16
    assert torch.isfinite(slope).all()
    assert solver(torch.zeros(0, 5), torch.zeros(0, 5)).item() == 0
    assert solver(torch.zeros(2, 0), torch.zeros(2, 0)).item() == 0
    assert solver(torch.zeros(2, 5), labels, torch.zeros(2, 5, dtype=torch.bool)).item() == 0


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda s, y: ((s[0], y[0]), {}), ShapeMismatch),
        (lambda s, y: ((s, y[:, 1:]), {}), ShapeMismatch),
        (lambda s, y: ((s, y, torch.ones_like(s)), {}), BadSetting),
        (lambda s, y: ((s, 2 * y), {}), BadLabels),
        (lambda s, y: ((s * float("nan"), y), {}), BadScores),
        (lambda s, y: ((s.long(), y), {}), BadScores),
        (lambda s, y: ((s, y), {"weights": torch.ones(3)}), ShapeMismatch),
        (lambda s, y: ((s, y), {"weights": -torch.ones(12)}), BadWeights),
    ],
    ids=["flat", "labels", "mask", "grades", "nan", "whole", "weights", "negative"],
)
def test_bad_batches_are_refused(spoil, error):
    x, labels, _, theta = lists()
    arguments, named = spoil(x @ theta, labels)
    with pytest.raises(error):
        ImplicitTopK(sp.precision, K).double()(*arguments, **named)


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda: ImplicitTopK("precision", 3), BadProblem),
        (lambda: ImplicitTopK(sp.precision, 0), BadSetting),
        (lambda: ImplicitTopK(sp.precision, 2.5), BadSetting),
        (lambda: ImplicitTopK(sp.precision, 3, temperature=0.0), BadSetting),
    ],
)
def test_bad_settings_are_refused(build, error):
    with pytest.raises(error):
        build()


# The world


def pointwise(x, labels, mask):
    """Cross-entropy of each document by itself, trained to the end."""
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=200, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(x).squeeze(-1)[mask], labels[mask])
        loss.backward()
        return loss

    optimizer.step(closure)
    return model


def implicit(x, labels, mask, start):
    model, solver = torch.nn.Linear(2, 1), ImplicitTopK(sp.precision, 5)
    model.load_state_dict(start)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(200):
        loss = solver(model(x).squeeze(-1), labels, mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("warm", [True, False], ids=["from cross-entropy", "cold"])
def test_drifting_queries(seed, warm):
    torch.manual_seed(seed)
    world = worlds_of_many.drifting_queries(200, seed)
    x, labels, mask = worlds_of_many.drifting_queries(2000, 1000 + seed)
    plain = pointwise(*world)
    start = plain.state_dict() if warm else torch.nn.Linear(2, 1).state_dict()
    reached = {}
    for name, model in (("cross-entropy", plain), ("implicit", implicit(*world, start))):
        with torch.no_grad():
            reached[name] = float(precision_at_k(model(x).squeeze(-1), labels, 5, mask).mean())
    optimum = worlds_of_many.drifting_queries_optimum(labels)
    print(f"drifting queries: precision at 5, optimum {optimum:.4f}, {reached}")
    assert reached["implicit"] >= optimum - 0.01
    assert reached["cross-entropy"] <= optimum - 0.15


def test_thousands_of_queries_take_one_pass():
    """No loop over queries: the number of tensor operations does not depend on how many there are."""
    calls = []
    for queries in (3, 3000):
        x, labels, mask, theta = lists(queries=queries)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            ImplicitTopK(sp.precision, K, temperature=1.0).double()(x @ theta, labels, mask)
        calls.append(sum(event.count for event in profile.key_averages()))
    assert calls[1] <= calls[0] + 5
