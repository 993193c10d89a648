"""Each metric as a program and in closed form: HiGHS on the program is the oracle of the closed form."""

import numpy as np
import pytest
import torch

import reference_pairs as reference
from setpoint import lp
from setpoint.errors import BadLabels, BadScores, MissingClass, ShapeMismatch
from setpoint.measure.curve import roc_area
from setpoint.measure.multiclass import auc_mu, auc_one_vs_rest

SQUASHED = {
    "f_score": {},
    "f_score beta 2": {"beta": 2.0},
    "f_score margin": {"margin": 0.3},
    "jaccard": {},
    "jaccard margin": {"margin": 0.5},
    "precision_at_recall": {"recall": 0.8},
    "precision_at_recall dear": {"recall": 0.95, "shortfall": 7.0, "margin": 0.4},
    "recall_at_precision": {"precision": 0.7},
    "recall_at_precision cheap": {"precision": 0.9, "shortfall": 0.3, "margin": 0.2},
}
AREAS = {"auc": {}, "auc margin": {"margin": 0.2}}
CLASSES = {
    "auc_one_vs_all": {},
    "auc_one_vs_all pooled": {"pooled": True},
    "auc_mu": {},
    "auc_mu partition": {"partition": True},
    "auc_mu pooled partition": {"partition": True, "pooled": True},
}
#: Cases of each form in the quick suite; `python -m benchmarks.studies.lp_gradients` runs 200.
CASES = 12


def snapped(scores):
    """tanh, but exactly -1 and 1 where it nearly is: HiGHS takes coefficients below 1e-9 for zero."""
    squashed = torch.tanh(scores)
    return torch.where(squashed.abs() > 1 - 1e-4, squashed.sign(), squashed)


def case(name, seed, forms=SQUASHED | AREAS | CLASSES):
    """A form's closed value and program on made scores: weights, ties, saturation and rare positives at times."""
    draw = np.random.default_rng([31, seed, len(name)])
    n = int(draw.integers(4, 18 if name.startswith("auc") else 60))
    options = dict(forms[name])
    scores = torch.from_numpy(draw.normal(size=n) * float(draw.choice([0.3, 1, 30])))
    labels = torch.from_numpy((draw.random(n) < draw.choice([0.1, 0.5])).astype(float))
    labels[0], labels[1] = 1, 0
    if name in CLASSES:
        scores = torch.from_numpy(draw.normal(size=(n, 3)))
        labels = torch.from_numpy(np.arange(n) % 3)
        if options.get("partition"):
            options["partition"] = torch.from_numpy(draw.random((3, 3)) + np.ones((3, 3)) - 2 * np.eye(3))
    if draw.random() < 0.5:
        options["weights"] = torch.from_numpy(draw.random(n) + 0.05)
    scores.requires_grad_()
    form = name.split(" ")[0]
    if name in SQUASHED:
        options["squash"] = snapped
    sign = 1 if form.startswith("auc") else -1
    closed = sign * getattr(lp.closed, form)(scores, labels, **options)
    return scores, closed, getattr(lp.forms, form)(scores, labels, **options)


@pytest.mark.parametrize("name", SQUASHED | AREAS | CLASSES)
def test_closed_forms_equal_highs_in_value_and_gradient(name):
    for seed in range(CASES):
        scores, closed, program = case(name, seed)
        truth = lp.solve(program, lp.Highs())
        assert truth.status is lp.Status.SOLVED
        assert float(closed.detach()) == pytest.approx(float(truth.value.detach()), rel=1e-12, abs=1e-12)
        (ours,) = torch.autograd.grad(closed, scores)
        (theirs,) = torch.autograd.grad(truth.value, scores)
        assert float((ours - theirs).norm()) <= 1e-10 * (1e-3 + float(theirs.norm())), seed


@pytest.mark.parametrize("name", SQUASHED | AREAS | CLASSES)
def test_the_solver_agrees_with_the_closed_form(name):
    for seed in range(4):
        scores, closed, program = case(name, 100 + seed)
        found = lp.solve(program)
        assert found.status is lp.Status.SOLVED
        assert float(found.value.detach()) == pytest.approx(float(closed.detach()), abs=1e-6)
        (ours,) = torch.autograd.grad(closed, scores)
        (solved,) = torch.autograd.grad(found.value, scores)
        assert torch.allclose(ours, solved, atol=1e-5)


def test_at_a_kink_the_closed_slope_is_a_subgradient():
    """Pairs exactly at their margin, squashed scores exactly at zero: convex losses lie above every slope."""
    scores = torch.tensor([1.0, 0.0, 0.0, 2.0]).double().requires_grad_()
    labels = torch.tensor([1, 0, 1, 0])
    loss = lp.closed.auc(scores, labels)
    (slope,) = torch.autograd.grad(loss, scores)
    draw = torch.Generator().manual_seed(0)
    for _ in range(50):
        step = torch.randn(4, generator=draw).double()
        moved = lp.closed.auc(scores.detach() + step, labels)
        assert float(moved) >= float(loss.detach() + slope @ step) - 1e-12


def test_the_hard_bound_is_infeasible_exactly_when_out_of_reach():
    draw = np.random.default_rng(2)
    scores, labels = torch.from_numpy(draw.normal(size=30)), torch.arange(30) % 2
    reach = float((1 + torch.tanh(scores).clamp(max=0))[labels == 1].mean())
    for bound, status in ((0.98 * reach, "SOLVED"), (1.02 * reach, "INFEASIBLE")):
        program = lp.forms.precision_at_recall(scores, labels, bound, shortfall=None)
        assert lp.solve(program).status.name == status
    within = lp.solve(lp.forms.precision_at_recall(scores, labels, 0.9 * reach, shortfall=None))
    elastic = lp.closed.precision_at_recall(scores, labels, 0.9 * reach)
    assert float(-within.value) == pytest.approx(float(elastic), abs=1e-7)
    hard = lp.forms.recall_at_precision(scores, labels, 0.99, shortfall=None)
    assert lp.solve(hard).status is lp.Status.INFEASIBLE


def test_hard_scores_give_the_true_metrics():
    draw = np.random.default_rng(3)
    scores, labels = torch.from_numpy(draw.normal(size=80)), torch.from_numpy((draw.random(80) < 0.4) * 1)
    hard = 1e6 * scores
    flagged = scores > 0
    tp, fp = int((flagged & (labels == 1)).sum()), int((flagged & (labels == 0)).sum())
    fn = int((~flagged & (labels == 1)).sum())
    assert float(lp.closed.f_score(hard, labels)) == pytest.approx(2 * tp / (2 * tp + fp + fn))
    assert float(lp.closed.jaccard(hard, labels)) == pytest.approx(tp / (tp + fp + fn))
    assert float(lp.closed.precision_at_recall(hard, labels, 0.0)) == pytest.approx(tp / (tp + fp))
    assert float(lp.closed.recall_at_precision(hard, labels, 0.0)) == pytest.approx(tp / (tp + fn))


def test_the_areas_bound_and_with_a_narrow_ramp_equal_one_minus_auc():
    draw = np.random.default_rng(4)
    scores, labels = torch.from_numpy(draw.normal(size=60)), torch.from_numpy((draw.random(60) < 0.4) * 1)
    missing = 1 - float(roc_area(scores, labels))
    assert float(lp.closed.auc(scores, labels)) >= missing
    assert float(lp.closed.auc_ramp(scores, labels, margin=1e-9)) == pytest.approx(missing, abs=1e-6)
    many, classes = torch.from_numpy(draw.normal(size=(60, 3))), torch.arange(60) % 3
    tiny = 1e12 * many
    ramp = lambda form: float(form(tiny, classes, margin=2.0) - form(tiny, classes, margin=1.0))
    assert ramp(lp.closed.auc_mu) == pytest.approx(1 - float(auc_mu(many, classes)), abs=1e-3)
    assert ramp(lp.closed.auc_one_vs_all) == pytest.approx(1 - float(auc_one_vs_rest(many, classes)), abs=1e-3)


@pytest.mark.parametrize("name", ["one against all (8)", "class pairs (4)", "any partition (9)"])
def test_pooled_areas_are_the_printed_sums_in_value_and_gradient(name):
    """Classes of 40, 15 and 5 samples: one sum over pairs, with d itself; finite differences of the loop."""
    draw = np.random.default_rng(7)
    labels = [0] * 40 + [1] * 15 + [2] * 5
    scores = draw.normal(size=(60, 3))
    given = torch.from_numpy(scores).requires_grad_()
    partition, form = None, lp.closed.auc_one_vs_all
    options = {}
    if "(8)" not in name:
        partition, form = np.ones((3, 3)) - np.eye(3), lp.closed.auc_mu
        if "(9)" in name:
            partition = partition * np.array([[0, 1, 3], [2, 0, 0.5], [1, 1.5, 0]])
            options = {"partition": torch.from_numpy(partition)}
    total, pairs = reference.printed_areas(scores.tolist(), labels, 1.0, partition)
    assert pairs == (2 if partition is None else 1) * (40 * 15 + 40 * 5 + 15 * 5)
    value = form(given, torch.tensor(labels), pooled=True, **options)
    assert float(value.detach()) * pairs == pytest.approx(total, rel=1e-12)
    (ours,) = torch.autograd.grad(value * pairs, given)

    step, places = 1e-6, [(0, 0), (3, 1), (17, 2), (41, 0), (44, 1), (50, 2), (55, 0), (57, 1), (59, 2)]
    for row, column in places:
        ends = []
        for way in (step, -step):
            moved = scores.copy()
            moved[row, column] += way
            ends.append(reference.printed_areas(moved.tolist(), labels, 1.0, partition)[0])
        assert float(ours[row, column]) == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-6), (row, column)
    (means,) = torch.autograd.grad(form(given, torch.tensor(labels), **options), given)
    assert float(torch.cosine_similarity(ours.flatten(), means.flatten(), dim=0)) < 0.95


def test_a_weight_is_a_repetition():
    scores, labels = torch.randn(20).double(), torch.arange(20) % 2
    weights = torch.randint(1, 4, (20,))
    again = torch.repeat_interleave(torch.arange(20), weights)
    for name, options in {"f_score": {}, "jaccard": {}, "auc": {}, "precision_at_recall": {"recall": 0.9}}.items():
        form = getattr(lp.closed, name)
        weighted = form(scores, labels, weights=weights.double(), **options)
        assert float(weighted) == pytest.approx(float(form(scores[again], labels[again], **options)))


def test_bad_input_is_named():
    scores, labels = torch.randn(4), torch.tensor([0, 1, 0, 1])
    for form in (lp.closed.f_score, lp.forms.f_score, lp.closed.auc, lp.forms.auc):
        with pytest.raises(ShapeMismatch):
            form(scores, labels[:3])
        with pytest.raises(BadLabels):
            form(scores, labels + 1)
        with pytest.raises(BadScores):
            form(scores * float("nan"), labels)
        with pytest.raises(MissingClass):
            form(scores, torch.zeros(4))
    with pytest.raises(MissingClass):
        lp.closed.auc_mu(torch.randn(4, 3), torch.ones(4))
    with pytest.raises(ShapeMismatch):
        lp.forms.auc_mu(torch.randn(4, 3), torch.arange(4) % 3, partition=torch.eye(2))
