"""Auto: the rule against noise, the candidates for linear models and networks, tuning."""

import pytest
import torch
from torch import nn

import setpoint as sp
import worlds
from marks import quick_first, slow
from setpoint.data.rows import Rows
from setpoint.errors import BadSetting
from setpoint.measure.curve import roc_area
from setpoint.measure.sample import Sample
from setpoint.train import race, tune
from setpoint.train.best import Tried, gather_evidence
from setpoint.train.default import Case, make_solver
from setpoint.train.history import score
from setpoint.train.penalty import LinearPenalty
from setpoint.train.recipes import RECIPES, Recipes
from setpoint.train.trial import HALVES, Trial, choose, halves

ASK = "minimize fnr where fpr <= 1%"
PROBLEM = sp.ask("minimize fnr where fpr <= 10%")


@pytest.fixture
def hasty(monkeypatch):
    """Few steps: for what does not depend on how good a candidate gets."""
    monkeypatch.setattr("setpoint.train.linear.STEPS", 20)


def sample(seed, shift, size=600):
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.arange(size) % 4 == 0).double()
    return Sample(torch.randn(size, generator=draw).double() + shift * labels, labels)


def test_the_first_stands_against_itself_and_against_noise():
    first = sample(0, 1.5)
    assert choose(PROBLEM, [first, first], caution=0.0)[0] == 0
    # Pairs of the same quality: the second is better half of the time, but seldom clearly so.
    gains = [choose(PROBLEM, [sample(seed, 1.5), sample(100 + seed, 1.5)], caution=1.5)[1][1] for seed in range(14)]
    assert 3 <= sum(gain.exceeds(0.0) for gain in gains) <= 11
    assert sum(gain.exceeds(1.5) for gain in gains) <= 3


def test_what_is_clearly_better_replaces_the_first_and_ties_go_to_the_simpler():
    better = sample(0, 2.5)
    place, gains = choose(PROBLEM, [sample(0, 1.5), better, better, sample(0, 1.0)], caution=1.5)
    assert place == 1
    assert gains[1].value > 3 * gains[1].noise > 0
    assert gains[3].value < 0
    expected = sp.evaluate(PROBLEM, sample(0, 1.5).scores, better.labels).objective
    assert gains[1].value == pytest.approx(expected - sp.evaluate(PROBLEM, better.scores, better.labels).objective)


def test_what_meets_the_bounds_replaces_what_does_not():
    precise = sp.ask("maximize recall where precision >= 90%")
    hopeless, good = sample(0, 0.0), sample(0, 4.0)
    assert not sp.evaluate(precise, hopeless.scores, hopeless.labels).feasible
    assert choose(precise, [hopeless, good], caution=50.0)[0] == 1
    assert choose(precise, [good, hopeless], caution=0.0)[0] == 0


@slow
def test_the_noise_of_a_gain_is_that_of_repeated_draws():
    def fnr(seed, shift):
        one = sample(seed, shift)
        return sp.evaluate(PROBLEM, one.scores, one.labels).objective

    true = torch.tensor([fnr(2 * i, 1.5) - fnr(2 * i + 1, 1.8) for i in range(300)]).std()
    gains = [choose(PROBLEM, [sample(2 * i, 1.5), sample(2 * i + 1, 1.8)], caution=1.5)[1][1] for i in range(10)]
    assert torch.tensor([gain.noise for gain in gains]).mean() == pytest.approx(float(true), rel=0.25)


def test_halves_split_every_class_and_group_and_keep_what_is_single():
    labels = torch.tensor([1.0, 1, 0, 0, 0, 0, 1])
    groups = torch.tensor([0, 0, 0, 0, 1, 1, 1])
    found = halves(Sample(torch.zeros(7), labels, None, groups))
    assert len(found) == HALVES
    for one, other in zip(found[::2], found[1::2]):
        assert sorted([*one.tolist(), *other.tolist()]) == [0, 1, 2, 3, 4, 5, 6, 6]
        assert int(labels[one].sum()) == 2


def chosen_of(result):
    (trial,) = [trial for trial in result.comparison if trial.chosen]
    return trial


def lost(ask=ASK, sizes=(3000, 2000, 2000), solver=None, **more):
    parts = [worlds.lost_positives(size, 10 + seed) for seed, size in enumerate(sizes)]
    model = nn.Linear(2, 1)
    result = sp.fit(model, ask, [parts[0]], [parts[1]], solver or sp.Auto(), calibration=[parts[2]], **more)
    return result, parts


@slow
def test_where_cross_entropy_asks_the_wrong_question_it_is_replaced():
    rows = []
    result, (_, held_out, calibration) = lost(on_epoch=rows.append, refit=False)
    chosen = chosen_of(result)
    assert not chosen.name.startswith("CrossEntropy")
    assert chosen.note.endswith("against CrossEntropy, cross-validated in 3 folds")
    fresh = worlds.lost_positives(100_000, 99)
    assert sp.evaluate(ASK, score(result.model, [fresh]).scores, fresh[1]).objective <= 0.58
    assert [trial.name for trial in result.comparison] == list(RECIPES)
    assert result.comparison[0].point.objective > 0.65
    # The model, the row of history and the trial are one candidate.
    assert result.history[result.best_epoch]["solver"] == chosen.name
    on_held_out = sp.evaluate(ASK, score(result.model, [held_out]).scores, held_out[1])
    assert on_held_out.objective == chosen.point.objective
    assert rows == result.history
    assert [row["epoch"] for row in rows] == list(range(len(rows)))
    # The threshold comes from rows that had no part in the choice.
    assert result.point == sp.calibrate(ASK, score(result.model, [calibration]).scores, calibration[1])
    left_out = result.comparison[-1]
    assert left_out.name == "PairwiseArea"
    assert left_out.point is None
    assert left_out.note.startswith("left out: pairs make ROC areas")
    assert sum("stopped" in trial.note for trial in result.comparison) == len(result.history) - 4


@pytest.mark.parametrize("seed", quick_first(range(3)))
def test_where_cross_entropy_is_right_it_stays(seed, hasty):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(1200, 3, generator=draw)
    labels = (torch.rand(1200, generator=draw) < torch.sigmoid(2 * x[:, 0] - x[:, 1] - 1)).float()
    result = sp.fit(nn.Linear(3, 1), "minimize error", [(x[:600], labels[:600])], [(x[600:], labels[600:])], sp.Auto())
    assert chosen_of(result).name == "CrossEntropy"
    peer = nn.Linear(3, 1)
    sp.fit(peer, "minimize error", [(x[:600], labels[:600])], [(x[600:], labels[600:])], sp.Ridge())
    assert torch.equal(result.model.weight, peer.weight)


@pytest.mark.parametrize(
    ("ask", "absent"),
    [
        ("maximize f1", {"CrossEntropy(matched)", "PairwiseArea"}),
        pytest.param("maximize mcc", {"CrossEntropy(matched)", "PairwiseArea"}, marks=slow),
        ("maximize precision where flagged == 10%", {"PairwiseArea"}),
        pytest.param("maximize recall over fpr in [0%, 5%] with 3 points", set(), marks=slow),
        pytest.param("maximize precision over recall in [90%, 100%] with 3 points", {"PairwiseArea"}, marks=slow),
        pytest.param("maximize recall where fpr <= 20% and precision >= 30%", {"PairwiseArea"}, marks=slow),
    ],
)
def test_every_kind_of_problem_is_answered(ask, absent, hasty):
    result, _ = lost(ask, sizes=(600, 500, 500))
    assert {trial.name for trial in result.comparison if trial.point is None} == absent
    best = max if result.point.problem.maximize else min
    values = [trial.point.objective for trial in result.comparison if trial.point is not None]
    assert chosen_of(result).point.objective == pytest.approx(best(values), abs=0.15)


@slow
def test_groups_are_compared_and_each_gets_a_threshold(hasty):
    x, labels, groups = worlds.two_groups(800, 0)
    held_out = dict(zip(("x", "labels", "groups"), worlds.two_groups(800, 1)))
    ask = "minimize error where recall.gap(sex) <= 5%"
    for model in (nn.Linear(2, 1), nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))):
        train = [{"x": x, "labels": labels, "groups": groups}]
        result = sp.fit(model, ask, train, [held_out], sp.Auto(), epochs=4)
        assert set(result.point.threshold) == {"0", "1"}
        assert result.point.feasible
        trained = {trial.name for trial in result.comparison if trial.point is not None}
        assert {"CrossEntropy", "Lagrangian"} < trained
        assert "PairwiseArea" not in trained


@slow
def test_a_weight_is_a_repetition(hasty):
    x, labels = worlds.lost_positives(400, 0)
    held_out = worlds.lost_positives(300, 1)
    twice = torch.where(labels > 0, 2.0, 1.0)
    repeated = (torch.cat([x, x[labels > 0]]), torch.cat([labels, labels[labels > 0]]))
    named = ("CrossEntropy", "CrossEntropy(balanced)", "CrossEntropy(matched)")
    found = [
        {trial.name: trial.point.objective for trial in result.comparison if trial.name in named}
        for result in (
            sp.fit(nn.Linear(2, 1), ASK, [train], [held_out], sp.Auto()) for train in ((x, labels, twice), repeated)
        )
    ]
    assert found[0] == pytest.approx(found[1], abs=0.02)


def test_too_few_rows_for_folds_are_judged_on_held_out_rows_alone(hasty):
    train, held_out = worlds.lost_positives(25, 0), worlds.lost_positives(500, 1)
    result = sp.fit(nn.Linear(2, 1), "maximize f1", [train], [held_out], sp.Auto())
    assert sum("against CrossEntropy, on held-out rows" in trial.note for trial in result.comparison) == 3


def test_the_evidence_of_a_row_comes_from_a_model_that_was_not_fitted_on_it():
    """Labels without any pattern, and features enough to learn them by heart."""
    draw = torch.Generator().manual_seed(0)
    x, labels = torch.randn(150, 60, generator=draw).double(), (torch.arange(150) % 3 == 0).double()
    rows = Rows(torch.cat([x, torch.ones(150, 1)], dim=1), labels, torch.ones(150).double())
    theta = Recipes(sp.ask("maximize f1"), rows, LinearPenalty()).plain
    held_out = Sample(torch.zeros(2), torch.tensor([0.0, 1.0]))
    point = sp.evaluate("maximize f1", rows.x @ theta, labels)
    standing = Tried(RECIPES["CrossEntropy"], theta, held_out, point, Trial("CrossEntropy", point, 0.0))
    evidence, how = gather_evidence(point.problem, rows, [standing, standing], LinearPenalty())
    assert how == "cross-validated in 3 folds"
    assert float(roc_area(rows.x @ theta, labels)) > 0.9
    assert float(roc_area(evidence[0].scores[:150], labels)) < 0.65
    assert torch.equal(evidence[0].scores, evidence[1].scores)
    assert len(evidence[0].labels) == 152


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))


@slow
def test_a_network_starts_from_cross_entropy_and_is_what_the_chosen_trial_says():
    train, held_out, calibration = (worlds.lost_positives(2000, seed) for seed in range(3))
    batches = lambda: sp.Batches(*train, batch_size=256, shuffle=True)
    rows = []
    result = sp.fit(network(), ASK, batches(), [held_out], sp.Auto(), epochs=8, on_epoch=rows.append)
    plain = sp.fit(network(), ASK, batches(), [held_out], sp.CrossEntropy(), epochs=8, patience=5)
    assert result.comparison[0].name == "CrossEntropy"
    assert result.comparison[0].point.objective == plain.history[plain.best_epoch]["held_out"]
    chosen = chosen_of(result)
    judged = sp.evaluate(ASK, score(result.model, [held_out]).scores, held_out[1])
    assert judged.objective == chosen.point.objective == result.history[result.best_epoch]["held_out"]
    assert result.history[result.best_epoch]["candidate"] == chosen.name
    assert [row["epoch"] for row in rows] == list(range(len(rows))) == [row["epoch"] for row in result.history]
    stopped = [trial for trial in result.comparison if "stopped after its first half" in trial.note]
    trained = [trial for trial in result.comparison if trial.point is not None]
    assert len(stopped) == len(trained) - 3
    assert max(trial.point.objective for trial in stopped) >= chosen.point.objective
    assert "ProximalHead" not in {trial.name for trial in result.comparison}

    with_head = sp.fit(network(), ASK, batches(), [held_out], sp.Auto(), epochs=8, calibration=[calibration])
    assert with_head.comparison[-1].name == "ProximalHead"
    judged = sp.evaluate(ASK, score(with_head.model, [held_out]).scores, held_out[1])
    assert judged.objective == chosen_of(with_head).point.objective


def test_nothing_clear_leaves_a_network_as_cross_entropy_made_it():
    train, held_out = worlds.lost_positives(600, 0), worlds.lost_positives(600, 1)
    result = sp.fit(network(), ASK, [train], [held_out], sp.Auto(caution=1e6), epochs=4)
    peer = sp.fit(network(), ASK, [train], [held_out], sp.CrossEntropy(), epochs=4, patience=5)
    assert chosen_of(result).name == "CrossEntropy"
    assert all(torch.equal(a, b) for a, b in zip(result.model.parameters(), peer.model.parameters()))


def test_every_continuation_starts_where_cross_entropy_ended(monkeypatch):
    twins = {name: lambda: sp.CrossEntropy("balanced") for name in ("one", "other", "Tuned")}
    monkeypatch.setattr(race, "continuations", lambda *_: twins.copy())
    train, held_out = worlds.lost_positives(600, 0), worlds.lost_positives(600, 1)
    result = sp.fit(network(), "maximize f1", [train], [held_out], sp.Auto(), epochs=8)
    first, one, other = result.comparison
    assert one.point == other.point != first.point


@slow
def test_tuning_is_the_same_for_the_same_seed(hasty):
    names = []
    for seed in (0, 0, 1):
        result, _ = lost(sizes=(400, 400, 400), solver=sp.Auto(tune=3, seed=seed))
        tuned = result.comparison[-1]
        assert "the best of 3 trials" in tuned.note
        assert "cross-validated" in tuned.note
        names.append(tuned.name)
    assert names[0] == names[1] != names[2]
    assert names[0].startswith("Tuned(kappa=")


def test_tuning_takes_the_best_trial():
    seen = []

    def objective(settings):
        seen.append((-abs(settings["a"] - 0.5), settings["a"]))
        return seen[-1][0]

    found = tune.search(objective, {"a": (1e-3, 1e3)}, trials=12, seed=3)
    assert len(seen) == 12
    assert found == {"a": max(seen)[1]}


def test_a_network_is_tuned_too():
    train, held_out = worlds.lost_positives(600, 0), worlds.lost_positives(600, 1)
    found = [
        sp.fit(network(), ASK, [train], [held_out], sp.Auto(tune=2, seed=5), epochs=4).comparison[-1] for _ in range(2)
    ]
    assert found[0].name.startswith("Tuned(strength=")
    assert (found[0].name, found[0].point) == (found[1].name, found[1].point)


def test_without_optuna_tuning_says_what_to_install_before_it_trains(monkeypatch):
    monkeypatch.setattr(tune, "find_spec", lambda name: None)
    with pytest.raises(BadSetting, match=r"setpoint\[tune\]"):
        sp.fit(nn.Linear(2, 1), ASK, [], [], sp.Auto(tune=1))


@pytest.mark.parametrize("wrong", [{"tune": -1}, {"tune": True}, {"tune": 2.0}, {"seed": -3}, {"caution": -1.0}])
def test_settings_outside_their_range_are_refused(wrong):
    with pytest.raises(BadSetting, match=next(iter(wrong))):
        sp.Auto(**wrong)


def test_auto_has_a_name_and_single_solvers_compare_nothing(hasty):
    assert make_solver("auto", Case(PROBLEM, tune=2, seed=1)) == sp.Auto(tune=2, seed=1)
    train = worlds.lost_positives(400, 0)
    assert sp.fit(nn.Linear(2, 1), ASK, [train], [train], sp.Ridge()).comparison == ()
