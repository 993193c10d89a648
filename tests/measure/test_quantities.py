"""What rates, metrics, gaps and constraints say of themselves, and how fine they are."""

import math

import pytest
import torch

import setpoint as sp
from setpoint.errors import BadProblem
from setpoint.measure.constraint import SLACK, Constraint, percent
from setpoint.measure.rate import NAMED, Gap, Range, share

COUNTS = torch.tensor([6.0, 2.0, 4.0, 8.0]).double()


@pytest.mark.parametrize(
    ("share_", "text"),
    [
        (0.01, "1%"),
        (0.29, "29%"),
        (1.0, "100%"),
        (0.0, "0%"),
        (1e-7, "0.00001%"),
        (0.123456789012345, "12.3456789012345%"),
    ],
)
def test_percent_moves_the_point_and_nothing_else(share_, text):
    assert percent(share_) == text


@pytest.mark.parametrize(
    ("rate", "direction", "fixed"),
    [
        (sp.fpr, 1, True), (sp.fnr, -1, True), (sp.recall, 1, True), (sp.tnr, -1, True), (sp.flagged, 1, True),
        (sp.precision, 0, False), (sp.npv, 0, False), (sp.accuracy, 0, True), (sp.error, 0, True),
        (sp.jaccard, 0, False),
        (sp.f_score(2), 0, False), (sp.Rate("nothing", (1, 1, 1, 1), (1, 1, 1, 1)), 0, True),
        (sp.Rate("odd", (0, 1, 0, 0), (1, 1, 0, 1)), 0, False), (sp.Rate("odd", (1, 0, 0, 0), (1, 1, 1, 0)), 0, False),
    ],
    ids=str,
)  # fmt: skip
def test_which_way_a_rate_moves_and_whether_its_whole_does(rate, direction, fixed):
    assert rate.direction == direction
    assert rate.has_fixed_whole is fixed


def test_what_is_a_share():
    assert all(rate.is_share for rate in NAMED.values() if isinstance(rate, sp.Rate))
    assert not any(metric.is_share for metric in (sp.g_mean, sp.mcc, sp.kappa, sp.rates.lift))
    assert not sp.Rate("odd", (2, 0, 0, 0), (1, 1, 0, 0)).is_share
    assert not sp.Rate("odd", (-1, 0, 0, 0), (1, 1, 0, 0)).is_share
    assert sp.recall.gap("sex").is_share
    assert sp.classes.Macro(sp.recall).is_share
    assert not sp.classes.Micro(sp.mcc).is_share


def test_values_by_hand():
    by_hand = {
        "fpr": 0.2, "fnr": 0.4, "recall": 0.6, "tnr": 0.8, "precision": 0.75, "npv": 8 / 12, "fdr": 0.25, "for": 4 / 12,
        "flagged": 0.4, "accuracy": 0.7,
        "error": 0.3, "jaccard": 0.5, "g_mean": math.sqrt(0.48),
        "mcc": (48 - 8) / math.sqrt(8 * 10 * 10 * 12), "kappa": (0.7 - 0.5) / 0.5,
        "balanced accuracy": 0.7, "lift": 1.5,
    }  # fmt: skip
    assert {name: float(rate(COUNTS)) for name, rate in NAMED.items()} == pytest.approx(by_hand)
    assert float(sp.f_score(2)(COUNTS)) == pytest.approx(5 * 6 / (5 * 6 + 4 * 4 + 2))
    assert float(sp.f_score()(COUNTS)) == pytest.approx(12 / 18)


def test_how_fine_a_rate_is():
    assert float(sp.fpr.resolution(COUNTS, 1.0)) == pytest.approx(0.1)
    assert float(sp.precision.resolution(COUNTS, 2.0)) == pytest.approx(0.25)
    assert float(sp.precision.resolution(0 * COUNTS, 2.0)) == 0
    assert sp.mcc.resolution(torch.ones(3, 4), 1.0).tolist() == [0, 0, 0]
    assert float(sp.mcc.resolution(COUNTS, 1.0)) == 0
    classes = torch.tensor([[5.0, 1, 1, 3], [2.0, 0, 2, 6]])
    assert float(sp.classes.OfClass(sp.recall, 1).resolution(classes, 1.0)) == pytest.approx(1 / 4)
    assert float(sp.classes.Macro(sp.recall).resolution(classes, 1.0)) == pytest.approx(2 * (1 / 4) / 2)
    assert float(sp.classes.Micro(sp.recall).resolution(classes, 3.0)) == pytest.approx(3 / 10)


def test_names_and_identities():
    assert str(sp.classes.OfClass(sp.flagged, 2)) == "coverage of class 2"
    assert str(sp.classes.Macro(sp.recall)) == "macro recall"
    assert str(sp.classes.Micro(sp.fnr)) == "micro fnr"
    assert repr(sp.classes.Macro(sp.recall)) == "Macro(macro recall)"
    assert repr(sp.recall) == "Rate(recall)"
    assert repr(sp.mcc) == "Metric(mcc)"
    assert repr(sp.recall.gap("sex")) == "Gap(recall.gap(sex))"
    assert [str(sp.fpr.gap(name)) for name in ("sex", "age band", "1st", "ä_1", 'a"b')] == [
        "fpr.gap(sex)", 'fpr.gap("age band")', 'fpr.gap("1st")', "fpr.gap(ä_1)", 'fpr.gap("a\\"b")',
    ]  # fmt: skip
    assert [str(sp.f_score(beta)) for beta in (1, 2.0, 0.5)] == ["f_score(1)", "f_score(2)", "f_score(0.5)"]
    assert sp.classes.OfClass(sp.recall, 1) != sp.classes.OfClass(sp.recall, 2)
    assert sp.classes.OfClass(sp.recall, 1) == sp.classes.OfClass(sp.recall, 1)
    assert sp.classes.Macro(sp.recall) != sp.classes.Macro(sp.fnr)
    assert (sp.classes.Macro(sp.recall) == sp.classes.Micro(sp.recall)) is False
    assert sp.recall.gap("a") != sp.recall.gap("b")
    assert sp.recall.gap("a") != sp.fnr.gap("a")
    assert (sp.recall.gap("a") == sp.recall.gap("a")) is True
    assert sp.Metric("mcc", lambda *_: _[0]) != sp.mcc
    assert hash(sp.f_score(1)) == hash(sp.f_score(1.0))
    assert len({hash(rate) for rate in (sp.fpr, sp.fnr, sp.mcc, sp.recall.gap("a"), sp.classes.Macro(sp.fpr))}) == 5
    assert sp.Rate("recall", (1, 0, 0, 0), (1, 0, 1, 0)) == sp.recall
    assert sp.Rate("recall", (1, 0, 0, 1), (1, 0, 1, 1)) != sp.recall


@pytest.mark.parametrize("k", [-1, True, 1.0, "", None])
def test_classes_are_names_or_whole_numbers(k):
    with pytest.raises(BadProblem, match="names or whole numbers from 0 up"):
        sp.classes.OfClass(sp.recall, k)
    assert sp.classes.OfClass(sp.recall, 0).k == 0


@pytest.mark.parametrize("kind", [sp.classes.Macro, sp.classes.Micro, lambda rate: sp.classes.OfClass(rate, 0)])
def test_many_classes_are_made_of_rates(kind):
    with pytest.raises(BadProblem, match=r"is made of a rate such as sp\.recall, but got 'recall'"):
        kind("recall")


@pytest.mark.parametrize("name", ["", None, 3])
def test_a_gap_needs_a_column(name):
    with pytest.raises(BadProblem, match="needs the name of a column"):
        Gap(sp.recall, name)


def test_a_gap_leaves_empty_groups_out():
    counts = torch.tensor([[9.0, 0, 1, 0], [6.0, 0, 4, 0], [0.0, 5, 0, 5]])
    gap = sp.recall.gap("sex")
    assert float(gap(counts)) == pytest.approx(0.3)
    assert float(gap(counts[2:])) == 0
    assert float(gap(counts[:1])) == 0
    assert gap(torch.stack([counts, 0 * counts])).tolist() == pytest.approx([0.3, 0.0])
    closer = torch.tensor([[5.0, 0, 5, 0], [4.0, 0, 6, 0], [1.0, 0, 1, 0]])
    assert gap(torch.stack([counts, closer])).tolist() == pytest.approx([0.3, 0.1])


def test_an_empty_share_is_zero_also_in_its_slope():
    part, whole = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([0.0, 4.0], requires_grad=True)
    value = share(part, whole)
    assert value.tolist() == [0, 0.5]
    value.sum().backward()
    assert part.grad.tolist() == [0, 0.25]
    assert whole.grad.tolist() == [0, -0.125]


@pytest.mark.parametrize(
    ("constraint", "excess", "violation"),
    [
        (sp.fpr <= 0.1, 0.1, 0.1),
        (sp.fpr <= 0.3, -0.1, -0.1),
        (sp.recall >= 0.7, 0.1, 0.1),
        (sp.recall >= 0.5, -0.1, -0.1),
        (sp.flagged == 0.5, -0.1, 0.1),
        (sp.flagged == 0.3, 0.1, 0.1),
    ],
    ids=str,
)
def test_excess_and_violation(constraint, excess, violation):
    assert float(constraint.excess(COUNTS)) == pytest.approx(excess)
    assert float(constraint.violation(COUNTS)) == pytest.approx(violation)


def test_a_bound_holds_to_the_slack_and_an_equality_to_one_sample():
    assert bool((sp.fpr <= 0.2 - 0.9 * SLACK).holds(COUNTS))
    assert not bool((sp.fpr <= 0.2 - 1.1 * SLACK).holds(COUNTS))
    assert bool((sp.flagged == 0.44).holds(COUNTS))
    assert not bool((sp.flagged == 0.46).holds(COUNTS))
    assert bool((sp.flagged == 0.46).holds(COUNTS, 2.0))
    assert not bool((sp.flagged <= 0.36).holds(COUNTS, 2.0))


@pytest.mark.parametrize(
    ("make", "whole"),
    [
        (lambda: sp.fpr < 0.1, "fpr < 0.1: bounds are never strict; write fpr <= 0.1"),
        (lambda: sp.fpr > 0.1, "fpr > 0.1: bounds are never strict; write fpr >= 0.1"),
        (lambda: sp.fpr <= float("nan"), "the bound of fpr must be a finite number, but got nan"),
        (lambda: sp.fpr <= True, "the bound of fpr must be a finite number, but got True"),
        (lambda: sp.fpr <= "1%", "the bound of fpr must be a finite number, but got '1%'"),
        (lambda: Constraint(sp.fpr, "<", 0.1), "relation '<' is none of <=, >=, =="),
        (
            lambda: Constraint("fpr", "<=", 0.1),
            "a constraint bounds a rate such as sp.fpr or a metric, but got 'fpr'; write it as sp.fpr <= 0.01",
        ),
        (
            lambda: bool(sp.fpr <= 0.1),
            "fpr <= 10% is a constraint, not a truth value; a chain such as 0.1 <= rate <= 0.2 must be written as two "
            "constraints",
        ),
    ],
)
def test_every_word_of_a_refused_bound(make, whole):
    with pytest.raises(BadProblem) as refusal:
        make()
    assert str(refusal.value) == whole


def test_bounds_at_the_ends_and_of_metrics_are_written_as_they_are():
    assert str(sp.fpr <= 0) == "fpr <= 0%"
    assert str(sp.fpr >= 1) == "fpr >= 100%"
    assert str(sp.mcc >= -0.5) == "mcc >= -0.5"
    assert (sp.mcc >= 2).bound == 2.0
    assert isinstance((sp.fpr <= 1).bound, float)
    assert (sp.fpr == True) is False  # noqa: E712
    assert isinstance(sp.fpr == 0.5, Constraint)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: sp.fpr.between(0.5, 0.5), "must rise and lie within"),
        (lambda: sp.fpr.between(-0.1, 0.5), "must rise and lie within"),
        (lambda: sp.fpr.between(0.1, 1.5), "must rise and lie within"),
        (lambda: sp.fpr.between(0, 1, 0), "at least one whole point, got 0"),
        (lambda: sp.fpr.between(0, 1, True), "at least one whole point, got True"),
        (lambda: sp.fpr.between(0, 1, 2.0), "at least one whole point, got 2.0"),
        (lambda: sp.precision.between(0, 1), "only rises or only falls"),
    ],
)
def test_ranges_that_are_none(make, says):
    with pytest.raises(BadProblem, match=says):
        make()


def test_the_points_of_a_range_are_the_middles_of_its_bins():
    assert Range(sp.fpr, 0.0, 1.0).points == sp.fpr.between(0, 1).points == 10
    stretch = sp.recall.between(0, 1, 4)
    assert stretch.bounds == [0.125, 0.375, 0.625, 0.875]
    assert sp.recall.between(0.9, 1).points == 10
    assert isinstance(stretch.low, float)
    assert isinstance(stretch.high, float)
    assert str(sp.fpr.between(0, 0.05, 3)) == "fpr in [0%, 5%] with 3 points"
    assert sp.fpr.between(0, 1, 1).bounds == [0.5]
