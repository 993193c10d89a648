"""Models that answer in NumPy give the scores that PyTorch and LightGBM give."""

from __future__ import annotations

import ctypes
import os

import numpy as np
import pytest
import torch

import setpoint as sp
from export.runs import MODELS, X, linear, trees
from setpoint.errors import BadFile
from setpoint.serve.booster import Booster, _library
from setpoint.serve.models import RESTORERS, restore
from setpoint.train.each_label import LabelModels
from setpoint.train.kinds import KINDS
from setpoint.train.models import mlp
from setpoint.train.scoring import score_rows


def state_of(model):
    return {name: value.numpy() for name, value in model.state_dict().items()}


MORE = {
    "labels": lambda: LabelModels([linear(), MODELS["stack"]()]),
    "mixture": lambda: sp.methods.Mixed([linear(), mlp(X.shape[1], 4)], [0.25, 0.75], [0.5, -0.5]),
    "classes": lambda: trees(3),
}


@pytest.mark.parametrize("kind", {**MODELS, **MORE})
def test_scores_are_those_of_pytorch(kind):
    model = {**MODELS, **MORE}[kind]().eval()
    wanted = score_rows(model, X).numpy()
    found = restore(state_of(model), 1, 1 if wanted.ndim == 1 else wanted.shape[1]).score(X.numpy())
    assert found.dtype == np.float32
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=2e-7, atol=1e-12)
    assert (found == wanted).mean() > 0.99


def test_trees_are_those_of_lightgbm_to_the_last_bit():
    model = trees()
    values = model.layout.values(X.numpy().astype(np.float64))
    for text, booster in zip(model.texts, model.boosters):
        assert Booster(text).raw_scores(values).tolist() == booster.predict(values, raw_score=True).tolist()


def test_every_kind_of_model_can_be_restored():
    assert set(RESTORERS) == set(KINDS)


@pytest.mark.parametrize(
    ("state", "members", "says"),
    [
        ({"odd": np.zeros(3)}, 1, "those of no kind of model"),
        ({"weight": np.zeros(3)}, 1, "no linear model"),
        ({"weight": np.zeros((1, 3)), "bias": np.zeros(1)}, 2, "does not hold the 2 models"),
        (
            {"booster_0": np.frombuffer(b"tree", np.uint8), "blocks": np.frombuffer(b"[]", np.uint8)},
            1,
            "LightGBM cannot",
        ),
    ],
)
def test_parameters_of_no_model_are_refused(state, members, says):
    with pytest.raises(BadFile, match=says):
        restore(state, members, 1)


def test_a_model_of_another_width_is_refused():
    with pytest.raises(BadFile, match="2 scores per row, not 1"):
        restore(state_of(torch.nn.Linear(3, 2)), 1, 1).score(np.zeros((1, 3), dtype=np.float32))
    with pytest.raises(BadFile, match="values per row, not 3"):
        Booster(trees().texts[0]).raw_scores(np.zeros((1, 3)))


@pytest.mark.parametrize("chosen", [None, "active"])
def test_threads_of_trees_wait_without_spinning_unless_the_user_says_so(chosen, monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if chosen:
        monkeypatch.setenv("OMP_WAIT_POLICY", chosen)
    seen, load = [], ctypes.CDLL

    def watched(path):
        seen.append(os.environ["OMP_WAIT_POLICY"])
        return load(path)

    monkeypatch.setattr(ctypes, "CDLL", watched)
    _library.__wrapped__()
    assert seen == [chosen or "passive"]
    assert os.environ.get("OMP_WAIT_POLICY") == chosen
