"""Ensembles over random stratified splits: sizes and shares kept, no row in both parts, every door."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader, TensorDataset

import setpoint as sp
from setpoint.errors import BadSetting
from setpoint.train.splits import stratified

ASK = "minimize fnr where fpr <= 20%"


@given(st.lists(st.integers(1, 30), min_size=1, max_size=4), st.floats(0, 1), st.integers(0, 5))
def test_each_class_of_each_group_has_its_share_and_no_row_is_lost(sizes, share, seed):
    labels = torch.cat([torch.full((size,), float(place % 2)) for place, size in enumerate(sizes)])
    groups = torch.cat([torch.full((size,), place // 2) for place, size in enumerate(sizes)])
    held_out = round(share * len(labels))
    kept, out = stratified(labels, groups, held_out, seed)
    assert len(out) == held_out
    assert torch.equal(torch.cat([kept, out]).sort().values, torch.arange(len(labels)))
    for place, size in enumerate(sizes):
        here = ((labels == place % 2) & (groups == place // 2))[out].sum()
        assert abs(float(here) - size * held_out / len(labels)) < 1


def test_splits_differ_by_seed_alone_and_every_row_has_its_turn():
    labels = (torch.arange(60) % 5 == 0).float()
    outs = [stratified(labels, None, 15, seed)[1] for seed in range(40)]
    assert torch.equal(outs[3], stratified(labels, None, 15, 3)[1])
    assert len({tuple(out.sort().values.tolist()) for out in outs}) == 40
    turns = torch.cat(outs).bincount(minlength=60) / 40
    assert 0 < float(turns.min()) < 0.25 < float(turns.max()) < 0.6


def table(size=150, seed=0):
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(size, generator=draw) < 0.3).float()
    x = torch.randn(size, 3, generator=draw) + labels.unsqueeze(-1)
    # The last column is the number of the row, for the spy to read; the model is told nothing by it.
    return torch.cat([x, torch.arange(size).unsqueeze(-1) / size], 1), labels


def fitted(train, held_out, solver=None, **more):
    x, labels = table(seed=9)
    return sp.fit(
        torch.nn.Linear(4, 1), ASK, train, held_out, solver or sp.CrossEntropy(), epochs=2,
        calibration=sp.Batches(x, labels), **more,
    )  # fmt: skip


def test_members_train_on_rows_of_their_own_and_the_model_is_their_mean():
    x, labels = table()
    loaders = sp.Batches(x[:100], labels[:100], batch_size=100), sp.Batches(x[100:], labels[100:])
    dealt = [sp.methods.Splits(3).deal(*loaders, seed) for seed in range(3)]
    rows = []
    for train, held_out in dealt:
        assert (len(train.whole.labels), len(held_out.whole.labels), len(train)) == (100, 50, 1)
        assert abs(float(train.whole.labels.sum()) - float(labels.sum()) * 100 / 150) < 1
        numbers = [(150 * loader.whole.x[:, -1]).round().long() for loader in (train, held_out)]
        assert torch.equal(torch.cat(numbers).sort().values, torch.arange(150))
        assert torch.equal(labels[numbers[0]], train.whole.labels)
        assert torch.equal(train.whole.index, torch.arange(100))
        rows.append(set(numbers[0].tolist()))
    assert rows[0] != rows[1] != rows[2]

    result = fitted(*loaders, ensemble=sp.methods.Splits(3))
    assert [row["member"] for row in result.history] == [0, 0, 1, 1, 2, 2]
    mean = torch.stack([member(x) for member in result.model.members]).mean(0)
    torch.testing.assert_close(result.model(x), mean)
    # A member alone, trained on the rows that were dealt to it, is the same member.
    other = fitted(*loaders, ensemble=sp.methods.Splits(1), seed=1)
    assert torch.equal(other.model.members[0].weight, result.model.members[1].weight)
    over_seeds = fitted(*loaders, ensemble=3)
    assert not torch.equal(over_seeds.model.members[1].weight, result.model.members[1].weight)


def test_prices_a_sample_and_lists_of_batches_fit_the_new_rows():
    x, labels = table()
    lists = [(x[:60], labels[:60]), (x[60:100], labels[60:100])], [(x[100:], labels[100:])]
    dealt = [len(batch.labels) for batch in sp.methods.Splits(2).deal(*lists, 0)[0]]
    assert dealt == [60, 40]
    solver = sp.AugmentedLagrangian(sp.CrossEntropy(), n_samples=100, side=sp.losses.PerPositive())
    result = fitted(*lists, solver, ensemble=sp.methods.Splits(2))
    # Every positive of the member's own training rows has a price, by its number among them.
    priced = {int((run > 0).sum()) for run in [result.solver.prices]}
    assert priced <= {int(sp.methods.Splits(2).deal(*lists, seed)[0].whole.labels.sum()) for seed in (0, 1)}


def test_the_default_for_linear_models_and_confidence_take_splits():
    x, labels = table(400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = sp.fit(
            torch.nn.Linear(4, 1), ASK, sp.Batches(x[:200], labels[:200]), sp.Batches(x[200:], labels[200:]),
            confidence=0.8, ensemble=sp.methods.Splits(2),
        )  # fmt: skip
    weights = [member.weight for member in result.model.members]
    assert len(weights) == 2
    assert not torch.equal(*weights)


def test_a_killed_ensemble_over_splits_goes_on_to_the_same_parameters(tmp_path):
    x, labels = table()

    def loaders():
        return sp.Batches(x[:100], labels[:100], batch_size=30, shuffle=True), sp.Batches(x[100:], labels[100:])

    whole = fitted(*loaders(), ensemble=sp.methods.Splits(2))

    class Killed(Exception):
        pass

    told = []

    def kill(row):
        told.append(row)
        if len(told) == 3:
            raise Killed

    with pytest.raises(Killed):
        fitted(*loaders(), ensemble=sp.methods.Splits(2), checkpoint=tmp_path / "state", on_epoch=kill)
    with pytest.raises(sp.SetpointError, match="ensemble"):
        fitted(*loaders(), ensemble=2, checkpoint=tmp_path / "state")
    again = fitted(*loaders(), ensemble=sp.methods.Splits(2), checkpoint=tmp_path / "state")
    for one, other in zip(whole.model.members, again.model.members):
        assert torch.equal(one.weight, other.weight)


def test_what_cannot_be_dealt_out_is_refused_by_name():
    x, labels = table()
    train, held_out = sp.Batches(x[:100], labels[:100]), sp.Batches(x[100:], labels[100:])
    with pytest.raises(BadSetting, match="whole number of members"):
        sp.methods.Splits(0)
    with pytest.raises(BadSetting, match="whole number of members"):
        fitted(train, held_out, ensemble=0)
    with pytest.raises(BadSetting, match="no refit"):
        fitted(train, held_out, ensemble=sp.methods.Splits(2), refit=True)
    with pytest.raises(BadSetting, match=r"in memory.*not as DataLoader"):
        fitted(DataLoader(TensorDataset(x, labels)), held_out, ensemble=sp.methods.Splits(2))
    with pytest.raises(BadSetting, match="calibration= data"):
        sp.fit(torch.nn.Linear(4, 1), ASK, train, held_out, ensemble=sp.methods.Splits(2))


@pytest.mark.parametrize("ensemble", [2, sp.methods.Splits(2)])
def test_the_estimator_takes_ensembles(ensemble):
    x, labels = (part.numpy() for part in table(200))
    clf = sp.SetpointClassifier(ASK, solver="cross-entropy", ensemble=ensemble, epochs=3).fit(x, labels)
    assert len(clf.model_.network.members) == 2
    assert np.isfinite(clf.decision_function(x)).all()
    if isinstance(ensemble, sp.methods.Splits):
        with pytest.raises(BadSetting, match="held_out and calibration"):
            sp.SetpointClassifier(ASK, solver="cross-entropy", ensemble=ensemble, calibration=0).fit(x, labels)
