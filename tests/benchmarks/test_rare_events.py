"""Rare events in real tables: what could be wrong without showing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from benchmarks.studies.rare_events import study

import setpoint as sp
from setpoint.data.standardise import Standardiser


@pytest.fixture
def parts(monkeypatch):
    """A table of 20,000 negatives and 2,000 positives whose first column numbers the rows."""
    y = np.arange(22_000) >= 20_000
    x = np.stack([np.arange(22_000.0), y + np.random.default_rng(0).normal(size=22_000)], 1)
    monkeypatch.setattr(study, "load_arrays", lambda name, data: {"X": x, "y": y})
    return study.load("ijcnn1", "nowhere", seed=3)


def test_positives_are_one_in_500_but_for_the_test_rows_which_have_all_that_are_left(parts):
    for part in ("train", "held out", "calibration"):
        assert float(parts[part][1].mean()) == pytest.approx(study.SHARE, rel=0.05)
    assert sum(int(labels.sum()) for _, labels in parts.values()) == 2_000


def test_no_row_is_in_two_parts(parts):
    rows = torch.cat([x[:, 0] for x, _ in parts.values()])
    assert len(rows.unique()) == len(rows) == 22_000


def test_a_cut_that_flags_nothing_has_no_recall_and_breaks_nothing(parts):
    worthless = torch.zeros(3, dtype=torch.float64)
    scaling = Standardiser.of(parts["train"][0], torch.ones_like(parts["train"][1]))
    found = study.judge(sp.ask(study.ASKS[1]), scaling, worthless, parts)
    assert (found["recall"], found["refused"], found["broken"]) == (0.0, 1.0, 0.0)


def test_precision_is_that_of_one_positive_in_500(parts):
    x, labels = parts["test"]
    perfect = {**parts, "test": (torch.stack([x[:, 0], labels], 1), labels)}
    perfect |= {part: (torch.stack([own[:, 0], y], 1), y) for part, (own, y) in parts.items()}
    scaling = Standardiser.of(perfect["train"][0], torch.ones_like(perfect["train"][1]))
    found = study.judge(sp.ask(study.ASKS[0]), scaling, torch.tensor([0.0, 1.0, 0.0]).double(), perfect)
    assert found["recall"] == 1.0
    share, fpr = study.SHARE, found["fpr"]
    assert found["precision"] == pytest.approx(share / (share + (1 - share) * fpr))
