"""The bar of two standard errors with few repeats, against draws without an effect."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.common.chance import by_chance, chance_told


@pytest.mark.parametrize("repeats", [3, 5])
def test_as_many_draws_without_an_effect_pass_the_bar_as_is_said(repeats):
    drawn = np.random.default_rng(0).standard_normal((100_000, repeats))
    error = drawn.std(1, ddof=1) / repeats**0.5
    assert by_chance(repeats) == pytest.approx((abs(drawn.mean(1)) > 2 * error).mean(), abs=0.005)


def test_the_sentence_has_a_share_for_every_number_of_repeats():
    assert "12 % of them with 5 repeats and 8 % of them with 10 repeats" in chance_told(5, 10)
