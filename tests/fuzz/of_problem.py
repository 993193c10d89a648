"""Targets: the language of asks, problems, operating points and their judges."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import torch
from hypothesis import strategies as st

import setpoint as sp
from fuzz.inputs import Inputs, anything, bounds, numbers, one_in, problems, quantities, score_tensors, shares, tensors
from fuzz.laws import Draw, finite, target
from fuzz.mutate import mutated_json
from setpoint.measure.constraint import Constraint
from setpoint.problem.check import Check
from setpoint.problem.phrases import SYNONYMS
from setpoint.problem.point import Certificate, Estimate

WORDS = (
    "minimize", "maximize", "min", "max", "where", "over", "in", "and", "with", "points", "fpr", "fnr", "recall", "tnr",
    "precision", "flagged", "f_score", "f1", "f2", "f0", "f99999999999999999999", "gap", "(", ")", "[", "]", ",", ".",
    "<=", ">=", "==", "=", "<", "≤", "1%", "0.01", "95 %", "1e-3", "1e999", "-1", "1e999999999%", "%", '"sex"', '"\\x"',
    '"\\ud800"', "sex", "10", "٣", "٣%", "²", "", " ", "\n", "\0", "@", "at", "at most", "exactly",
    "subject to", "such that", "weighted", "by", "weighted by amount", "of class", "of class a", "of class 3", "macro",
    "micro", "gap between classes", "in the first", "5", "hit", "cost", "cost(miss=5, alarm=1)",
    "cost(miss=amount, alarm=1)", "miss",
    "alarm", "percent", "per", "out of", "rows", "auc", "average precision", "is", "-", *SYNONYMS,
)  # fmt: skip
texts = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join),
    st.lists(st.sampled_from(WORDS), max_size=14).map("".join),
    st.text(max_size=40),
    problems().map(str),
    st.sampled_from(
        [
            "minimize cost(miss=amount, alarm=5) where recall weighted by fee >= 90% and fpr <= 2%",
            "minimize error where coverage of class fraud <= 2% and recall gap between classes <= 10%",
            "maximize recall in the first 20 where precision in the first 5 >= 30%",
        ]
    ),
)


certified_problems = st.builds(
    lambda make, objective, bound: make(objective, bound), st.sampled_from([sp.minimize, sp.maximize]), quantities,
    st.one_of(
        st.floats(0.05, 0.99).map(lambda b: sp.fpr <= b), st.floats(0.05, 0.99).map(lambda b: sp.fnr <= b),
        st.floats(0.01, 0.95).map(lambda b: sp.recall >= b), st.floats(0.01, 0.95).map(lambda b: sp.tnr >= b),
    ),
)  # fmt: skip


def judged(point: sp.OperatingPoint) -> None:
    """Every number that a person is shown is finite, and says so in words."""
    finite(point.threshold, "threshold")
    finite(point.objective, "objective")
    finite(point.rates, "rates")
    finite(point.violation, "violation")
    assert str(point.problem) in str(point)


@target
def asking(draw: Draw) -> None:
    text = draw(st.one_of(texts, st.sampled_from([None, 3, b"minimize fnr", [], sp.fnr])))
    problem = sp.ask(text, draw(st.sampled_from([(), (sp.Metric("own", lambda tp, fp, fn, tn: tp),)])))
    assert (
        sp.ask(str(problem), (sp.Metric("own", problem.objective.function),) if "own" in str(problem) else ())
        == problem
    )


@target
def cut_asks(draw: Draw) -> None:
    whole = draw(texts)
    place, more = draw(st.integers(0, len(whole))), draw(st.sampled_from(WORDS))
    cut = draw(st.integers(0, 8))
    assert sp.ask(whole[:place] + more + whole[place + cut :]) is not None


@target
def making_problems(draw: Draw) -> None:
    make = draw(st.sampled_from([sp.minimize, sp.maximize]))
    objective = draw(st.one_of(quantities, st.sampled_from([None, 0.3, "fnr", sp.f_score, sp.recall.gap("a")])))
    more = draw(st.lists(st.one_of(bounds(), st.sampled_from([None, 0.1, "fpr <= 1%"])), max_size=3))
    over = draw(st.one_of(st.none(), st.sampled_from([sp.fpr.between(0, 0.5), "fpr", sp.recall.between(0.5, 1)])))
    problem = make(objective, *more, over=over)
    assert isinstance(problem, sp.Problem)
    assert str(sp.ask(str(problem))) == str(problem)


@target
def evaluating(draw: Draw) -> None:
    problem, given = draw(problems()), draw(anything())
    judged(sp.evaluate(problem, given.scores, given.labels, weights=given.weights, groups=given.groups))


@target
def reporting(draw: Draw) -> None:
    problem, given = draw(problems()), draw(anything())
    confidence = draw(st.one_of(st.none(), st.just("auto"), st.floats(0.05, 0.9)))
    page = sp.report(problem, given.scores, given.labels, groups=given.groups, confidence=confidence)
    assert page.html.startswith("<!doctype html>")
    judged(page.point)


@target
def calibrating(draw: Draw) -> None:
    problem, given = draw(problems() if draw(one_in(4)) else certified_problems), draw(anything())
    confidence = draw(st.one_of(*[st.floats(0.05, 0.9)] * 6, numbers))
    weights = sp.PopulationWeights(given.weights, draw(numbers)) if draw(one_in(4)) else given.weights
    point = sp.calibrate(
        problem, given.scores, given.labels, confidence=confidence, weights=weights, groups=given.groups,
        clusters=given.groups if draw(one_in(4)) else None,
    )  # fmt: skip
    judged(point)
    for estimate in point.estimates:
        assert isinstance(estimate, Estimate)
        finite([estimate.low, estimate.value, estimate.high], estimate.quantity)
    promised = isinstance(point.certificate, Certificate)
    assert promised or point.estimates, "neither a promise nor an estimate"
    assert not promised or problem.constraints


@target
def checking(draw: Draw) -> None:
    problem, given, later = draw(st.one_of(certified_problems, problems())), draw(anything()), draw(anything())
    point = sp.calibrate(problem, given.scores, given.labels, weights=given.weights, groups=given.groups)
    check = point.check(later.scores, later.labels, groups=later.groups)
    assert isinstance(check, Check)
    assert 0 <= check.p_value <= 1
    finite([row.rate for row in check.bounds], "rates")
    assert str(check)


@target
def watching(draw: Draw) -> None:
    problem, given, later = draw(st.one_of(certified_problems, problems())), draw(anything()), draw(anything())
    point = sp.calibrate(problem, given.scores, given.labels, groups=given.groups)
    watch = point.watch(draw(st.one_of(*[st.just(0.05)] * 5, shares)))
    assert isinstance(watch, sp.Watch)
    watch.update(later.scores, later.labels, groups=later.groups)
    finite(
        [value for bound in watch.bounds for value in (bound.rate, bound.low, bound.high, bound.in_favour)], "bounds"
    )
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "watch.json"
        watch.save(path)
        assert sp.Watch.load(path).entries == watch.entries
        path.write_bytes(draw(mutated_json(path.read_bytes())))
        assert str(sp.Watch.load(path))


@target
def deciding_and_judging(draw: Draw) -> None:
    problem, given, other = draw(problems()), draw(anything()), draw(anything())
    point = sp.calibrate(problem, given.scores, given.labels, weights=given.weights, groups=given.groups)
    predicted(point, given)
    try:
        predicted(point, other)
    except (sp.SetpointError, TypeError, ValueError):  # Scores that are no numbers: NumPy's own words.
        pass
    judged(point.judge(other.scores, other.labels, weights=other.weights, groups=other.groups))


def predicted(point: sp.OperatingPoint, given: Inputs) -> None:
    answer = torch.as_tensor(point.predict(given.scores, given.groups))
    assert bool(((answer == 0) | (answer == 1)).all())


@target
def saving_and_loading(draw: Draw) -> None:
    given = draw(tensors())
    groups = None if given.groups is None else given.groups.tolist()
    point = sp.evaluate(draw(problems()), given.scores, given.labels, weights=given.weights, groups=groups)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "point.json"
        point.save(path)
        assert sp.OperatingPoint.load(path) == point
        path.write_bytes(draw(mutated_json(path.read_bytes())))
        try:
            read = sp.OperatingPoint.load(path)
        finally:
            assert os.listdir(place) == ["point.json"]
        judged(read)


@target
def reading_points(draw: Draw) -> None:
    point = sp.evaluate("minimize fnr where fpr <= 50%", [0.1, 0.4, 0.5, 0.9], [0, 0, 1, 1])
    try:
        data = json.loads(draw(mutated_json(json.dumps(point.to_dict()).encode())))
    except ValueError:
        return
    read = sp.OperatingPoint.from_dict(data)
    judged(read)
    finite(read.to_dict())


@target
def mixing(draw: Draw) -> None:
    snapshots, bounds_ = draw(st.integers(0, 4)), draw(st.integers(0, 3))
    number = st.one_of(st.floats(-1, 1), st.floats(-1, 1), numbers)
    costs = draw(st.lists(number, min_size=snapshots, max_size=snapshots))
    row = st.lists(number, min_size=bounds_, max_size=bounds_)
    broken = draw(st.lists(row, min_size=snapshots, max_size=snapshots))
    mixture = sp.losses.best_mixture(
        costs, torch.tensor(broken).reshape(snapshots, bounds_) if draw(st.booleans()) else broken
    )
    assert isinstance(mixture, sp.losses.Mixture)
    finite([mixture.objective, mixture.violations, mixture.weights])
    assert abs(sum(mixture.weights.values()) - 1) < 1e-6


@target
def shifting(draw: Draw) -> None:
    n_classes = draw(st.integers(2, 3))
    given = draw(tensors(n_classes, max_size=8))
    point = sp.evaluate(draw(class_problems()), given.scores, given.labels, weights=given.weights)
    assert isinstance(point, sp.OperatingPoint)
    finite([list(point.threshold.values()), point.objective, point.rates, point.violation])
    chosen = point.predict(given.scores)
    assert bool(((chosen >= 0) & (chosen < n_classes)).all())
    finite(point.judge(given.scores, given.labels).rates)
    other = draw(score_tensors((2, n_classes)))
    point.predict(other)


@st.composite
def class_problems(draw: st.DrawFn) -> sp.Problem:
    make = draw(st.sampled_from([sp.minimize, sp.maximize]))
    objective = draw(
        st.sampled_from(
            [
                sp.classes.Micro(sp.fnr),
                sp.classes.Macro(sp.recall),
                sp.classes.Macro(sp.f_score(1)),
                sp.classes.Macro(sp.mcc),
            ]
        )
    )
    coverage = st.builds(
        lambda k, relation, bound: Constraint(sp.classes.OfClass(sp.flagged, k), relation, bound),
        st.integers(0, 3), st.sampled_from(["<=", ">=", "=="]), st.floats(0, 1),
    )  # fmt: skip
    return make(objective, *draw(st.lists(coverage, max_size=2)))
