import numpy as np
import pytest
from scipy.stats import binomtest

import setpoint as sp
from setpoint.errors import BadGroups, BadSetting


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
