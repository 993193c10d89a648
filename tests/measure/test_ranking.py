"""Precision and recall at k against the mean over all orders of the ties, and the laws they obey."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference_pairs as reference
from marks import cases
from setpoint.errors import BadLabels, BadScores, BadSetting, ShapeMismatch
from setpoint.measure.ranking import precision_at_k, recall_at_k


@st.composite
def queries(draw):
    """Padded lists of few distinct scores, so that most borders run through a tie."""
    lists = draw(st.lists(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=6), min_size=1, max_size=4))
    longest = max(len(x) for x in lists) + draw(st.integers(0, 2))
    scores, labels = torch.full((len(lists), longest), torch.nan), torch.full((len(lists), longest), 7)
    mask = torch.zeros(len(lists), longest, dtype=torch.bool)
    for row, documents in enumerate(lists):
        places = draw(st.permutations(range(longest)))[: len(documents)]
        for place, (score, relevant) in zip(places, documents):
            scores[row, place], labels[row, place], mask[row, place] = score / 2 - 1, int(relevant), True
    return scores, labels, mask


@cases(80)
@given(data=queries(), k=st.integers(1, 8))
def test_both_are_the_mean_over_all_orders_of_the_tie(data, k):
    scores, labels, mask = data
    precision, recall = precision_at_k(scores, labels, k, mask), recall_at_k(scores, labels, k, mask)
    for row in range(len(scores)):
        s, relevant = scores[row][mask[row]].tolist(), labels[row][mask[row]].tolist()
        hits = reference.hits_at_k(s, relevant, k)
        assert precision[row] == pytest.approx(hits / k, abs=1e-12)
        assert recall[row] == pytest.approx(hits / sum(relevant) if any(relevant) else 0.0, abs=1e-12)


@cases(80)
@given(data=queries(), k=st.integers(1, 8), draw=st.data())
def test_law_the_order_of_documents_and_of_queries_does_not_matter(data, k, draw):
    columns = torch.tensor(draw.draw(st.permutations(range(data[0].shape[1]))), dtype=torch.long)
    rows = torch.tensor(draw.draw(st.permutations(range(len(data[0])))))
    shuffled = [x[rows][:, columns] for x in data]
    for measure in (precision_at_k, recall_at_k):
        here = measure(*data[:2], k, data[2])
        torch.testing.assert_close(here[rows], measure(*shuffled[:2], k, shuffled[2]), rtol=0, atol=1e-15)


def test_a_small_case_by_hand():
    scores = torch.tensor([[0.9, 0.5, 0.5, 0.5, 0.1], [0.4, 0.3, 0.2, 0.1, 0.0]])
    labels = torch.tensor([[1, 1, 0, 0, 1], [0, 0, 0, 1, 1]])
    assert precision_at_k(scores, labels, 2).tolist() == pytest.approx([(1 + 1 / 3) / 2, 0])
    assert recall_at_k(scores, labels, 2).tolist() == pytest.approx([(1 + 1 / 3) / 3, 0])
    assert recall_at_k(scores, labels, 4).tolist() == pytest.approx([2 / 3, 1 / 2])


def test_one_score_for_all_gives_the_share_of_relevant_documents():
    labels = torch.tensor([[1, 0, 0, 0, 1], [0, 0, 0, 0, 0]])
    assert precision_at_k(torch.zeros(2, 5), labels, 3).tolist() == pytest.approx([2 / 5, 0])
    assert recall_at_k(torch.zeros(2, 5), labels, 3).tolist() == pytest.approx([3 / 5, 0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_a_list_shorter_than_k_leaves_empty_places_that_count_as_misses(dtype):
    scores, labels = torch.tensor([[0.3, 0.2, 0.1]], dtype=dtype), torch.tensor([[True, False, True]])
    assert precision_at_k(scores, labels, 8).tolist() == [2 / 8]
    assert recall_at_k(scores, labels, 10**12).tolist() == [1.0]
    assert precision_at_k(scores, labels, 8).dtype == torch.float64


@pytest.mark.parametrize("shape", [(3, 0), (0, 4), (0, 0)])
def test_nothing_to_rank_gives_zero_shares(shape):
    scores, labels = torch.zeros(shape), torch.zeros(shape)
    assert precision_at_k(scores, labels, 2).tolist() == [0.0] * shape[0]
    assert recall_at_k(scores, labels, 2).tolist() == [0.0] * shape[0]


def test_wrong_input_is_named():
    scores, labels = torch.zeros(2, 3), torch.zeros(2, 3)
    with pytest.raises(ShapeMismatch, match=r"\(3,\)"):
        precision_at_k(scores[0], labels[0], 1)
    with pytest.raises(ShapeMismatch, match="labels"):
        precision_at_k(scores, labels[:1], 1)
    with pytest.raises(ShapeMismatch, match="mask"):
        recall_at_k(scores, labels, 1, torch.ones(3, dtype=torch.bool))
    with pytest.raises(BadSetting, match="boolean"):
        recall_at_k(scores, labels, 1, torch.ones(2, 3))
    for k in (0, -1, 1.5, True):
        with pytest.raises(BadSetting, match="k is"):
            precision_at_k(scores, labels, k)
    with pytest.raises(BadScores, match="finite"):
        precision_at_k(scores / 0, labels, 1)
    with pytest.raises(BadLabels, match="graded"):
        precision_at_k(scores, labels + 2, 1)
