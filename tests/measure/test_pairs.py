"""Sums over pairs: both ways of computing them against loops, gradients of every kind, and the laws."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

import reference_pairs as reference
from marks import cases
from setpoint.errors import BadScores, BadSetting, BadWeights, MissingClass, ShapeMismatch
from setpoint.measure import pairs
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

KINDS = [
    (Hinge, reference.hinge, reference.hinge_slope),
    (SquaredHinge, reference.squared_hinge, reference.squared_hinge_slope),
    (Logistic, reference.logistic, reference.logistic_slope),
    (Sigmoid, reference.sigmoid, reference.sigmoid_slope),
]
HINGES = [Hinge(0.75), SquaredHinge(0.75)]
#: Everything sorted (or one row a block), blocks of some rows, everything laid out.
SWITCHES = [0, 60, 10**9]
SORT, BROADCAST = 0, 10**9


def grid(n, seed, dtype=torch.float64):
    """Scores on a coarse grid: many ties, and many pairs that meet the margin exactly."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-6, 7, (n,), generator=generator).to(dtype) / 4


def spread(n, seed, dtype=torch.float64):
    return torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def close(left, right, tolerance=1e-12):
    right = torch.as_tensor(right, dtype=torch.float64)
    torch.testing.assert_close(left.double(), right, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("kind", "cost", "slope"), KINDS)
def test_values_and_gradients_are_those_of_the_loop(kind, cost, slope, weighted, switch):
    positives, negatives = grid(23, 0).requires_grad_(), grid(17, 1).requires_grad_()
    weights = spread(17, 2).abs() if weighted else None
    upstream = spread(23, 3)
    sums = pairs_per_positive(positives, negatives, kind(0.75), weights=weights, broadcast_up_to=switch)
    found = torch.autograd.grad(sums, (positives, negatives), upstream)
    p, n, w = positives.tolist(), negatives.tolist(), weights.tolist() if weighted else None
    close(sums, reference.per_positive(p, n, cost, 0.75, w))
    expected = reference.gradients(p, n, slope, 0.75, upstream=upstream.tolist(), weights=w)
    close(found[0], expected[0])
    close(found[1], expected[1])


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize(("kind", "cost", "slope"), KINDS)
def test_the_mirrored_sums_are_those_of_the_loop(kind, cost, slope, switch):
    positives, negatives, weights = grid(23, 4), grid(17, 5), spread(23, 6).abs()
    plain = pairs_per_negative(positives, negatives, kind(0.5), broadcast_up_to=switch)
    weighted = pairs_per_negative(positives, negatives, kind(0.5), weights=weights, broadcast_up_to=switch)
    close(plain, reference.per_negative(positives.tolist(), negatives.tolist(), cost, 0.5))
    close(weighted, reference.per_negative(positives.tolist(), negatives.tolist(), cost, 0.5, weights.tolist()))


def test_a_temperature_multiplies_the_shortfall():
    p, n = spread(9, 7), spread(8, 8)
    for kind, cost in ((Logistic, reference.logistic), (Sigmoid, reference.sigmoid)):
        found = pairs_per_positive(p, n, kind(0.5, temperature=4.0))
        close(found, reference.per_positive(p.tolist(), n.tolist(), lambda x, cost=cost: cost(4 * x), 0.5))
    # The hotter, the nearer to the count of pairs out of order.
    misses = (p.unsqueeze(1) < n).double().sum(1)
    close(pairs_per_positive(p, n, Sigmoid(temperature=1e6)), misses, 1e-6)
    for wrong in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(BadSetting, match="temperature"):
            Sigmoid(temperature=wrong)


@pytest.mark.parametrize("switch", SWITCHES)
@pytest.mark.parametrize("surrogate", [*HINGES, Logistic(0.5, 3.0), Sigmoid(0.5, 3.0)])
def test_gradients_are_finite_differences_also_those_of_weights(surrogate, switch):
    def both(positives, negatives, v, w):
        options = {"broadcast_up_to": switch}
        return (
            pairs_per_positive(positives, negatives, surrogate, weights=w, **options),
            pairs_per_negative(positives, negatives, surrogate, weights=v, **options),
            pair_sum(positives, negatives, surrogate, positive_weights=v, negative_weights=w, **options),
        )

    inputs = [spread(9, 7), spread(8, 8), spread(9, 9).abs(), spread(8, 10).abs()]
    assert torch.autograd.gradcheck(both, [x.requires_grad_() for x in inputs])


@pytest.mark.parametrize("switch", [SORT, BROADCAST])
@pytest.mark.parametrize("surrogate", HINGES)
def test_the_gradient_can_be_differentiated_again(surrogate, switch):
    def total(positives, negatives, weights):
        return pairs_per_positive(positives, negatives, surrogate, weights=weights, broadcast_up_to=switch)

    inputs = [spread(7, 11), spread(6, 12), spread(6, 13).abs()]
    assert torch.autograd.gradgradcheck(total, [x.requires_grad_() for x in inputs])


@pytest.mark.parametrize("sizes", [(100, 300), (400, 500), (3, 40_000)])
@pytest.mark.parametrize("surrogate", HINGES)
def test_the_default_switch_changes_nothing(surrogate, sizes):
    answers = []
    for options in ({}, {"broadcast_up_to": SORT}, {"broadcast_up_to": BROADCAST}):
        positives, negatives = (grid(n, seed).requires_grad_() for seed, n in enumerate(sizes))
        sums = pairs_per_positive(positives, negatives, surrogate, **options)
        answers.append((sums, *torch.autograd.grad(sums, (positives, negatives), spread(sizes[0], 14))))
    for answer in answers[1:]:
        for left, right in zip(answer, answers[0]):
            close(left, right.detach(), 1e-11)


def test_few_pairs_are_laid_out_and_many_sorted(monkeypatch):
    sorted_sums = []
    original = pairs._power_sums
    monkeypatch.setattr(pairs, "_power_sums", lambda *a: sorted_sums.append(1) or original(*a))
    pairs_per_positive(grid(256, 0), grid(256, 1), SquaredHinge())
    assert not sorted_sums
    pairs_per_positive(grid(257, 0), grid(256, 1), SquaredHinge())
    assert sorted_sums


@pytest.mark.parametrize("switch", [SORT, BROADCAST])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("kind", "cost"), [k[:2] for k in KINDS[:2]])
def test_huge_offsets_cost_no_digits(kind, cost, dtype, switch):
    positives, negatives = spread(40, 15, dtype) + 1e6, spread(50, 16, dtype) + 1e6
    sums = pairs_per_positive(positives, negatives, kind(0.3), broadcast_up_to=switch)
    tolerance = 2e-7 if dtype == torch.float32 else 1e-13
    expected = reference.per_positive(positives.tolist(), negatives.tolist(), cost, 0.3)
    assert min(expected) < 0.3
    assert sums.tolist() == pytest.approx(expected, rel=tolerance, abs=1e-300)


@pytest.mark.parametrize("switch", [SORT, BROADCAST])
@pytest.mark.parametrize(
    ("dtype", "positive", "negative", "margin"),
    [
        (torch.float32, 1.0, 0.0, 1 + 1e-9),
        (torch.float32, 1.0, 0.0, 1.0),
        (torch.float32, 1.0, 0.0, 1 - 1e-9),
        (torch.float32, 1.0, 1e-9, 1.0),
        (torch.float32, 1025.0, 1024.0, 1 + 1e-9),
        (torch.float64, 2.0**20 + 0.25, 2.0**20, 0.25 + 1e-11),
    ],
)
def test_a_pair_that_barely_misses_the_margin_is_seen(dtype, positive, negative, margin, switch):
    positives = torch.tensor([positive], dtype=dtype, requires_grad=True)
    negatives = torch.tensor([negative, negative, negative - 9], dtype=dtype)
    shortfall = margin - (positive - negatives[0].item())
    sums = pairs_per_positive(positives, negatives, Hinge(margin), broadcast_up_to=switch)
    assert sums.item() == pytest.approx(2 * reference.hinge(shortfall), rel=1e-6, abs=1e-300)
    assert torch.autograd.grad(sums, positives)[0].item() == -2 * reference.hinge_slope(shortfall)


def test_rounding_at_the_border_never_pays_out():
    digit = 2.0**-13  # Of scores around 2^39, on which the border is centred here.
    negatives = torch.tensor([-1.23 * digit, *[-(2.0**39) * 1.8] * 3], dtype=torch.float64)
    positives = torch.tensor([1 - 0.51 * digit], dtype=torch.float64)
    for kind in (Hinge, SquaredHinge):
        assert pairs_per_positive(positives, negatives, kind(1 + 0.51 * digit), broadcast_up_to=SORT) == 0


@pytest.mark.parametrize(("kind", "cost", "slope"), KINDS[:2])
def test_far_away_scores_cost_no_digits(kind, cost, slope):
    positives, negatives = spread(30, 17) + 3, torch.cat([spread(30, 18), spread(35, 19) - 1e12])
    positives, negatives = positives.requires_grad_(), negatives.requires_grad_()
    sums = pairs_per_positive(positives, negatives, kind(1.0), broadcast_up_to=SORT)
    found = torch.autograd.grad(sums.sum(), (positives, negatives))
    p, n = positives.tolist(), negatives.tolist()
    expected = reference.per_positive(p, n, cost, 1.0)
    assert sum(0 < q < 1 for q in expected) > 5
    assert sums.tolist() == pytest.approx(expected, rel=1e-12, abs=1e-300)
    for left, right in zip(found, reference.gradients(p, n, slope, 1.0, upstream=[1.0] * 30)):
        assert left.tolist() == pytest.approx(right, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("surrogate", HINGES)
def test_a_long_sum_keeps_the_precision_of_float32(surrogate):
    positives, negatives = spread(1_000, 20, torch.float32), spread(200_000, 21, torch.float32)
    positives.requires_grad_()
    sums = pairs_per_positive(positives, negatives, surrogate)
    (slopes,) = torch.autograd.grad(sums.sum(), positives)
    some = torch.arange(0, 1_000, 50)
    shortfall = (surrogate.margin - (positives[some].detach().double().unsqueeze(1) - negatives.double())).relu()
    assert sums.dtype == torch.float32
    torch.testing.assert_close(
        sums[some].double(), (shortfall**surrogate.degree).sum(1), rtol=2e-7, atol=0, check_dtype=False
    )
    slope = surrogate.degree * shortfall ** (surrogate.degree - 1) * (shortfall > 0)
    torch.testing.assert_close(slopes[some].double(), -slope.sum(1), rtol=2e-7, atol=0)


@pytest.mark.parametrize("surrogate", [*HINGES, Logistic(), Sigmoid()])
def test_results_have_the_dtype_of_the_scores_and_at_least_float32(surrogate):
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        positives, negatives = grid(30, 22, dtype).requires_grad_(), grid(20, 23, dtype).requires_grad_()
        exact = pairs_per_positive(positives.detach().double(), negatives.detach().double(), surrogate)
        for switch in SWITCHES:
            sums = pairs_per_positive(positives, negatives, surrogate, broadcast_up_to=switch)
            assert sums.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
            close(sums.detach(), exact, 1e-6)
            gradient = torch.autograd.grad(sums.sum(), (positives, negatives))
            assert [g.dtype for g in gradient] == [dtype, dtype]


@pytest.mark.parametrize("surrogate", [*HINGES, Logistic(), Sigmoid()])
def test_an_empty_side_gives_zeros_with_zero_gradient(surrogate):
    for sizes, switch in itertools.product([(0, 5), (5, 0), (0, 0)], SWITCHES):
        positives, negatives = (spread(n, n).requires_grad_() for n in sizes)
        options = {"broadcast_up_to": switch}
        per_positive = pairs_per_positive(positives, negatives, surrogate, **options)
        per_negative = pairs_per_negative(positives, negatives, surrogate, **options)
        total = pair_sum(positives, negatives, surrogate, **options)
        assert (len(per_positive), len(per_negative)) == sizes
        assert total == 0
        assert not per_positive.any()
        assert not per_negative.any()
        both = torch.autograd.grad(per_positive.sum() + per_negative.sum() + total, (positives, negatives))
        assert not any(g.any() for g in both)


def test_memory_kept_for_the_backward_pass_grows_with_scores_not_with_pairs():
    positives, negatives = spread(300, 24).requires_grad_(), spread(400, 25).requires_grad_()
    for surrogate in (*HINGES, Logistic(), Sigmoid()):
        kept = {}

        def keep(x, kept=kept):
            kept[x.untyped_storage().data_ptr()] = x
            return x

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
            sums = pairs_per_positive(positives, negatives, surrogate, broadcast_up_to=1_000)
        assert sums.requires_grad
        assert 300 < sum(x.untyped_storage().nbytes() / 8 for x in kept.values()) < 10 * (300 + 400)


scores = st.lists(st.integers(-8, 8), min_size=1, max_size=12).map(lambda x: torch.tensor(x).double() / 4)
switches = st.sampled_from(SWITCHES)
hinges = st.sampled_from([Hinge(0.5), SquaredHinge(0.5), Hinge(-0.25), SquaredHinge(0.0)])


@cases(60)
@given(positives=scores, negatives=scores, surrogate=hinges, switch=switches, shift=st.integers(-1_000, 1_000))
def test_law_only_differences_matter(positives, negatives, surrogate, switch, shift):
    here = pairs_per_positive(positives, negatives, surrogate, broadcast_up_to=switch)
    there = pairs_per_positive(positives + shift, negatives + shift, surrogate, broadcast_up_to=switch)
    assert torch.equal(here, there)


@cases(60)
@given(data=st.data(), positives=scores, negatives=scores, surrogate=hinges, switch=switches)
def test_law_a_weight_is_a_repetition(data, positives, negatives, surrogate, switch):
    times = torch.tensor(data.draw(st.lists(st.integers(0, 3), min_size=len(negatives), max_size=len(negatives))))
    options = {"broadcast_up_to": switch}
    weighted = pairs_per_positive(positives, negatives, surrogate, weights=times, **options)
    repeated = pairs_per_positive(positives, negatives.repeat_interleave(times), surrogate, **options)
    close(weighted, repeated)
    of_negatives = pair_sum(positives, negatives, surrogate, negative_weights=times, **options)
    mirrored = pair_sum(-negatives, -positives, surrogate, positive_weights=times, **options)
    close(of_negatives, repeated.sum())
    close(mirrored, repeated.sum())


@cases(60)
@given(positives=scores, negatives=scores, surrogate=hinges, switch=switches)
def test_law_both_sides_pay_the_same_in_total(positives, negatives, surrogate, switch):
    options = {"broadcast_up_to": switch}
    total = pair_sum(positives, negatives, surrogate, **options)
    close(pairs_per_positive(positives, negatives, surrogate, **options).sum(), total)
    close(pairs_per_negative(positives, negatives, surrogate, **options).sum(), total)


@cases(60)
@given(data=st.data(), positives=scores, negatives=scores, surrogate=hinges, switch=switches)
def test_law_order_does_not_matter(data, positives, negatives, surrogate, switch):
    first = torch.tensor(data.draw(st.permutations(range(len(positives)))))
    second = torch.tensor(data.draw(st.permutations(range(len(negatives)))))
    plain = pairs_per_positive(positives, negatives, surrogate, broadcast_up_to=switch)
    shuffled = pairs_per_positive(positives[first], negatives[second], surrogate, broadcast_up_to=switch)
    assert torch.equal(plain[first], shuffled)


@cases(80)
@given(data=st.data(), positives=scores, negatives=scores)
def test_concordance_is_that_of_the_loop(data, positives, negatives):
    v, w = (
        torch.tensor(data.draw(st.lists(st.integers(0, 3), min_size=len(s), max_size=len(s)))).double() + 0.5
        for s in (positives, negatives)
    )
    plain, weighted = concordance(positives, negatives), concordance(positives, negatives, v, w)
    assert plain == pytest.approx(reference.concordance(positives.tolist(), negatives.tolist()), abs=1e-14)
    lists = [x.tolist() for x in (positives, negatives, v, w)]
    assert weighted == pytest.approx(reference.concordance(*lists), abs=1e-12)
    assert plain + concordance(negatives, positives) == pytest.approx(1, abs=1e-14)
    assert torch.equal(plain, concordance(positives.exp(), negatives.exp()))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_concordance_is_scikit_learn_s_roc_auc(dtype):
    for values in (grid(3_000, 26, dtype), spread(3_000, 27, dtype)):
        labels, weights = spread(3_000, 28) + values > 0.3, spread(3_000, 29).abs()
        plain = concordance(values[labels], values[~labels])
        assert plain == pytest.approx(roc_auc_score(labels, values.double()), abs=1e-12)
        weighted = concordance(values[labels], values[~labels], weights[labels], weights[~labels])
        assert weighted == pytest.approx(roc_auc_score(labels, values.double(), sample_weight=weights), abs=1e-12)


def test_wrong_input_is_named():
    good, ones = torch.zeros(3), torch.ones(3)
    with pytest.raises(ShapeMismatch, match=r"negatives have shape \(3, 1\)"):
        pairs_per_positive(good, good.unsqueeze(1), Hinge())
    with pytest.raises(BadScores, match="positives"):
        pair_sum(torch.tensor([1.0, torch.nan]), good, Hinge())
    with pytest.raises(BadScores, match="negatives"):
        pairs_per_negative(good, torch.tensor([1, 2]), Hinge())
    with pytest.raises(ShapeMismatch, match=r"3 negatives came with weights \(2,\)"):
        pairs_per_positive(good, good, Hinge(), weights=torch.ones(2))
    with pytest.raises(BadWeights, match="positives"):
        pairs_per_negative(good, good, Hinge(), weights=-ones)
    with pytest.raises(MissingClass, match="positives weigh 0"):
        concordance(good[:0], good)
    with pytest.raises(MissingClass, match="negatives 0"):
        concordance(good, good, ones, 0 * ones)
    with pytest.raises(BadSetting, match="margin is inf"):
        Hinge(float("inf"))


def test_what_is_wrong_is_named_by_its_side():
    good, bad = torch.rand(3), torch.rand(3, 2)
    for sides, name in (((bad, good), "positives"), ((good, bad), "negatives")):
        with pytest.raises(ShapeMismatch, match=f"^{name} have shape"):
            concordance(*sides)
    for side, name in ((2, "positives"), (3, "negatives")):
        sides = [good, good, None, None]
        sides[side] = -good
        with pytest.raises(BadWeights, match=f"the weights of the {name}"):
            concordance(*sides)
