import pytest
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from torch import nn

import setpoint as sp
import worlds
from setpoint.data.rows import Rows
from setpoint.data.standardise import Standardiser
from setpoint.errors import BadSetting
from setpoint.measure.count import count
from setpoint.train.class_weights import class_weights
from setpoint.train.full_batch import read_rows
from setpoint.train.history import score
from setpoint.train.linear import MATCH_ROWS, anchor_strength, cross_entropy, match

ASK = "minimize fnr where fpr <= 1%"


def rows(x, labels, weights=None):
    weights = torch.ones(len(x)).double() if weights is None else weights
    return Rows(Standardiser.of(x, weights).with_ones(x), labels, weights / weights.mean())


def cancer():
    x, y = load_breast_cancer(return_X_y=True)
    return torch.tensor(x), torch.tensor(1.0 - y)


@pytest.mark.parametrize("ratio", [1.0, 0.05, 20.0])
def test_ridge_cross_entropy_equals_scikit_learn(ratio):
    data = rows(*cancer())
    weights = class_weights(data, ratio)
    theta = cross_entropy(data, weights)
    peer = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000)
    peer.fit(data.x[:, :-1].numpy(), data.labels.numpy(), sample_weight=weights.numpy())
    torch.testing.assert_close(theta[:-1], torch.tensor(peer.coef_[0]), atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("weight", [1.0, 0.01, 100.0])
def test_cross_entropy_of_many_rows_starts_from_some_and_ends_where_all_lead(weight):
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(2 * MATCH_ROWS + 1, 4, generator=draw, dtype=torch.float64)
    # Rows that are alike lie together, and a feature is another one but for a little.
    x[: MATCH_ROWS // 2] += 2.0
    x[:, 2] = x[:, 1] + 1e-3 * x[:, 2]
    x[:, 3] = 1.0
    labels = (x[:, 0] + torch.randn(len(x), generator=draw) > 2).double()
    rows = Rows(x, labels, torch.ones_like(labels))
    weights = class_weights(rows, weight)
    theta = cross_entropy(rows, weights)
    slope = x.T @ (weights * (torch.sigmoid(x @ theta) - labels)) + weights.mean() * torch.cat(
        [theta[:-1], theta[:1] * 0]
    )
    assert float(slope.abs().max()) < 1e-3
    torch.testing.assert_close(theta, cross_entropy(rows, weights, torch.zeros(4).double()), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("ask", "rate", "level"),
    [
        ("minimize fnr where fpr <= 2%", sp.fpr, 0.02),
        ("maximize precision where recall >= 95%", sp.recall, 0.95),
        ("maximize recall where tnr >= 97%", sp.fpr, 0.03),
        ("maximize precision where flagged == 30%", sp.flagged, 0.3),
        ("maximize recall over fpr in [0%, 6%]", sp.fpr, 0.03),
        ("maximize recall where fpr <= 10% and tnr >= 98%", sp.fpr, 0.02),
    ],
)
def test_matched_cross_entropy_has_the_bounded_rate_at_zero(ask, rate, level):
    x, labels = worlds.lost_positives(5000, 0)
    data = rows(x.double(), labels.double())
    theta, weights = match(sp.ask(ask), data)
    found = float(rate(count(data.x @ theta, data.labels, 0.0)))
    assert found == pytest.approx(level, abs=0.004)
    assert weights.mean().item() == pytest.approx(1.0)


def fitted(scale=1.0, solver=None, ask=ASK, seed=0, size=5000):
    torch.manual_seed(0)
    x, labels = worlds.lost_positives(size, seed)
    fresh = worlds.lost_positives(100_000, 900 + seed)
    held_out = worlds.lost_positives(4000, 300 + seed)
    model = nn.Linear(2, 1)
    result = sp.fit(model, ask, [(scale * x, labels)], [(scale * held_out[0], held_out[1])], solver)
    with torch.no_grad():
        return result, sp.evaluate(ask, model(scale * fresh[0]).squeeze(-1), fresh[1]).objective


def test_the_default_of_a_linear_model_is_the_anchored_recipe_and_beats_its_start():
    result, objective = fitted()
    assert [row["solver"] for row in result.history] == ["CrossEntropy", "CrossEntropy(matched)", "Anchored(0.25)"]
    assert result.best_epoch == 2
    assert objective <= 0.58
    assert result.history[0]["held_out"] > 0.65


@pytest.mark.parametrize(
    ("ask", "thresholds", "share", "bounded", "other"),
    [
        ("minimize fnr where fpr <= 1%", 1, 0.01, 300, 100),
        ("minimize fnr where fpr <= 4%", 1, 0.02, 300, 100),
        ("maximize precision where recall >= 96%", 1, 0.02, 100, 300),
        ("minimize fnr where flagged <= 4%", 1, 0.02, 400, 100),
        ("maximize precision over recall in [92%, 100%] with 5 points", 5, 0.02, 100, 300),
    ],
)
def test_the_anchor_is_as_strong_as_the_formula_says(ask, thresholds, share, bounded, other):
    labels = (torch.arange(400) % 4 == 0).double()
    rows = Rows(torch.zeros(400, 8, dtype=torch.float64), labels, torch.ones_like(labels))
    expected = 7 * (1 / (thresholds * share * bounded) + 1 / other)
    assert anchor_strength(sp.ask(ask), rows) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("ask", ["maximize f1", "minimize error", "maximize recall where precision >= 90%"])
def test_without_a_bound_on_how_much_passes_a_sixteenth_of_either_class_decides(ask):
    labels = (torch.arange(400) < 80).double()
    rows = Rows(torch.zeros(400, 8, dtype=torch.float64), labels, torch.ones_like(labels))
    assert anchor_strength(sp.ask(ask), rows) == pytest.approx(7 * (16 / 80 + 16 / 320), rel=1e-12)


@pytest.mark.parametrize("unit", [1e200, 1e-200])
def test_features_whose_squares_leave_double_precision_are_learned_from(unit):
    labels = (torch.arange(200) % 2).double()
    x = torch.randn(200, 2, generator=torch.Generator().manual_seed(0)).double() + labels.unsqueeze(-1)
    learned = [
        cross_entropy(rows, torch.ones(200).double())
        for rows, _ in (read_rows([[(part, labels)]], nn.Linear(2, 1)) for part in (x, unit * x))
    ]
    torch.testing.assert_close(learned[1], learned[0])


def test_recipes_take_a_table_in_memory_as_it_lies():
    x, labels = torch.randn(50, 3), (torch.arange(50) % 3 == 0).float()
    shuffled = sp.Batches(x, labels, batch_size=8, shuffle=True)
    drawn = shuffled.generator.get_state()
    rows, scaling = read_rows([shuffled], nn.Linear(3, 1))
    assert torch.equal(rows.labels, labels.double())
    assert torch.equal(rows.x, scaling.with_ones(x))
    assert torch.equal(shuffled.generator.get_state(), drawn)
    assert shuffled.shuffle
    assert shuffled.batch_size == 8


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_the_scale_of_the_features_changes_nothing(scale):
    _, plain = fitted()
    _, scaled = fitted(scale)
    assert scaled == pytest.approx(plain, abs=2e-3)


@pytest.mark.parametrize(("pos_weight", "ratio"), [(None, 1.0), ("balanced", 4.0), (0.3, 0.3)])
def test_ridge_is_cross_entropy_to_convergence(pos_weight, ratio):
    x, labels = (part.double() for part in worlds.lost_positives(2000, 0))
    model = nn.Linear(2, 1).double()
    result = sp.fit(model, ASK, [(x, labels)], [(x, labels)], sp.Ridge(pos_weight))
    peer = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000)
    weights = torch.where(labels > 0, ratio, 1.0).double()
    spread, mean = x.std(0, correction=0), x.mean(0)
    peer.fit(((x - mean) / spread).numpy(), labels.numpy(), sample_weight=(weights / weights.mean()).numpy())
    torch.testing.assert_close(model.weight.detach()[0] * spread, torch.tensor(peer.coef_[0]), atol=1e-4, rtol=1e-3)
    assert len(result.history) == 1


def test_several_strengths_are_chosen_from_by_held_out_data():
    result, objective = fitted(solver=sp.Anchored.auto())
    assert len(result.history) == 6
    best = min(row["held_out"] for row in result.history)
    assert result.history[result.best_epoch]["held_out"] == best
    assert [row["held_out"] for row in result.history].index(best) == result.best_epoch
    assert objective <= 0.58


def test_precision_areas_and_scores_without_a_bound_are_trained_too():
    for ask in ("maximize precision over recall in [50%, 70%] with 3 points", "maximize f1", "maximize mcc"):
        result, objective = fitted(ask=ask)
        assert objective >= result.history[0]["held_out"] - 0.03


def test_the_recipe_is_for_linear_models():
    with pytest.raises(BadSetting, match=r"nn\.Linear"):
        sp.fit(nn.Sequential(nn.Linear(2, 1)), ASK, [], [], sp.Anchored())
    with pytest.raises(BadSetting, match="kappa"):
        sp.Anchored(())


def network_and_data():
    torch.manual_seed(0)
    parts = [worlds.lost_positives(4000, seed) for seed in (0, 1, 2, 3)]
    model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
    return model, parts


def test_without_a_refit_the_default_of_a_network_is_cross_entropy_then_a_proximal_head_if_it_helps():
    model, (train, held_out, calibration, fresh) = network_and_data()
    loaders = [sp.Batches(*part, batch_size=256, shuffle=True) for part in (train, held_out, calibration)]
    result = sp.fit(model, ASK, loaders[0], loaders[1], calibration=loaders[2], epochs=15, refit=False)
    names = [row["solver"] for row in result.history]
    assert names[-1] == "ProximalHead"
    assert set(names[:-1]) == {"CrossEntropy"}
    assert result.history[-1]["kept"] == (result.best_epoch == len(names) - 1)
    judged = result.point.judge(*(p for p in (score(model, [fresh]).scores, fresh[1])))
    assert judged.objective < 0.75


def test_without_calibration_data_the_head_is_left_alone():
    model, (train, held_out, *_) = network_and_data()
    result = sp.fit(model, ASK, [train], [held_out], epochs=3)
    assert {row["solver"] for row in result.history} == {"CrossEntropy"}


def test_training_stops_when_nothing_gets_better():
    model, (train, held_out, *_) = network_and_data()
    frozen = lambda parameters: torch.optim.SGD(parameters, lr=0.0)
    result = sp.fit(model, ASK, [train], [held_out], sp.CrossEntropy(), epochs=20, patience=2, optimizer=frozen)
    assert len(result.history) == 3


def test_cached_features_give_the_scores_of_the_whole_model():
    model, (train, *_) = network_and_data()
    features = sp.methods.head_features(model, sp.Batches(*train, batch_size=300))
    torch.testing.assert_close(score(model[-1], features).scores, score(model, [train]).scores)
    assert torch.equal(features.resident.labels, train[1])
    assert features.resident.x.shape == (4000, 16)
    head = nn.Linear(16, 1)
    result = sp.fit(head, ASK, features, features)
    assert result.point.feasible
    assert result.point.objective < 0.6


def test_a_model_without_a_linear_head_is_refused_by_name():
    with pytest.raises(BadSetting, match=r"no nn\.Linear"):
        sp.methods.head_features(nn.ReLU(), [])
    model, (train, *_) = network_and_data()
    with pytest.raises(BadSetting, match="once per batch"):
        sp.methods.head_features(model, [train], head=nn.Linear(3, 1))


def test_a_proximal_head_is_kept_where_cross_entropy_asks_the_wrong_question():
    """The body is the identity, so that the head is a linear model in the world of lost positives."""
    train, held_out, calibration, fresh = (worlds.lost_positives(8000, seed) for seed in (0, 1, 2, 3))
    body = nn.Linear(2, 2)
    with torch.no_grad():
        body.weight.copy_(torch.eye(2))
        body.bias.zero_()
    for parameter in body.parameters():
        parameter.requires_grad_(False)
    found = {}
    for name, more in (("head alone", {}), ("refitted", {"calibration": [calibration], "refit": False})):
        torch.manual_seed(0)
        model = nn.Sequential(body, nn.Linear(2, 1))
        batches = sp.Batches(*train, batch_size=256, shuffle=True)
        adam = lambda parameters: torch.optim.Adam([p for p in parameters if p.requires_grad], lr=0.02)
        result = sp.fit(model, ASK, batches, [held_out], epochs=6, optimizer=adam, **more)
        found[name] = sp.evaluate(ASK, score(model, [fresh]).scores, fresh[1]).objective
    assert result.history[-1]["kept"]
    assert found["refitted"] < found["head alone"] - 0.01


def test_where_groups_are_compared_a_linear_model_is_converged_cross_entropy():
    x, labels, groups = worlds.two_groups(1200, 0)
    parts = [[{"x": x[part::3], "labels": labels[part::3], "groups": groups[part::3]}] for part in range(3)]

    def fitted(solver, ask="minimize error where recall.gap(group) <= 5%"):
        torch.manual_seed(0)
        return sp.fit(nn.Linear(x.shape[1], 1), ask, parts[0], parts[1], solver, calibration=parts[2], refit=False)

    by_default, ridge = fitted(None), fitted(sp.Ridge())
    assert isinstance(by_default.solver, sp.Ridge)
    torch.testing.assert_close(by_default.model.state_dict(), ridge.model.state_dict(), rtol=0, atol=0)
    assert by_default.point.rates["recall.gap(group)"] <= 0.05
    assert len(by_default.point.threshold) == 2
    assert set(by_default.history[0]) == set(fitted(sp.Ridge(), "minimize error").history[0])
