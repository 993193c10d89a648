"""Everything stays where the scores are: with another default device (one that holds no numbers), nothing strays."""

import pytest
import torch

import setpoint as sp
from setpoint.decide.cut import find
from setpoint.measure.classes import check_classes, count_classes
from setpoint.measure.count import count
from setpoint.measure.curve import curve, mean_over, pr_area, roc_area
from setpoint.measure.multiclass import auc_mu, auc_one_vs_rest
from setpoint.measure.pairs import Hinge, Logistic, SquaredHinge, concordance, pair_sum
from setpoint.measure.ranking import precision_at_k, recall_at_k
from setpoint.measure.sample import Sample, check_sample
from setpoint.measure.step import SigmoidStep

SCORES = torch.tensor([0.1, 0.4, 0.4, 0.8, 0.3, 0.9], dtype=torch.float64)
LABELS = torch.tensor([0.0, 0.0, 1.0, 1.0, 1.0, 0.0], dtype=torch.float64)
WEIGHTS = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 0.5], dtype=torch.float64)
GROUPS = torch.tensor([0, 1, 0, 1, 1, 0])
MANY, CLASSES = torch.stack([SCORES, -SCORES, SCORES**2], dim=1), torch.tensor([0, 1, 2, 0, 1, 2])
LISTS, RELEVANT, MASK = SCORES.reshape(2, 3), LABELS.reshape(2, 3), torch.tensor([[1, 1, 0], [1, 1, 1]]).bool()
PLAIN, HEAVY = Sample(SCORES, LABELS), Sample(SCORES, LABELS, WEIGHTS)
OVER = sp.maximize(sp.recall, over=sp.fpr.between(0, 0.5, points=3))
FALLING = sp.minimize(sp.fpr, over=sp.fnr.between(0, 0.5, points=3))
BOUNDED = sp.maximize(sp.recall, sp.fpr <= 0.4, sp.flagged == 0.5)


def parts(found):
    return [found.thresholds, found.counts, found.active]


CASES = {
    "mass": lambda: [PLAIN.mass, HEAVY.mass, PLAIN.spread, HEAVY.spread],
    "count": lambda: [count(SCORES, LABELS, 0.35), count(SCORES, LABELS, 0.35, SigmoidStep(2.0), weights=WEIGHTS)],
    "count by group": lambda: [count(SCORES, LABELS, 0.35, groups=GROUPS)],
    "curve": lambda: [curve(SCORES, LABELS).counts, curve(SCORES, LABELS, WEIGHTS).counts],
    "cuts": lambda: [curve(SCORES, LABELS).thresholds(GROUPS)],
    "areas": lambda: [roc_area(SCORES, LABELS), pr_area(SCORES, LABELS, WEIGHTS, low=0.1, high=0.7)],
    "area over fnr": lambda: [mean_over(curve(SCORES, LABELS), sp.fpr, sp.fnr.between(0.1, 0.5))],
    "rates": lambda: [rate(count(SCORES, LABELS, 0.35)) for rate in (sp.fpr, sp.f_score(2), sp.mcc, sp.g_mean)],
    "gap": lambda: [sp.recall.gap("g")(count(SCORES, LABELS, 0.35, groups=GROUPS))],
    "resolution": lambda: [sp.fpr.resolution(count(SCORES, LABELS, 0.35), 2.0)],
    "classes": lambda: [count_classes(MANY, CLASSES), count_classes(MANY, CLASSES, 0.0, 2.0, weights=WEIGHTS)],
    "areas of classes": lambda: [auc_mu(MANY, CLASSES), auc_mu(MANY, CLASSES, WEIGHTS), auc_one_vs_rest(MANY, CLASSES)],
    "hinges": lambda: [pair_sum(SCORES, -SCORES, cost(), broadcast_up_to=2) for cost in (Hinge, SquaredHinge)],
    "pairs": lambda: [pair_sum(SCORES, -SCORES, Logistic(), negative_weights=WEIGHTS)],
    "concordance": lambda: [concordance(SCORES, -SCORES), concordance(SCORES, -SCORES, WEIGHTS, WEIGHTS)],
    "ranking": lambda: [precision_at_k(LISTS, RELEVANT, 2, MASK), recall_at_k(LISTS, RELEVANT, 2)],
    "border": lambda: [check_sample(SCORES, LABELS, WEIGHTS, GROUPS).weights, check_sample(SCORES, LABELS).labels],
    "border of classes": lambda: [check_classes(MANY, CLASSES).weights, check_classes(MANY, CLASSES, WEIGHTS).labels],
    "cut without bounds": lambda: parts(find(sp.maximize(sp.accuracy), PLAIN)),
    "cut with bounds": lambda: parts(find(BOUNDED, HEAVY)),
    "cuts of an area": lambda: parts(find(OVER, HEAVY)) + parts(find(FALLING, PLAIN)),
    "excesses": lambda: [BOUNDED.excesses(count(SCORES, LABELS, torch.full_like(SCORES[:1], 0.35)))],
    "excesses of an area": lambda: [OVER.excesses(count(SCORES, LABELS, SCORES[:3]))],
}


@pytest.mark.parametrize("case", CASES)
def test_tensors_stay_where_the_scores_are(case):
    expected = CASES[case]()
    with torch.device("meta"):
        found = CASES[case]()
    for one, other in zip(found, expected, strict=True):
        assert one.device.type == "cpu"
        assert one.dtype == other.dtype
        assert torch.equal(one, other)
