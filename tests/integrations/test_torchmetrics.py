"""The exact metric as a torchmetrics metric: batches, processes, collections."""

from __future__ import annotations

import json
import math
import pickle

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing
from packages import needs
from sklearn.metrics import roc_curve

import setpoint as sp
from setpoint.errors import BadLabels, BadScores, MissingClass
from setpoint.integrations.gather import gathered
from setpoint.measure.sample import Sample

torchmetrics = needs("torchmetrics")
OperatingPointMetric = needs("setpoint.integrations.torchmetrics").OperatingPointMetric

ASK = "minimize fnr where fpr <= 5%"
BY_GROUP = "minimize error where recall.gap(site) <= 10%"


def data(size=600, seed=0):
    """Logits far outside 0 ... 1, so that any squashing would tie them."""
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(size, generator=draw) < 0.3).float()
    scores = 1000 + 40 * torch.randn(size, generator=draw) + 60 * labels
    return scores, labels, torch.rand(size, generator=draw) + 0.5, torch.randint(0, 3, (size,), generator=draw)


def test_batches_are_judged_as_one_and_agree_with_scikit_learn():
    scores, labels, _, _ = data()
    metric = OperatingPointMetric(ASK)
    for rows in torch.arange(600).split(70):
        metric.update(scores[rows], labels[rows])
    fpr, tpr, _ = roc_curve(labels, scores, drop_intermediate=False)
    assert float(metric.compute()) == pytest.approx(1 - tpr[fpr <= 0.05].max())
    assert metric.point() == sp.evaluate(ASK, scores, labels)
    assert metric.higher_is_better is False
    metric.reset()
    with pytest.raises(BadScores):
        metric.point()


def test_weights_and_groups_are_kept():
    scores, labels, weights, groups = data()
    metric = OperatingPointMetric(BY_GROUP)
    for rows in torch.arange(600).split(70):
        metric.update(scores[rows], labels[rows], weights[rows], groups[rows])
    assert metric.point() == sp.evaluate(BY_GROUP, scores, labels, weights=weights, groups=groups)


def test_no_feasible_cut_loses_to_every_other_value():
    scores, labels = torch.tensor([3.0, 1.0, 2.0, 0.0]), torch.tensor([0.0, 1.0, 0.0, 1.0])
    asks = {"maximize recall where precision >= 0.9": -math.inf, "minimize fnr where precision >= 0.9": math.inf}
    for ask, worst in asks.items():
        metric = OperatingPointMetric(ask)
        metric.update(scores, labels)
        assert float(metric.compute()) == worst
        assert not metric.point().feasible


def test_one_call_remembers_a_batch_and_judges_it_alone():
    scores, labels, _, _ = data()
    metric = OperatingPointMetric(ASK)
    first, second = slice(0, 400), slice(400, 600)
    assert float(metric(scores[first], labels[first])) == sp.evaluate(ASK, scores[first], labels[first]).objective
    assert float(metric(scores[second], torch.zeros(200))) == math.inf
    joined = torch.cat([labels[first], torch.zeros(200)])
    assert float(metric.compute()) == sp.evaluate(ASK, scores, joined).objective


def test_bad_batches_are_refused_by_name():
    metric = OperatingPointMetric(ASK)
    with pytest.raises(BadLabels):
        metric.update(torch.randn(3), torch.tensor([0, 1, 2]))
    metric.update(torch.randn(3), torch.zeros(3))
    with pytest.raises(MissingClass):
        metric.compute()


def test_it_stands_in_a_collection_and_can_be_pickled():
    scores, labels, _, _ = data()
    asks = {"tight": "minimize fnr where fpr <= 1%", "loose": "minimize fnr where fpr <= 20%", "f": "maximize f1"}
    collection = torchmetrics.MetricCollection({name: OperatingPointMetric(ask) for name, ask in asks.items()})
    for rows in torch.arange(600).split(100):
        collection.update(scores[rows], labels[rows])
    expected = {name: sp.evaluate(ask, scores, labels).objective for name, ask in asks.items()}
    assert {name: float(value) for name, value in collection.compute().items()} == expected
    assert len(set(expected.values())) == 3
    assert pickle.loads(pickle.dumps(collection["tight"])).point() == collection["tight"].point()


def one_of_two(rank, place):
    """A process with its own part of the data; the second has less, and at last nothing."""
    dist.init_process_group("gloo", init_method=f"file://{place}/meeting", rank=rank, world_size=2)
    scores, labels, weights, groups = data()
    mine = slice(0, 400) if rank == 0 else slice(400, 600)
    metric, by_group = OperatingPointMetric(ASK), OperatingPointMetric(BY_GROUP)
    for rows in torch.arange(600)[mine].split(90):
        metric.update(scores[rows], labels[rows])
        by_group.update(scores[rows].double(), labels[rows], weights[rows], groups[rows])
    answers = {"value": float(metric.compute()), "point": metric.point().to_dict()}
    answers["by_group"] = by_group.point().to_dict()
    answers["own"] = len(torch.cat(metric.scores))
    by_group.reset()
    if rank == 0:
        by_group.update(scores.double(), labels, None, groups)
    answers["one_idle"] = by_group.point().to_dict()
    joined = gathered(Sample(scores[mine], labels[mine], weights[mine]))
    answers["gathered"] = [joined.scores.tolist(), joined.labels.tolist(), joined.weights.tolist()]
    (place / f"{rank}.json").write_text(json.dumps(answers))
    dist.destroy_process_group()


def test_two_processes_judge_the_joined_data(tmp_path):
    torch.multiprocessing.spawn(one_of_two, args=(tmp_path,), nprocs=2)
    scores, labels, weights, groups = data()
    joined = sp.evaluate(ASK, scores, labels)
    expected = {
        "value": joined.objective,
        "point": joined.to_dict(),
        "by_group": sp.evaluate(BY_GROUP, scores, labels, weights=weights, groups=groups).to_dict(),
        "one_idle": sp.evaluate(BY_GROUP, scores, labels, groups=groups).to_dict(),
        "gathered": [scores.tolist(), labels.tolist(), weights.tolist()],
    }
    for rank, own in ((0, 400), (1, 200)):
        answers = json.loads((tmp_path / f"{rank}.json").read_text())
        assert answers == {**expected, "own": own}
    assert sp.evaluate(ASK, scores[:400], labels[:400]).objective != joined.objective
