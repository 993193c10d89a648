"""One scorer behind every door: bit-identical scores and thresholds for one model and one set of rows."""

import copy

import numpy as np
import polars as pl
import pytest
import torch
from torch import nn

import setpoint as sp
from setpoint.data.frame import Frame
from setpoint.errors import BadFeatures
from setpoint.estimator.features import Scorer, Standardise
from setpoint.run.artefact import load_run, save_run
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table
from setpoint.train.history import score
from setpoint.train.scoring import score_rows

ASK = "minimize fnr where fpr <= 5%"


def rows(n=600, width=6, seed=0):
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(n, generator=draw) < 0.4).float()
    return torch.randn(n, width, generator=draw) + labels[:, None], labels


def network(width=6, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, 1))


@pytest.mark.parametrize("solver", ["cross-entropy", "default"])
def test_the_command_line_and_fit_set_the_same_threshold_for_one_model(solver, tmp_path):
    x, labels = rows(2000)
    names = [f"x{place}" for place in range(x.shape[1])]
    table = Frame(pl.DataFrame(x.numpy().astype(np.float64), schema=names).with_columns(y=labels.long().numpy()))
    run = fit_table(table, "y", sp.ask(ASK), Settings(model="mlp", solver=solver, epochs=2, refit=False))
    save_run(tmp_path / "run", run)
    saved = load_run(tmp_path / "run")
    features, known = run.schema.encode(table), run.schema.labels(table)
    # The door of the library, given the very same model: a training of no effect, then the threshold.
    still = sp.fit(
        copy.deepcopy(run.chosen.model), ASK, sp.Batches(features, known, batch_size=64), sp.Batches(features, known),
        sp.CrossEntropy(), calibration=sp.Batches(features, known, batch_size=77, shuffle=True), epochs=1,
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=0.0),
    )  # fmt: skip
    assert sp.calibrate(ASK, saved.scores(table), known).threshold == still.point.threshold
    of_class = Scorer(Standardise(torch.zeros(6), torch.ones(6)), run.chosen.model)
    ours = score_rows(run.chosen.model, features.clamp(-5, 5)).numpy()
    assert np.array_equal(of_class.score(features.double().numpy()), ours.astype(np.float64))


def test_a_score_is_that_of_its_row_alone_in_every_batch():
    model, (x, labels) = network(), rows()
    whole = score_rows(model, x)
    assert whole.dtype == torch.float32
    for size in (1, 7, 64):
        assert torch.equal(score(model, sp.Batches(x, labels, batch_size=size)).scores, whole)
    assert torch.equal(whole, copy.deepcopy(model).double()(x.double()).squeeze(-1).float())
    assert not torch.equal(whole, model(x).squeeze(-1))


def test_large_inputs_are_scored_in_parts(monkeypatch):
    model, (x, _) = network(), rows()
    whole, sizes = score_rows(model, x), []
    model.register_forward_pre_hook(lambda _, given: sizes.append(len(given[0])))
    monkeypatch.setattr("setpoint.train.scoring.NUMBERS", 600)
    assert torch.equal(score_rows(model, x), whole)
    assert sizes == [100] * 6


class Stubborn(nn.Module):
    """A model whose code knows float32 alone."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 1)

    def forward(self, x):
        return nn.functional.linear(x.float(), self.layer.weight.float()[:, :6], self.layer.bias).float()


class Named(nn.Module):
    """A model that takes a dict, with numbers of an embedding in it."""

    def __init__(self):
        super().__init__()
        self.words, self.layer = nn.Embedding(10, 4), nn.Linear(10, 1)

    def forward(self, x):
        return self.layer(torch.cat([x["numbers"], self.words(x["word"])], dim=1))


class Asserting(Stubborn):
    def forward(self, x):
        assert x.dtype == torch.float32
        return self.layer(x)


@pytest.mark.parametrize(
    "model", [Stubborn(), Asserting(), network().bfloat16()], ids=["own code", "own check", "half precision"]
)
def test_a_model_that_knows_no_float64_is_taken_as_it_is(model):
    x = rows()[0].to(next(model.parameters()).dtype)
    assert torch.equal(score_rows(model, x), model(x).squeeze(-1))


def test_models_of_float64_of_dicts_and_without_parameters():
    x, _ = rows()
    double = network().double()
    assert torch.equal(score_rows(double, x.double()), double(x.double()).squeeze(-1))
    named = Named()
    given = {"numbers": x, "word": torch.arange(600) % 10}
    wide = copy.deepcopy(named).double()
    expected = wide({"numbers": x.double(), "word": given["word"]}).squeeze(-1).float()
    assert torch.equal(score_rows(named, given), expected)
    assert torch.equal(score_rows(nn.Flatten(0), x[:, :1]), x[:, 0])


def test_scoring_leaves_the_model_as_it_was_and_says_what_the_model_says_of_bad_rows():
    model, (x, _) = network().train(), rows()
    before = copy.deepcopy(model.state_dict())
    score_rows(model, x)
    assert model.training
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    with pytest.raises(BadFeatures, match=r"does not take rows of shape \(3,\)"):
        score_rows(model, x[:, :3])
    assert model.training
