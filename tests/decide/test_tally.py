"""Scores counted in buckets: exact after a second look, and short of the best by no more than they say after one."""

from __future__ import annotations

import dataclasses
import multiprocessing

import numpy as np
import pytest
import torch.distributed as dist
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import setpoint as sp
from marks import cases, slow
from setpoint.decide import tally as counting
from setpoint.decide.tally import BUCKETS, ScoreTally, _bucket, _lowest
from setpoint.errors import BadProblem, BadScores, BadSetting, MissingClass, TooFewSamples
from setpoint.problem.language import ask

ASKS = [
    "minimize fnr where fpr <= 20%",
    "minimize fnr where fpr <= 0%",
    "maximize precision where recall >= 80%",
    "maximize recall where precision >= 60%",
    "maximize recall where precision >= 100%",
    "maximize recall where flagged == 30%",
    "maximize tnr where recall >= 70% and flagged <= 50%",
    "minimize error where recall == 50% and fpr <= 30%",
    "maximize f_score(2)",
    "maximize mcc",
    "maximize kappa",
    "maximize g_mean where flagged <= 40%",
    "minimize flagged",
]
#: Scores near each other, near zero, huge and tiny: many share a bucket, many share a value.
SCORES = st.one_of(
    st.integers(-3, 3).map(float),
    st.integers(0, 40).map(lambda place: 1.0 + place * 2.0**-30),
    st.floats(-1e-40, 1e-40),
    st.floats(-1e300, 1e300),
)


@pytest.fixture
def few_buckets():
    """Wider buckets, quicker to count and with more in each."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"BUCKETS": 2**12, "_HALF": 2**11, "_SHIFT": 20}.items():
            patch.setattr(counting, name, value)
        yield


@cases(200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(SCORES, st.booleans()), min_size=2, max_size=60),
    ask=st.sampled_from(ASKS),
    pieces=st.integers(1, 3),
)
def test_the_second_look_finds_what_all_scores_at_once_would(few_buckets, rows, ask, pieces):
    scores, labels = np.array([score for score, _ in rows]), np.array([label for _, label in rows]).astype(int)
    labels[:2] = 0, 1
    exact = sp.evaluate(ask, scores, labels)
    parts = list(zip(np.array_split(scores, pieces), np.array_split(labels, pieces)))
    first = ScoreTally()
    for part in parts:
        first.merge(ScoreTally().update(*part))
    coarse, doubt = first.calibrate(ask), first.doubt(ask)
    second = first.around(ask)
    for part in parts:
        second.update(*part)
    assert second.calibrate(ask) == exact
    assert second.doubt(ask) == 0
    # One look: exact rates at its threshold, and no more worse than it says.
    assert coarse == replace_threshold(exact, coarse).judge(scores, labels)
    if coarse.feasible and exact.feasible and not any(c.relation == "==" for c in coarse.problem.constraints):
        short = (exact.objective - coarse.objective) * (1 if coarse.problem.maximize else -1)
        assert -1e-12 <= short <= doubt + 1e-12


def replace_threshold(point, other):
    return dataclasses.replace(point, thresholds=other.thresholds)


@cases(30)
@given(
    seed=st.integers(0, 1000), size=st.integers(400, 1500), width=st.sampled_from([1e-6, 1e-3, 1.0, 1e4]),
    ask=st.sampled_from([
        "minimize fnr where fpr <= 20%", "maximize precision where recall >= 60%",
        "maximize accuracy where recall >= 20% and flagged <= 80%",
    ]),
)  # fmt: skip
def test_certified_thresholds_are_those_of_all_scores_at_once(seed, size, width, ask):
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 2, size)
    scores = np.round(1 + width * (draw.normal(size=size) + labels), 7)
    exact = sp.calibrate(ask, scores, labels, confidence=0.9)
    first = ScoreTally().update(scores, labels)
    point = first.around(ask, 0.9).update(scores, labels).calibrate(ask, confidence=0.9)
    assert (point.threshold, point.certificate, point.rates) == (exact.threshold, exact.certificate, exact.rates)
    # The buckets are the same for any data, so one look may certify too, somewhat to the safe side.
    coarse = first.calibrate(ask, confidence=0.9)
    assert coarse.feasible
    short = (exact.objective - coarse.objective) * (1 if coarse.problem.maximize else -1)
    assert -1e-12 <= short <= first.doubt(ask, 0.9) + 1e-12


@given(values=st.lists(st.floats(-1.79e308, 1.79e308), min_size=1))
def test_buckets_keep_the_order_of_the_scores(values):
    ordered = np.sort(np.array(values) + 0.0)
    buckets = _bucket(ordered)
    assert (np.diff(buckets) >= 0).all()
    assert (buckets >= 0).all()
    assert (buckets < BUCKETS).all()
    assert (_lowest(buckets) <= ordered).all()
    assert (ordered < _lowest(buckets + 1)).all()


def test_a_few_buckets_hold_the_best_cut_of_many_scores():
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 2, 300_000)
    scores = draw.normal(size=len(labels)) + labels
    first = ScoreTally().update(scores, labels)
    second = first.around("minimize fnr where fpr <= 1%")
    assert second.windows.sum() <= 6
    assert len(second.update(scores, labels).values) < 2000
    assert 0 < first.doubt("minimize fnr where fpr <= 1%") < 0.002


def test_a_threshold_is_shown_with_as_few_digits_as_that_of_all_scores_at_once():
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 2, 3000)
    scores, asked = (draw.normal(size=len(labels)) + labels).astype(np.float32), "minimize fnr where fpr <= 10%"
    first = ScoreTally().update(scores, labels)
    shown = first.around(asked).update(scores, labels).calibrate(asked).thresholds.describe()
    assert shown == sp.calibrate(asked, scores, labels).thresholds.describe()
    assert len(shown) < 8
    coarse = first.calibrate(asked)
    cut = float(coarse.thresholds.describe())
    assert ((scores > cut) == (scores > coarse.threshold)).all()


def both(rank):
    draw = np.random.default_rng(rank)
    labels = draw.integers(0, 2, 1000 + 500 * rank)
    return draw.normal(size=len(labels)) + labels, labels


def reduced(rank, place):
    dist.init_process_group("gloo", init_method=f"file://{place}/meeting", rank=rank, world_size=2)
    try:
        own = both(rank)
        asked = "minimize fnr where fpr <= 5%"
        first = ScoreTally().update(*own).all_reduce()
        return first.around(asked).update(*own).all_reduce().calibrate(asked)
    finally:
        dist.destroy_process_group()


def second_process(place, told):
    told.put(reduced(1, place))


@slow
def test_two_processes_find_what_one_would(tmp_path):
    context = multiprocessing.get_context("spawn")
    told = context.Queue()
    other = context.Process(target=second_process, args=(tmp_path, told))
    other.start()
    mine, theirs = reduced(0, tmp_path), told.get(timeout=120)
    other.join(60)
    scores, labels = (np.concatenate(parts) for parts in zip(both(0), both(1)))
    expected = sp.calibrate("minimize fnr where fpr <= 5%", scores, labels)
    assert mine == theirs == expected


def test_what_a_tally_cannot_do_is_refused():
    tally = ScoreTally().update([0.1, 0.2, 0.3], [0, 1, 1])
    with pytest.raises(BadScores, match="no scores were counted"):
        ScoreTally().calibrate("maximize f1")
    with pytest.raises(MissingClass, match="needs negative samples"):
        ScoreTally().update([0.1], [1]).calibrate("minimize fnr where fpr <= 5%")
    with pytest.raises(BadProblem, match="asks for several"):
        tally.calibrate("maximize recall over fpr in [0%, 5%]")
    with pytest.raises(BadProblem, match="asks for several"):
        tally.around("minimize error where recall.gap(sex) <= 2%")
    with pytest.raises(BadProblem, match="not oddity"):
        tally.calibrate(sp.maximize(sp.Metric("oddity", lambda tp, fp, fn, tn: tp * fp)))
    with pytest.raises(BadProblem, match="certifies bounds that one end"):
        tally.calibrate("maximize recall where precision >= 60%", confidence=0.9)
    with pytest.raises(TooFewSamples, match="needs 5 positives"):
        tally.calibrate("maximize tnr where recall >= 60%", confidence=0.9)
    with pytest.raises(BadSetting, match="confidence"):
        tally.calibrate("minimize fnr where fpr <= 5%", confidence=2)
    second = tally.around(ask("maximize f1"))
    with pytest.raises(BadSetting, match="do not add up"):
        tally.merge(second)
    with pytest.raises(BadScores, match="no scores were counted"):
        second.calibrate("maximize f1")


def test_a_tally_is_not_added_up_without_processes():
    with pytest.raises(BadSetting, match="init_process_group"):
        ScoreTally().update(*both(0)).all_reduce()
