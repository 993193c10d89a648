"""Checkpoints: what was stopped at any batch goes on to the very parameters of what was not."""

from __future__ import annotations

import hashlib
import io
import os
import random
from collections import OrderedDict, defaultdict

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler, TensorDataset

import setpoint as sp
from setpoint.errors import BadFile, BadSetting
from setpoint.train.checkpoint import STATE, Checkpoint, plain, read_state
from solve.test_contract import SOLVERS

ASK = "minimize fnr where fpr <= 20%"
pytestmark = [pytest.mark.filterwarnings("error"), pytest.mark.filterwarnings("ignore:the threshold is set")]


class Stop(Exception):
    """The power goes off."""


class Fuse(nn.Module):
    """Raises when it is called for the n-th time by training; the count is not part of it."""

    left: float = float("inf")

    def forward(self, x):
        if self.training:
            Fuse.left -= 1
            if Fuse.left < 0:
                raise Stop
        return x


@pytest.fixture(autouse=True)
def no_fuse():
    Fuse.left = float("inf")
    yield
    Fuse.left = float("inf")


def data(size=40, seed=0):
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(size, generator=draw) < 0.4).float()
    return torch.randn(size, 3, generator=draw) + labels.unsqueeze(-1), labels


def net():
    """Dropout draws from the global generator; batch normalisation has buffers."""
    torch.manual_seed(1)
    return nn.Sequential(Fuse(), nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Dropout(0.2), nn.ReLU(), nn.Linear(8, 1))


def shuffled():
    return sp.Batches(*data(), batch_size=16, shuffle=True, seed=3)


def train(path, make_solver, fuse=float("inf"), model=net, loader=shuffled, **changes):
    """All made anew, as in a process of its own; the global generators elsewhere, as a new process has them."""
    built = model()
    torch.manual_seed(5 if path is None else 6)
    if path is None or not path.exists():
        torch.manual_seed(5)
        np.random.seed(5)  # noqa: NPY002
        random.seed(5)
    Fuse.left = fuse
    settings = {"train": loader(), "held_out": sp.Batches(*data(seed=1)), "epochs": 4, **changes}
    checkpoint = None if path is None else Checkpoint(path, seconds=0)
    return sp.fit(built, ASK, solver=make_solver(), checkpoint=checkpoint, **settings)


def assert_same(one, other):
    for name, value in one.model.state_dict().items():
        assert torch.equal(value, other.model.state_dict()[name]), name
    assert one.history == other.history
    assert (one.point, one.best_epoch) == (other.point, other.best_epoch)
    if isinstance(one.solver, nn.Module):
        for name, value in one.solver.state_dict().items():
            assert torch.equal(value, other.solver.state_dict()[name]), name


def stopped(path, make, fuses, **changes):
    for fuse in fuses:
        with pytest.raises(Stop):
            train(path, make, fuse, **changes)
        assert (path / STATE).is_file()
    return train(path, make, **changes)


@pytest.mark.parametrize("make", SOLVERS.values(), ids=SOLVERS)
def test_every_solver_goes_on_bit_by_bit(tmp_path, make):
    whole = train(None, make)
    # In the first epoch, in the warm start, then in the middle of an epoch of the solver's own.
    resumed = stopped(tmp_path / "kept", make, (2, 3, 4))
    assert_same(whole, resumed)
    assert not (tmp_path / "kept").exists()


class Noisy(Dataset):
    """Items with noise of their own, from NumPy's, Python's and a generator that the dataset holds."""

    def __init__(self):
        self.x, self.labels = data()
        self.draw = np.random.default_rng(2)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, place):
        noise = self.draw.normal() + np.random.rand() + random.random()  # noqa: NPY002
        return self.x[place] + 0.1 * float(noise), self.labels[place]


class Weighed(nn.Module):
    """A buffer that is not in the state_dict, and decides what comes next."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()), persistent=False)

    def forward(self, x):
        self.calls += 1
        return x * (1 + self.calls / 100)


def test_a_mixture_of_snapshots_is_resumed_with_all_of_them(tmp_path):
    def make():
        return sp.methods.Snapshots(sp.losses.ProxyLagrangian(sp.ask(ASK)), most=3)

    whole, resumed = train(None, make), stopped(tmp_path / "kept", make, (4, 5))
    assert_same(whole, resumed)
    assert whole.history[-1]["shares"] == resumed.history[-1]["shares"]


LOADERS = {
    "batches in order": lambda: sp.Batches(*data(), batch_size=16),
    "global generator": lambda: DataLoader(TensorDataset(*data()), batch_size=16, shuffle=True),
    "own generator": lambda: DataLoader(
        TensorDataset(*data()), batch_size=16, shuffle=True, generator=torch.Generator().manual_seed(2)
    ),
    "sampler's generator": lambda: DataLoader(
        TensorDataset(*data()),
        batch_size=16,
        sampler=RandomSampler(data()[1], replacement=True, generator=torch.Generator().manual_seed(2)),
    ),
    "noisy items": lambda: DataLoader(Noisy(), batch_size=16, shuffle=True),
    "workers": lambda: DataLoader(TensorDataset(*data()), batch_size=16, shuffle=True, num_workers=1),
    "list": lambda: [(x, y) for x, y in zip(data()[0].split(16), data()[1].split(16))],
}


@pytest.mark.parametrize("make_loader", LOADERS.values(), ids=LOADERS)
def test_every_loader_goes_on_where_it_was(tmp_path, make_loader):
    def make():
        return sp.AugmentedLagrangian(sp.CrossEntropy(), n_samples=40, mu=0.1)

    changes = {"loader": make_loader, "epochs": 3}
    whole = train(None, make, **changes)
    assert_same(whole, stopped(tmp_path / "kept", make, (1, 4), **changes))


@pytest.mark.parametrize("name", ["noisy items", "own generator"])
def test_corrections_on_batches_to_come_go_on_bit_by_bit(tmp_path, name):
    """Stopped in a correction, right after one (the next batch has been read by then), and later."""

    def make():
        return sp.ImplicitThreshold(sp.ask(ASK), correction=sp.losses.Correction(every=2, batches=2))

    changes = {"loader": LOADERS[name], "epochs": 4, "warm_start": 0.25}
    whole = train(None, make, **changes)
    assert_same(whole, stopped(tmp_path / "kept", make, (4, 3, 4, 5, 3), **changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"patience": 1, "epochs": 9},
        {"ensemble": 3, "epochs": 2},
        {"optimizer": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9)},
        {"model": lambda: nn.Sequential(Fuse(), Weighed(), *net()[1:])},
    ],
    ids=["patience", "ensemble", "momentum", "buffer left out"],
)
def test_everything_else_that_training_depends_on_goes_on(tmp_path, changes):
    def make():
        return sp.ImplicitThreshold(sp.ask(ASK))

    whole = train(None, make, **changes)
    assert_same(whole, stopped(tmp_path / "kept", make, (2, 2, 3, 1), **changes))
    assert list(tmp_path.iterdir()) == []


def test_the_default_for_networks_goes_on_too(tmp_path, monkeypatch):
    monkeypatch.setattr("setpoint.train.linear.STEPS", 10)
    changes = {"calibration": sp.Batches(*data(200, seed=2)), "epochs": 3}
    whole = train(None, lambda: None, **changes)
    assert_same(whole, stopped(tmp_path / "kept", lambda: None, (2, 4), **changes))


def test_a_state_is_kept_after_every_epoch_and_only_what_is_missing_is_trained(tmp_path):
    told = []

    def raise_at(epoch):
        def on_epoch(row):
            told.append(row["epoch"])
            if row["epoch"] == epoch:
                raise Stop

        return on_epoch

    for epoch in (2, 4):
        with pytest.raises(Stop):
            sp.fit(net(), ASK, shuffled(), [data()], sp.CrossEntropy(), epochs=6, checkpoint=tmp_path / "kept",
                   on_epoch=raise_at(epoch))  # fmt: skip
    assert told == [0, 1, 2, 2, 3, 4]


def test_a_kill_between_the_last_batch_and_the_end_of_its_epoch(tmp_path):
    def stop(row):
        raise Stop

    whole = train(None, sp.CrossEntropy)
    with pytest.raises(Stop):
        train(tmp_path / "kept", sp.CrossEntropy, on_epoch=stop)
    assert read_state(tmp_path / "kept")["state"]["taken"] == 3
    assert_same(whole, train(tmp_path / "kept", sp.CrossEntropy))


def test_linear_recipes_keep_the_candidates_that_are_done(tmp_path, monkeypatch):
    def linear():
        torch.manual_seed(0)
        return nn.Linear(3, 1)

    monkeypatch.setattr("setpoint.train.linear.STEPS", 10)
    settings = {"model": linear, "epochs": 1}
    whole = train(None, sp.Anchored.auto, **settings)
    made = []
    refine = sp.train.recipes.refine

    def counted(*arguments):
        made.append(arguments[4])
        if len(made) == 3:
            raise Stop
        return refine(*arguments)

    monkeypatch.setattr("setpoint.train.recipes.refine", counted)
    # The order of the rows moves the last digits; the same loader would draw another one the second time.
    settings["train"] = shuffled()
    with pytest.raises(Stop):
        train(tmp_path / "kept", sp.Anchored.auto, **settings)
    assert_same(whole, train(tmp_path / "kept", sp.Anchored.auto, **settings))
    assert made == [4.0, 1.0, 0.25, 0.25, 0.0625]
    assert list(tmp_path.iterdir()) == []


def test_the_same_objects_may_go_on_after_an_interruption(tmp_path):
    whole = train(None, sp.CrossEntropy)
    model, loader = net(), shuffled()
    torch.manual_seed(5)
    Fuse.left = 5
    again = {"train": loader, "held_out": sp.Batches(*data(seed=1)), "solver": sp.CrossEntropy(), "epochs": 4}
    with pytest.raises(Stop):
        sp.fit(model, ASK, **again, checkpoint=tmp_path / "kept")
    Fuse.left = float("inf")
    assert_same(whole, sp.fit(model, ASK, **again, checkpoint=tmp_path / "kept"))


def test_what_is_kept_to_the_end_gives_the_result_at_once(tmp_path):
    kept = Checkpoint(tmp_path / "kept", keep=True)
    first = sp.fit(net(), ASK, shuffled(), [data()], sp.CrossEntropy(), epochs=3, checkpoint=kept)
    Fuse.left = 0
    again = sp.fit(net(), ASK, shuffled(), [data()], sp.CrossEntropy(), epochs=3, checkpoint=kept)
    assert_same(first, again)


WHOLE = {"epochs": 3, "warm_start": 0.3, "solver": lambda: sp.Lagrangian(sp.ask(ASK), climb=sp.losses.Climb(0.1))}
OTHERS = {
    "epochs": ({"epochs": 5}, "its epochs was 3, now it is 5"),
    "ask": ({"problem": "minimize fnr where fpr <= 10%"}, "its ask was minimize fnr where fpr <= 20%"),
    "solver": ({"solver": sp.CrossEntropy}, "its solver"),
    "price_lr": ({"solver": lambda: sp.Lagrangian(sp.ask(ASK), climb=sp.losses.Climb(0.2))}, "its solver"),
    "model": ({"model": lambda: nn.Sequential(Fuse(), nn.Linear(3, 1))}, "its model"),
    "dropout": ({"model": lambda: nn.Sequential(*[nn.Dropout(0.3) if isinstance(m, nn.Dropout) else m for m in net()])},
                "its model"),
    "data": ({"train": sp.Batches(*data(seed=8), batch_size=16, shuffle=True)}, "its training data"),
    "batch size": ({"train": sp.Batches(*data(), batch_size=8, shuffle=True)}, "its training data"),
    "held-out": ({"held_out": [data(seed=9)]}, "its held-out data"),
    "optimizer": ({"optimizer": lambda parameters: torch.optim.SGD(parameters, lr=0.1)}, "its optimizer"),
    "ensemble": ({"ensemble": 2}, "its ensemble was 1, now it is 2"),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_the_checkpoint_of_other_work_is_refused_and_left(tmp_path, name):
    change, says = OTHERS[name]
    made = {"model": net, "problem": ASK, "train": shuffled(), "held_out": [data(seed=1)], **WHOLE}

    def begin(model, problem, solver, **settings):
        return sp.fit(model(), problem, solver=solver(), checkpoint=tmp_path / "kept", **settings)

    Fuse.left = 2
    with pytest.raises(Stop):
        begin(**made)
    Fuse.left = float("inf")
    before = (tmp_path / "kept" / STATE).read_bytes()
    with pytest.raises(BadFile, match="belongs to another call") as caught:
        begin(**{**made, **change})
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (tmp_path / "kept" / STATE).read_bytes() == before


def test_rows_with_a_name_are_told_apart_by_it_alone(tmp_path):
    def begin(seed, name):
        rows = sp.Batches(*data(seed=seed), batch_size=16, shuffle=True).known_as(name)
        return sp.fit(net(), ASK, rows, [data(seed=1)], sp.CrossEntropy(), checkpoint=tmp_path / "kept", epochs=3)

    Fuse.left = 2
    with pytest.raises(Stop):
        begin(0, "first")
    Fuse.left = float("inf")
    with pytest.raises(BadFile, match="its training data"):
        begin(0, "second")
    begin(8, "first")


def begun(path):
    with pytest.raises(Stop):
        train(path, sp.CrossEntropy, 2)
    return path / STATE


def test_every_changed_byte_is_noticed(tmp_path):
    file = begun(tmp_path / "kept")
    whole = file.read_bytes()
    for place in range(0, len(whole), 997):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(BadFile, match=r"is damaged .*delete it to start anew") as caught:
            train(tmp_path / "kept", sp.CrossEntropy)
        assert "\n" not in str(caught.value)
    for spoiled in (b"", whole[: len(whole) // 2], b"junk"):
        file.write_bytes(spoiled)
        with pytest.raises(BadFile, match="is damaged"):
            train(tmp_path / "kept", sp.CrossEntropy)


def test_a_state_that_lacks_something_is_damaged_too(tmp_path):
    file = begun(tmp_path / "kept")
    kept = Checkpoint(tmp_path / "kept")
    whole = file.read_bytes()
    identity = read_state(tmp_path / "kept")["identity"]
    state = kept.open(identity)
    for change in ({"epoch": None}, {"modules": {}}, {"draws": {}}, {"optimizer": {}}, {"best_state": {"values": 3}}):
        kept.save(
            {**state, **change} if change != {"epoch": None} else {k: v for k, v in state.items() if k != "epoch"}
        )
        with pytest.raises(BadFile, match="is damaged"):
            train(tmp_path / "kept", sp.CrossEntropy)
    file.write_bytes(whole)
    train(tmp_path / "kept", sp.CrossEntropy)


def test_nothing_is_executed_on_reading(tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "boom"),)

    begun(tmp_path / "kept")
    written = io.BytesIO()
    torch.save({"format": 1, "state": Bomb()}, written)
    data = written.getvalue()
    (tmp_path / "kept" / STATE).write_bytes(hashlib.sha256(data).digest() + data)
    with pytest.raises(BadFile, match="is damaged"):
        train(tmp_path / "kept", sp.CrossEntropy)
    assert not (tmp_path / "boom").exists()


def test_a_newer_checkpoint_says_upgrade(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("setpoint.train.checkpoint.FORMAT", 2)
        begun(tmp_path / "kept")
    with pytest.raises(BadFile, match=r"format 2.*upgrade setpoint"):
        train(tmp_path / "kept", sp.CrossEntropy)


def test_places_that_are_not_ours_are_left_alone(tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("years of work")
    for name, says in (("file", "not a directory"), ("full", "holds 'thesis.txt', which no checkpoint wrote")):
        with pytest.raises(BadFile, match=says):
            train(tmp_path / name, sp.CrossEntropy)
    assert (tmp_path / "full" / "thesis.txt").read_text() == "years of work"
    (tmp_path / "empty").mkdir()
    train(tmp_path / "empty", sp.CrossEntropy)


def test_remains_of_a_removal_belong_to_nothing(tmp_path):
    file = begun(tmp_path / "kept")
    part = tmp_path / "kept" / "seed-0"
    part.mkdir()
    (part / STATE).write_bytes(file.read_bytes())
    file.unlink()
    whole = train(None, sp.CrossEntropy)
    torch.manual_seed(5)
    Fuse.left = float("inf")
    model = net()
    torch.manual_seed(5)
    again = sp.fit(model, ASK, shuffled(), sp.Batches(*data(seed=1)), sp.CrossEntropy(), epochs=4,
                   checkpoint=tmp_path / "kept")  # fmt: skip
    assert_same(whole, again)
    assert not (tmp_path / "kept").exists()


def test_only_plain_data_are_kept():
    given = OrderedDict(a=np.float64(0.5), b=[np.int64(3), (True, None, "x")], c=defaultdict(list, {1: [2.0]}))
    assert plain(given) == {"a": 0.5, "b": [3, (True, None, "x")], "c": {1: [2.0]}}
    assert type(plain(given)["a"]) is float
    assert type(plain(given)["c"]) is dict
    with pytest.raises(BadSetting, match=r"state\.b\[0\]\.deep is a object, which a checkpoint cannot hold"):
        plain({"b": [{"deep": object()}]})


def test_how_often_is_checked(tmp_path):
    for wrong in ({"seconds": -1}, {"seconds": float("nan")}, {"gap": -1}):
        with pytest.raises(BadSetting, match="0 or more"):
            Checkpoint(tmp_path, **wrong)
    kept = Checkpoint(tmp_path / "kept", seconds=1000, gap=1000)
    kept.open({})
    kept.save({})
    assert not kept.is_due()
    assert not kept.is_due(epoch_ended=True)
    kept.gap = 0
    assert kept.is_due(epoch_ended=True)
    assert not kept.is_due()


def test_time_spent_adds_up_over_processes(tmp_path):
    kept = Checkpoint(tmp_path / "kept")
    kept.open({})
    kept.opened -= 100
    kept.save({})
    again = Checkpoint(tmp_path / "kept")
    assert again.open({}) == {}
    assert 100 <= again.spent < 110
