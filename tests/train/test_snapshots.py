"""Mixtures of snapshots: the hash of a row, the best mixture, and the model that is shipped."""

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from torch import nn

import setpoint as sp
from setpoint.errors import BadSetting
from setpoint.serve.mixture import _between_0_and_1
from setpoint.train.default import Case, make_solver
from setpoint.train.history import score
from setpoint.train.scoring import score_rows
from setpoint.train.snapshots import FACTORS, _cuts

PROBLEM = sp.ask("minimize fnr where fpr <= 20%")


def rows(seed, size=400):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(size, 3, generator=draw)
    return x, (x[:, 0] * x[:, 1] + 0.5 * torch.randn(size, generator=draw) > 0.3).float()


def net(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))


@pytest.fixture(scope="module")
def mixed():
    train, held_out, rest = (sp.Batches(*rows(seed), batch_size=100) for seed in range(3))
    choice = sp.methods.Snapshots(sp.losses.ProxyLagrangian(PROBLEM), most=5)
    return sp.fit(net(), PROBLEM, train, held_out, choice, calibration=rest, epochs=10, warm_start=0.2), held_out


def test_the_share_of_each_member_is_its_share_of_new_rows():
    numbers = _between_0_and_1(torch.randn(20_000, 3, generator=torch.Generator().manual_seed(1)))
    for share in (0.1, 0.5, 0.9):
        assert binomtest(int((numbers < share).sum()), 20_000, share).pvalue > 1e-3
    # Neighbouring rows are no more alike than any others.
    grid = _between_0_and_1(torch.arange(20_000.0).unsqueeze(-1))
    assert abs(np.corrcoef(grid[:-1], grid[1:])[0, 1]) < 0.03


@given(seed=st.integers(0, 1000), place=st.integers(0, 399))
def test_a_score_depends_on_its_own_row_alone(mixed, seed, place):
    model, (x, _) = mixed[0].model, rows(seed)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    together = score_rows(model, x)
    assert torch.equal(score_rows(model, x[order]), together[order])
    assert torch.equal(score_rows(model, x[place : place + 1]), together[place : place + 1])


def test_zeros_of_either_sign_choose_the_same_member():
    x = torch.zeros(1, 3)
    assert torch.equal(_between_0_and_1(x), _between_0_and_1(-x))


def test_each_row_has_the_margin_of_one_member(mixed):
    model, (x, _) = mixed[0].model, rows(7)
    margins = torch.stack([score_rows(m, x).double() - cut for m, cut in zip(model.members, model.cuts)], dim=1)
    found = score_rows(model, x).double().unsqueeze(1)
    assert bool((found - margins).abs().min(1).values.max() < 1e-6)
    assert len(model.members) == 2
    assert float(model.shares.sum()) == pytest.approx(1)


def test_the_mean_over_members_is_no_worse_than_any_single_snapshot_and_within_the_bound(mixed):
    (result, held_out), shares = mixed, mixed[0].model.shares
    mean = {"fnr": 0.0, "fpr": 0.0}
    for member, share, cut in zip(result.model.members, shares.tolist(), result.model.cuts):
        found = score(member, held_out)
        flagged, positive = found.scores > cut, found.labels == 1
        mean["fnr"] += share * float((~flagged[positive]).double().mean())
        mean["fpr"] += share * float(flagged[~positive].double().mean())
    assert mean["fpr"] <= 0.2 + 1e-9
    best = min(row["held_out"] for row in result.history[:-1] if row["feasible"])
    assert mean["fnr"] <= best + 1e-9
    assert result.history[-1]["solver"] == "Mixture"
    assert result.best_epoch == len(result.history) - 1


def test_cuts_of_a_snapshot_hold_the_best_cut_of_the_ask():
    x, labels = rows(3)
    sample = score(net(), sp.Batches(x, labels))
    cuts = _cuts(PROBLEM, 4, sample)
    best = sp.evaluate(PROBLEM, sample.scores, sample.labels)
    assert any(c.cost == pytest.approx(best.objective) and max(c.excesses) <= 0 for c in cuts)
    assert 2 < len(cuts) <= len(FACTORS)
    exact = _cuts(sp.ask("minimize fnr where fpr == 20%"), 4, sample)
    assert all(c.excesses[0] == -c.excesses[1] for c in exact)
    both = _cuts(sp.ask("minimize fnr where fpr <= 20% and fpr >= 15%"), 4, sample)
    assert both


@pytest.mark.parametrize(
    "ask",
    [
        "maximize f_score(1)",
        "maximize recall where precision >= 50%",
        "maximize recall over fpr in [0, 0.2]",
    ],
)
def test_asks_that_no_mixture_goes_with_are_refused_before_any_work(ask):
    data = sp.Batches(*rows(0, 40))
    choice = sp.methods.Snapshots(sp.CrossEntropy())
    with pytest.raises(BadSetting, match="a mixture of snapshots needs bounds"):
        sp.fit(net(), ask, data, data, choice, calibration=sp.Batches(*rows(1, 40)))


def test_an_ensemble_of_mixtures_and_too_few_snapshots_are_refused():
    data = sp.Batches(*rows(0, 40))
    with pytest.raises(BadSetting, match="leave out the ensemble"):
        sp.fit(net(), PROBLEM, data, data, sp.methods.Snapshots(sp.CrossEntropy()), ensemble=2, calibration=data)
    with pytest.raises(BadSetting, match="from 2 up"):
        sp.methods.Snapshots(sp.CrossEntropy(), most=1)
    for shares in ([], [0.5], [0.5, 0.6], [1.5, -0.5]):
        with pytest.raises(BadSetting, match="1 in all"):
            sp.methods.Mixed([net(), net()], shares, [0.0] * len(shares))


@pytest.mark.parametrize("solver", ["mixture", "last-layer"])
def test_the_estimator_trains_by_name_and_is_pickled(solver):
    x, labels = (part.numpy() for part in rows(0, 300))
    classifier = sp.SetpointClassifier(str(PROBLEM), solver=solver, module="mlp", module__hidden=8, epochs=4)
    classifier.fit(x, labels)
    assert classifier.comparison_[0]["name"] == solver
    again = pickle.loads(pickle.dumps(classifier))
    assert (again.decision_function(x) == classifier.decision_function(x)).all()


@pytest.mark.filterwarnings("ignore:the threshold is set")
def test_the_last_layer_goes_with_several_classes():
    x, labels = rows(0)
    classes = labels.long() + (x[:, 2] > 1).long()
    data = sp.Batches(x, classes)
    problem = sp.ask("minimize error where flagged of class 2 <= 10%").resolved(["0", "1", "2"])
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 3))
    solver = make_solver("last-layer", Case(problem, n_classes=3))
    point = sp.fit(model, problem, data, data, solver, epochs=8).point
    assert point.feasible
    assert point.objective < 0.5
    with pytest.raises(BadSetting, match="a linear model has none"):
        make_solver("last-layer", Case(problem, linear=True, n_classes=3))
