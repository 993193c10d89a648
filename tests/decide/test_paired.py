"""The difference of two shipped models on the same rows: exact where it says so, and right as often as it says."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

import setpoint as sp
from marks import slow
from setpoint.decide.paired import difference
from setpoint.problem.point import OperatingPoint
from setpoint.problem.thresholds import OneThreshold


def judged(ask, flags, labels):
    """Two points at threshold 0.5 whose scores are the flags themselves."""
    problem = sp.ask(ask)
    return [OperatingPoint(problem, OneThreshold(0.5), 0.0, {}, True, 0.0).judge(own, labels) for own in flags]


def compared(ask, flags, labels, **more):
    flags = [torch.as_tensor(own, dtype=torch.float64) for own in flags]
    return difference(*judged(ask, flags, labels), flags, labels, **more)


def draw(rng, rows=400):
    labels = (rng.random(rows) < 0.3).astype(float)
    first = (rng.random(rows) < np.where(labels, 0.7, 0.1)).astype(float)
    second = np.where(rng.random(rows) < 0.15, 1 - first, first)
    return (first, second), labels


#: Whether a row counts for a rate, as a plain function of its flag and its label, and the rows that the rate is of.
PLAIN = {
    "minimize fnr where fpr <= 50%": (lambda flag, y: y and not flag, lambda y: y),
    "minimize fpr where recall >= 1%": (lambda flag, y: flag and not y, lambda y: not y),
    "maximize recall where fpr <= 50%": (lambda flag, y: flag and y, lambda y: y),
    "minimize error": (lambda flag, y: bool(flag) != bool(y), lambda y: True),
    "minimize flagged where recall >= 1%": (lambda flag, y: flag, lambda y: True),
}


@pytest.mark.parametrize("ask", PLAIN)
def test_the_exact_interval_is_that_of_two_binomials(ask):
    (first, second), labels = draw(np.random.default_rng(1))
    counts, of = PLAIN[ask]
    rows = [(counts(a, y), counts(b, y)) for a, b, y in zip(first, second, labels) if of(y)]
    only_first = sum(bool(a) and not b for a, b in rows)
    only_second = sum(bool(b) and not a for a, b in rows)
    differ = only_first + only_second
    shares = binomtest(differ, len(rows)).proportion_ci(0.99)
    ends = [2 * end - 1 for end in binomtest(only_first, differ).proportion_ci(0.96)]
    corners = [share * end for share in shares for end in ends]
    found = compared(ask, (first, second), labels)
    assert found.value == pytest.approx((only_first - only_second) / len(rows))
    assert (found.low, found.high) == pytest.approx((min(corners), max(corners)))
    assert found.method == f"exact, paired: {differ} of {len(rows)} rows are decided differently"


def test_models_that_decide_alike_are_not_called_different_but_may_be():
    (first, _), labels = draw(np.random.default_rng(2))
    found = compared("minimize error", (first, first), labels)
    assert not found.is_clear
    assert found.low == -found.high < 0


@pytest.mark.parametrize(
    ("ask", "least"),
    [
        ("minimize error", 0.95),
        pytest.param("maximize precision where recall >= 1%", 0.93, marks=slow),
        pytest.param("maximize f1", 0.93, marks=slow),
    ],
)
def test_the_interval_holds_the_true_difference_as_often_as_it_says(ask, least):
    rng = np.random.default_rng(3)
    (first, second), labels = draw(rng, 2000)
    true = compared(ask, (first, second), labels).value
    inside, repeats = 0, 300
    for _ in range(repeats):
        rows = rng.integers(0, 2000, 150)
        found = compared(ask, (first[rows], second[rows]), labels[rows])
        inside += found.low <= true <= found.high
    assert inside / repeats >= least - 2 * np.sqrt(least * (1 - least) / repeats)


def test_a_difference_that_is_there_is_found_and_has_a_side():
    rng = np.random.default_rng(4)
    labels = (rng.random(2000) < 0.3).astype(float)
    good, bad = ((rng.random(2000) < np.where(labels, hit, 0.1)).astype(float) for hit in (0.8, 0.6))
    assert (found := compared("minimize fnr where fpr <= 50%", (good, bad), labels)).is_clear
    assert found.is_better
    assert found.high < 0
    turned = compared("minimize fnr where fpr <= 50%", (bad, good), labels)
    assert (turned.is_clear, turned.is_better) == (True, False)
    assert turned.low == pytest.approx(-found.high)
    assert compared("maximize f1", (good, bad), labels).is_better
    assert compared("maximize f1", (good, bad), labels).to_dict()["clear"]


def test_areas_and_groups_are_compared_too():
    rng = np.random.default_rng(5)
    labels = np.arange(300) % 3 == 0
    scores = [rng.normal(size=300) + gap * labels for gap in (2.0, 0.5)]
    area = [sp.evaluate("maximize recall over fpr in [0%, 20%]", own, labels) for own in scores]
    found = difference(*area, scores, labels)
    assert found.is_clear
    assert found.is_better
    assert found.value == pytest.approx(area[0].objective - area[1].objective)
    groups = rng.choice(["a", "b"], 300)
    asked = "minimize error where recall.gap(site) <= 30%"
    points = [sp.evaluate(asked, own, labels, groups=groups) for own in scores]
    found = difference(*points, scores, labels, groups=groups)
    wrong = [(point.predict(own, groups) != labels).mean() for point, own in zip(points, scores)]
    assert found.value == pytest.approx(wrong[0] - wrong[1])
    assert found.low <= found.value <= found.high
