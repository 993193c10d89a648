import pytest
import torch

import setpoint as sp
from setpoint.data.rows import Rows
from setpoint.errors import BadScores
from setpoint.solve.correction import Correction
from setpoint.solve.implicit import ImplicitThreshold
from setpoint.train.lean import LeanLoss, is_lean
from setpoint.train.linear import SEARCH_EVERY, Anchor, match, refine

ASKS = [
    "minimize fnr where fpr <= 5%",
    "maximize recall where tnr >= 97%",
    "maximize precision where recall >= 95%",
    "maximize precision where flagged == 10%",
    "maximize f1",
    "minimize error where recall >= 2%",
    "maximize recall where precision >= 80% and flagged <= 30%",
    "minimize fnr where fpr <= 10% and precision >= 100% and recall >= 99%",
    "maximize recall over fpr in [0%, 10%]",
    "maximize precision over recall in [80%, 100%] with 3 points",
    "maximize recall over fpr in [0%, 2%] with 1 points",
]


def rows(size=300, features=4, weighted=False, seed=0):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(size, features, generator=draw, dtype=torch.float64)
    noise = torch.randn(size, generator=draw, dtype=torch.float64)
    labels = (x[:, 0] + x[:, 1] + noise > 1).double()
    # Rows that score alike, in both classes.
    x[: size // 10] = x[size // 10 : 2 * (size // 10)]
    x = torch.cat([x, torch.ones(size, 1, dtype=torch.float64)], dim=1)
    weights = 0.1 + torch.rand(size, generator=draw, dtype=torch.float64) if weighted else torch.ones_like(labels)
    return Rows(x, labels, weights / weights.mean())


def solver_of(problem):
    solver = ImplicitThreshold(problem, temperature=1.0, memory=0, correction=Correction(every=SEARCH_EVERY))
    return solver.double().across(False)


def by_autograd(solver, data, scores):
    scores = scores.clone().requires_grad_()
    loss = solver.judged(data.sample(scores), None)
    return loss.item(), torch.autograd.grad(loss, scores)[0]


def assert_equal(mine, theirs):
    assert mine[0] == pytest.approx(theirs[0], rel=1e-10, abs=1e-12)
    assert float((mine[1] - theirs[1]).norm()) <= 1e-10 * float(theirs[1].norm())
    assert float(theirs[1].norm()) > 0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ask", ASKS)
def test_loss_and_gradient_are_those_of_the_solver(ask, weighted):
    problem = sp.ask(ask)
    for seed in range(3):
        data = rows(weighted=weighted, seed=seed)
        at = torch.randn(2, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        assert is_lean(problem, data)
        lean, solver = LeanLoss(problem, data), solver_of(problem)
        lean.search(data.x @ at[0])
        assert_equal(lean(data.x @ at[0]), by_autograd(solver, data, data.x @ at[0]))
        assert lean.thresholds.flatten().tolist() == solver.thresholds.tolist()
        # Between two searches the thresholds are held, and the prices are not.
        assert_equal(lean(data.x @ at[1]), by_autograd(solver, data, data.x @ at[1]))


def test_a_bound_that_no_threshold_meets_has_the_price_of_a_broken_one():
    problem, data = sp.ask("minimize fnr where fpr <= 10% and precision >= 100% and recall >= 99%"), rows()
    lean = LeanLoss(problem, data)
    lean.search(data.x.sum(1))
    assert any(lean.broken)
    assert any(lean.active)


def test_a_share_of_nothing_is_zero():
    empty = sp.Rate("empty", part=(1, 0, 0, 0), whole=(0, 0, 0, 0))
    problem, data = sp.minimize(sp.fnr, sp.fpr <= 0.1, empty <= 0.5), rows()
    lean, scores = LeanLoss(problem, data), data.x.sum(1)
    lean.search(scores)
    assert_equal(lean(scores), by_autograd(solver_of(problem), data, scores))


def anchored(problem, data):
    theta, weights = match(problem, data)
    return theta, Anchor(torch.sigmoid(data.x @ theta - 0.2), weights, 0.1 * theta)


@pytest.mark.parametrize(
    ("ask", "weighted"),
    [
        ("minimize fnr where fpr <= 5%", False),
        ("minimize fnr where fpr <= 5%", True),
        ("maximize precision where recall >= 95%", False),
        ("maximize f1", True),
        ("maximize recall over fpr in [0%, 10%]", False),
        ("maximize precision over recall in [80%, 100%] with 3 points", True),
    ],
)
def test_the_refinement_ends_where_that_of_the_solver_ends(ask, weighted, monkeypatch):
    """Few Newton steps find what the solver finds by autograd and many steps of Adam."""
    problem, data = sp.ask(ask), rows(weighted=weighted)
    start, anchor = anchored(problem, data)
    found = refine(problem, data, start, anchor, 0.25)
    monkeypatch.setattr("setpoint.train.linear.STEPS", 1500)
    solver = ImplicitThreshold(problem, temperature=1.0, memory=0, correction=Correction(every=1)).double()
    expected = refine(problem, data, start, anchor, 0.25, solver)
    moved = float((expected - start).norm())
    assert moved > 0.5
    # Areas have a long valley along the scale of the parameters, which changes no order of scores.
    assert float((found - expected).norm()) < 0.12 * moved
    assert float(torch.cosine_similarity(found[:-1], expected[:-1], dim=0)) > 0.9995


def test_rows_that_all_weigh_the_same_are_searched_as_if_they_had_no_weights():
    problem, data = sp.ask("minimize fnr where fpr <= 5%"), rows()
    assert LeanLoss(problem, data).weights is None
    assert LeanLoss(problem, rows(weighted=True)).weights is not None


def test_the_closed_form_covers_neither_metrics_nor_groups_nor_a_single_class(monkeypatch):
    monkeypatch.setattr("setpoint.train.linear.STEPS", 10)
    data = rows()
    groups = (data.x[:, 2] > 0).long()
    by_group = Rows(data.x, data.labels, data.weights, groups)
    gap = sp.ask("minimize error where recall.gap(region) <= 10%")
    single = Rows(data.x, torch.zeros_like(data.labels), data.weights)
    for problem, part in [
        (sp.ask("maximize mcc"), data),
        (gap, by_group),
        (sp.ask("minimize fnr where fpr <= 5%"), single),
    ]:
        assert not is_lean(problem, part)
        start, anchor = torch.ones(5, dtype=torch.float64), Anchor(part.labels, part.weights_or_ones, torch.zeros(5))
        moved = refine(problem, part, start, anchor, 0.25)
        assert bool((moved != start).any()) == (part is not single)


def test_scores_that_are_not_finite_are_refused():
    problem, data = sp.ask("minimize fnr where fpr <= 5%"), rows()
    lean = LeanLoss(problem, data)
    lean.search(data.x.sum(1))
    with pytest.raises(BadScores, match="too large"):
        lean(data.x.sum(1) * torch.nan)
