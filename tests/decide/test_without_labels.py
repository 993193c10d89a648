"""Rates of rows without labels, against counts that are made and then hidden."""

from __future__ import annotations

import numpy as np
import pytest

import setpoint as sp
from setpoint.decide.without_labels import rates_without_labels

PROBLEM = sp.ask("maximize recall where precision >= 50% and fpr <= 5%")


def test_a_pure_label_shift_is_found():
    recall, fpr, share = 0.8, 0.05, 0.4
    flagged = share * recall + (1 - share) * fpr
    found = {one.rate: one.estimate for one in rates_without_labels(PROBLEM, [160, 40, 40, 760], flagged)}
    assert found == pytest.approx({"recall": 0.8, "precision": share * recall / flagged, "fpr": 0.05})


def test_the_range_holds_every_table_with_that_share_of_positives():
    rng = np.random.default_rng(0)
    for _ in range(50):
        flagged = rng.integers(1, 100)
        found = {one.rate: one for one in rates_without_labels(PROBLEM, [16, 4, 4, 76], flagged / 100)}
        hit = rng.integers(max(0, flagged - 80), min(flagged, 20) + 1)
        for name, value in (("recall", hit / 20), ("fpr", (flagged - hit) / 80), ("precision", hit / flagged)):
            assert found[name].low - 1e-9 <= value <= found[name].high + 1e-9


def test_scores_that_tell_nothing_apart_say_nothing():
    assert rates_without_labels(PROBLEM, [10, 40, 10, 40], 0.5) == []
    assert rates_without_labels(PROBLEM, [0, 40, 0, 40], 0.5) == []
