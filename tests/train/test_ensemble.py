"""Ensembles: mean logits, seeds that matter and only they, one artefact; and the numbering of samples."""

import copy
import dataclasses
import io
from typing import Any

import pytest
import safetensors.torch
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import setpoint as sp
from setpoint.data.batch import with_index
from setpoint.data.parts import Data
from setpoint.errors import BadSetting
from setpoint.solve.augmented import AugmentedLagrangian
from setpoint.train.ensemble import Ensemble, Ensembled, seeded_copy
from setpoint.train.history import score
from setpoint.train.method import Trained
from setpoint.train.splits import Seeds
from setpoint.train.start import InPlace
from setpoint.train.work import Work

ASK = "minimize fnr where fpr <= 10%"


def data(size=200, seed=0):
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(size, generator=draw) < 0.3).float()
    x = torch.randn(size, 4, generator=draw) + labels.unsqueeze(-1)
    return x, labels


def net():
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))


def fitted(size=3, seed=0, model=None):
    held_out, train = sp.Batches(*data(seed=1)), sp.Batches(*data(), batch_size=50, shuffle=True)
    model = net() if model is None else model
    return sp.fit(model, ASK, train, held_out, sp.CrossEntropy(), epochs=3, ensemble=size, seed=seed)


def test_the_score_is_the_mean_logit():
    models = [net() for _ in range(4)]
    x = data()[0]
    mean = sum(model(x) for model in models) / 4
    torch.testing.assert_close(Ensemble(models)(x), mean)


def test_one_result_with_the_point_and_the_history_of_all():
    result = fitted()
    found = score(result.model, sp.Batches(*data(seed=1)))
    assert isinstance(result.model, Ensemble)
    assert result.point.objective == sp.evaluate(ASK, found.scores, found.labels).objective
    assert [row["member"] for row in result.history] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    best = result.history[result.best_epoch]
    assert best["held_out"] == min(row["held_out"] for row in result.history)
    assert not result.model.training


def test_members_differ_by_seed_and_by_nothing_else():
    start = net()
    before = {name: value.clone() for name, value in start.state_dict().items()}
    torch.manual_seed(0)
    first = fitted(model=start)
    torch.manual_seed(99)
    second = fitted(model=net())
    for name, value in first.model.state_dict().items():
        assert torch.equal(value, second.model.state_dict()[name])
    weights = [member[0].weight for member in first.model.members]
    assert not torch.equal(weights[0], weights[1])
    assert all(torch.equal(before[name], value) for name, value in start.state_dict().items())


def test_each_member_starts_from_a_seed_of_its_own():
    started = []

    @dataclasses.dataclass(frozen=True)
    class Spy:
        make: Any

        def refuses(self, problem, data): ...

        def train(self, problem, data, work):
            model = self.make()
            started.append(model[0].weight.detach().clone())
            return Trained(model, [{"feasible": True, "held_out": 0.5}], 0, self)

    model = net()
    rows = Data([data()], [data(seed=1)])
    Ensembled(Spy(InPlace(model)), Seeds(3), 7).train(sp.ask(ASK), rows, Work())
    for seed, weight in zip((7, 8, 9), started, strict=True):
        assert torch.equal(weight, seeded_copy(model, seed)[0].weight)
    assert len({float(weight.sum()) for weight in [*started, model[0].weight.detach()]}) == 4


def test_the_random_state_of_the_caller_is_left_alone():
    model = net()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    seeded_copy(model, 1)
    fitted(size=1, model=model)
    assert torch.equal(torch.rand(3), expected)


def test_saved_and_loaded_as_one_artefact():
    ensemble = fitted().model
    twin = Ensemble(net() for _ in range(3))
    memory = io.BytesIO()
    torch.save(ensemble.state_dict(), memory)
    memory.seek(0)
    twin.load_state_dict(torch.load(memory, weights_only=True))
    assert torch.equal(twin(data()[0]), ensemble(data()[0]))


def test_saved_and_loaded_by_safetensors(tmp_path):
    ensemble = fitted().model
    safetensors.torch.save_model(ensemble, str(tmp_path / "model.safetensors"))
    twin = Ensemble(net() for _ in range(3))
    safetensors.torch.load_model(twin, str(tmp_path / "model.safetensors"))
    assert torch.equal(twin(data()[0]), ensemble(data()[0]))


class Bare(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(4))

    def forward(self, x):
        return x @ self.weight


def test_what_cannot_be_drawn_anew_is_refused_by_name():
    with pytest.raises(BadSetting, match=r"layer 1 \(Bare\).*reset_parameters"):
        seeded_copy(torch.nn.Sequential(torch.nn.Linear(4, 4), Bare()), 0)


def test_bad_sizes_are_refused():
    for size in (0, 1.5, True):
        with pytest.raises(BadSetting, match="members"):
            sp.fit(net(), ASK, sp.Batches(*data()), sp.Batches(*data(seed=1)), ensemble=size)
    with pytest.raises(BadSetting, match="at least one"):
        Ensemble([])


# ------------------------------------------------------------------ numbering samples


@pytest.mark.parametrize("shuffle", [True, False])
def test_a_loader_is_numbered_whatever_its_order(shuffle):
    x, labels = data()
    loader = with_index(DataLoader(TensorDataset(x, labels), batch_size=64, shuffle=shuffle))
    seen = []
    for batch in loader:
        assert torch.equal(batch.x, x[batch.index])
        assert torch.equal(batch.labels, labels[batch.index])
        seen += batch.index.tolist()
    assert sorted(seen) == list(range(200))
    assert (seen == list(range(200))) != shuffle
    assert len(loader) == 4


def test_a_list_of_batches_is_numbered_in_its_order():
    x, labels = data()
    numbered = with_index([(x[:70], labels[:70]), {"x": x[70:], "labels": labels[70:]}])
    for _ in range(2):
        assert torch.cat([batch.index for batch in numbered]).tolist() == list(range(200))


class Stream(IterableDataset):
    def __iter__(self):
        return iter([(torch.zeros(4), torch.tensor(1.0))])


def test_what_has_places_keeps_them_and_a_stream_has_none():
    own = sp.Batches(*data())
    assert with_index(own) is own
    loader = DataLoader(Stream())
    assert with_index(loader) is loader
    generator = iter([])
    assert with_index(generator) is generator


def test_an_indexed_solver_prices_each_sample_through_fit():
    x, labels = data()
    solver = AugmentedLagrangian(sp.CrossEntropy(), n_samples=200, mu=0.01)
    train = with_index(DataLoader(TensorDataset(x, labels), batch_size=64, shuffle=True))
    sp.fit(net(), ASK, train, sp.Batches(*data(seed=1)), solver, epochs=3)
    priced = solver.prices > 0
    assert not priced[labels == 0].any()
    assert priced[labels == 1].double().mean() > 0.8
    assert float(solver.shared_price) == 0


def test_fit_trains_an_ensemble_and_leaves_the_given_model_alone():
    model = net()
    before = copy.deepcopy(model.state_dict())
    held_out = sp.Batches(*data(seed=1))
    result = sp.fit(model, ASK, sp.Batches(*data(), batch_size=50), held_out, sp.CrossEntropy(), epochs=2, ensemble=3)
    assert len(result.model.members) == 3
    assert [row["member"] for row in result.history] == [0, 0, 1, 1, 2, 2]
    first = [member[0].weight for member in result.model.members]
    assert not torch.equal(first[0], first[1])
    found = score(result.model, held_out)
    assert result.point.objective == sp.evaluate(ASK, found.scores, found.labels).objective
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    with pytest.raises(BadSetting, match="one model's head"):
        sp.fit(model, ASK, held_out, held_out, sp.losses.ImplicitLastLayer(sp.ask(ASK), model[-1]), ensemble=2)


def test_fit_numbers_the_samples_and_tells_the_metric_to_solvers_with_a_price_a_sample():
    x, labels = data()
    growth = sp.losses.Growth(tolerance=2.0)
    solver = AugmentedLagrangian(sp.CrossEntropy(), n_samples=len(x), mu=1e-3, growth=growth)
    loader = DataLoader(TensorDataset(x, labels), batch_size=50, shuffle=True)
    sp.fit(net(), ASK, loader, sp.Batches(*data(seed=1)), solver, epochs=6)
    priced = solver.prices > 0
    assert priced.any()
    assert not priced[labels == 0].any()
    assert float(solver.metric) >= -1.0
    assert float(solver.mu) == pytest.approx(1e-3 * 2**5)


def test_of_members_that_break_the_bound_the_one_that_breaks_it_least_is_the_best():
    problem, members = sp.ask(ASK), iter([(0.0, 0.5), (0.6, 0.2), (0.3, 0.4)])

    @dataclasses.dataclass(frozen=True)
    class Broken:
        make: Any

        def refuses(self, problem, data): ...

        def train(self, problem, data, work):
            missed, flagged = next(members)
            bounds = {str(bound): {"train": flagged, "held_out": flagged} for bound in problem.constraints}
            return Trained(self.make(), [{"held_out": missed, "feasible": False, "bounds": bounds}], 0, self)

    trained = Ensembled(Broken(InPlace(net())), Seeds(3)).train(problem, Data([], []), Work())
    assert trained.best == 1
