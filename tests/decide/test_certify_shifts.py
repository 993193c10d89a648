"""Certificates for bounds on classes: broken on new data no more often than they say."""

import numpy as np
import pytest

import setpoint as sp
from marks import quick_first, slow
from setpoint.errors import BadProblem, TooFewSamples
from setpoint.problem.evidence import is_testable, p_if_broken, trials

ASKS = {
    "one": "maximize recall of class 2 where fpr of class 2 <= 10%",
    "several": "minimize error where recall of class 0 >= 70% and recall of class 1 >= 60%",
    "coverage": "maximize macro recall where coverage of class 0 <= 30%",
    "error": "maximize recall of class 0 where error <= 40%",
}


def drawn(draw, size):
    labels = draw.choice(3, size, p=[0.3, 0.3, 0.4])
    return draw.normal(size=(size, 3)) + 1.7 * np.eye(3)[labels], labels


@pytest.mark.parametrize("ask", quick_first(ASKS.values()))
def test_the_promise_is_broken_no_more_often_than_it_says(ask):
    draw, repeats, certified, broken = np.random.default_rng(0), 40, 0, 0
    # Many rows stand for the true distribution.
    fresh = drawn(draw, 20_000)
    for _ in range(repeats):
        try:
            point = sp.calibrate(ask, *drawn(draw, 240), confidence=0.9)
        except TooFewSamples:
            continue
        certified += 1
        broken += point.judge(*fresh).violation > 0.005
    assert certified > repeats / 2
    assert broken / repeats <= 0.1 + 2 * (0.1 * 0.9 / repeats) ** 0.5


@slow
def test_without_a_certificate_the_bound_is_broken_far_more_often():
    draw, broken = np.random.default_rng(1), 0
    fresh = drawn(draw, 20_000)
    for _ in range(20):
        broken += sp.calibrate(ASKS["coverage"], *drawn(draw, 240)).judge(*fresh).violation > 0
    assert broken >= 3


def test_the_certificate_says_what_it_covers():
    draw = np.random.default_rng(0)
    point = sp.calibrate(ASKS["one"], *drawn(draw, 500), confidence=0.95)
    assert str(point.certificate).startswith("fpr of class 2 <= 10% with confidence 95%, from ")
    assert "order statistic" in point.certificate.method
    point = sp.calibrate(ASKS["several"], *drawn(draw, 500), confidence=0.95)
    assert "along a path" in point.certificate.method


def test_the_trials_of_a_bound_on_a_class_are_those_of_its_rate():
    counts = np.array([[30.0, 5, 10, 55], [20, 10, 5, 65], [20, 15, 15, 50]])
    recall, error = sp.classes.OfClass(sp.recall, 1) >= 0.5, sp.classes.Micro(sp.fnr) <= 0.5
    assert trials(recall, counts) == 25
    assert trials(error, counts) == 100
    plain = sp.recall >= 0.5
    assert p_if_broken(recall, counts) == p_if_broken(plain, counts[1])
    wrong = sp.Rate("wrong", part=(0, 1, 0, 0), whole=(1, 1, 1, 1)) <= 0.5
    assert p_if_broken(error, counts) == p_if_broken(wrong, np.array([70.0, 30, 0, 0]))
    assert is_testable(recall)
    assert is_testable(error)
    for untested in (sp.classes.Macro(sp.recall), sp.classes.Micro(sp.fpr), sp.classes.ClassGap(sp.recall)):
        assert not is_testable(untested <= 0.5)


def test_too_few_rows_and_bounds_without_room_are_refused():
    scores, labels = drawn(np.random.default_rng(0), 60)
    says = "class 2 against the rest: fpr <= 1% at confidence 95% needs 299 negatives"
    with pytest.raises(TooFewSamples, match=says):
        sp.calibrate("maximize recall of class 2 where fpr of class 2 <= 1%", scores, labels, confidence=0.95)
    with pytest.raises(TooFewSamples, match="needs 299 samples of class 1, but there are"):
        sp.calibrate("minimize error where recall of class 1 >= 99%", scores, labels, confidence=0.95)
    with pytest.raises(BadProblem, match="leave a little room"):
        sp.calibrate("minimize error where recall of class 1 >= 100%", scores, labels, confidence=0.95)
