"""Targets: rates, steps, counts, curves, areas, pairs, rankings."""

from __future__ import annotations

import torch
from hypothesis import strategies as st

import setpoint as sp
from fuzz.inputs import (
    METRICS,
    RATES,
    counts,
    impossible,
    label_tensors,
    numbers,
    quantities,
    rates,
    score_tensors,
    tensors,
    weight_tensors,
)
from fuzz.laws import Draw, finite, finite_gradient, target
from setpoint.measure.classes import check_classes, count_classes, predict_class
from setpoint.measure.count import count
from setpoint.measure.curve import curve, mcclish, pr_area, roc_area
from setpoint.measure.multiclass import auc_mu, auc_one_vs_rest
from setpoint.measure.pairs import (
    Hinge,
    Logistic,
    Sigmoid,
    SquaredHinge,
    concordance,
    pair_sum,
    pairs_per_negative,
    pairs_per_positive,
)
from setpoint.measure.ranking import precision_at_k, recall_at_k
from setpoint.measure.sample import check_sample


@target
def rates_of_counts(draw: Draw) -> None:
    seen = draw(counts(draw(st.integers(1, 3))))
    for quantity in (*RATES, *METRICS, sp.f_score(draw(st.one_of(st.floats(1e-3, 1e3), numbers)))):
        value = quantity(seen)
        finite_gradient(value, seen)
        if quantity.is_share:
            assert bool(((value >= 0) & (value <= 1 + 1e-6)).all()), (quantity, value)
    finite(sp.recall.gap("sex")(draw(counts(2, 3))))
    # The slope of the lift grows with the rows per positive squared, beyond single precision for the tiniest counts.
    finite_gradient(sp.rates.lift(seen.double().clamp(max=1e9)), seen)


@target
def rates_of_classes(draw: Draw) -> None:
    seen, rate = draw(counts(1, 3)), draw(quantities)
    for quantity in (
        sp.classes.OfClass(rate, draw(st.integers(-1, 2))),
        sp.classes.Macro(rate),
        sp.classes.Micro(rate),
        sp.classes.Proportional(rate),
        sp.classes.ClassGap(rate),
    ):
        finite_gradient(quantity(seen), seen)
        finite(quantity.resolution(seen, 1.0).detach())


@target
def rates_of_worth(draw: Draw) -> None:
    seen, rate = draw(counts(1, 3)), draw(quantities)
    price = st.one_of(st.sampled_from(["amount", "fee", ""]), st.floats(0, 1e12), numbers)
    costs = sp.cost(miss=draw(price), alarm=draw(price))
    for quantity in (sp.rates.Weighted(rate, "fee"), sp.rates.Cost("amount", draw(st.floats(0, 1e3))), costs):
        if isinstance(quantity, sp.Rate):
            finite_gradient(quantity(seen), seen)
            continue
        placed = sp.minimize(quantity, sp.rates.Weighted(sp.fpr, "fee") <= 0.5).objective
        finite_gradient(placed(seen), seen)
        finite(placed.resolution(seen, 1.0).detach())


@target
def rates_in_first(draw: Draw) -> None:
    seen, k = draw(counts(2, 3, 2)), draw(st.one_of(st.integers(1, 3), numbers))
    rate = draw(st.one_of(quantities, st.sampled_from([sp.precision, sp.recall, sp.fnr, sp.rates.hit])))
    quantity = sp.rates.InFirst(rate, k)
    # Whole counts of lists: at most d rows are found among the first d.
    seen = torch.minimum(seen, torch.arange(1.0, 4.0).view(3, 1, 1).to(seen))
    finite_gradient(quantity(seen), seen)
    finite(quantity.resolution(seen, 1.0).detach())


@target
def rates_of_ones_own(draw: Draw) -> None:
    four = st.tuples(*[st.integers(0, 3).map(float)] * 4)
    rate = sp.Rate(draw(st.text(max_size=4)), draw(four), draw(four))
    finite(rate(draw(counts(1))).detach())
    metric = sp.Metric(draw(st.text(max_size=4)), lambda tp, fp, fn, tn: (tp - fp) / (1 + tn + fn))
    finite(metric(draw(counts(1))).detach())
    bound = draw(st.one_of(st.floats(-1e30, 1e30), impossible))
    for constraint in (rate <= bound, rate >= bound, metric == bound):
        finite(constraint.violation(draw(counts(1))).detach())
        assert str(constraint)


@target
def comparing_and_ranging(draw: Draw) -> None:
    rate, low, high = draw(quantities), draw(numbers), draw(numbers)
    if isinstance(rate, sp.Rate):
        stretch = rate.between(low, high, draw(st.integers(-1, 3)))
        finite(stretch.bounds)
        assert all(0 <= bound <= 1 for bound in stretch.bounds)
    assert (rate <= low).bound == low


@target
def steps(draw: Draw) -> None:
    margin = draw(score_tensors((4,)))
    finite_gradient(sp.steps.HardStep().above(margin) + sp.steps.HardStep().below(margin), margin)
    if not bool(torch.isfinite(margin).all()):
        return
    margin = margin.detach().clamp(-1e4, 1e4).requires_grad_()
    for step in (
        kind(draw(st.floats(1e-3, 5))) for kind in (sp.steps.SigmoidStep, sp.steps.SoftplusStep, sp.steps.HingeStep)
    ):
        for part in (step, step.slope):
            finite_gradient(part.above(margin) + part.below(margin), margin)


@target
def counting_and_curves(draw: Draw) -> None:
    given = draw(tensors())
    sample = check_sample(given.scores, given.labels, given.weights, given.groups)
    if not len(sample.scores):
        return
    found = count(sample.scores, sample.labels, sample.scores.detach()[:2], weights=sample.weights)
    finite(found)
    total = float(len(sample.scores) if sample.weights is None else sample.weights.double().sum())
    assert abs(float(found[0].sum()) - total) <= 1e-6 * (1 + total)
    if sample.groups is not None:
        finite(count(sample.scores, sample.labels, 0.0, weights=sample.weights, groups=sample.groups))
    cuts = curve(sample.scores, sample.labels, sample.weights)
    finite(cuts.counts)
    assert bool((cuts.counts >= 0).all())


@target
def areas(draw: Draw) -> None:
    given = draw(tensors(floats_only=True))
    sample = check_sample(given.scores, given.labels, given.weights)
    low, high = sorted(draw(st.tuples(st.floats(0, 1), st.floats(0, 1))))
    area = roc_area(sample.scores, sample.labels, sample.weights, low=low, high=high)
    assert -1e-9 <= float(area) <= 1 + 1e-9
    assert -1e-9 <= float(pr_area(sample.scores, sample.labels, sample.weights, low=low, high=high)) <= 1 + 1e-9
    finite(mcclish(area, low, min(high, 0.9)))


@target
def pairs(draw: Draw) -> None:
    # Sums over all pairs, not means: the slopes do not fit half precision.
    dtype = draw(st.sampled_from((torch.float64, torch.float32)))
    high, low = (draw(score_tensors((draw(st.integers(0, 6)),), dtype)) for _ in range(2))
    v, w = draw(weight_tensors(high.shape)), draw(weight_tensors(low.shape))
    up_to = draw(st.sampled_from([0, 2**16]))
    finite(concordance(high, low, v, w))
    kinds = (Hinge, SquaredHinge, Logistic, Sigmoid)
    surrogate = draw(st.sampled_from(kinds))(draw(st.one_of(st.floats(-2, 2), numbers)))
    finite_gradient(
        pair_sum(high, low, surrogate, positive_weights=v, negative_weights=w, broadcast_up_to=up_to), high, low
    )
    finite_gradient(pairs_per_positive(high, low, surrogate, weights=w, broadcast_up_to=up_to), high, low)
    finite_gradient(pairs_per_negative(high, low, surrogate, weights=v, broadcast_up_to=up_to), high, low)


@target
def many_classes(draw: Draw) -> None:
    n_classes = draw(st.integers(1, 3))
    given = draw(tensors(n_classes))
    if isinstance(given.scores, torch.Tensor) and given.scores.dim() == 2:
        partition = draw(st.one_of(st.none(), score_tensors((n_classes, n_classes), torch.float64)))
        finite(auc_mu(given.scores, given.labels, given.weights, partition))
        finite(auc_one_vs_rest(given.scores, given.labels, given.weights))
    sample = check_classes(given.scores, given.labels, given.weights)
    finite(predict_class(sample.scores))
    finite(count_classes(sample.scores.detach(), sample.labels, weights=sample.weights))


@target
def rankings(draw: Draw) -> None:
    shape = draw(st.tuples(st.integers(0, 3), st.integers(0, 4)))
    scores, labels = draw(score_tensors(shape)), draw(label_tensors(shape))
    mask = draw(st.one_of(st.none(), st.just(torch.rand(shape) < 0.7), st.just(torch.ones(shape))))
    k = draw(st.one_of(st.integers(1, 3), numbers))
    for measure in (precision_at_k, recall_at_k):
        value = measure(scores, labels, k, mask)
        finite(value)
        assert bool(((value >= 0) & (value <= 1)).all())


@target
def shares_of_a_rate(draw: Draw) -> None:
    rate = draw(rates)
    assert repr(rate)
    assert (rate == RATES[RATES.index(rate)]) is True
    assert (rate != draw(rates)) in (True, False)
