"""The one standardiser, against NumPy and at the ends of float64."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from setpoint.data.standardise import Standardiser, soften


def table(rows=5000):
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(rows, 3, generator=draw).double() * torch.tensor([1.0, 10.0, 0.1]) + 5
    return x, torch.rand(rows, generator=draw).double() + 0.1


def test_mean_and_spread_are_those_of_numpy():
    x, weights = table()
    for own in (None, weights):
        scale = Standardiser.of(x, own)
        mean = np.average(x, axis=0, weights=own)
        spread = np.average((x.numpy() - mean) ** 2, axis=0, weights=own) ** 0.5
        np.testing.assert_allclose(scale.mean, mean, rtol=1e-12)
        np.testing.assert_allclose(scale.spread, spread, rtol=1e-12)
        np.testing.assert_allclose(scale.apply(x), (x.numpy() - mean) / spread, atol=1e-10)


def test_there_and_back():
    x, weights = table(50)
    scale = Standardiser.of(x, weights)
    theta = torch.tensor([0.3, -2.0, 1.0, 0.7]).double()
    weight, bias = scale.undo(theta)
    torch.testing.assert_close(x @ weight + bias, scale.with_ones(x) @ theta)
    torch.testing.assert_close(scale.redo(weight, bias), theta)


def test_a_constant_feature_is_left_in_its_unit_or_is_0_ever_after():
    x = torch.tensor([[0.1, 1.0], [0.1, 3.0], [0.1, 5.0]])
    fresh = torch.tensor([[7.1, 3.0]])
    torch.testing.assert_close(Standardiser.of(x).apply(fresh)[0, 0], torch.tensor(7.0).double())
    assert float(Standardiser.of(x, constant=math.inf).apply(fresh)[0, 0]) == 0


def test_huge_and_tiny_numbers_have_a_spread_and_vanishing_ones_are_constant():
    x = torch.tensor([[1e308, 1e-308, 5e-324], [-1e308, 3e-308, 0.0]], dtype=torch.float64)
    scale = Standardiser.of(x)
    np.testing.assert_allclose(scale.mean, [0, 2e-308, 0], rtol=1e-12)
    np.testing.assert_allclose(scale.spread, [1e308, 1e-308, 1], rtol=1e-12)


def test_units_change_nothing_but_the_unit():
    """In units of a power of 2, mean and spread are the same to the last digit: what runs are repeated by."""
    x, weights = table()
    one, other = Standardiser.of(x, weights), Standardiser.of(x * 2.0**40, weights)
    assert torch.equal(one.mean * 2.0**40, other.mean)
    assert torch.equal(one.spread * 2.0**40, other.spread)


@given(st.lists(st.floats(allow_nan=False), min_size=2, max_size=20), st.floats(-5, 5))
def test_tails_keep_the_order_and_values_within_five_deviations_are_left_alone(values, inside):
    z = torch.tensor(sorted(values), dtype=torch.float64)
    soft = torch.from_numpy(soften(z.numpy()))
    assert soft.isfinite().all()
    assert (soft.diff() >= 0).all()
    # Values that differ by more than rounding of single precision stay apart.
    apart = z.diff() > 1e-5 * z.abs()[1:].clamp(min=1).maximum(z.abs()[:-1])
    assert (soft.diff()[apart & z[1:].isfinite() & z[:-1].isfinite()] > 0).all()
    for value, found in zip(z.tolist(), soft.tolist()):
        size = min(abs(value), 1.7976931348623157e308)
        expected = value if size <= 5 else math.copysign(5 + math.log(size - 4), value)
        assert math.isclose(found, expected, rel_tol=1e-12)
    assert soften(np.array([inside]))[0] == inside


@given(st.floats(5, 1.7e308))
def test_the_tails_are_logarithms(size):
    z = torch.tensor([size, -size], dtype=torch.float64)
    expected = 5 + math.log1p(size - 5)
    assert soften(z.numpy()).tolist() == pytest.approx([expected, -expected], rel=4e-16)
