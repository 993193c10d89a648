"""The papers' figures as pictures: what could be wrong without showing."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from benchmarks.common.harness import load_figures
from benchmarks.studies.paper_figures import heat, page, study, toy
from benchmarks.studies.paper_figures.curves import precision_at, recall_at

from benchmarks import papers_why

SCORES, LABELS = torch.tensor([5.0, 4, 3, 2, 1, 0]), torch.tensor([1.0, 0, 1, 0, 0, 1])


def test_precision_is_that_where_a_recall_is_first_reached():
    assert precision_at(SCORES, LABELS, np.array([0.01, 1 / 3, 0.5, 1.0])).tolist() == [1, 1, 2 / 3, 0.5]


def test_precision_counts_negatives_that_tie_with_the_last_positive():
    assert precision_at(torch.tensor([1.0, 1, 0]), torch.tensor([1.0, 0, 0]), np.array([1.0])).tolist() == [0.5]


def test_recall_is_above_a_cut_that_no_more_negatives_pass():
    assert recall_at(SCORES, LABELS, np.array([0, 1 / 3, 0.9, 1.0])).tolist() == pytest.approx([1 / 3, 2 / 3, 2 / 3, 1])


def test_one_row_of_samples_alone_saves_what_the_paper_says():
    found = toy.found()
    assert found["rows"] == 252
    assert [one["row"] for one in found["true of"]] == [(0, 0, 1, 0, 0, 1, 1, 0, 1, 1)]


def test_objects_lie_where_they_are_said_to_be_and_do_not_overlap():
    present = torch.tensor([[1.0, 1, 1], [0, 1, 0]])
    images, where = heat.drawn(present, torch.Generator().manual_seed(0))
    assert where.sum(1).max() == 1
    assert where.flatten(2).amax(2).tolist() == present.tolist()
    inside = images[:, 0][where.amax(1) > 0].mean()
    assert inside > images[:, 0][where.amax(1) == 0].mean() + 0.3


def test_a_map_is_judged_by_the_cells_that_an_object_covers():
    mask = torch.zeros(heat.SIDE, heat.SIDE)
    mask[:8, :8] = 1
    good = torch.zeros(8, 8)
    good[:2, :2] = 1
    assert (heat.against(good, mask), heat.against(-good, mask)) == (1.0, 0.0)


def test_a_figure_is_true_only_if_every_panel_is():
    good, bad = ({study.PLAIN: {"area": 0.5}, study.PROGRAM: {"area": area}} for area in (0.6, 0.4))
    rows = {str(number): {"figure": "001, 1", "curves": own} for number, own in enumerate((good, good, bad))}
    assert study.verdicts(rows) == {"001, 1": False}
    rows.pop("2")
    assert study.verdicts(rows) == {"001, 1": True}


def test_every_area_has_a_subject_and_both_margins_are_counted():
    figures = copy.deepcopy(load_figures("paper_figures"))
    assert page.found(figures, "000, 2").startswith("letter: implicit thresholds 22.0 %, cross-entropy 13.7 %")
    assert "the program (margin 1) 75.3 %, cross-entropy 75.0 %" in page.found(figures, "001, 1")
    counted = "Cross-entropy has the larger area in {} of 3 panels at the published margin, in 1 of 3 at margin 1; its"
    assert papers_why.of_picture(figures, "001, 1").lead.startswith(counted.format(2))
    assert "in 2 of 3 panels at margin 1, in 1 at the published 0.01." in page.answer(figures)
    for row in page.of(figures, "001, 1"):
        row["curves"][study.NARROW]["area"] = 0.0
    assert papers_why.of_picture(figures, "001, 1").lead.startswith(counted.format(3))
    assert "in 2 of 3 panels at margin 1, in 0 at the published 0.01." in page.answer(figures)
    assert papers_why.of_picture(figures, "000, 1").lead.startswith(
        "Cross-entropy has the larger area in 2 of 2 panels; its"
    )
