"""The study of the levels of Table 5: each area against a loop, each variant does what its name says."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from benchmarks.common.data import split
from benchmarks.studies.paper_levels import page, study
from benchmarks.studies.paper_levels.areas import AREAS, EXACT, Area, points
from benchmarks.studies.paper_levels.columns import BINS, binned
from benchmarks.studies.paper_tabular.published import IMPLICIT_TABLE_5
from benchmarks.studies.paper_tabular.study import METHODS, SHARES
from benchmarks.studies.paper_tabular.study import Study as Table5

import setpoint as sp
from setpoint.data.rows import Rows
from setpoint.train.class_weights import class_weights
from setpoint.train.linear import cross_entropy


def scored(seed: int) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Scores with ties, and so few positives that the steps of the curve are wide."""
    draw = torch.Generator().manual_seed(seed)
    parts = {}
    for part in ("train", "validation", "test"):
        labels = (torch.arange(120) % 3 == 0).double()
        scores = ((torch.randn(120, generator=draw) + labels) * 8).round().double()
        parts[part] = (scores, labels)
    return parts


def rates_above(part, threshold):
    """Recall and precision of what is strictly above a threshold."""
    passed = [label for score, label in zip(*(column.tolist() for column in part)) if score > threshold]
    return sum(passed) / float(part[1].sum()), sum(passed) / len(passed) if passed else 0.0


def slow_area(area: Area, parts) -> float:
    """Thresholds half way between neighbouring scores, from the top; a loop over levels, and of the exact areas a sum
    over 20,000 of them."""
    values = sorted(set(parts[area.thresholds_from][0].tolist()), reverse=True)
    thresholds = [values[0] + 1] + [(a + b) / 2 for a, b in pairwise(values)] + [values[-1] - 1]
    cuts = [(threshold, *rates_above(parts[area.thresholds_from], threshold)) for threshold in thresholds]
    levels = area.levels or [0.95 + 0.05 * (k + 0.5) / 20_000 for k in range(20_000)]
    found = []
    for level in levels:
        first = next(k for k, (_, reach, _) in enumerate(cuts) if reach >= level - 1e-12)
        value = cuts[first][2]
        if area.best_beyond:
            value = max(cut[2] for cut in cuts[first:])
        if area.thresholds_from != "test":
            value = rates_above(parts["test"], cuts[first][0])[1]
        if area.trapezoid and not area.levels:
            (_, low, before), (_, high, after) = cuts[first - 1], cuts[first]
            value = before + (after - before) * (level - low) / (high - low)
        found.append(value)
    if area.trapezoid and area.levels:
        pairs = list(zip(levels, found))
        whole = sum((b - a) * (u + v) / 2 for (a, u), (b, v) in pairwise(pairs))
        return whole / (levels[-1] - levels[0])
    return sum(found) / len(found)


@pytest.mark.parametrize("area", AREAS, ids=lambda area: area.name)
def test_an_area_is_what_a_loop_makes_of_it(area):
    for seed in range(3):
        parts = scored(seed)
        assert area(parts) == pytest.approx(slow_area(area, parts), abs=1e-9 if area.levels else 1e-4)


def test_the_exact_area_is_that_of_the_table():
    parts = scored(5)
    problem = sp.ask("maximize precision over recall in [95%, 100%] with 5 points")
    assert EXACT(parts) == pytest.approx(sp.evaluate(problem, *parts["test"]).objective, abs=1e-12)


def test_areas_and_variants_have_names_of_their_own():
    assert len({area.name for area in AREAS}) == len(AREAS) == len({replace(area, name="") for area in AREAS})
    assert len({variant.label for variant in study.VARIANTS}) == len(study.VARIANTS)
    assert points(5, last=0.8) == pytest.approx((0.95, 0.96, 0.97, 0.98, 0.99))


def test_a_variant_changes_one_thing_unless_it_says_several():
    for variant in study.VARIANTS:
        kept = {"changed", "name", "sets", "batch"}
        changes = [field for field, value in vars(variant).items()
                   if field not in kept and value != getattr(study.USUAL, field)]  # fmt: skip
        assert variant.changed == "several" or len(changes) == (variant is not study.USUAL)


def test_numbers_go_into_the_bin_whose_upper_end_they_do_not_pass():
    names = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week", "sex=Male"]
    x = np.array([[28.0, 7e5, 16, 0, 1900, 40, 1], [29.0, 1e5, 8, 99_999, 0, 39, 0]])
    found = binned(x, names)
    assert found.shape == (2, 1 + 4 * len(BINS))
    chosen = found[:, 1:].reshape(2, -1, 4).argmax(-1)
    assert dict(zip(BINS, chosen[0].tolist())) == {
        "age": 0, "capital-gain": 0, "capital-loss": 2, "hours-per-week": 1, "education-num": 3,
    }  # fmt: skip
    assert chosen[1].tolist() == [1, 3, 0, 0, 0]


@pytest.fixture
def small():
    """A made set of four unlike columns in place of the files."""
    draw = np.random.default_rng(0)
    y = (np.arange(800) % 4 == 0).astype(np.float64)
    x = draw.standard_normal((800, 4)) * [1, 10, 0.1, 3] + y[:, None]
    x[::40, 3] *= 20
    return replace(study.USUAL, table=lambda name, data: (x, y))


def test_what_is_usual_is_the_cross_entropy_of_the_table(small):
    parts = split(*small.table("made", ""), 3, SHARES)
    table5 = Table5(parts)
    ours = study.Study("made", 3, "")
    torch.testing.assert_close(ours.parts(small)["test"][0], table5.scaling.with_ones(parts.test[0]))
    there = table5.best(METHODS["cross-entropy"](table5))["test"]
    assert ours.row(small)["areas"][EXACT.name] == pytest.approx(100 * there, abs=1e-3)


def test_a_ridge_is_that_of_the_loss(small):
    found = study.Study("made", 0, "").candidates(replace(small, ridge=50.0))["converged"]
    x, labels = study.Study("made", 0, "").parts(small)["train"]
    theta = found.clone().requires_grad_()
    loss = torch.nn.functional.binary_cross_entropy_with_logits(x @ theta, labels, reduction="sum")
    (slope,) = torch.autograd.grad(loss + 25.0 * (theta[:-1] ** 2).sum(), theta)
    assert slope.abs().max() < 1e-2
    assert found[:-1].norm() < 0.95 * study.Study("made", 0, "").candidates(small)["converged"][:-1].norm()


def test_adam_takes_the_steps_of_torch():
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(60, 3, generator=draw)
    labels = (x[:, 0] > 0.3).double()
    found = study.descend(x.double(), labels, None, (5, 20))
    for column, rate in enumerate(study.RATES):
        theta = torch.zeros(3, requires_grad=True)
        optimizer = torch.optim.Adam([theta], lr=rate, eps=1e-7)
        for step in range(1, 21):
            optimizer.zero_grad()
            torch.nn.functional.binary_cross_entropy_with_logits(x @ theta, labels.float()).backward()
            optimizer.step()
            if step in found:
                torch.testing.assert_close(found[step][:, column].float(), theta.detach(), rtol=1e-3, atol=1e-4)


def test_adam_in_batches_comes_to_cross_entropy_in_the_end():
    draw = torch.Generator().manual_seed(2)
    x = torch.cat([torch.randn(600, 2, generator=draw), torch.ones(600, 1)], 1).double()
    labels = (torch.rand(600, generator=draw) < torch.sigmoid(x[:, 0] - 1)).double()
    rows = Rows(x, labels, torch.ones(600).double())
    end = cross_entropy(rows, class_weights(rows, 1.0))
    paths = study.descend(x, labels, 128, (1, 100))
    assert (paths[100][:, 1] - end).norm() < 0.1 < (paths[1][:, 1] - end).norm()


def test_the_candidate_is_chosen_on_validation_rows(small):
    one = study.Study("made", 1, "")
    variant = replace(small, stops=study.FULL_STOPS)
    candidates, parts = one.candidates(variant), one.parts(variant)
    x, labels = parts["validation"]
    best = max(EXACT({"test": (x @ theta, labels)}) for theta in candidates.values())
    chosen = candidates[one.row(variant)["chosen"]]
    assert EXACT({"test": (x @ chosen, labels)}) == best
    assert len(candidates) == len(study.FULL_STOPS) * len(study.RATES)


def test_a_weight_is_found_between_those_that_were_tried_or_not_at_all():
    assert study.needed_weight({1.0: 10.0, 4.0: 20.0}, 15.0) == pytest.approx(2.0)
    assert study.needed_weight({4.0: 10.0, 1.0: 20.0}, 15.0) == pytest.approx(2.0)
    assert study.needed_weight({1.0: 10.0, 4.0: 20.0}, 21.0) is None


def test_the_page_tells_what_agrees():
    """A journal in which only one training, on one set, is where the paper is."""
    published = IMPLICIT_TABLE_5["adult"]["cross-entropy"][0]
    rows = {}
    for variant in study.VARIANTS:
        level = published if variant.name == "TFCO" else 30.0
        for seed in (0, 1):
            areas = {area.name: level + 0.02 * seed for area in variant.areas}
            rows[study.row_key("adult", seed, variant)] = {"areas": areas}
    found = study.summary(rows, ("adult", "letter"), range(2))
    assert found["splits"] == {"adult": 2}, "what is not done is not shown"
    text = page.section({"seeds": [0, 1], "exact": EXACT.name, **found})
    assert "training that agree: columns: TFCO, +9.74 ± 0.00 (0.00). By Adam from 30.01 to 30.01" in text
    assert "Areas of the same scores that agree: none." in text
    assert f"| columns: TFCO | **{published + 0.01:.2f}** ± 0.01 |" in text
    assert "| nothing: as in Table 5 here | 30.01 ± 0.01 |" in text
    assert (
        f"1 of {len(found['rows'])} pairs of a training and an area agree on every set: columns: TFCO (areas: " in text
    )
    assert "none from 0.5 to 8" in text
