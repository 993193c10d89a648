"""Shifts for any objective and bounds: against brute force, the limit that none pass, and the point made of them."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

import setpoint as sp
from marks import cases, quick_first, slow
from setpoint.decide.shift_limit import objective_limit
from setpoint.decide.shifts import find_shifts, with_limit
from setpoint.errors import BadLabels, BadProblem, BadSetting, MissingClass, ShapeMismatch
from setpoint.measure.sample import Sample

SEVERAL = {
    "macro": "maximize macro recall",
    "weighted": "maximize weighted precision",
    "error": "minimize error",
    "recalls": "minimize error where recall of class 0 >= 80% and recall of class 1 >= 60%",
    "mixed": "maximize macro f_score(1) where coverage of class 2 <= 40% and fpr of class 0 <= 40%",
    "gap": "maximize accuracy where recall gap between classes <= 40%",
}


def tiny(seed, size, n_classes):
    draw = torch.Generator().manual_seed(seed)
    labels = torch.cat([torch.arange(n_classes), torch.randint(n_classes, (size - n_classes,), generator=draw)])
    scores = torch.randn(size, n_classes, generator=draw, dtype=torch.float64) + F.one_hot(labels, n_classes)
    weights = torch.rand(size, generator=draw, dtype=torch.float64) + 0.5
    return Sample(scores, labels, weights if seed % 2 else None)


def resolved(ask, n_classes=3):
    return sp.ask(ask).resolved([str(k) for k in range(n_classes)])


def judged(problem, sample, shifts):
    """How far all bounds are broken together, and the cost, counted by a loop over the rows."""
    counts, scores = np.zeros((1, len(shifts), 4)), sample.scores.tolist()
    weights = [1.0] * len(scores) if sample.weights is None else sample.weights.tolist()
    for row, label in enumerate(sample.labels.tolist()):
        best = max(range(len(shifts)), key=lambda k: (scores[row][k] - shifts[k], -k))
        for k in range(len(shifts)):
            place = (0 if label == k else 1) if best == k else (2 if label == k else 3)
            counts[0, k, place] += weights[row]
    counts = torch.from_numpy(counts)
    broken = sum(max(v, 0.0) for v in problem.violations(counts))
    return round(broken, 9), float(problem.cost(counts))


def all_shifts(sample):
    """One pair of shifts in every cell of the plane of (t_1, t_2), with t_0 = 0."""
    s = sample.scores.numpy()
    one, two = s[:, 1] - s[:, 0], s[:, 2] - s[:, 0]
    critical = np.concatenate([one, (two[:, None] - (s[:, 2] - s[:, 1])[None]).ravel()])
    critical = np.unique(np.concatenate([critical, [critical.min() - 1, critical.max() + 1]]))
    for first in (critical[1:] + critical[:-1]) / 2:
        margin = np.sort(s[:, 2] - np.maximum(s[:, 0], s[:, 1] - first))
        for second in [margin[0] - 1, *(margin[1:] + margin[:-1]) / 2, margin[-1] + 1]:
            yield 0.0, first, second


@pytest.mark.parametrize("ask", quick_first([SEVERAL["recalls"], *SEVERAL.values()]))
@cases(25)
@given(
    seed=st.integers(0, 10_000), size=st.integers(3, 5), levels=st.sampled_from([None, 1, 4]), weighted=st.booleans()
)
def test_of_three_classes_the_best_of_all_shifts_is_found(ask, seed, size, levels, weighted):
    problem, sample = resolved(ask), tiny(2 * seed + weighted, size, 3)
    if levels is not None:
        sample = replace(sample, scores=(levels * sample.scores).round() / levels)
    best = min(judged(problem, sample, shifts) for shifts in all_shifts(sample))
    assert judged(problem, sample, find_shifts(problem, sample).shifts) == pytest.approx(best, abs=1e-9)
    limit = with_limit(problem, sample, find_shifts(problem, sample)).limit
    if best[0] == 0:
        assert limit == pytest.approx(-best[1] if problem.maximize else best[1], abs=1e-9)


@pytest.mark.parametrize("ask", ["minimize error where recall of class 1 >= 70%", "maximize macro f_score(1)"])
def test_of_two_classes_the_best_of_all_cuts_is_found(ask):
    problem = resolved(ask, 2)
    for seed in range(12):
        sample = tiny(seed, 15, 2)
        margin = np.sort((sample.scores[:, 1] - sample.scores[:, 0]).numpy())
        cuts = [margin[0] - 1, *(margin[1:] + margin[:-1]) / 2, margin[-1] + 1]
        best = min(judged(problem, sample, (0.0, cut)) for cut in cuts)
        assert judged(problem, sample, find_shifts(problem, sample).shifts) == pytest.approx(best)


@pytest.mark.parametrize("k", range(4))
@pytest.mark.parametrize(
    "ask",
    [
        "maximize recall of class {k} where precision of class {k} >= 60%",
        "minimize fnr of class {k} where fpr of class {k} <= 20%",
        "maximize f_score(1) of class {k}",
    ],
)
def test_an_ask_about_one_class_moves_its_shift_alone_to_the_best_of_all_cuts(ask, k):
    problem = resolved(ask.format(k=k), 4)
    for seed in range(4):
        sample = tiny(seed, 20, 4)
        found = find_shifts(problem, sample).shifts
        assert [place for place, shift in enumerate(found) if shift] in ([k], [])
        others = sample.scores.clone()
        others[:, k] = -torch.inf
        margin = np.sort((sample.scores[:, k] - others.amax(1)).numpy())
        cuts = [margin[0] - 1, *(margin[1:] + margin[:-1]) / 2, margin[-1] + 1]
        best = min(judged(problem, sample, [cut if place == k else 0.0 for place in range(4)]) for cut in cuts)
        assert judged(problem, sample, found) == pytest.approx(best)


@pytest.mark.parametrize("ask", ["minimize error", "maximize macro recall", "maximize accuracy", SEVERAL["recalls"]])
def test_no_shifts_pass_the_limit(ask):
    problem, near = resolved(ask), []
    for seed in range(6):
        sample = tiny(seed, 6, 3)
        limit = objective_limit(problem, sample)
        feasible = [cost for broken, cost in (judged(problem, sample, t) for t in all_shifts(sample)) if broken == 0]
        if feasible:
            best = -min(feasible) if problem.maximize else min(feasible)
            assert best <= limit + 1e-9 if problem.maximize else best >= limit - 1e-9
            near.append(abs(best - limit))
    assert min(near) < 1e-6


def test_where_no_limit_is_known_none_is_stated():
    sample = tiny(0, 20, 3)
    for ask in ("maximize macro precision", "maximize macro f_score(1)", "maximize error"):
        assert objective_limit(resolved(ask), sample) is None


def world(size, seed=0, n_classes=4):
    draw = np.random.default_rng(seed)
    labels = draw.choice(n_classes, size, p=draw.dirichlet(np.full(n_classes, 5.0)))
    return draw.normal(size=(size, n_classes)) + 2 * np.eye(n_classes)[labels], labels


def test_classes_that_compete_are_moved_together():
    scores, labels = world(1500)
    point = sp.evaluate("minimize error where recall of class 0 >= 90% and recall of class 1 >= 85%", scores, labels)
    assert point.feasible
    assert point.rates["recall of class 0"] == pytest.approx(0.9, abs=0.02)


def test_many_rows_are_searched_from_some_of_them_and_end_as_well():
    scores, labels = world(60_000, n_classes=3)
    ask = "minimize error where recall of class 0 >= 90%"
    point, few = (sp.evaluate(ask, scores[:n], labels[:n]) for n in (60_000, 20_000))
    assert point.feasible
    assert point.objective <= few.judge(scores, labels).objective + 0.003


def test_a_point_of_named_classes_is_run_and_stored():
    scores, labels = world(400)
    names = ["mole", "melanoma", "wart", "no finding"]
    ask = 'minimize error where recall of class melanoma >= 90% and coverage of class "no finding" <= 30%'
    point = sp.calibrate(ask, scores, np.array(names)[labels], classes=names)
    assert point.feasible
    assert list(point.threshold) == list(point.classes) == names
    predicted = point.predict(scores)
    assert (predicted == (scores - np.array(list(point.threshold.values()))).argmax(1)).all()
    assert point.objective == pytest.approx((predicted != labels).mean())
    assert point.rates["recall of class melanoma"] == pytest.approx((predicted[labels == 1] == 1).mean())
    assert point.rates['coverage of class "no finding"'] == pytest.approx((predicted == 3).mean())
    assert point.rates["macro recall"] == pytest.approx(
        np.mean([(predicted[labels == k] == k).mean() for k in range(4)])
    )
    assert point.thresholds.written(predicted).tolist() == [names[k] for k in predicted]
    assert 0 <= point.limit <= point.objective
    assert f"no shifts pass {100 * point.limit:.4g}%" in str(point)
    again = sp.OperatingPoint.from_dict(json.loads(json.dumps(point.to_dict())))
    assert again == point
    assert again.limit == point.limit
    assert again.problem.constraints[0].quantity.k == 1
    later = again.judge(scores[:100], labels[:100])
    assert later.objective == pytest.approx((predicted[:100] != labels[:100]).mean())
    assert later.rates == point.judge(scores[:100], np.array(names)[labels[:100]]).rates
    assert point.check(scores, labels).holds


def test_three_columns_of_scores_make_an_ask_of_errors_one_of_classes():
    scores, labels = world(200)
    point = sp.evaluate("minimize error", torch.from_numpy(scores), torch.from_numpy(labels))
    assert point.classes == ("0", "1", "2", "3")
    assert point.predict(torch.from_numpy(scores)).dtype == torch.int64
    assert sp.OperatingPoint.from_dict(point.to_dict()).problem.kind == "classes"


def test_weights_are_repetitions_of_rows():
    scores, labels = world(60)
    times = np.random.default_rng(1).integers(0, 4, 60)
    ask = "maximize macro recall where coverage of class 0 <= 20%"
    weighted = sp.evaluate(ask, scores, labels, weights=times)
    repeated = weighted.judge(np.repeat(scores, times, axis=0), np.repeat(labels, times))
    assert weighted.rates == pytest.approx(repeated.rates)


@cases(15)
@given(seed=st.integers(0, 1000), levels=st.integers(2, 6), added=st.integers(-5, 5))
def test_a_number_added_to_each_row_of_scores_changes_no_decision(seed, levels, added):
    draw = np.random.default_rng(seed)
    scores, labels = draw.integers(0, levels, (30, 3)).astype(float), draw.integers(0, 3, 30)
    point = sp.evaluate("maximize macro recall where coverage of class 1 <= 50%", scores, labels)
    assert (point.predict(scores) == point.predict(scores + added)).all()
    assert point.judge(scores + added, labels).rates == point.rates
    assert sum(point.rates[f"coverage of class {k}"] for k in range(3)) == pytest.approx(1)


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        (lambda s, y: sp.evaluate("minimize error where recall of class 9 >= 50%", s, y), BadProblem, "not there"),
        (lambda s, y: sp.evaluate("minimize fnr where fpr <= 5%", s, y), BadProblem, "say of which class"),
        (lambda s, y: sp.evaluate("maximize macro recall", s[:, 0], y), ShapeMismatch, "one column per class"),
        (lambda s, y: sp.evaluate("maximize macro recall", s, y, classes=["a", "b"]), BadSetting, "each of the 4"),
        (lambda s, y: sp.evaluate("maximize macro recall", s, y, classes=list("aabc")), BadSetting, "each of the 4"),
        (lambda s, y: sp.evaluate("maximize macro recall", s, y + 1), BadLabels, "class numbers from 0 to 3"),
        (lambda s, y: sp.evaluate("maximize macro recall", s, ["x"] * len(y)), BadLabels, "'x', which is none of"),
        (lambda s, y: sp.evaluate("maximize recall of class 3", s, y * 0), MissingClass, "needs samples of that class"),
        (lambda s, y: sp.evaluate("minimize fpr of class 0", s, y * 0), MissingClass, "samples of the other classes"),
        (lambda s, y: sp.evaluate("maximize macro recall", s, y).predict(s[:, :3]), ShapeMismatch, r"\(n, 4\)"),
        (lambda s, y: sp.evaluate("maximize macro recall", [[1.0, 2.0], [1.0]], [0, 1]), ShapeMismatch, "lengths"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(given, error, says):
    with pytest.raises(error, match=says):
        given(*world(60))


@slow
def test_estimates_of_classes_are_about_right():
    scores, labels = world(20_000)
    shifts = sp.evaluate("maximize macro f_score(1)", scores[:2000], labels[:2000])
    truth, inside = shifts.judge(scores, labels).objective, 0
    starts = range(2000, 20_000, 1800)
    for start in starts:
        own = slice(start, start + 600)
        (found,) = sp.calibrate("maximize macro f_score(1)", scores[own], labels[own], confidence=0.9).estimates
        inside += found.low <= truth <= found.high
    assert inside / len(starts) >= 0.7
