"""Deciding lists: points that are stored, certificates against known worlds, estimates and paired differences."""

import numpy as np
import pytest
import torch

import setpoint as sp
from marks import slow
from setpoint.decide.paired import difference
from setpoint.errors import BadGroups, BadProblem, BadSetting, TooFewSamples
from setpoint.problem.evidence_of_lists import lists_needed, p_above

ASK = "maximize precision in the first 5 where hit in the first 3 >= 60% and precision in the first 2 >= 40%"


def world(lists, seed=0, rows=12, share=0.25):
    draw = np.random.default_rng(seed)
    labels = (draw.random(lists * rows) < share).astype(int)
    return labels + draw.normal(size=lists * rows), labels, np.repeat(np.arange(lists), rows)


def test_a_certified_point_is_stored_and_checked():
    scores, labels, lists = world(200)
    point = sp.calibrate(ASK, scores, labels, lists=lists, confidence=0.95)
    assert str(point.certificate) == (
        "hit in the first 3 >= 60% and precision in the first 2 >= 40% with confidence 95%, from 200 samples (exact "
        "binomial test over lists and betting on the mean over lists)"
    )
    assert sp.OperatingPoint.from_dict(point.to_dict()) == point
    assert point.threshold == {"first": 5}
    assert point.thresholds.rule() == "Flag the first 5 rows of each list"
    assert "feasible, first 5 of each list" in str(point)
    decided = point.predict(torch.tensor(scores), lists=lists)
    assert decided.sum() == 5 * 200
    later = world(100, seed=1)
    assert point.judge(later[0], later[1], lists=later[2]).feasible
    assert point.check(later[0], later[1], lists=later[2]).holds
    broken = point.check(-later[0], later[1], lists=later[2])
    assert not broken.holds
    assert broken.bounds[0].samples == (100,)


def test_a_point_that_breaks_its_bound_says_so():
    scores, labels, lists = world(30)
    point = sp.evaluate(
        "maximize recall in the first 5 where precision in the first 2 >= 90%", scores, labels, lists=lists
    )
    assert not point.feasible
    assert point.outcome.startswith("infeasible: these scores do not meet precision in the first 2 >= 90% (nearest")


@pytest.mark.parametrize(
    ("bound", "lists", "says"),
    [
        ("hit in the first 3 >= 99%", 200, "needs 299 lists, but there are 200"),
        ("fnr in the first 9 <= 1%", 100, "needs [0-9]+ lists, but there are 100"),
        ("precision in the first 2 >= 90%", 200, r"over 200 lists it is 54.75%; ask for less"),
        ("precision in the first 2 >= 53%", 200, r"times as many lists would do; they could certify .* >= 52"),
    ],
)
def test_refusals_say_how_many_lists(bound, lists, says):
    scores, labels, each = world(lists)
    with pytest.raises(TooFewSamples, match=says):
        sp.calibrate(f"maximize recall in the first 5 where {bound}", scores, labels, lists=each, confidence=0.95)


def test_what_is_never_certified():
    scores, labels, lists = world(20)
    weights = np.where(lists < 3, 2.0, 1.0)
    for bound, more in (("hit in the first 3 >= 100%", {}), ("hit in the first 3 >= 5%", {"weights": weights})):
        with pytest.raises(BadProblem, match=r"certif"):
            sp.calibrate(
                f"maximize recall in the first 5 where {bound}", scores, labels, lists=lists, confidence=0.9, **more
            )
    with pytest.raises(BadSetting, match="per_group certifies plain bounds"):
        sp.calibrate(ASK, scores, labels, lists=lists, confidence=0.9, per_group=True)
    with pytest.raises(BadGroups, match="pass lists="):
        sp.calibrate(ASK, scores, labels, groups=lists)


@pytest.mark.parametrize(
    "bound", ["hit in the first 1 >= 30%", "recall in the first 2 >= 20%", "fnr in the first 2 <= 80%"]
)
def test_the_fewest_lists_are_just_enough(bound):
    constraint = sp.ask(f"maximize recall in the first 5 where {bound}").constraints[0]
    enough = lists_needed(constraint, 0.95)
    assert certifies(bound, enough)
    assert not certifies(bound, enough - 1)


def certifies(bound, lists):
    """Whether so many lists with the positive in the first place certify a bound."""
    scores, labels, each = np.tile([4.0, 3.0, 2.0], lists), np.tile([1, 0, 0], lists), np.repeat(np.arange(lists), 3)
    try:
        sp.calibrate(f"maximize recall in the first 5 where {bound}", scores, labels, lists=each, confidence=0.95)
    except TooFewSamples:
        return False
    return True


def test_no_bound_has_an_estimate_over_lists():
    held = 0
    for seed in range(60):
        scores, labels, lists = world(60, seed)
        point = sp.calibrate("maximize precision in the first 2", scores, labels, lists=lists, confidence=0.9)
        assert point.certificate is None
        (found,) = point.estimates
        held += found.low <= TRUE_PRECISION <= found.high
    assert held >= 48
    assert found.samples == 60


#: The mean precision in the first 2 of `world`, from 600,000 lists.
TRUE_PRECISION = 0.5358


def test_the_true_precision_of_the_world():
    scores, labels, lists = world(20_000, seed=99)
    assert sp.evaluate("maximize precision in the first 2", scores, labels, lists=lists).objective == pytest.approx(
        TRUE_PRECISION, abs=0.008
    )


def test_one_list_or_equal_lists_are_estimated_without_a_warning():
    point = sp.calibrate("maximize recall in the first 1", [1.0, 0.0], [1, 0], lists=[0, 0], confidence=0.95)
    assert 0 < point.estimates[0].low < 1 == point.estimates[0].high


def test_paired_differences_are_over_lists():
    scores, labels, lists = world(300)
    worse = scores + np.random.default_rng(5).normal(size=len(scores))
    points = [sp.evaluate("maximize precision in the first 2", each, labels, lists=lists) for each in (scores, worse)]
    found = difference(*points, (scores, worse), labels, lists=lists)
    assert found.is_clear
    assert found.is_better
    assert "300 lists" in found.method
    values = [
        np.array([labels[lists == q][np.argsort(-each[lists == q])[:2]].mean() for q in range(300)])
        for each in (scores, worse)
    ]
    gaps = values[0] - values[1]
    error = gaps.std(ddof=1) / 300**0.5
    assert found.value == pytest.approx(gaps.mean())
    assert (found.low, found.high) == pytest.approx(
        (gaps.mean() - 1.96 * error, gaps.mean() + 1.96 * error), abs=0.3 * error
    )


def broken(draw_values, mean, repeats, size):
    """How often values whose mean is at the bound certify it."""
    draw = np.random.default_rng(7)
    return np.mean([p_above(draw_values(draw, size), mean) <= 0.05 for _ in range(repeats)])


WORLDS = {
    "shares of five": (lambda draw, size: draw.binomial(5, 0.3, size) / 5, 0.3),
    "all or nothing": (lambda draw, size: (draw.random(size) < 0.2).astype(float), 0.2),
    "rarely large": (lambda draw, size: np.where(draw.random(size) < 0.03, 1.0, 0.05), 0.03 + 0.97 * 0.05),
    "nearly certain": (lambda draw, size: (draw.random(size) < 0.95).astype(float), 0.95),
}


@pytest.mark.parametrize("name", WORLDS)
def test_a_mean_at_its_bound_is_rarely_certified(name):
    for size in (20, 200):
        assert broken(*WORLDS[name], 1000, size) <= 0.05 + 2 * (0.05 * 0.95 / 1000) ** 0.5


@slow
def test_certificates_of_lists_are_broken_no_more_often_than_they_say():
    """The bound lies at the truth, 1,000 times: the share of certificates that are issued is that of broken ones."""
    for bound in (f"precision in the first 2 >= {TRUE_PRECISION}", f"precision in the first 2 <= {TRUE_PRECISION}"):
        issued = 0
        for seed in range(1000):
            scores, labels, lists = world(40, seed)
            try:
                sp.calibrate(
                    f"maximize recall in the first 5 where {bound}", scores, labels, lists=lists, confidence=0.95
                )
            except TooFewSamples:
                continue
            issued += 1
        assert issued <= 50 + 2 * 6.9, bound
