import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from cases import cases
from setpoint.decide.by_rank import Ranked
from setpoint.decide.cut import find, find_among
from setpoint.measure.constraint import Constraint
from setpoint.measure.curve import curve
from setpoint.measure.sample import Sample

#: Every question of one bound that ranks can answer: the sense, the objective, and what is bounded how.
QUESTIONS = [
    *itertools.product([(sp.minimize, sp.fnr), (sp.maximize, sp.recall)], [(sp.fpr, "<="), (sp.tnr, ">=")]),
    *itertools.product([(sp.minimize, sp.fpr), (sp.maximize, sp.tnr)], [(sp.fnr, "<="), (sp.recall, ">=")]),
]
LEVELS = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.01, 0.25, 1 / 3, 0.3, 0.5, 0.7, 0.95, 1.0]))


def find_by_rank(problem, scores, labels):
    rule = Ranked.of(problem)
    return None if rule is None else rule.find(scores, labels)


@given(st.sampled_from(QUESTIONS), LEVELS, cases(both_classes=True), st.sampled_from([torch.float32, torch.float64]))
def test_it_is_the_cut_that_the_whole_curve_gives(question, level, case, dtype):
    (sense, objective), bounded = question
    problem = sense(objective, Constraint(*bounded, level))
    scores = case.scores.clamp(-3e38, 3e38).to(dtype)
    by_rank = find_by_rank(problem, scores, case.labels)
    by_curve = find_among(problem, curve(scores, case.labels))
    found = (by_curve.thresholds, by_curve.counts, by_curve.feasible, by_curve.active)
    for one, other in zip(by_rank, found):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)


@pytest.mark.parametrize("size", [1, 3, 7, 10, 30, 49, 100, 300, 1000])
def test_every_share_of_whole_numbers_is_met_exactly(size):
    scores = torch.arange(size + 1, dtype=torch.float64)
    labels = torch.zeros(size + 1).double()
    labels[0] = 1
    for wrong in range(size + 1):
        share = wrong / size
        for problem in (sp.minimize(sp.fnr, sp.fpr <= share), sp.maximize(sp.recall, sp.tnr >= 1 - share)):
            _, counts, feasible, active = find_by_rank(problem, scores, labels)
            # With all of them allowed to pass, the one positive passes too.
            assert counts.tolist() == [[float(wrong == size), wrong, float(wrong < size), size - wrong]]
            assert bool(feasible)
            assert bool(active) == (wrong < size)


@pytest.mark.parametrize(
    "ask",
    [
        "minimize fnr",
        "minimize fnr where fpr <= 1% and flagged <= 5%",
        "minimize fnr where fpr == 1%",
        "maximize precision where recall >= 95%",
        "minimize fpr where fpr <= 1%",
        "maximize fnr where fpr <= 1%",
        "minimize fnr where fpr >= 1%",
        "minimize fnr where precision >= 1%",
        "maximize tnr where fpr <= 5%",
        "minimize fnr over fpr in [0%, 5%] with 3 points",
    ],
)
def test_other_questions_are_left_to_the_curve(ask):
    assert find_by_rank(sp.ask(ask), torch.arange(4.0), torch.tensor([0.0, 1, 0, 1])) is None


def test_one_class_is_left_to_the_curve():
    for label in (torch.zeros, torch.ones):
        for ask in ("minimize fnr where fpr <= 1%", "minimize fpr where recall >= 95%"):
            assert find_by_rank(sp.ask(ask), torch.arange(4.0), label(4)) is None


def test_half_precision_is_counted_as_the_curve_counts_it():
    scores, labels = torch.randn(50).bfloat16(), (torch.arange(50) % 3 == 0).float()
    problem = sp.ask("minimize fnr where fpr <= 10%")
    assert find_by_rank(problem, scores, labels)[0] == find_among(problem, curve(scores, labels)).thresholds


def test_nothing_is_sorted_where_ranks_decide(monkeypatch):
    monkeypatch.setattr("setpoint.decide.cut.curve", lambda *given: pytest.fail("sorted"))
    sample = Sample(torch.arange(4.0), torch.tensor([0.0, 1, 0, 1]))
    assert find(sp.ask("minimize fnr where fpr <= 50%"), sample).thresholds.tolist() == [0.5]
