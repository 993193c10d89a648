"""Steps and counts: closed forms, slow loops, groups, and every precision."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference
from cases import cases
from setpoint.measure.count import count, count_sorted
from setpoint.measure.step import HardStep, HingeStep, SigmoidStep, SoftplusStep, hard_step


def test_a_margin_of_zero_does_not_pass():
    margin = torch.tensor([-1.0, 0.0, 1e-30, 1.0])
    for step in (hard_step, HardStep()):
        assert step.above(margin).tolist() == [0, 0, 1, 1]
        assert step.below(margin).tolist() == [1, 1, 0, 0]


def test_smooth_steps_are_finite_with_finite_slopes_at_extreme_margins():
    for step in (SigmoidStep(), SoftplusStep(), HingeStep(), SigmoidStep(3.0), SoftplusStep(0.1)):
        margin = torch.tensor([-1e4, -30.0, 0.0, 30.0, 1e4], requires_grad=True)
        for value in (step.above(margin), step.below(margin)):
            (slope,) = torch.autograd.grad(value.sum(), margin)
            assert torch.isfinite(value).all()
            assert torch.isfinite(slope).all()


def test_steps_have_their_closed_forms():
    margin = torch.linspace(-5, 5, 11, dtype=torch.float64)
    torch.testing.assert_close(SigmoidStep(2.0).above(margin), 1 / (1 + torch.exp(-2 * margin)))
    torch.testing.assert_close(SigmoidStep(2.0).above(margin) + SigmoidStep(2.0).below(margin), torch.ones(11).double())
    torch.testing.assert_close(SoftplusStep(2.0).above(margin), torch.log(1 + torch.exp(2 * margin)))
    torch.testing.assert_close(SoftplusStep(2.0).above(margin) - SoftplusStep(2.0).below(margin), 2 * margin)
    torch.testing.assert_close(HingeStep(2.0).above(margin), (1 + 2 * margin).clamp(min=0))
    assert bool((HingeStep(2.0).below(margin) >= hard_step.below(margin)).all())


@given(cases(), st.sampled_from([-2.0, 0.0, 0.5, 1.0]))
def test_hard_counts_equal_the_slow_loop(case, threshold):
    found = count(case.scores, case.labels, threshold, weights=case.weights)
    torch.testing.assert_close(found, torch.tensor(reference.counts(*case.lists, threshold)).double())


@given(cases())
def test_m_thresholds_in_one_pass_equal_m_passes(case):
    thresholds = torch.tensor([-1.0, 0.0, 2.0], dtype=torch.float64)
    together = count(case.scores, case.labels, thresholds, SigmoidStep(0.5), weights=case.weights)
    for row, threshold in zip(together, thresholds):
        alone = count(case.scores, case.labels, threshold, SigmoidStep(0.5), weights=case.weights)
        torch.testing.assert_close(row, alone)


@given(cases())
def test_groups_split_the_counts_and_add_up_again(case):
    groups = torch.arange(len(case.scores)) % 3
    split = count(case.scores, case.labels, torch.tensor([0.0]), weights=case.weights, groups=groups, n_groups=4)
    assert split.shape == (1, 4, 4)
    torch.testing.assert_close(split.sum(1), count(case.scores, case.labels, torch.tensor([0.0]), weights=case.weights))
    assert split[0, 3].tolist() == [0, 0, 0, 0]
    for group in range(3):
        inside = groups == group
        weights = None if case.weights is None else case.weights[inside]
        torch.testing.assert_close(
            split[0, group], count(case.scores[inside], case.labels[inside], 0.0, weights=weights)
        )


def test_a_threshold_a_group():
    scores = torch.tensor([0.4, 0.6, 0.4, 0.6])
    labels = torch.tensor([1.0, 1.0, 0.0, 0.0])
    groups = torch.tensor([0, 1, 0, 1])
    found = count(scores, labels, torch.tensor([[0.3, 0.7]]), groups=groups)
    assert found.tolist() == [[[1, 1, 0, 0], [0, 0, 1, 1]]]


def test_counts_of_many_samples_do_not_saturate_in_half_precision():
    scores = torch.ones(5000, dtype=torch.float16)
    labels = torch.ones(5000, dtype=torch.float16)
    assert count(scores, labels, 0.0)[0].item() == 5000
    assert count(scores, labels, 0.0, SigmoidStep(100.0))[0].item() == 5000


def test_the_slope_of_a_step_counts_the_derivative_of_its_counts():
    scores, labels = torch.linspace(-2, 2, 9, dtype=torch.float64), (torch.arange(9) % 2).double()
    for step in (SigmoidStep(1.7), SoftplusStep(0.6), HingeStep(0.8)):
        ahead = count(scores, labels, 0.3 + 1e-6, step)
        behind = count(scores, labels, 0.3 - 1e-6, step)
        slope = -count(scores, labels, 0.3, step.slope)
        torch.testing.assert_close(slope, (ahead - behind) / 2e-6, atol=1e-8, rtol=1e-6)


@given(
    rows=st.lists(st.tuples(st.integers(-3, 3), st.booleans(), st.integers(0, 4)), max_size=30),
    thresholds=st.lists(st.sampled_from([-2.5, -1.0, 0.0, 0.5, 2.0, 9.0]), min_size=1, max_size=7),
    weighted=st.booleans(),
)
def test_counts_from_a_sort_are_the_counts(rows, thresholds, weighted):
    scores, labels, weights = (torch.tensor([row[i] for row in rows], dtype=torch.float64) for i in range(3))
    cuts, own = torch.tensor(thresholds, dtype=torch.float64), weights if weighted else None
    assert torch.equal(count_sorted(scores, labels, cuts, own), count(scores, labels, cuts, weights=own))


def test_the_slope_of_a_hinge_where_it_bends_is_that_of_its_flat_side():
    slope = HingeStep(2.0).slope
    assert slope.above(torch.tensor([-0.5, -0.4])).tolist() == [0.0, 2.0]
    assert slope.below(torch.tensor([0.5, 0.4])).tolist() == [0.0, -2.0]


SCORES = torch.tensor([0.1, 0.4, 0.35, 0.8])


LABELS = torch.tensor([0.0, 0.0, 1.0, 1.0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_steps_keep_their_precision_and_counts_have_enough(dtype):
    margin = torch.tensor([-1.0, 0.0, 1.0], dtype=dtype)
    for step in (HardStep(), SigmoidStep(2.0), SoftplusStep(2.0), SigmoidStep(2.0).slope, SoftplusStep(2.0).slope):
        assert step.above(margin).dtype == step.below(margin).dtype == dtype
    scores = SCORES.to(dtype)
    assert count(scores, LABELS, 0.375).dtype == torch.float64
    assert count(scores, LABELS, 0.375, SigmoidStep()).dtype == torch.promote_types(dtype, torch.float32)
    assert count(scores, LABELS, 0.375).tolist() == [1, 1, 1, 1]


def test_smooth_steps_by_hand():
    margin = torch.tensor([0.3], dtype=torch.float64)
    up = 1 / (1 + math.exp(-0.6))
    sigmoid, softplus = SigmoidStep(2.0), SoftplusStep(2.0)
    assert sigmoid.above(margin).item() == pytest.approx(up)
    assert sigmoid.below(margin).item() == pytest.approx(1 - up)
    assert sigmoid.slope.above(margin).item() == pytest.approx(2 * up * (1 - up))
    assert sigmoid.slope.below(margin).item() == pytest.approx(-2 * up * (1 - up))
    assert softplus.above(margin).item() == pytest.approx(math.log1p(math.exp(0.6)))
    assert softplus.below(margin).item() == pytest.approx(math.log1p(math.exp(-0.6)))
    assert softplus.slope.above(margin).item() == pytest.approx(2 * up)
    assert softplus.slope.below(margin).item() == pytest.approx(-2 * (1 - up))
    assert SigmoidStep().temperature == SoftplusStep().temperature == 1.0


def test_counts_of_groups_in_every_shape():
    groups, weights = torch.tensor([0, 2, 2, 0]), torch.tensor([1.0, 2.0, 3.0, 4.0])
    split = count(SCORES, LABELS, 0.375, weights=weights, groups=groups)
    assert split.tolist() == [[4, 0, 0, 1], [0, 0, 0, 0], [0, 2, 3, 0]]
    assert count(SCORES, LABELS, 0.375, groups=groups, n_groups=5).shape == (5, 4)
    two = count(SCORES, LABELS, torch.tensor([0.0, 0.375]), weights=weights, groups=groups)
    assert two.shape == (2, 3, 4)
    assert two[1].tolist() == split.tolist()
    own = count(SCORES, LABELS, torch.tensor([[0.0, 0.0, 1.0], [1.0, 0.0, 0.375]]), groups=groups)
    assert own[0].tolist() == [[1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 1]]
    assert own[1].tolist() == [[0, 0, 1, 1], [0, 0, 0, 0], [0, 1, 1, 0]]
    nobody = count(SCORES[:0], LABELS[:0], 0.5, groups=groups[:0])
    assert nobody.tolist() == [[0, 0, 0, 0]]
