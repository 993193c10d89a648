"""The exact metric as a torchmetrics metric: batches, processes, collections."""

from __future__ import annotations

import math
import multiprocessing
import pickle

import pytest
import torch
import torchmetrics
from sklearn.metrics import roc_curve

import setpoint as sp
import two_processes
from marks import slow
from setpoint.errors import BadLabels, BadScores, MissingClass
from two_processes import ASK, BY_GROUP, OperatingPointMetric, made_data


def test_batches_are_judged_as_one_and_agree_with_scikit_learn():
    scores, labels, _, _ = made_data()
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
    scores, labels, weights, groups = made_data()
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
    scores, labels, _, _ = made_data()
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
    scores, labels, _, _ = made_data()
    asks = {"tight": "minimize fnr where fpr <= 1%", "loose": "minimize fnr where fpr <= 20%", "f": "maximize f1"}
    collection = torchmetrics.MetricCollection({name: OperatingPointMetric(ask) for name, ask in asks.items()})
    for rows in torch.arange(600).split(100):
        collection.update(scores[rows], labels[rows])
    expected = {name: sp.evaluate(ask, scores, labels).objective for name, ask in asks.items()}
    assert {name: float(value) for name, value in collection.compute().items()} == expected
    assert len(set(expected.values())) == 3
    assert pickle.loads(pickle.dumps(collection["tight"])).point() == collection["tight"].point()


@slow
def test_two_processes_judge_the_joined_data(tmp_path):
    start = multiprocessing.get_context("spawn")
    told = start.Queue()
    process = start.Process(target=two_processes.second, args=(tmp_path, told))
    process.start()
    answers = [two_processes.answers_of(0, tmp_path), told.get(timeout=180)]
    process.join()
    scores, labels, weights, groups = made_data()
    joined = sp.evaluate(ASK, scores, labels)
    expected = {
        "value": joined.objective,
        "point": joined,
        "by_group": sp.evaluate(BY_GROUP, scores, labels, weights=weights, groups=groups),
        "one_idle": sp.evaluate(BY_GROUP, scores, labels, groups=groups),
        "gathered": [scores.tolist(), labels.tolist(), weights.tolist()],
    }
    assert answers == [{**expected, "own": 400}, {**expected, "own": 200}]
    assert sp.evaluate(ASK, scores[:400], labels[:400]).objective != joined.objective
