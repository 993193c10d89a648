"""Training for several labels: one model per label, or one network for all, from labels that are partly not known."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import setpoint as sp
from label_tables import ASK, ASKS, NAMES, label_arrays
from marks import slow
from setpoint.data.split import split
from setpoint.errors import BadSetting, ShapeMismatch
from setpoint.measure.sample import Sample
from setpoint.train.refined import refined_loss

PROBLEM = sp.ask(ASKS)


def parts(**how):
    x, labels = (torch.from_numpy(part).float() for part in label_arrays(600))
    return [sp.Batches(x[rows], labels[rows], **how) for rows in split(labels, (0.6, 0.2, 0.2), 0)]


def of_one(loaders, place):
    for loader in loaders:
        rows = loader.resident
        known = ~rows.labels[:, place].isnan()
        yield sp.Batches(rows.x[known], rows.labels[known, place], batch_size=loader.batch_size)


def test_each_row_of_a_linear_model_is_that_of_the_label_alone():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 3)
    starts = model.weight.detach().clone()
    *data, rest = parts()
    result = sp.fit(model, PROBLEM, *data, calibration=rest)
    assert result.model is model
    for place, ask in enumerate(ASKS.values()):
        own = torch.nn.Linear(4, 1)
        with torch.no_grad():
            own.weight.copy_(starts[place : place + 1])
        *train, calibration = of_one([*data, rest], place)
        alone = sp.fit(own, ask, *train, calibration=calibration)
        torch.testing.assert_close(model.weight[place : place + 1], own.weight, rtol=0, atol=0)
        torch.testing.assert_close(model.bias[place : place + 1], own.bias, rtol=0, atol=0)
        assert result.point.threshold[NAMES[place]] == alone.point.threshold
    assert {row.get("label") for row in result.history} == {*NAMES, None}
    assert result.best_epoch == len(result.history) - 1


@pytest.mark.parametrize("kind", ["network", "one-vs-rest", pytest.param("trees", marks=slow)])
def test_every_kind_of_model_is_fitted(kind):
    *data, rest = parts(batch_size=64, shuffle=True)
    layers = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    rest_of = sp.classes.OneVsRest(PROBLEM, 3)
    ways = {"network": (layers, None), "one-vs-rest": (torch.nn.Linear(4, 3), rest_of), "trees": ("trees", None)}
    model, solver = ways[kind]
    result = sp.fit(model, PROBLEM, *data, solver, calibration=rest, epochs=12)
    assert result.point.labels == NAMES
    assert result.point.objective < 0.4
    assert result.point.feasible


def test_any_loader_of_batches_is_taken():
    data = [list(loader) for loader in parts(batch_size=50)]
    torch.manual_seed(0)
    result = sp.fit(torch.nn.Linear(4, 3), ASK, *data[:2], calibration=data[2])
    torch.manual_seed(0)
    same = sp.fit(torch.nn.Linear(4, 3), ASK, *parts(batch_size=50)[:2], calibration=parts()[2])
    torch.testing.assert_close(result.model.weight, same.model.weight, rtol=1e-3, atol=1e-3)
    assert result.point.labels == ("0", "1", "2")


def test_cross_entropy_of_labels_is_the_mean_over_those_that_are_known():
    draw = torch.Generator().manual_seed(0)
    scores = torch.randn(20, 3, generator=draw, requires_grad=True)
    labels, weights = (torch.rand(20, 3, generator=draw) > 0.5).float(), torch.rand(20, generator=draw)
    labels[::3, 1] = torch.nan
    known = ~labels.isnan()
    each = F.binary_cross_entropy_with_logits(scores, labels.nan_to_num(), reduction="none")
    torch.testing.assert_close(sp.CrossEntropy()(scores, labels), each[known].mean())
    mass = weights.unsqueeze(-1) * known
    loss = sp.CrossEntropy()(scores, labels, weights=weights)
    torch.testing.assert_close(loss, (mass * each).sum() / mass.sum())
    loss.backward()
    assert bool((scores.grad[~known] == 0).all())
    with pytest.raises(BadSetting, match="pos_weight"):
        sp.CrossEntropy(2.0)(scores, labels)


def test_a_label_that_is_not_known_has_no_part_in_one_vs_rest():
    draw = torch.Generator().manual_seed(0)
    scores, labels = torch.randn(40, 3, generator=draw), (torch.rand(40, 3, generator=draw) > 0.5).float()
    gaps, weights = labels.clone(), torch.ones(40, 3)
    gaps[::4, 1], weights[::4, 1] = torch.nan, 0.0
    losses = []
    for own, given in ((gaps, None), (labels, weights)):
        leaf = scores.clone().requires_grad_()
        loss = sp.classes.OneVsRest(PROBLEM, 3)(leaf, own, weights=given)
        loss.backward()
        losses.append((loss.detach(), leaf.grad))
    torch.testing.assert_close(losses[0], losses[1])
    with pytest.raises(BadSetting, match="3 problems came for 2 labels"):
        sp.classes.OneVsRest(PROBLEM, 2)


def test_the_loss_that_stops_training_is_the_sum_over_labels():
    x, labels = label_arrays(200)
    scores, labels = torch.from_numpy(x[:, :3]), torch.from_numpy(labels)
    each = []
    for place in range(3):
        known = ~labels[:, place].isnan()
        each.append(refined_loss(Sample(scores[known, place], labels[known, place])))
    assert refined_loss(Sample(scores, labels)) == pytest.approx(sum(each))


def test_parts_of_a_split_share_each_label_about_fairly():
    labels = torch.from_numpy(label_arrays(2000, missing=0.3)[1])
    for rows in split(labels, (0.5, 0.15, 0.15, 0.2), 3):
        for place in range(3):
            both = [
                float((part[:, place] == 1).sum() / (~part[:, place].isnan()).sum()) for part in (labels, labels[rows])
            ]
            assert both[1] == pytest.approx(both[0], abs=0.04)


def test_scores_of_another_width_are_refused():
    *data, rest = parts()
    with pytest.raises((ShapeMismatch, IndexError)):
        sp.fit(torch.nn.Sequential(torch.nn.Linear(4, 2)), PROBLEM, *data, calibration=rest, epochs=1)
    assert np.isnan(label_arrays(50)[1]).any()
