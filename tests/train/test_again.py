"""Training again on all rows: each comes once a pass, and what is returned has learnt from held-out rows too."""

from __future__ import annotations

import threading
from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn

import setpoint as sp
from marks import slow
from setpoint.data.parts import Pooled
from setpoint.errors import BadSetting, ShapeMismatch
from setpoint.train.average import RunningAverage
from setpoint.train.full_batch import read_rows
from setpoint.train.history import score
from setpoint.train.recipes import RECIPES, Recipes

ASK = sp.ask("minimize fnr where fpr <= 5%")


def rows(first: int, size: int) -> tuple[Tensor, Tensor]:
    """Numbered rows."""
    x = torch.arange(first, first + size, dtype=torch.float32).unsqueeze(-1)
    return x, (x.squeeze(-1) % 2 == 0).float()


@pytest.mark.parametrize("others", [[rows(100, 31)], [rows(100, 20), rows(120, 11)], sp.Batches(*rows(100, 31))])
def test_every_row_of_both_loaders_comes_once_a_pass(others):
    loader = Pooled(sp.Batches(*rows(0, 50), batch_size=8, shuffle=True), others)
    passes = []
    for _ in range(2):
        batches = list(loader)
        seen = torch.cat([batch.x.squeeze(-1) for batch in batches])
        assert sorted(seen.tolist()) == [*range(50), *range(100, 131)]
        labels = torch.cat([batch.labels for batch in batches])
        torch.testing.assert_close(labels, (seen % 2 == 0).float())
        # Each batch of 8 has its share of the 31, the last one, of 2, as well.
        dealt = [int((batch.x >= 100).sum()) for batch in batches]
        assert dealt == [5, 5, 5, 5, 5, 5, 1]
        passes.append(seen.tolist())
    assert passes[0] != passes[1]


def test_weights_of_one_loader_are_kept_and_the_others_are_one():
    x, labels = rows(0, 4)
    batches = list(Pooled([(x, labels, torch.full((4,), 3.0))], [rows(10, 2)]))
    assert batches[0].weights.tolist() == [3.0] * 4 + [1.0] * 2


def test_what_cannot_be_joined_is_named():
    x, labels = rows(0, 4)
    with pytest.raises(ShapeMismatch, match="x is a list"):
        list(Pooled([{"x": [x], "labels": labels}], [rows(10, 2)]))


def test_a_process_may_have_rows_of_one_kind_or_none():
    alone, none = list(Pooled([], [rows(0, 4)])), list(Pooled([], []))
    assert sorted(alone[0].x.squeeze(-1).tolist()) == [0, 1, 2, 3]
    assert none == []
    assert torch.equal(next(iter(Pooled([rows(0, 4)], []))).x, rows(0, 4)[0])


def corner(seed: int, with_corner: bool) -> tuple[Tensor, Tensor]:
    """Negatives around 0 and positives on the right; of the corner above, positives too, only some rows tell."""
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(400, 2, generator=draw)
    labels = (torch.arange(400) % 2).float()
    x[labels > 0, 0] += 4
    if with_corner:
        above = (torch.arange(400) % 4) == 1
        x[above] = 0.5 * torch.randn(int(above.sum()), 2, generator=draw) + torch.tensor([-4.0, 6.0])
    return x, labels


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))


def adam(parameters):
    return torch.optim.Adam(parameters, lr=0.02)


def fitted(train=None, **more) -> sp.methods.FitResult:
    train = train or sp.Batches(*corner(0, False), batch_size=64, shuffle=True)
    others = {"held_out": [corner(1, True)], "calibration": [corner(2, True)]}
    return sp.fit(network(), ASK, train, **others, epochs=8, optimizer=adam, **more)


def test_what_only_held_out_rows_tell_is_learnt():
    fresh = corner(3, True)
    once, again = (fitted(solver=sp.CrossEntropy(), refit=refit) for refit in (False, True))
    missed = [sp.evaluate(ASK, score(result.model, [fresh]).scores, fresh[1]).objective for result in (once, again)]
    assert missed[0] > 0.3
    assert missed[1] < 0.05
    assert len(again.history) == 8


def test_it_is_trained_for_as_many_epochs_as_had_the_least_loss(monkeypatch):
    passes = []
    walk = Pooled.__iter__
    monkeypatch.setattr(Pooled, "__iter__", lambda self: passes.append(1) or walk(self))
    # Of the corner training rows do not tell, so that held-out rows soon speak against more training.
    result = fitted(refit=True, patience=3)
    losses = [row["held_out_loss"] for row in result.history]
    assert result.best_epoch == losses.index(min(losses))
    assert len(losses) == result.best_epoch + 4 < 8
    assert len(passes) == result.best_epoch + 1


def test_the_average_is_the_weighted_mean_of_what_came():
    model = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1))
    average = RunningAverage(model)
    weight, mean = model[0].weight.item(), 0.0
    for step in range(1, 30):
        with torch.no_grad():
            model[0].weight.fill_(step**0.5)
            model[1].running_mean.fill_(-step)
            model[1].num_batches_tracked.fill_(step)
        average.update_parameters(model)
        share = 10 / (step + 10)
        weight, mean = weight * (1 - share) + step**0.5 * share, mean * (1 - share) - step * share
    assert average.module[0].weight.item() == pytest.approx(weight)
    assert float(average.module[1].running_mean) == pytest.approx(mean)
    assert int(average.module[1].num_batches_tracked) == int(average.n_averaged) - 1 == 29
    assert 26**0.5 < weight < 29**0.5


def test_both_trainings_start_from_the_model_as_it_was_given(monkeypatch):
    starts = []
    make = RunningAverage.__init__
    monkeypatch.setattr(
        RunningAverage, "__init__", lambda self, model: starts.append(deepcopy(model.state_dict())) or make(self, model)
    )
    fitted(refit=True)
    assert len(starts) == 2
    for name, value in network().state_dict().items():
        assert all(torch.equal(start[name], value) for start in starts)


def test_what_is_returned_is_the_average_of_the_second_training(monkeypatch):
    kept = []
    follow = RunningAverage.update_parameters
    monkeypatch.setattr(
        RunningAverage, "update_parameters", lambda self, model: kept.append(self) or follow(self, model)
    )
    result = fitted(refit=True)
    second = kept[-1]
    assert second is not kept[0]
    for one, other in zip(result.model.parameters(), second.module.parameters(), strict=True):
        assert torch.equal(one, other)


class Killed(Exception):
    pass


class Mortal(sp.Batches):
    """Batches that end the process after so many, once."""

    life = 10**9

    def __iter__(self):
        for batch in super().__iter__():
            if self.life == 0:
                raise Killed
            self.life -= 1
            yield batch


def test_killed_in_the_second_training_it_goes_on_to_the_same_end(tmp_path):
    def run(life: int, **more) -> sp.methods.FitResult:
        train = Mortal(*corner(0, False), batch_size=64, shuffle=True)
        train.life = life
        return fitted(train, solver=sp.CrossEntropy(), refit=True, **more)

    whole = run(10**9)
    place = sp.Checkpoint(tmp_path / "state", seconds=0.0)
    # 8 epochs of 7 batches, and some of the second training.
    with pytest.raises(Killed):
        run(8 * 7 + 4, checkpoint=place)
    resumed = run(10**9, checkpoint=sp.Checkpoint(tmp_path / "state", seconds=0.0))
    for one, other in zip(whole.model.parameters(), resumed.model.parameters()):
        assert torch.equal(one, other)
    assert not (tmp_path / "state").exists()


def test_refit_needs_cross_entropy_or_a_recipe_and_rows_for_the_threshold():
    for solver in (sp.ImplicitThreshold(ASK), sp.Auto()):  # of a network
        with pytest.raises(BadSetting, match="refit goes with cross-entropy and the recipes"):
            fitted(refit=True, solver=solver)
    parts = [corner(seed, True) for seed in range(2)]
    with pytest.raises(BadSetting, match="pass calibration="), pytest.warns(sp.errors.SharedData):
        sp.fit(network(), ASK, [parts[0]], [parts[1]], refit=True)


def test_a_network_is_trained_again_by_default_where_there_are_rows_for_the_threshold():
    torch.testing.assert_close(fitted().model.state_dict(), fitted(refit=True).model.state_dict())
    once = fitted(refit=False).model.state_dict()
    assert any(not torch.equal(value, once[name]) for name, value in fitted().model.state_dict().items())
    # Of the corner only held-out rows tell; without calibration rows they set the threshold, and are left alone.
    fresh = corner(3, True)
    with pytest.warns(sp.errors.SharedData):
        shared = sp.fit(network(), ASK, [corner(0, False)], [corner(1, True)], epochs=8, optimizer=adam)
    missed = [sp.evaluate(ASK, score(one.model, [fresh]).scores, fresh[1]).objective for one in (fitted(), shared)]
    assert missed[0] < 0.1
    assert missed[1] > 0.3


def test_a_solver_that_is_named_is_not_trained_again(monkeypatch):
    monkeypatch.setattr(Pooled, "__iter__", lambda self: pytest.fail("trained again"))
    fitted(solver=sp.CrossEntropy())
    fitted(solver=sp.ImplicitThreshold(ASK))


def test_every_step_of_the_second_training_is_told_but_not_kept():
    told = []
    result = fitted(on_epoch=told.append)
    first, second = ([row for row in told if bool(row.get("again")) is again] for again in (False, True))
    assert first == result.history
    assert len(second) == result.best_epoch + 1
    assert [row["epoch"] for row in told] == list(range(len(told)))


class OfParts(nn.Module):
    """A model whose input is a list of tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 1)

    def forward(self, parts: list[Tensor]) -> Tensor:
        return self.layer(torch.stack(parts, 1))


def test_what_cannot_be_joined_is_trained_once_unless_it_was_asked_for():
    parts = [corner(seed, False) for seed in range(3)]
    loaders = [[{"x": list(x.T), "labels": labels}] for x, labels in parts]
    torch.manual_seed(0)
    result = sp.fit(OfParts(), ASK, *loaders[:2], calibration=loaders[2], epochs=3)
    assert len(result.history) == 3
    with pytest.raises(ShapeMismatch, match="x is a list; pass refit=False"):
        sp.fit(OfParts(), ASK, *loaders[:2], calibration=loaders[2], epochs=3, refit=True)


class Locked(nn.Module):
    """A model that cannot be copied."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.lock = nn.Linear(2, 1), threading.Lock()

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


@pytest.mark.parametrize("make", [Locked, lambda: nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(1))])
def test_what_cannot_be_averaged_is_trained_once_unless_it_was_asked_for(make):
    parts = [corner(seed, False) for seed in range(3)]
    result = sp.fit(make(), ASK, [parts[0]], [parts[1]], calibration=[parts[2]], epochs=3)
    assert len(result.history) >= 3
    with pytest.raises(BadSetting, match=r"copy\.deepcopy"):
        sp.fit(make(), ASK, [parts[0]], [parts[1]], calibration=[parts[2]], epochs=3, refit=True)


@pytest.mark.parametrize("refit", [None, False])
def test_a_compiled_network_has_the_default_too(refit):
    parts = [corner(seed, False) for seed in range(3)]
    model = torch.compile(network(), backend="eager")
    result = sp.fit(model, ASK, [parts[0]], [parts[1]], calibration=[parts[2]], epochs=3, refit=refit)
    assert {row["solver"] for row in result.history} == {"CrossEntropy", *(["ProximalHead"] if refit is False else [])}


def test_rows_of_other_lengths_are_steps_of_their_own():
    short, long = torch.zeros(4, 3), torch.zeros(2, 5)
    batches = list(Pooled([(short, torch.zeros(4))], [(long, torch.ones(2))]))
    assert [tuple(batch.x.shape) for batch in batches] == [(4, 3), (2, 5)]


LINEAR = {"default": None, "auto": sp.Anchored.auto(), "ridge": sp.Ridge(), "weighted": sp.Ridge(4.0)}


@pytest.mark.parametrize("name", LINEAR)
def test_a_linear_model_is_made_anew_of_all_rows_by_the_recipe_that_was_best(name, monkeypatch):
    monkeypatch.setattr("setpoint.train.linear.STEPS", 20)
    parts = [corner(seed, True) for seed in range(3)]
    others = {"calibration": [parts[2]], "solver": LINEAR[name]}
    once, again, asked = (nn.Linear(2, 1) for _ in range(3))
    history = [
        sp.fit(model, ASK, [parts[0]], [parts[1]], refit=refit, **others).history
        for model, refit in ((once, False), (again, True), (asked, None))
    ]
    assert history[0] == history[1]
    torch.testing.assert_close(asked.weight, again.weight if name == "default" else once.weight)
    assert not torch.allclose(once.weight, again.weight)
    # The same recipe on both parts as one, which leaves the choice as it was.
    both = [tuple(torch.cat(columns) for columns in zip(*parts[:2]))]
    recipe = sp.Anchored() if name == "default" else LINEAR[name]
    if name == "auto":
        best = [row["solver"] for row in history[0]][_best(history[0])]
        recipe = sp.Anchored((float(best[9:-1]),)) if best.startswith("Anchored") else sp.Ridge()
        assert best != "CrossEntropy(matched)"
    whole = nn.Linear(2, 1)
    sp.fit(whole, ASK, both, [parts[1]], recipe, calibration=[parts[2]])
    torch.testing.assert_close(again.weight, whole.weight)


def _best(history) -> int:
    return min(range(len(history)), key=lambda place: (not history[place]["feasible"], history[place]["held_out"]))


@slow
def test_auto_makes_the_chosen_linear_model_anew_of_all_rows(monkeypatch):
    monkeypatch.setattr("setpoint.train.linear.STEPS", 20)
    parts = [corner(seed, True) for seed in range(3)]
    models = [nn.Linear(2, 1) for _ in range(3)]
    once, again, _ = (
        sp.fit(model, ASK, [parts[0]], [parts[1]], sp.Auto(), calibration=[parts[2]], refit=refit)
        for model, refit in zip(models, (False, None, True))
    )
    assert [trial.point for trial in once.comparison] == [trial.point for trial in again.comparison]
    assert torch.equal(models[1].weight, models[2].weight)
    assert not torch.allclose(models[0].weight, models[1].weight)
    (chosen,) = (trial.name for trial in again.comparison if trial.chosen)
    both = tuple(torch.cat(columns) for columns in zip(*parts[:2]))
    rows, scaling = read_rows([[both]], models[0])
    weight, _ = scaling.undo(RECIPES[chosen](Recipes(ASK, rows)))
    torch.testing.assert_close(models[1].weight.squeeze(0).double(), weight, rtol=1e-5, atol=1e-6)


def test_weights_that_only_training_rows_have_are_kept():
    train, held_out, calibration = (corner(seed, True) for seed in range(3))
    weights = torch.linspace(0.5, 4, 400)
    both = [torch.cat(columns) for columns in zip(train, held_out)]
    again, whole, plain = (nn.Linear(2, 1) for _ in range(3))
    sp.fit(again, ASK, [(*train, weights)], [held_out], sp.Ridge(), calibration=[calibration], refit=True)
    sp.fit(
        whole, ASK, [(*both, torch.cat([weights, torch.ones(400)]))], [held_out], sp.Ridge(), calibration=[calibration]
    )
    sp.fit(plain, ASK, [tuple(both)], [held_out], sp.Ridge(), calibration=[calibration])
    torch.testing.assert_close(again.weight, whole.weight)
    assert not torch.allclose(again.weight, plain.weight, rtol=0.01)
