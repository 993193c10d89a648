"""Bad input gets one clear sentence that names the thing; good input of any kind gets in."""

import numpy as np
import pytest
import torch

import setpoint as sp
from setpoint.errors import BadGroups, BadLabels, BadScores, BadWeights, MissingClass, ShapeMismatch
from setpoint.measure.sample import check_sample

PROBLEM = sp.minimize(sp.fnr, sp.fpr <= 0.5)


@pytest.mark.parametrize(
    ("kwargs", "error", "says"),
    [
        ({"scores": [[0.1], [0.2]], "labels": [0, 1]}, ShapeMismatch, r"scores.squeeze\(-1\)"),
        ({"scores": [0.1, 0.2], "labels": [0, 1, 1]}, ShapeMismatch, r"scores \(2,\) and labels \(3,\)"),
        ({"scores": [0.1, float("nan")], "labels": [0, 1]}, BadScores, r"1 of 2 scores are not finite \(1 NaN\)"),
        ({"scores": [0.1, float("inf")], "labels": [0, 1]}, BadScores, r"not finite \(0 NaN\)"),
        ({"scores": [0.1, 0.2], "labels": [-1, 1]}, BadLabels, r"\(labels > 0\)"),
        ({"scores": [0.1, 0.2], "labels": [0, 2]}, BadLabels, "hold 2"),
        ({"scores": [0.1, 0.2], "labels": [0, 0.5]}, BadLabels, "hold 0.5"),
        (
            {"scores": [0.1, 0.2], "labels": [0, float("nan")]},
            BadLabels,
            r"missing for 1 of 2 samples, first in labels",
        ),
        ({"scores": [0.1, 0.2], "labels": ["no", "yes"]}, BadLabels, "labels must be numbers"),
        ({"scores": [0.1, 0.2], "labels": [0, 1], "weights": [1, -1]}, BadWeights, "not negative"),
        ({"scores": [0.1, 0.2], "labels": [0, 1], "weights": [1, float("nan")]}, BadWeights, "finite"),
        ({"scores": [0.1, 0.2], "labels": [0, 1], "weights": [1]}, ShapeMismatch, "weights"),
        ({"scores": [0.1, 0.2], "labels": [0, 1], "groups": [0]}, ShapeMismatch, "groups"),
        ({"scores": [0.1, 0.2], "labels": [0, 1], "groups": [0, -1]}, BadGroups, "from 0 up"),
        ({"scores": [0.1, 0.2], "labels": [0, 1], "groups": [0.5, 1.0]}, BadGroups, "whole numbers"),
    ],
)
def test_bad_input_is_refused_by_name(kwargs, error, says):
    with pytest.raises(error, match=says):
        check_sample(**kwargs)


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor, lambda v: torch.tensor(v).bool()])
def test_lists_arrays_and_tensors_get_in(kind):
    labels = kind([0, 1, 1]) if kind is not list else [False, True, True]
    point = sp.evaluate(PROBLEM, np.array([0.1, 0.5, 0.7]), labels)
    assert point.objective == 0


def test_scores_of_whole_numbers_are_scores():
    assert sp.evaluate(PROBLEM, [1, 2, 3], [0, 1, 1]).objective == 0


@pytest.mark.parametrize("labels", [[0, 0], [1, 1]])
def test_a_rate_without_its_class_is_refused(labels):
    with pytest.raises(MissingClass, match="hold none"):
        sp.evaluate(PROBLEM, [0.1, 0.2], labels)


def test_nothing_to_judge_is_refused():
    with pytest.raises(BadScores, match="no scores"):
        sp.evaluate(PROBLEM, [], [])
