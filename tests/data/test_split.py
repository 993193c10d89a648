"""Stratified splits: whole, disjoint, in their shares, drawn from the seed alone."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from setpoint.data.split import deal, every_other, split, strata
from setpoint.errors import TooFewSamples

SHARES = (0.5, 0.15, 0.15, 0.2)
EXPECTED = [[0, 2, 5, 9, 10, 11, 12, 13, 15, 19], [6, 8, 16], [14, 17, 18], [1, 3, 4, 7]]


def test_the_split_is_whole_disjoint_stratified_and_drawn_from_the_seed():
    labels = (torch.arange(1000) % 10 == 0).float()
    parts = split(labels, SHARES, 3)
    assert torch.equal(torch.cat(parts).sort().values, torch.arange(1000))
    assert all(torch.equal(rows, rows.sort().values) for rows in parts)
    assert [len(rows) for rows in parts] == [500, 150, 150, 200]
    assert [int(labels[rows].sum()) for rows in parts] == [50, 15, 15, 20]
    again, other = split(labels, SHARES, 3), split(labels, SHARES, 4)
    assert all(torch.equal(one, same) for one, same in zip(parts, again))
    assert not torch.equal(parts[-1], other[-1])


def test_the_split_of_a_seed_stays_what_it_is():
    """Runs are repeated by their seed, so that other rows under the same seed would be other runs."""
    labels = (torch.arange(20) % 3 == 0).float()
    assert [rows.tolist() for rows in split(labels, SHARES, 0)] == EXPECTED


def test_each_class_of_each_group_is_in_every_part_that_has_a_share():
    labels, groups = torch.arange(400) % 2, (torch.arange(400) % 100 < 8).long()
    train, none, test = split(labels, (0.75, 0.0, 0.25), 1, groups)
    assert (len(train), len(none), len(test)) == (300, 0, 100)
    rare = groups[test] == 1
    assert (int(rare.sum()), int(labels[test][rare].sum())) == (8, 4)


@pytest.mark.parametrize("label", [0, 1])
def test_a_class_too_small_to_split_is_refused(label):
    labels = torch.full((100,), float(1 - label))
    labels[:3] = label
    name = ["negative", "positive"][label]
    with pytest.raises(TooFewSamples, match=rf"the {name} class has 3 rows, too few .* into 4 parts .* 7 are enough"):
        split(labels, SHARES, 0)
    groups = torch.zeros(200).long()
    groups[:2] = 1
    with pytest.raises(TooFewSamples, match=r"class has 1 row in one group, too few .* into 2 parts"):
        split(torch.arange(200) % 2, (0.5, 0.0, 0.5), 0, groups)


def test_every_second_row_of_each_class_and_the_others():
    labels = torch.tensor([0.0, 1, 1, 0, 0, 1, 0])
    halves = [every_other(strata(labels), side) for side in (0, 1)]
    assert [half.tolist() for half in halves] == [[0, 4, 1, 5], [3, 6, 2]]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=4), st.floats(0, 1), st.integers(0, 5))
def test_rows_are_dealt_with_each_class_of_each_group_in_its_share_and_none_is_lost(sizes, share, seed):
    labels = torch.cat([torch.full((size,), float(place % 2)) for place, size in enumerate(sizes)])
    groups = torch.cat([torch.full((size,), place // 2) for place, size in enumerate(sizes)])
    held_out = round(share * len(labels))
    kept, out = deal(labels, groups, held_out, seed)
    assert len(out) == held_out
    assert torch.equal(torch.cat([kept, out]).sort().values, torch.arange(len(labels)))
    for place, size in enumerate(sizes):
        here = ((labels == place % 2) & (groups == place // 2))[out].sum()
        assert abs(float(here) - size * held_out / len(labels)) < 1


def test_deals_differ_by_seed_alone_and_every_row_has_its_turn():
    labels = (torch.arange(60) % 5 == 0).float()
    outs = [deal(labels, None, 15, seed)[1] for seed in range(40)]
    assert torch.equal(outs[3], deal(labels, None, 15, 3)[1])
    assert len({tuple(out.sort().values.tolist()) for out in outs}) == 40
    turns = torch.cat(outs).bincount(minlength=60) / 40
    assert 0 < float(turns.min()) < 0.25 < float(turns.max()) < 0.6
