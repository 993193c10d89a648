"""Ensembles over random stratified splits: sizes and shares kept, no row in both parts, every door."""

import warnings

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import setpoint as sp
from marks import slow
from setpoint.errors import BadSetting

ASK = "minimize fnr where fpr <= 20%"


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
    dealt = [sp.methods.Splits(3).deal(*loaders, 0, member) for member in range(3)]
    rows = []
    for train, held_out in dealt:
        assert (len(train.resident.labels), len(held_out.resident.labels), len(train)) == (100, 50, 1)
        assert abs(float(train.resident.labels.sum()) - float(labels.sum()) * 100 / 150) < 1
        numbers = [(150 * loader.resident.x[:, -1]).round().long() for loader in (train, held_out)]
        assert torch.equal(torch.cat(numbers).sort().values, torch.arange(150))
        assert torch.equal(labels[numbers[0]], train.resident.labels)
        assert torch.equal(train.resident.index, torch.arange(100))
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
    # The first step of Adam knows the signs of the slopes alone, so weights may agree; losses tell the rows apart.
    assert [row["soft"] for row in over_seeds.history][2:] != [row["soft"] for row in result.history][2:]


def test_prices_a_sample_and_lists_of_batches_fit_the_new_rows():
    x, labels = table()
    lists = [(x[:60], labels[:60]), (x[60:100], labels[60:100])], [(x[100:], labels[100:])]
    dealt = [len(batch.labels) for batch in sp.methods.Splits(2).deal(*lists, 0, 0)[0]]
    assert dealt == [60, 40]
    solver = sp.AugmentedLagrangian(sp.CrossEntropy(), n_samples=100, side=sp.losses.PerPositive())
    result = fitted(*lists, solver, ensemble=sp.methods.Splits(2))
    # Every positive of the member's own training rows has a price, by its number among them.
    priced = {int((run > 0).sum()) for run in [result.solver.prices]}
    assert priced <= {int(sp.methods.Splits(2).deal(*lists, 0, member)[0].resident.labels.sum()) for member in (0, 1)}


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


def test_folds_hold_every_row_out_once():
    x, labels = table()
    loaders = sp.Batches(x[:100], labels[:100], batch_size=20), sp.Batches(x[100:], labels[100:])
    held = []
    for member in range(5):
        train, held_out = sp.methods.Folds(5).deal(*loaders, 3, member)
        numbers = [(150 * loader.resident.x[:, -1]).round().long() for loader in (train, held_out)]
        assert torch.equal(torch.cat(numbers).sort().values, torch.arange(150))
        assert abs(float(held_out.resident.labels.sum()) - float(labels.sum()) / 5) <= 1
        assert train.batch_size == 20
        held += numbers[1].tolist()
    assert sorted(held) == list(range(150))
    with pytest.raises(BadSetting, match="cross-fitting needs 2 folds or more"):
        sp.methods.Folds(1)


@slow
def test_cross_fitting_averages_models_that_were_each_held_out_from_a_fold():
    x, labels = table()
    loaders = sp.Batches(x[:100], labels[:100]), sp.Batches(x[100:], labels[100:])
    result = fitted(*loaders, sp.Ridge(), ensemble=sp.methods.Folds(3))
    alone = []
    for member in range(3):
        train, held_out = sp.methods.Folds(3).deal(*loaders, 0, member)
        alone.append(fitted(train, held_out, sp.Ridge()).model)
    mean = torch.stack([model(x) for model in alone]).mean(0)
    torch.testing.assert_close(result.model(x), mean)
