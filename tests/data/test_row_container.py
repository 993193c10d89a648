"""The container of rows, and what loaders say of theirs."""

import pytest
import scipy.sparse
import torch

import setpoint as sp
from setpoint.data.batch import resident
from setpoint.data.parts import Pooled
from setpoint.data.rows import Rows, content_hash


def some(first, size, **more):
    x = torch.arange(first, first + size).float()
    return Rows(x.unsqueeze(-1), (x % 2), **more)


@pytest.mark.parametrize(
    "chosen", [torch.tensor([1, 3]), torch.tensor([False, True, False, True]), slice(1, None, 2)], ids=str
)
def test_rows_are_taken_with_all_that_is_known_of_them(chosen):
    known = {name: torch.arange(4) + place for place, name in enumerate(("weights", "groups", "lists", "index"))}
    taken = some(0, 4, **known).take(chosen)
    assert taken.x.tolist() == [[1.0], [3.0]]
    assert taken.labels.tolist() == [1, 1]
    for place, name in enumerate(known):
        assert getattr(taken, name).tolist() == [1 + place, 3 + place]


def test_joined_rows_keep_what_all_have_and_weigh_1_where_no_weight_is_given():
    one = some(0, 2, weights=torch.tensor([2.0, 3.0]), groups=torch.tensor([0, 1]), index=torch.arange(2))
    other = some(2, 1, groups=torch.tensor([2]), lists=torch.tensor([0]), index=torch.arange(1))
    whole = Rows.join([one, other])
    assert whole.x.flatten().tolist() == [0, 1, 2]
    assert whole.weights.tolist() == [2, 3, 1]
    assert (whole.groups.tolist(), whole.n_groups) == ([0, 1, 2], 3)
    assert (whole.lists, whole.index) == (None, None)
    assert Rows.join([one]) is one


def test_what_loaders_say_of_their_rows():
    x, labels = torch.arange(12.0).reshape(6, 2), torch.arange(6) % 2
    loader = sp.Batches(x, labels, batch_size=4, shuffle=True)
    assert (loader.rows, len(loader)) == (6, 2)
    assert torch.equal(resident(loader).x, x)
    assert loader.fingerprint == content_hash(Rows(x, labels)) != sp.Batches(x + 1, labels).fingerprint
    assert sp.Batches(x, labels).known_as("march").fingerprint == "march"
    both = Pooled(loader, sp.Batches(x[:2] + 20, labels[:2]))
    assert both.rows == 8
    assert torch.equal(resident(both).x, torch.cat([x, x[:2] + 20]))
    for unknown in ([(x, labels)], iter(()), Pooled(loader, [(x, labels)])):
        assert resident(unknown) is None
    sparse = sp.Batches(scipy.sparse.csr_array(x.numpy()), labels)
    assert resident(Pooled(loader, sparse)) is None
    for chosen in (torch.tensor([5]), slice(5, None), torch.arange(6) > 4):
        assert torch.equal(resident(sparse).take(chosen).x, x[5:])
