"""Whole lists in every batch, part, fold and half, and what is refused."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint.data.in_lists import batches_of_lists
from setpoint.data.rows import Rows
from setpoint.data.split import halves, split
from setpoint.errors import BadGroups, BadSetting, ShapeMismatch, TooFewSamples
from setpoint.measure.sample import Sample
from setpoint.processes import Processes
from setpoint.train.choose import How, method_for
from setpoint.train.cross_fit import folds_of
from setpoint.train.splits import Folds, Splits
from setpoint.train.trial import halves as halves_of_sample

ASK = "maximize precision in the first 2"


def rows(lists=40, size=5, first=0):
    draw = torch.Generator().manual_seed(first)
    numbers = (torch.arange(lists * size) % lists + first)[torch.randperm(lists * size, generator=draw)]
    labels = (torch.rand(lists * size, generator=draw) < 0.2).float()
    return torch.randn(lists * size, 2, generator=draw), labels, numbers


def loader(first=0, lists=40, **how):
    x, labels, numbers = rows(lists, first=first)
    return sp.Batches(x, labels, **how).with_lists(numbers)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(1, 20), st.booleans())
def test_batches_hold_whole_lists_and_every_row_once(numbers, size, shuffled):
    lists = torch.tensor(numbers)
    found = batches_of_lists(lists, size, torch.Generator().manual_seed(1) if shuffled else None)
    assert sorted(torch.cat(found).tolist()) == list(range(len(numbers)))
    longest = int(torch.bincount(lists).max())
    for part in found:
        others = torch.ones(len(lists), dtype=torch.bool)
        others[part] = False
        assert not torch.isin(lists[part], lists[others]).any()
        assert len(part) < size + longest


def test_a_loader_draws_a_new_order_of_lists_each_pass():
    train = loader(batch_size=20, shuffle=True)
    first, second = (torch.cat([batch.lists for batch in train]).tolist() for _ in range(2))
    assert first != second
    assert sorted(first) == sorted(second)
    assert [len(batch.labels) for batch in loader(batch_size=20)] == [20] * 10
    assert [len(batch.labels) for batch in loader()] == [200]


def is_whole(parts, lists):
    known = [set(lists[part].tolist()) for part in parts]
    return all(not one & other for place, one in enumerate(known) for other in known[place + 1 :])


def test_parts_folds_halves_and_splits_hold_whole_lists():
    x, labels, lists = rows()
    parts = split(labels, (0.5, 0.2, 0.3), 0, lists=lists)
    assert sorted(torch.cat(parts).tolist()) == list(range(200))
    assert is_whole(parts, lists)
    has = torch.tensor([float(labels[lists == number].any()) for number in range(40)])
    for part, share in zip(parts, (0.5, 0.2, 0.3)):
        assert abs(has[lists[part].unique()].sum() - share * has.sum()) <= 1
    every = Rows(x, labels, lists=lists)
    folds = folds_of(every, 5, 0)
    assert is_whole([(folds == place).nonzero().squeeze(-1) for place in range(5)], lists)
    sample = Sample(x[:, 0], labels, lists=lists)
    for first, second in zip(*[iter(halves_of_sample(sample))] * 2):
        assert is_whole([first, second], lists)
        assert len(first) + len(second) == 200
    for made in (Splits(2), Folds(4)):
        train, held_out = made.deal(loader(), loader(100), 0, 1)
        own = [each.resident.lists for each in (train, held_out)]
        assert not set(own[0].tolist()) & set(own[1].tolist())
        assert len(own[0]) + len(own[1]) == 400
    one, two = halves(loader())
    assert not set(one[0].lists.tolist()) & set(two[0].lists.tolist())
    with pytest.raises(TooFewSamples, match="there are 3 lists, too few to split into 4 parts"):
        split(labels[:6], (0.25,) * 4, 0, lists=torch.tensor([0, 0, 1, 1, 2, 2]))


@pytest.mark.parametrize(
    ("lists", "error", "says"),
    [
        (torch.zeros(3, dtype=torch.long), ShapeMismatch, "200 rows came with lists of shape"),
        (torch.zeros(200), BadGroups, "lists must be whole numbers"),
        (["a"] * 200, BadGroups, "number the lists first"),
    ],
)
def test_odd_lists_of_a_loader(lists, error, says):
    x, labels, _ = rows()
    with pytest.raises(error, match=says):
        sp.Batches(x, labels).with_lists(lists)


def test_a_training_refuses_lists_in_two_parts_or_in_none():
    x, labels, _ = rows()
    bare = sp.Batches(x, labels)
    for ask, train, says in (
        (ASK, loader(120), "list 1[23][0-9] has rows among the training rows and among the calibration rows"),
        (ASK, bare, "the training rows have none; pass sp.Batches"),
        (ASK, [(x, labels)], "the training rows have none"),
        ("minimize error", loader(), "rows have lists, but 'minimize error' is not about lists"),
    ):
        with pytest.raises(BadGroups, match=says):
            sp.fit(torch.nn.Linear(2, 1), ask, train, loader(50), calibration=loader(100))


def test_several_processes_are_refused_before_any_work(monkeypatch):
    monkeypatch.setattr(Processes, "alone", False)
    with pytest.raises(BadSetting, match="is about lists, which one process trains"):
        method_for(torch.nn.Linear(2, 1), sp.ask(ASK), None, How(), None, Processes())
    with pytest.raises(BadSetting, match="lists are not gathered from several processes"):
        sp.evaluate(ASK, [0.1, 0.2], [0, 1], lists=[0, 0])


@pytest.mark.parametrize("solver", [None, "implicit", sp.methods.Trees(leaves=(3, 3), ranked=True)], ids=str)
def test_every_kind_of_training_orders_lists(solver):
    problem = sp.ask(ASK)
    loaders = []
    for place in range(3):
        x, _, lists = rows(60, first=1000 * place)
        loaders.append(sp.Batches(x, (x[:, 0] > 0.8).float(), batch_size=90).with_lists(lists))
    model = None if isinstance(solver, sp.methods.Trees) else torch.nn.Linear(2, 1)
    made = sp.losses.ImplicitLists(problem) if solver == "implicit" else solver
    result = sp.fit(model, problem, *loaders[:2], made, calibration=loaders[2], epochs=50)
    x, lists = loaders[2].resident.x, loaders[2].resident.lists
    best = sp.evaluate(problem, x[:, 0], (x[:, 0] > 0.8).float(), lists=lists).objective
    assert result.point.objective > best - 0.05
