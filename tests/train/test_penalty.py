"""The penalty of linear models: solvers against scikit-learn, the path against fits from scratch, and the choice."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch.nn import functional as F

import setpoint as sp
from setpoint.data.rows import Rows
from setpoint.data.standardise import Standardiser
from setpoint.train import lasso
from setpoint.train import penalty as penalties
from setpoint.train.class_weights import class_weights
from setpoint.train.lasso import _quadratic, elastic_net
from setpoint.train.linear import cross_entropy
from setpoint.train.newton import leave_one_out, newton, products_of
from setpoint.train.penalty import (
    LinearPenalty,
    ScaledColumns,
    Validated,
    choose_penalty,
    cross_validate,
    deal_folds,
    lasso_path,
    rescaled_losses,
    ridge_path,
    scout_ridges,
)
from setpoint.train.recipes import Recipes
from setpoint.train.work import Work

ASK = sp.ask("minimize fnr where fpr <= 10%")


def table(size, features, informative=3, seed=0, noise=1.0):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(size, features, generator=draw, dtype=torch.float64)
    signal = x[:, :informative].sum(1) + noise * torch.randn(size, generator=draw, dtype=torch.float64)
    labels = (signal > 0.5).double()
    weights = 0.5 + torch.rand(size, generator=draw, dtype=torch.float64)
    return Rows(Standardiser.of(x, weights).with_ones(x), labels, weights / weights.mean())


def peer(rows, weights, penalty):
    """The same minimum by scikit-learn."""
    total = penalty.ridge + penalty.lasso
    model = LogisticRegression(l1_ratio=penalty.lasso / total, C=1 / total, solver="saga", tol=1e-9, max_iter=100_000)
    model.fit(rows.x[:, :-1].numpy(), rows.labels.numpy(), sample_weight=weights.numpy())
    return torch.tensor(np.append(model.coef_[0], model.intercept_))


@pytest.mark.parametrize(("size", "features"), [(200, 12), (60, 100)])
@pytest.mark.parametrize("mix", [1.0, 0.5])
def test_the_elastic_net_equals_scikit_learn(size, features, mix):
    rows = table(size, features)
    weights = class_weights(rows, 2.0)
    for strength in (size / 15, size / 50):
        penalty = LinearPenalty((1 - mix) * strength, mix * strength)
        theta = elastic_net(rows, weights, penalty.lasso, penalty.ridge)
        torch.testing.assert_close(theta, peer(rows, weights, penalty), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("repeats", [1, 2])
def test_the_elastic_net_meets_its_conditions_of_optimality(repeats):
    """Also where each column stands twice, so that the minimum is not unique."""
    rows = table(80, 40)
    rows = Rows(torch.cat([rows.x[:, :-1].repeat(1, repeats), rows.x[:, -1:]], 1), rows.labels, rows.weights)
    theta = elastic_net(rows, rows.weights, 2.0, 0.5)
    slope = rows.x.T @ (rows.weights * (torch.sigmoid(rows.x @ theta) - rows.labels))
    at, free = theta[:-1], slope[:-1] + 0.5 * theta[:-1]
    assert 0 < int((at == 0).sum()) < len(at)
    assert float(slope[-1].abs()) < 1e-6
    assert float((free + 2.0 * at.sign())[at != 0].abs().max()) < 1e-6
    assert float(free[at == 0].abs().max()) <= 2.0 + 1e-6


def test_noise_takes_a_bounded_search_and_still_reaches_the_minimum(monkeypatch):
    rows, solved = table(120, 600, noise=100.0), []
    monkeypatch.setattr(lasso, "MOST_SOLVED", 8)
    solve = np.linalg.solve
    monkeypatch.setattr(np.linalg, "solve", lambda *system: solved.append(1) or solve(*system))
    quadratic, most = lasso._quadratic, []

    def counted(*problem):
        solved.clear()
        found = quadratic(*problem)
        most.append(len(solved))
        return found

    monkeypatch.setattr(lasso, "_quadratic", counted)
    theta = elastic_net(rows, rows.weights, 1.0)
    assert max(most) == 8, "the limit was never reached, so nothing is shown"
    slope = rows.x.T @ (rows.weights * (torch.sigmoid(rows.x @ theta) - rows.labels))
    at, free = theta[:-1], slope[:-1]
    assert float((free + at.sign())[at != 0].abs().max()) < 1e-3
    assert float(free[at == 0].abs().max()) <= 1.0 + 1e-3


def test_a_lasso_that_nothing_outweighs_leaves_the_bias_alone():
    rows = table(100, 5)
    theta = elastic_net(rows, rows.weights, 1000.0)
    share = float((rows.weights * rows.labels).mean())
    assert theta[:-1].eq(0).all()
    assert float(theta[-1]) == pytest.approx(math.log(share / (1 - share)), abs=1e-6)


def test_the_quadratic_with_signs_is_the_best_of_all_signs():
    draw = torch.Generator().manual_seed(1)
    for _ in range(20):
        square = torch.randn(6, 5, generator=draw, dtype=torch.float64)
        curvature, target = square.T @ square + 0.01 * torch.eye(5), torch.randn(5, generator=draw).double()
        cost = torch.tensor([0.3, 0.5, 0.7, 0.4, 0.0]).double()
        start = torch.randn(5, generator=draw).double()

        def value(z, curvature=curvature, target=target, cost=cost):
            return float(z @ curvature @ z / 2 - target @ z + cost @ z.abs())

        best = math.inf
        for signs in itertools.product((-1.0, 0.0, 1.0), repeat=4):
            sign = torch.tensor([*signs, 0.0]).double()
            inside = torch.tensor([*(s != 0 for s in signs), True])
            z = torch.zeros(5).double()
            z[inside] = torch.linalg.solve(curvature[inside][:, inside], (target - cost * sign)[inside])
            best = min(best, value(z))
        found = _quadratic(*(one.numpy() for one in (curvature, target, cost, start)))
        assert value(torch.from_numpy(found)) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("ratio", [1.0, 10.0])
def test_with_fewer_rows_than_features_the_products_of_rows_lead_to_the_same_minimum(ratio):
    rows = table(40, 90)
    weights = class_weights(rows, ratio)
    products = products_of(rows.x)
    torch.testing.assert_close(products, rows.x[:, :-1] @ rows.x[:, :-1].T)
    assert products_of(table(90, 40).x) is None
    expected = cross_entropy(rows, weights)
    torch.testing.assert_close(cross_entropy(rows, weights, products=products), expected, atol=1e-6, rtol=1e-5)


def slow_losses(rows, fold, penalty):
    """Scores by models of the other folds and their loss at the best scale and shift, from scratch by scikit-learn."""
    scores = torch.zeros_like(rows.labels)
    for turn in range(int(fold.max()) + 1):
        outside = fold == turn
        inside = rows.take(~outside)
        scores[outside] = rows.x[outside] @ peer(inside, inside.weights, penalty)
    line = LogisticRegression(C=np.inf, tol=1e-10).fit(scores.reshape(-1, 1), rows.labels, sample_weight=rows.weights)
    if line.coef_ < 0:
        line = LogisticRegression(C=1e-12, tol=1e-10).fit(
            scores.reshape(-1, 1), rows.labels, sample_weight=rows.weights
        )
    fitted = torch.tensor(line.decision_function(scores.reshape(-1, 1)))
    return scores, rows.weights * (F.softplus(fitted) - rows.labels * fitted)


@pytest.mark.parametrize(("size", "features"), [(150, 10), (60, 80)])
def test_the_path_of_ridges_is_that_of_fits_from_scratch(size, features):
    rows = table(size, features)
    fold = deal_folds(rows)
    path = ridge_path(rows, fold)
    for one in path:
        scores, losses = slow_losses(rows, fold, one.penalty)
        assert one.loss == pytest.approx(float(losses.sum()), rel=3e-4)
        torch.testing.assert_close(one.out_of_fold, scores, atol=0.02, rtol=0.02)
    # Two in a row that are no better end the path, and all before them were on the way down.
    sums = [one.loss for one in path]
    assert len(sums) - 1 - sums.index(min(sums)) == 2 or len(sums) == len(penalties.STRENGTHS)


@pytest.mark.parametrize("mix", [1.0, 0.5])
def test_the_path_of_elastic_nets_is_that_of_fits_from_scratch(mix):
    rows = table(120, 40)
    fold = deal_folds(rows)
    path = lasso_path(rows, fold, mix)
    assert [one.penalty.lasso for one in path] == sorted((one.penalty.lasso for one in path), reverse=True)
    assert 2 <= len(path) <= 3
    for one in path:
        assert one.penalty.lasso / (one.penalty.lasso + one.penalty.ridge) == pytest.approx(mix)
        assert one.loss == pytest.approx(float(slow_losses(rows, fold, one.penalty)[1].sum()), rel=1e-4)


@pytest.mark.parametrize(("size", "features"), [(80, 10), (60, 80)])
@pytest.mark.parametrize("ridge", [1.0, 16.0])
def test_a_row_is_left_out_as_a_fit_without_it_says(size, features, ridge):
    rows = table(size, features)
    weights, products = class_weights(rows, 3.0), products_of(rows.x)
    assert (products is None) == (features < size)
    theta, _ = newton(rows, weights, None, ridge=ridge, products=products)
    found = leave_one_out(rows, weights, theta, ridge, products)
    expected, inside = torch.empty_like(found), rows.x @ theta
    for place in range(size):
        without = weights * (torch.arange(size) != place)
        own = newton(rows, without, theta, ridge=ridge)[0]
        # The bias is not left out.
        expected[place] = rows.x[place, :-1] @ own[:-1] + theta[-1]
    moved = (expected - inside).abs()
    assert float(moved.max()) > 0.3
    assert float((found - expected).abs().mean()) < 0.1 * float(moved.mean())
    assert float(torch.corrcoef(torch.stack([found - inside, expected - inside]))[0, 1]) > 0.99


@pytest.mark.parametrize("size", [(200, 30), (300, 60), (600, 60), (100, 150)])
def test_the_scouted_ridge_is_nearly_as_good_on_folds_as_the_best_of_all(size):
    for seed in range(3):
        rows = table(*size, seed=seed, noise=2.0)
        fold = deal_folds(rows)
        scouted = scout_ridges(rows)
        assert scouted == tuple(sorted({1.0, *scouted}))
        assert len(scouted) <= 2
        best = min(one.loss for one in ridge_path(rows, fold, scouted))
        assert best <= 1.02 * min(one.loss for one in ridge_path(rows, fold))


def test_rows_of_clusters_are_not_left_out_one_by_one(monkeypatch):
    rows, tried = table(200, 30), []
    monkeypatch.setattr(penalties, "scout_ridges", lambda _: tried.append(1) or (1.0,))
    cross_validate(rows, deal_folds(rows))
    assert tried
    tried.clear()
    clustered = replace(rows, clusters=torch.arange(200) // 4)
    cross_validate(clustered, deal_folds(clustered))
    assert not tried


def test_scale_and_shift_do_not_count_but_a_wrong_order_does():
    rows = table(100, 3)
    scores = rows.x[:, 0]
    losses = rescaled_losses(rows, scores)
    torch.testing.assert_close(rescaled_losses(rows, 7.0 + 0.01 * scores), losses, atol=1e-4, rtol=1e-4)
    # Scores in the wrong order, and equal ones, are worth as much as a guess.
    share = float((rows.weights * rows.labels).mean())
    guess = -100 * (share * math.log(share) + (1 - share) * math.log(1 - share))
    for useless in (-scores, torch.ones_like(scores)):
        assert float(rescaled_losses(rows, useless).sum()) == pytest.approx(guess, rel=1e-6)
    assert float(losses.sum()) < guess


def test_a_row_has_no_part_in_its_own_score():
    rows = table(100, 30)
    fold = deal_folds(rows)
    turned = Rows(rows.x, torch.where(fold == 2, 1 - rows.labels, rows.labels), rows.weights)
    before, after = (ridge_path(one, fold)[2].out_of_fold for one in (rows, turned))
    torch.testing.assert_close(before[fold == 2], after[fold == 2], atol=1e-2, rtol=1e-2)
    assert not torch.allclose(before[fold != 2], after[fold != 2], atol=0.1, rtol=0.1)


def test_folds_have_the_same_share_of_each_class_in_each_group():
    labels, groups = (torch.arange(200) % 4 == 0).double(), torch.arange(200) // 100
    fold = deal_folds(Rows(torch.zeros(200, 1), labels, None, groups))
    for group, label in itertools.product((0, 1), (0, 1)):
        counts = fold[(groups == group) & (labels == label)].bincount(minlength=5)
        assert counts.tolist() == [len(labels) // 2 * (1 if label else 3) // 4 // 5] * 5


@pytest.mark.parametrize(
    "penalty", [LinearPenalty(), LinearPenalty(9.0), LinearPenalty(0.0, 3.0), LinearPenalty(2.0, 2.0)]
)
def test_plain_cross_entropy_on_the_columns_of_a_penalty_is_the_minimum_under_the_penalty(penalty):
    rows = table(120, 30)
    columns = ScaledColumns.under(rows, penalty)
    theta = columns.whole(cross_entropy(columns.rows, columns.rows.weights))
    expected = peer(rows, rows.weights, penalty)
    torch.testing.assert_close(theta, expected, atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(Recipes(ASK, rows, penalty).plain, theta)
    assert len(columns.kept) == int((expected[:-1].abs() > 1e-4).sum()) + 1
    assert (columns.rows is rows) == (penalty == LinearPenalty())


def test_another_penalty_must_be_better_by_more_than_three_standard_errors(monkeypatch):
    """A path of made-up losses: 0.1 better per row, with an error that is or is not a third of the gain."""
    rows = table(100, 5)
    fold, zeros = deal_folds(rows), torch.zeros(100)

    def paths(spread):
        losses = 0.9 + spread * torch.linspace(-1, 1, 100)
        ridges = [Validated(LinearPenalty(s), zeros, torch.ones(100)) for s in (1.0, 4.0)]
        monkeypatch.setattr(penalties, "ridge_path", lambda *_: ridges)
        monkeypatch.setattr(penalties, "lasso_path", lambda *_: [Validated(LinearPenalty(0.0, 9.0), zeros, losses)])
        gain = 1 - losses
        return cross_validate(rows, fold), float(gain.mean() / gain.std() * 10)

    assert paths(0.5)[0] == LinearPenalty(0.0, 9.0)
    assert paths(0.7)[0] == LinearPenalty()
    assert paths(0.5)[1] > 3 > paths(0.7)[1] > 2


@pytest.mark.parametrize(("size", "mixes"), [((100, 20), [1.0]), ((40, 60), [1.0, 0.5])])
def test_half_a_lasso_is_tried_where_columns_are_more_than_rows(size, mixes, monkeypatch):
    rows, tried, path = table(*size), [], penalties.lasso_path

    def watched(rows, fold, mix):
        tried.append(mix)
        return path(rows, fold, mix)

    monkeypatch.setattr(penalties, "lasso_path", watched)
    monkeypatch.setattr(penalties, "REACH", float("inf"))
    cross_validate(rows, deal_folds(rows))
    assert tried == mixes


def test_few_columns_among_many_get_a_lasso():
    rows = table(200, 300)
    fold = deal_folds(rows)
    chosen = cross_validate(rows, fold)
    assert chosen.lasso > 0
    nets = {one.penalty: one.loss for mix in (1.0, 0.5) for one in lasso_path(rows, fold, mix)}
    assert nets[chosen] < min(one.loss for one in ridge_path(rows, fold))


def test_a_clear_signal_keeps_the_ridge_of_1():
    rows = table(300, 10, noise=0.2)
    assert cross_validate(rows, deal_folds(rows)) == LinearPenalty()


def test_without_enough_rows_to_validate_or_with_more_than_matter_the_ridge_stays_1(monkeypatch):
    monkeypatch.setattr(penalties, "cross_validate", lambda *_: pytest.fail("cross-validated"))
    few = table(100, 5)
    positives = few.labels.nonzero().squeeze(-1)
    few = few.take(torch.cat([positives[:9], (few.labels == 0).nonzero().squeeze(-1)]))
    assert choose_penalty(few) == LinearPenalty()
    assert choose_penalty(table(400, 2)) == LinearPenalty()
    one_class = Rows(few.x, torch.zeros_like(few.labels), few.weights)
    assert choose_penalty(one_class) == LinearPenalty()


def test_the_choice_is_the_same_every_time_to_the_last_bit():
    rows = table(150, 200)
    first, second = (cross_validate(rows, deal_folds(rows)) for _ in range(2))
    assert first == second
    once, again = (ridge_path(rows, deal_folds(rows)) for _ in range(2))
    assert all(torch.equal(one.out_of_fold, other.out_of_fold) for one, other in zip(once, again))


@pytest.mark.parametrize("recipe", [sp.Anchored(), sp.Ridge(), sp.methods.ClassWeights((0.25, 1.0, 4.0)), sp.Auto()])
def test_a_training_chooses_its_penalty_once_for_all_candidates_and_for_the_retraining(recipe, monkeypatch):
    calls = []

    def choose(rows, caution):
        calls.append(len(rows.labels))
        return LinearPenalty(7.0)

    monkeypatch.setattr("setpoint.train.full_batch.choose_penalty", choose)
    monkeypatch.setattr("setpoint.train.recipes.choose_penalty", lambda rows: pytest.fail("chosen again"))
    rows = table(150, 60, seed=3)
    parts = [sp.Batches(rows.x[k::3, :-1], rows.labels[k::3]) for k in range(3)]

    def make():
        return torch.nn.Linear(60, 1).double()

    method = sp.methods.Best(make, 1.5) if isinstance(recipe, sp.Auto) else sp.methods.FullBatch(make, recipe)
    sp.fit(None, ASK, *parts[:2], sp.methods.Refit(method), calibration=parts[2])
    assert calls == [50]


def test_a_killed_training_takes_up_the_penalty_that_it_had_chosen(tmp_path, monkeypatch):
    rows = table(60, 20)
    x, labels = rows.x[:, :-1].clone(), rows.labels
    how = {"calibration": [(x, labels)], "checkpoint": sp.Checkpoint(tmp_path)}
    begun = Work.once

    def killed(self, name, make):
        if name == "Anchored(0.25)":
            raise KeyboardInterrupt
        return begun(self, name, make)

    def train(**how):
        torch.manual_seed(0)
        model = torch.nn.Linear(20, 1).double()
        sp.fit(model, ASK, [(x, labels)], [(x, labels)], sp.Anchored(), **how)
        return model.weight

    expected = train(calibration=how["calibration"])
    monkeypatch.setattr(Work, "once", killed)
    with pytest.raises(KeyboardInterrupt):
        train(**how)
    monkeypatch.setattr(Work, "once", begun)
    monkeypatch.setattr("setpoint.train.full_batch.choose_penalty", lambda rows: pytest.fail("chosen again"))
    assert torch.equal(train(**how), expected)


def test_a_wide_table_is_learned_where_the_weakest_ridge_learns_noise_by_heart():
    train, fresh = table(150, 300, informative=2, noise=0.3), table(3000, 300, informative=2, noise=0.3, seed=9)
    found = {}
    for name, penalty in {"fixed": LinearPenalty(), "chosen": None}.items():
        theta = Recipes(ASK, train, penalty).anchored()
        found[name] = sp.evaluate(ASK, fresh.x @ theta, fresh.labels).objective
    assert found["chosen"] < 0.1
    assert found["fixed"] > 0.3


def test_newton_of_a_given_ridge_is_that_of_scikit_learn():
    rows = table(100, 8)
    theta, _ = newton(rows, rows.weights, None, ridge=5.0)
    torch.testing.assert_close(theta, peer(rows, rows.weights, LinearPenalty(5.0)), atol=1e-5, rtol=1e-4)
