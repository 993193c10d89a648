"""The correction of the shifts: against HiGHS on the transport program, and its soft form against scipy's roots."""

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import linprog, root
from scipy.sparse import eye, kron, vstack

import setpoint as sp
from marks import cases, slow
from setpoint.decide.coverage import _whole_samples, coverage_bounds, soft_correction, true_correction
from setpoint.errors import BadProblem
from setpoint.measure.classes import Macro, Micro, OfClass, class_shares, predict_class


def draw(seed, low_size=15, high_size=150):
    """Scores of some scale, and for each class a floor, a ceiling, a fixed coverage, or nothing."""
    random = np.random.default_rng(seed)
    size, n_classes = int(random.integers(low_size, high_size)), int(random.integers(2, 7))
    scores = random.normal(size=(size, n_classes)) * 10 ** random.uniform(-3, 3) + random.normal(size=n_classes)
    shares = random.dirichlet(np.ones(n_classes))
    kind = random.integers(0, 4, size=n_classes)
    low = np.where((kind == 0) | (kind == 2), shares, 0.0)
    high = np.where((kind == 1) | (kind == 2), shares, 1.0)
    return tuple(torch.tensor(part, dtype=torch.float64) for part in (scores, low, high))


def best_assignment(scores, least, most):
    """HiGHS: the largest sum of scores when each sample gets a class and each class so many samples."""
    size, n_classes = scores.shape
    once = kron(eye(size), np.ones((1, n_classes)))
    covered = kron(np.ones((1, size)), eye(n_classes))
    answer = linprog(
        -scores.numpy().ravel(), A_ub=vstack([covered, -covered]), b_ub=np.concatenate([most, -least]),
        A_eq=once, b_eq=np.ones(size), method="highs",
    )  # fmt: skip
    return answer.status, -answer.fun if answer.status == 0 else None


@cases(60)
@given(seed=st.integers(0, 100_000))
@example(seed=62)
@example(seed=317)
@example(seed=4429)
@example(seed=1446)
@example(seed=4440)
def test_true_coverages_meet_their_bounds_to_the_sample_at_the_best_sum_of_scores(seed):
    scores, low, high = draw(seed)
    size = len(scores)
    predicted = predict_class(scores, true_correction(scores, low, high))
    covered = np.bincount(predicted, minlength=len(low))
    fixed = (low == high).numpy()
    # No fixed coverage is missed by more than a sample, no floor or ceiling is broken where whole samples allow it.
    assert (np.abs(covered - size * low.numpy())[fixed] < 1 + 1e-6).all()
    least, most = np.ceil(size * low.numpy() - 1e-6), np.floor(size * high.numpy() + 1e-6)
    if least.sum() <= size <= most.sum() and (least <= most).all():
        assert (covered >= least).all()
        assert (covered <= most).all()
    # Given how often each class is predicted, and the slack that the bounds leave, no assignment has a larger sum.
    least, most = (
        np.where(fixed, covered, np.minimum(least, covered)),
        np.where(fixed, covered, np.maximum(most, covered)),
    )
    status, best = best_assignment(scores, least, most)
    assert status == 0
    reached = float(scores.gather(1, predicted[:, None]).sum())
    assert reached == pytest.approx(best, rel=1e-9, abs=1e-9 * float(scores.abs().sum()))


@cases(60)
@given(seed=st.integers(0, 100_000), temperature=st.floats(0.3, 8))
@example(seed=40701, temperature=0.3)
@example(seed=23355, temperature=0.3)
def test_soft_coverages_meet_their_bounds_to_the_tenth_digit(seed, temperature):
    scores, low, high = draw(seed)
    temperature = temperature / float(scores.std())
    weights = torch.rand(len(scores), generator=torch.Generator().manual_seed(seed)).double() ** 4
    weights = weights if seed % 2 else torch.ones_like(weights)
    shifts = soft_correction(scores, low, high, temperature, weights)
    covered = weights @ class_shares(scores, shifts, temperature) / weights.sum()
    assert bool((covered <= high + 1e-10).all())
    assert bool((covered >= low - 1e-10).all())
    # A shift stands for a bound that is reached: a ceiling if it is positive, a floor if it is negative.
    np.testing.assert_allclose(covered[shifts > 0], high[shifts > 0], atol=1e-10)
    np.testing.assert_allclose(covered[shifts < 0], low[shifts < 0], atol=1e-10)


@given(seed=st.integers(0, 100_000))
def test_bounds_in_whole_samples_can_all_be_met_and_are_less_than_one_away(seed):
    scores, low, high = draw(seed, 1, 30)
    least, most = (len(scores) * bound for bound in _whole_samples(low, high, len(scores)))
    assert float(least.sum()) <= len(scores) + 1e-9
    assert float(most.sum()) >= len(scores) - 1e-9
    assert bool((least <= most).all())
    assert bool(((least - len(scores) * low).abs() < 1 + 1e-6).all())
    assert bool(((most - len(scores) * high).abs() < 1 + 1e-6).all())


def test_soft_shifts_are_the_roots_that_scipy_finds():
    scores = draw(5)[0][:, :3] / draw(5)[0].std() + torch.tensor([0.5, 0.0, -0.5], dtype=torch.float64)
    low = high = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)

    def excess(free):
        shifts = torch.tensor([0.0, *free], dtype=torch.float64)
        return (class_shares(scores, shifts, 2.0).mean(0) - low)[1:].numpy()

    expected = root(excess, [0.0, 0.0], tol=1e-13).x
    found = soft_correction(scores, low, high, 2.0)
    np.testing.assert_allclose((found - found[0])[1:], expected, atol=1e-9)


@slow
def test_unequal_weights_are_met_within_the_heaviest_sample_a_class():
    for seed in range(30):
        scores, low, high = draw(seed, 40, 150)
        weights = torch.rand(len(scores), generator=torch.Generator().manual_seed(seed)).double() + 0.1
        shares = weights / weights.sum()
        covered = shares @ class_shares(scores, true_correction(scores, low, high, weights))
        assert bool((covered <= high + shares.max()).all())
        assert bool((covered >= low - shares.max()).all())


def test_a_start_changes_the_time_and_not_the_answer():
    for seed in range(20):
        scores, low, high = draw(seed)
        cold = true_correction(scores, low, high)
        warm = true_correction(scores + 0.01 * scores.std(), low, high, start=cold)
        assert torch.equal(predict_class(scores, warm), predict_class(scores, cold))


def test_shifts_follow_the_scale_of_the_scores_and_vanish_where_nothing_is_asked():
    scores, low, high = draw(7)
    shifts = true_correction(scores, low, high)
    torch.testing.assert_close(true_correction(scores * 1024, low, high), shifts * 1024)
    assert bool((shifts[(low == 0) & (high == 1)] == 0).all())
    assert true_correction(scores, torch.zeros_like(low), torch.ones_like(high)).tolist() == [0.0] * len(low)


def test_a_single_tie_of_everything_is_answered():
    scores = torch.zeros(12, 3, dtype=torch.float64)
    low, high = torch.zeros(3).double(), torch.tensor([0.5, 1.0, 1.0]).double()
    shifts = true_correction(scores, low, high)
    assert bool(torch.isfinite(shifts).all())
    assert (predict_class(scores, shifts) == 0).sum() == 0


@pytest.mark.parametrize(
    "constraints",
    [
        (OfClass(sp.recall, 0) >= 0.5,),
        (Macro(sp.recall) >= 0.5,),
        (sp.fpr <= 0.5,),
        (OfClass(sp.flagged, 3) <= 0.5,),
        (OfClass(sp.flagged, 0) >= 0.6, OfClass(sp.flagged, 1) >= 0.6),
        tuple(OfClass(sp.flagged, k) <= 0.3 for k in range(3)),
    ],
    ids=str,
)
def test_what_no_shifts_can_hold_is_refused(constraints):
    with pytest.raises(BadProblem):
        coverage_bounds(sp.minimize(Micro(sp.fnr), *constraints), 3)


def test_several_bounds_of_a_class_are_taken_together():
    flagged = OfClass(sp.flagged, 1)
    bounds = (flagged <= 0.5, flagged >= 0.2, flagged <= 0.4, flagged >= 0.1, flagged <= 0.6)
    low, high = coverage_bounds(sp.minimize(Micro(sp.fnr), *bounds), 3)
    assert low.tolist() == [0, 0.2, 0]
    assert high.tolist() == [1, 0.4, 1]
