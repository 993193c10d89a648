"""Every kind of thresholds against slow loops, its words, and what it reads back."""

import json

import numpy as np
import pytest
import torch

import setpoint as sp
from setpoint.errors import BadGroups
from setpoint.measure.sample import Sample
from setpoint.problem.per_label import PerLabel
from setpoint.problem.read_thresholds import MOST_THRESHOLDS, as_thresholds, read_thresholds
from setpoint.problem.shifts import Shifts
from setpoint.problem.thresholds import Band, OneThreshold, PerBound, PerGroup

PLAIN = sp.ask("minimize fnr where fpr <= 10%")
AREA = sp.ask("maximize recall over fpr in [0%, 30%] with 3 points")
FAIR = sp.ask("minimize error where recall.gap(site) <= 10%")
GROUPS = PerGroup({"b": 0.25, "a": -0.5}, "site")
KINDS = [(OneThreshold(0.25), PLAIN), (PerBound((0.5, -0.5, 0.25)), AREA), (PerBound((0.1,)), AREA), (GROUPS, FAIR)]


def drawn(rows=50):
    draw = np.random.default_rng(3)
    # Ties with the thresholds on purpose: what is equal does not pass.
    scores = draw.choice([-0.5, 0.25, 0.5, *draw.normal(size=8)], rows)
    return scores, draw.integers(0, 2, rows), draw.choice(["a", "b"], rows), draw.random(rows)


@pytest.mark.parametrize(("kind", "_"), KINDS)
def test_scores_pass_strictly_above_their_own_threshold(kind, _):
    scores, _, groups, _ = drawn()
    passed = kind.passes(torch.tensor(scores), groups).tolist()
    limits = [[kind.by_group[group]] if kind.by_group else kind.values for group in groups]
    slow = [[bool(score > limit) for limit in own] for score, own in zip(scores, limits)]
    assert passed == (slow if isinstance(kind, PerBound) else [row[0] for row in slow])


@pytest.mark.parametrize(("kind", "_"), KINDS)
def test_counts_are_those_of_a_loop(kind, _):
    scores, labels, groups, weights = drawn()
    places = kind.places(groups)
    sample = Sample(
        torch.tensor(scores), torch.tensor(labels).double(), torch.tensor(weights), places, len(kind.by_group) or None
    )
    columns = [(name, value) for name, value in kind.by_group.items()] or [(None, value) for value in kind.values]
    slow = np.zeros((len(columns), 4))
    for column, (name, value) in enumerate(columns):
        for score, label, group, weight in zip(scores, labels, groups, weights):
            if name in (None, group):
                slow[column, (0 if label else 1) + (0 if score > value else 2)] += weight
    counts = kind.count(sample)
    assert counts.shape == ((1, 2, 4) if kind.by_group else (len(columns), 4))
    np.testing.assert_allclose(counts.reshape(-1, 4), slow, atol=1e-12)
    lowered, shared = kind.lowered(sample.scores, places)
    again = torch.stack([(lowered > limit) for limit in shared.reshape(-1)], dim=-1)
    assert again.tolist() == kind.passes(sample.scores, groups).reshape(len(scores), -1).tolist()


@pytest.mark.parametrize(("kind", "problem"), [KINDS[0], KINDS[1], KINDS[3]])
def test_stored_as_json_and_read_back(kind, problem):
    assert read_thresholds(json.loads(json.dumps(kind.stored())), problem) == kind
    assert as_thresholds(kind.plain, problem) == kind
    assert as_thresholds(kind, problem) is kind
    assert kind.values == list(kind.plain.values() if kind.by_group else np.atleast_1d(kind.plain))


@pytest.mark.parametrize(
    ("data", "problem", "says"),
    [
        ([0.1, 0.2], AREA, "expected 3 thresholds, found a list of 2"),
        (0.1, AREA, "expected 3 thresholds, found 0.1"),
        ([0.1, 0.2, "x"], AREA, "expected a number, found 'x'"),
        ({"a": None}, FAIR, "expected a number, found None"),
        ({}, FAIR, "expected a number, found a dict of 0"),
        (True, PLAIN, "expected a number, found True"),
    ],
)
def test_data_that_are_no_thresholds(data, problem, says):
    with pytest.raises(TypeError) as refusal:
        read_thresholds(data, problem)
    assert str(refusal.value) == says


SHIFTS, CLASSES = Shifts(("a", "b", "c"), (0.0, -0.5, 0.25)), sp.ask("maximize macro recall")


def test_shifts_decide_count_and_store_themselves():
    draw = np.random.default_rng(0)
    scores, labels, weights = draw.integers(0, 3, (40, 3)) / 4, draw.integers(0, 3, 40), draw.random(40)
    sample = Sample(torch.tensor(scores), torch.tensor(labels), torch.tensor(weights))
    # Ties on purpose: they go to the first class.
    slow = [max(range(3), key=lambda k: (row[k] - SHIFTS.shifts[k], -k)) for row in scores]
    assert SHIFTS.decide(sample.scores).tolist() == slow
    assert SHIFTS.written(np.array([2, 0])).tolist() == ["c", "a"]
    counts = np.zeros((3, 4))
    table = np.zeros((3, 3))
    for predicted, label, weight in zip(slow, labels, weights):
        table[label, predicted] += weight
        for k in range(3):
            counts[k, (0 if label == k else 1) + (0 if predicted == k else 2)] += weight
    np.testing.assert_allclose(SHIFTS.count(sample), counts[None], atol=1e-12)
    np.testing.assert_allclose(SHIFTS.kinds(sample), table.ravel(), atol=1e-12)
    sharp = SHIFTS.soft_counts(sample, sp.steps.SigmoidStep(1e4))
    assert sharp.shape == (1, 3, 4)
    np.testing.assert_allclose(sharp.sum(-1), counts.sum(-1)[None], atol=1e-9)
    assert read_thresholds(json.loads(json.dumps(SHIFTS.stored())), CLASSES) == SHIFTS
    assert as_thresholds(SHIFTS.plain, CLASSES) == SHIFTS
    assert SHIFTS.describe() == "a 0, b -0.5, c 0.25"
    assert SHIFTS.describe("") == "-0.5 ... 0.25"
    with pytest.raises(TypeError, match="expected a shift per class, found a dict of 1"):
        read_thresholds({"a": 0.5}, CLASSES)


def test_words():
    assert OneThreshold(0.123456).describe() == OneThreshold(0.123456).describe("") == "0.123456"
    assert OneThreshold(0.123456).legible([0.1, 0.2]).describe() == "0.1235"
    assert PerBound((0.5, -0.5, 0.25)).describe() == "-0.5 ... 0.5"
    assert GROUPS.describe() == "b 0.25, a -0.5"
    assert GROUPS.describe("{value} ({group})") == "0.25 (b), -0.5 (a)"
    assert GROUPS.describe("") == "-0.5 ... 0.25"


@pytest.mark.parametrize("value", [0.1 + 0.2, 0.9999999787123456, 999999999.9997498, -1e-300, 1e300, 5e-324, 0.0])
def test_without_rows_the_text_of_a_threshold_is_the_very_number(value):
    assert float(OneThreshold(value).describe()) == value
    assert OneThreshold(value).rule() == f"Run at threshold {OneThreshold(value).describe()}"


def read_back(kind, text):
    """The thresholds of a kind as a person would copy them from their description."""
    each = [float(part.rsplit(" ", 1)[-1]) for part in text.split(", ")]
    if isinstance(kind, OneThreshold):
        return OneThreshold(*each)
    return Band(*map(float, text.split(" and "))) if isinstance(kind, Band) else made(kind, each)


def made(kind, each):
    return PerGroup(dict(zip(kind.plain, each))) if isinstance(kind, PerGroup) else type(kind)(kind.names, tuple(each))


@pytest.mark.parametrize("squeezed", [0.0, 1.0, 1e-4, 1e-9, 1e-15])
@pytest.mark.parametrize("kind", ["one", "band", "groups", "labels", "shifts"])
def test_the_text_of_thresholds_decides_rows_as_they_do_with_as_few_digits_as_that_takes(kind, squeezed):
    """Scores lie ever closer together; 0 stands for scores that are all tied."""
    draw = np.random.default_rng(5)
    scores = 0.7 + squeezed * draw.normal(size=(400, 2))
    groups = draw.choice(["a", "b"], 400)
    low, high = sorted(0.7 + squeezed * draw.normal(size=2))
    found = {
        "one": OneThreshold(low), "band": Band(low, high), "groups": PerGroup({"a": low, "b": high}),
        "labels": PerLabel(("x", "y"), (low, high)), "shifts": Shifts(("x", "y"), (low / 3, high / 3)),
    }[kind]  # fmt: skip
    seen = scores if kind in ("labels", "shifts") else scores[:, 0]
    shown = found.legible(seen)
    assert shown == found
    again = read_back(shown, shown.describe())
    np.testing.assert_array_equal(again.decided(seen, groups), found.decided(seen, groups))
    assert shown.digits <= 8 or squeezed < 1e-4
    if shown.digits > 4 and kind == "one":
        shorter = OneThreshold(float(f"{low:.{shown.digits - 1}g}"))
        assert (shorter.decided(seen) != found.decided(seen)).any()


def test_a_point_shows_a_threshold_that_separates_the_scores_it_was_set_on():
    """Probabilities near 1 differ in the eighth digit."""
    draw = np.random.default_rng(0)
    labels = draw.random(3000) < 0.3
    scores = 1 / (1 + np.exp(-15 - draw.normal(size=3000) - 2 * labels))
    for point in (sp.calibrate(PLAIN, scores, labels), sp.evaluate(PLAIN, scores, labels)):
        text = str(point).partition("threshold ")[2].partition(",")[0]
        assert ((scores > float(text)) == (scores > point.threshold)).all()
        assert ((scores > float(f"{point.threshold:.4g}")) != (scores > point.threshold)).any()
        assert len(text) < 16


def test_only_one_threshold_is_single():
    assert [kind.single for kind, _ in KINDS] == [0.25, None, None, None]


def test_groups_are_needed_and_known():
    assert OneThreshold(0.5).places(["c"]) is None
    with pytest.raises(BadGroups, match=r"^this point has one threshold a site; pass groups=$"):
        GROUPS.places(None)
    with pytest.raises(BadGroups, match=r"^no threshold for site 'c'; known are b, a$"):
        GROUPS.passes(torch.zeros(2), ["a", "c"])


def test_as_many_thresholds_as_are_read_and_no_more():
    most = sp.maximize(sp.recall, over=sp.fpr.between(0, 1, points=MOST_THRESHOLDS))
    assert len(read_thresholds([0.5] * MOST_THRESHOLDS, most).plain) == MOST_THRESHOLDS
    more = sp.maximize(sp.recall, over=sp.fpr.between(0, 1, points=MOST_THRESHOLDS + 1))
    with pytest.raises(TypeError, match="expected 100001 thresholds"):
        read_thresholds([0.5] * (MOST_THRESHOLDS + 1), more)
