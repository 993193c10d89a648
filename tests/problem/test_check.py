"""A promise held against later batches: which evidence breaks it, and the words of the verdict."""

import numpy as np
import pytest
from scipy.stats import binomtest

import setpoint as sp
from setpoint.errors import BadGroups, BadSetting
from setpoint.problem.check import BoundCheck, Check, check_bound


def batch(n=2000, seed=0, drift=0.0, groups=0):
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 2, n)
    return draw.normal(size=n) + 2 * labels + drift * (1 - labels), labels, draw.integers(0, max(groups, 1), n)


def test_a_later_batch_is_held_against_the_bound_by_an_exact_test():
    scores, labels, _ = batch()
    point = sp.calibrate("minimize fnr where fpr <= 5%", scores, labels, confidence=0.95)
    calm, drifted = point.check(*batch(seed=1)[:2]), point.check(*batch(seed=2, drift=0.5)[:2])
    assert calm.holds
    assert not drifted.holds
    assert "the promise is broken" in str(drifted)
    scores, labels, _ = batch(seed=2, drift=0.5)
    flagged = int(((scores > point.threshold) & (labels == 0)).sum())
    (row,) = drifted.bounds
    assert row.samples == ((labels == 0).sum(),)
    assert row.rate == pytest.approx(flagged / row.samples[0])
    assert row.p_value == pytest.approx(binomtest(flagged, row.samples[0], 0.05, alternative="greater").pvalue)
    assert drifted.p_value == row.p_value


def test_the_alarm_is_false_no_more_often_than_it_says():
    point = sp.calibrate("minimize fnr where fpr <= 5%", *batch(n=200_000)[:2])
    alarms = sum(not point.check(*batch(n=400, seed=seed)[:2], level=0.1).holds for seed in range(300))
    assert alarms / 300 <= 0.1 + 2 * (0.1 * 0.9 / 300) ** 0.5


def test_several_bounds_share_the_level():
    scores, labels, _ = batch()
    point = sp.calibrate("maximize recall where fpr <= 30% and precision >= 60%", scores, labels)
    check = point.check(*batch(seed=1, drift=2.0)[:2])
    assert [row.bound for row in check.bounds] == ["fpr <= 30%", "precision >= 60%"]
    assert check.p_value == min(1.0, 2 * min(row.p_value for row in check.bounds))
    assert not check.holds


def test_groups_are_checked_apart_and_against_each_other():
    scores, labels, groups = batch(groups=2)
    apart = sp.calibrate("minimize fnr where fpr <= 10%", scores, labels, groups=groups, confidence=0.9, per_group=True)
    drift = batch(seed=1, groups=2)
    later = drift[0] + 1.0 * (drift[2] == 1)
    rows = {row.group: row for row in apart.check(later, drift[1], groups=drift[2]).bounds}
    assert rows["0"].p_value > 0.05 > rows["1"].p_value
    with pytest.raises(BadGroups, match="pass groups="):
        apart.check(later, drift[1])
    gap = sp.calibrate("minimize error where recall.gap(g) <= 10%", scores, labels, groups=groups)
    assert gap.check(*drift[:2], groups=drift[2]).holds
    assert not gap.check(drift[0] - 1.5 * (drift[2] == 1), drift[1], groups=drift[2]).holds


def test_what_was_not_promised_is_not_called_broken():
    scores, labels, _ = batch()
    for ask in ("maximize f1", "maximize recall over fpr in [0%, 10%]", "maximize recall where mcc >= 0.3"):
        check = sp.calibrate(ask, scores, labels).check(-scores, labels)
        assert check.holds
        assert str(check) == "nothing was promised that could be tested"
    with pytest.raises(BadSetting, match="level must lie between 0 and 1"):
        sp.calibrate("maximize f1", scores, labels).check(scores, labels, level=5)


def test_a_bound_on_all_samples_needs_no_positives():
    point = sp.calibrate("maximize recall where flagged <= 30%", np.arange(40) / 40, np.arange(40) % 2)
    check = point.check([0.1, 0.99, 0.2], [0, 0, 0])
    assert check.bounds[0].samples == (3,)
    with pytest.raises(sp.SetpointError, match="recall needs positive samples"):
        point.judge([0.1, 0.99], [0, 0])


def test_a_group_without_samples_is_named_and_not_passed_over():
    scores, labels, groups = batch(groups=3)
    gap = sp.calibrate("minimize error where recall.gap(g) <= 10%", scores, labels, groups=groups)
    apart = sp.calibrate(
        "maximize tnr where recall >= 80%", scores, labels, groups=groups, confidence=0.9, per_group=True
    )
    later = batch(seed=1, groups=3)
    kept = (later[1] == 0) | (later[2] != 2)
    for point in (gap, apart):
        check = point.check(later[0][kept], later[1][kept], groups=later[2][kept])
        assert check.holds
        assert [row.unseen for row in check.bounds if row.unseen] == [("2",)]
        assert "but group '2' has no samples to judge it by" in str(check)
        assert "no samples" not in str(point.check(*later[:2], groups=later[2]))


COUNTS = np.array([23, 7, 17, 54])


def test_one_bound_in_words():
    row = check_bound(sp.fpr <= 0.2, COUNTS.astype(float), 7 / 61)
    p = binomtest(7, 61, 0.2, alternative="greater").pvalue
    assert row == BoundCheck("fpr <= 20%", 7 / 61, (61,), pytest.approx(p), None)
    assert str(row) == f"fpr <= 20%: 11.4754% of 61 (p = {p:.3g})"
    named = check_bound(sp.fpr <= 0.2, COUNTS.astype(float), 7 / 61, "north")
    assert named.group == "north"
    assert str(named) == f"fpr <= 20% in north: 11.4754% of 61 (p = {p:.3g})"
    groups = np.stack([COUNTS, 2 * COUNTS]).astype(float)
    gap = check_bound(sp.recall.gap("g") <= 0.1, groups, 0.0)
    assert gap.samples == (40, 80)
    assert str(gap).startswith("recall.gap(g) <= 10%: 0% of 40 and 80 (p = ")


def test_a_bound_without_an_exact_test_in_words():
    row = check_bound(sp.mcc >= 0.3, COUNTS.astype(float), 0.25, "north")
    assert row == BoundCheck("mcc >= 0.3", 0.25, (101,), None, "north")
    assert str(row) == "mcc >= 0.3 in north: 25% of 101 (no exact test)"
    groups = np.stack([COUNTS, 2 * COUNTS]).astype(float)
    assert check_bound(sp.recall.gap("g") >= 0.1, groups, 0.0).samples == (303,)


def rows(*values):
    return tuple(BoundCheck(f"bound {i}", 0.5, (10,), value) for i, value in enumerate(values))


@pytest.mark.parametrize(
    ("values", "together"),
    [((0.03,), 0.03), ((0.03, 0.5), 0.06), ((0.03, None, 0.5), 0.06), ((0.9, 0.8), 1.0), ((None,), 1.0), ((), 1.0)],
)
def test_all_bounds_together_are_the_smallest_times_their_number(values, together):
    assert Check(rows(*values), 0.05).p_value == together


def test_a_promise_is_broken_at_the_level_itself():
    assert not Check(rows(0.05), 0.05).holds
    assert Check(rows(0.0500001), 0.05).holds
    assert not Check(rows(0.05), 0.1).holds


def test_the_verdict_in_words():
    first = "bound 0: 50% of 10 (p = 0.3)"
    assert str(Check(rows(0.3), 0.05)) == f"no evidence that the promise is broken (p = 0.3): {first}"
    both = f"{first}; bound 1: 50% of 10 (p = 0.01)"
    assert str(Check(rows(0.3, 0.01), 0.05)) == f"the promise is broken (p = 0.02, level 0.05 per look): {both}"
    one = f"{first}; bound 1: 50% of 10 (no exact test)"
    assert str(Check(rows(0.3, None), 0.05)) == f"no evidence that the promise is broken (p = 0.3): {one}"
    assert str(Check(rows(None, None), 0.05)) == "nothing was promised that could be tested"


def test_a_bound_on_all_samples_names_no_group():
    assert BoundCheck("fpr <= 5%", 0.0, (20,), 1.0).group is None
