"""Rows in lists: counts against sorting in all orders of the ties, ranks against Python, refusals."""

from itertools import pairwise, permutations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference
import setpoint as sp
from setpoint.errors import BadGroups, BadWeights, ShapeMismatch
from setpoint.measure.in_first import InFirst, hit
from setpoint.measure.lists import Ordered, number_lists, with_lists
from setpoint.measure.sample import check_sample
from setpoint.measure.step import SigmoidStep

RATES = [sp.precision, sp.recall, sp.fnr, sp.f_score(1), hit]
#: Few different scores, so that ties are common; lists are mixed with each other.
ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 1)), min_size=1, max_size=12)


def by_list(rows):
    """The rows of each list, in the order in which they come."""
    return {name: [row for row in rows if row[0] == name] for name in sorted({row[0] for row in rows})}


def mean_over_orders(rate, rows, k, weights):
    """The weighted mean over lists of a rate in the first k, averaged over all orders of tied rows, by sorting."""
    total = 0.0
    for name, own in by_list(rows).items():
        if len(own) > 5:
            return None
        kept = [o for o in permutations(range(len(own))) if all(own[a][1] >= own[b][1] for a, b in pairwise(o))]
        values = [reference.in_first(rate.name, [[own[place][2] for place in order]], k) for order in kept]
        total += weights[name] * sum(values) / len(values)
    return total / sum(weights[name] for name in by_list(rows))


@given(rows=ROWS, k=st.integers(1, 5), weighted=st.booleans())
def test_values_are_those_of_sorting_in_all_orders_of_the_ties(rows, k, weighted):
    weights = {0: 1.0, 1: 2.5, 2: 0.25} if weighted else dict.fromkeys(range(3), 1.0)
    each = [weights[name] for name, _, _ in rows] if weighted else None
    for rate in RATES:
        expected = mean_over_orders(rate, rows, k, weights)
        if expected is not None:
            problem = sp.maximize(InFirst(rate, k))
            columns = [list(column) for column in zip(*rows)]
            point = sp.evaluate(problem, columns[1], columns[2], weights=each, lists=columns[0])
            assert point.objective == pytest.approx(expected, abs=1e-12), rate


@given(rows=ROWS, seed=st.integers(0, 99))
def test_values_do_not_depend_on_the_order_of_rows(rows, seed):
    order = np.random.default_rng(seed).permutation(len(rows))
    lists, scores, labels = (np.array(column) for column in zip(*rows))
    ask = "maximize precision in the first 2 where hit in the first 3 >= 10%"
    one = sp.evaluate(ask, scores, labels, lists=lists)
    two = sp.evaluate(ask, scores[order], labels[order], lists=[f"list {name}" for name in lists[order]])
    assert one.rates == pytest.approx(two.rates, abs=1e-12)


@given(rows=ROWS, k=st.integers(1, 4))
def test_decisions_follow_a_stable_sort_of_each_list_alone(rows, k):
    point = sp.evaluate(
        sp.maximize(InFirst(sp.recall, k)), [s for _, s, _ in rows], [1] * len(rows), lists=[0] * len(rows)
    )
    found = point.predict([s for _, s, _ in rows], lists=[name for name, _, _ in rows]).tolist()
    for name in by_list(rows):
        places = [place for place, row in enumerate(rows) if row[0] == name]
        first = sorted(places, key=lambda place: -rows[place][1])[:k]
        assert [found[place] for place in places] == [int(place in first) for place in places]
        alone = point.predict([rows[place][1] for place in places], lists=["x"] * len(places)).tolist()
        assert alone == [found[place] for place in places]


def test_many_tied_rows_keep_the_order_in_which_they_come():
    point = sp.evaluate("maximize recall in the first 3", [0.5] * 400, [0, 1] * 200, lists=[1, 2] * 200)
    found = point.predict([0.5] * 400, lists=[1, 2] * 200)
    assert np.flatnonzero(found).tolist() == [0, 1, 2, 3, 4, 5]


def sample_of(lists, scores, labels):
    return with_lists(check_sample(torch.tensor(scores).double(), labels), lists)


def test_counts_of_each_depth_add_up_and_end_with_the_longest_list():
    counts = Ordered(sample_of([7, 7, 7, 3], [0.1, 0.3, 0.2, 0.5], [1, 0, 1, 0])).counts(10**9)
    assert counts.shape == (3, 2, 6)
    assert counts[..., :4].sum(-1).tolist() == [[1.0, 3.0]] * 3
    assert counts[:, 1, 0].tolist() == [0.0, 1.0, 2.0]
    assert InFirst(sp.precision, 4)(counts) == pytest.approx(2 / 4 / 2)


def test_a_steep_step_counts_as_the_true_counts_do():
    draw = np.random.default_rng(0)
    sample = sample_of(draw.integers(0, 9, 60), draw.normal(size=60), draw.integers(0, 2, 60))
    ordered = Ordered(sample)
    soft = ordered.soft_counts(3, SigmoidStep(1e9))
    assert torch.allclose(soft[0, :, :4], ordered.counts(3)[-1, :, :4])


@pytest.mark.parametrize(
    ("lists", "error", "says"),
    [
        (["a", None], BadGroups, "lists are missing for 1 of 2 samples"),
        ([1.0, float("nan")], BadGroups, "lists are missing for 1 of 2 samples"),
        ([[1, 2], [3, 4]], ShapeMismatch, "one list per row"),
    ],
)
def test_odd_lists(lists, error, says):
    with pytest.raises(error, match=says):
        number_lists(lists)


def test_refusals_at_the_border():
    ask = "maximize recall in the first 2"
    with pytest.raises(BadGroups, match=r"is about lists; pass lists="):
        sp.evaluate(ask, [0.1, 0.2], [0, 1])
    with pytest.raises(BadGroups, match=r"is not about lists.* leave lists= out"):
        sp.evaluate("minimize error", [0.1, 0.2], [0, 1], lists=[1, 1])
    with pytest.raises(ShapeMismatch, match="2 scores came with the lists of 3 rows"):
        sp.evaluate(ask, [0.1, 0.2], [0, 1], lists=[1, 1, 2])
    with pytest.raises(BadWeights, match="rows of list 'b' differ in weight"):
        sp.evaluate(ask, [0.1, 0.2, 0.3], [0, 1, 0], lists=["b", "b", "a"], weights=[1, 2, 3])
