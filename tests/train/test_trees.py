"""Trees: what LightGBM itself gives, categories and missing values native, and cross-fitting without a leak."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import lightgbm
import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from marks import slow
from setpoint.data.layout import Block, Layout
from setpoint.errors import BadSetting, NotEnoughMemory, TooFewSamples
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table
from setpoint.train import boosting
from setpoint.train.cross_fit import folds_of
from setpoint.train.scoring import score_rows

ASK = "minimize fnr where fpr <= 10%"


def rings(size=600, seed=0, width=4):
    """Positives lie inside a circle, so that no linear model finds them."""
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(size, width, generator=draw)
    inside = (x[:, :2] ** 2).sum(1) + 0.3 * torch.randn(size, generator=draw)
    return x, (inside < 1).float()


def parts(count=3, **how):
    return [sp.Batches(*rings(seed=seed), **how) for seed in range(count)]


@pytest.mark.parametrize("weighted", [False, True])
def test_one_booster_is_the_booster_of_lightgbm(weighted):
    (x, y), (x_held_out, y_held_out) = rings(seed=0), rings(seed=1)
    weights = [1 + torch.arange(len(y)) % 3 if weighted else None] * 2
    train, held_out = sp.Batches(x, y, weights=weights[0]), sp.Batches(x_held_out, y_held_out, weights=weights[1])
    result = sp.fit(None, ASK, train, held_out, sp.methods.Boosting(15), calibration=sp.Batches(*rings(seed=2)))
    settings = {
        "objective": "binary", "num_leaves": 15, "learning_rate": 0.05, "min_data_in_leaf": 20, "verbosity": -1,
        "deterministic": True, "force_row_wise": True, "seed": 0,
    }  # fmt: skip
    weight = weights[0].numpy() if weighted else None
    learned = lightgbm.Dataset(x.numpy(), y.numpy(), weight=weight)
    watched = lightgbm.Dataset(x_held_out.numpy(), y_held_out.numpy(), weight=weight, reference=learned)
    stop = lightgbm.early_stopping(50, verbose=False)
    booster = lightgbm.train(settings, learned, 2000, valid_sets=[watched], callbacks=[stop])
    expected = booster.predict(x_held_out.numpy(), num_iteration=booster.best_iteration, raw_score=True)
    np.testing.assert_allclose(result.model(x_held_out).numpy(), expected, rtol=1e-6, atol=1e-6)


BLOCKS = st.lists(st.sampled_from(["amount", "missable", "levels"]), min_size=1, max_size=6)


@given(kinds=BLOCKS, seed=st.integers(0, 100))
def test_values_are_those_that_the_features_were_made_of(kinds, seed):
    draw = np.random.default_rng(seed)
    blocks, features, values = [], [], []
    for kind in kinds:
        amounts = draw.normal(size=8)
        gone = draw.random(8) < 0.3
        if kind == "amount":
            blocks.append(Block("a", "amount", 1))
            features.append(amounts[:, None])
            values.append(amounts)
        elif kind == "missable":
            blocks.append(Block("m", "missable", 2))
            features.append(np.stack([np.where(gone, 0.0, amounts), gone], axis=1))
            values.append(np.where(gone, np.nan, amounts))
        else:
            width = int(draw.integers(1, 5))
            codes = draw.integers(0, width, 8)
            blocks.append(Block("l", "levels", width))
            features.append(np.where(gone[:, None], 0.0, np.eye(width)[codes]))
            values.append(np.where(gone, np.nan, codes))
    x = np.concatenate(features, axis=1)
    before = x.copy()
    layout = Layout(blocks)
    np.testing.assert_array_equal(layout.values(x), np.stack(values, axis=1))
    np.testing.assert_array_equal(x, before)
    again = Layout.from_json(layout.to_json())
    np.testing.assert_array_equal(again.values(x), layout.values(x))


def words(size=900, seed=0):
    """The level decides, in an order that no number would have; missing is bad."""
    draw = np.random.default_rng(seed)
    level = draw.choice(["a", "b", "c", "d", "e", "f"], size)
    amount = draw.normal(size=size)
    gone = draw.random(size) < 0.2
    bad = (np.isin(level, ["a", "d"]) ^ gone) ^ (draw.random(size) < 0.05)
    hole = pl.Series(amount).set(pl.Series(gone), None)
    return pl.DataFrame({"level": level, "hole": hole, "noise": draw.normal(size=size), "y": bad.astype(int)})


def test_categories_and_missing_values_are_native():
    table = fit_table(words(), "y", sp.ask(ASK), Settings(model="trees"))
    names, categorical = set(), 0
    for text in table.chosen.model.texts:
        described = lightgbm.Booster(model_str=text).dump_model()
        names |= {described["feature_names"][0], *described["feature_names"]}
        categorical += sum("==" in json.dumps(tree["tree_structure"]) for tree in described["tree_info"])
    assert len(names) == 3, "one value per column, not one per level"
    assert categorical > 0
    assert table.chosen.judged("test").rates["fnr"] < 0.2
    assert table.runs[-1].judged("test").rates["fnr"] > 0.3, "the exclusive or of two columns is not linear"


def test_scores_only_rise_or_fall_where_that_was_asked():
    x, y = rings(width=2)
    held_out, rest = sp.Batches(*rings(seed=1, width=2)), sp.Batches(*rings(seed=2, width=2))
    train = sp.Batches(x, y)
    grid = torch.stack([torch.linspace(-2, 2, 200), torch.full((200,), 0.3)], dim=1)
    free = sp.fit(None, ASK, train, held_out, sp.methods.Trees(), calibration=rest).model(grid)
    rising = sp.fit(None, ASK, train, held_out, sp.methods.Trees(monotone={"0": 1}), calibration=rest).model(grid)
    falling = sp.fit(None, ASK, train, held_out, sp.methods.Trees(monotone={"0": -1}), calibration=rest).model(grid)
    assert (free.diff() < 0).any()
    assert (free.diff() > 0).any()
    assert (rising.diff() >= 0).all()
    assert (rising.diff() > 0).any()
    assert (falling.diff() <= 0).all()
    with pytest.raises(BadSetting, match="monotone names 'age', which is no column; the columns are 0, 1"):
        sp.fit(None, ASK, train, held_out, sp.methods.Trees(monotone={"age": 1}), calibration=rest)


def test_out_of_fold_scores_are_by_members_that_did_not_see_the_row():
    """Labels drawn by a coin: whoever saw a row knows its label, whoever did not knows nothing."""
    draw = torch.Generator().manual_seed(0)
    x, y = torch.randn(400, 5, generator=draw), (torch.rand(400, generator=draw) < 0.5).float()
    train, held_out = sp.Batches(x[:300], y[:300]), sp.Batches(x[300:], y[300:])
    data = sp.methods.Data(train, held_out, calibration=held_out)
    trained = sp.methods.Trees().train(sp.ask(ASK), data, sp.methods.Work())
    out = trained.out_of_fold

    def area(scores, labels):
        return float((scores[labels > 0].unsqueeze(1) > scores[labels == 0]).float().mean())

    assert torch.equal(out.labels, y), "training rows first, then the held-out rows"
    assert area(trained.model(x), y) > 0.65
    assert abs(area(out.scores, out.labels) - 0.5) < 0.08
    for fold, text in enumerate(trained.model.texts):
        inside = folds_of(data.train.resident.join([data.train.resident, held_out.resident]), 5, 0) == fold
        expected = lightgbm.Booster(model_str=text).predict(x[inside].numpy(), raw_score=True)
        np.testing.assert_allclose(out.scores[inside].numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("judged_rows", [50, 2_000])
def test_out_of_fold_scores_do_not_depend_on_the_order_of_the_held_out_loader(judged_rows, monkeypatch):
    monkeypatch.setattr(boosting, "JUDGED_ROWS", judged_rows)
    train, held_out, rest = parts()
    shuffled = sp.Batches(held_out.resident.x, held_out.resident.labels, batch_size=7, shuffle=True)
    problem, method = sp.ask(ASK), sp.methods.Trees((7, 7))
    runs = [method.train(problem, sp.methods.Data(train, one, rest), sp.methods.Work()) for one in (held_out, shuffled)]
    assert torch.equal(runs[0].out_of_fold.scores, runs[1].out_of_fold.scores)


def test_held_out_rows_are_trained_on_only_if_the_threshold_has_rows_of_its_own():
    train, held_out, rest = parts()
    problem, work = sp.ask(ASK), sp.methods.Work()
    with_rest = sp.methods.Trees().train(problem, sp.methods.Data(train, held_out, rest), work)
    without = sp.methods.Trees().train(problem, sp.methods.Data(train, held_out), work)
    not_pooled = sp.methods.Trees(pool=False).train(problem, sp.methods.Data(train, held_out, rest), work)
    assert (with_rest.again, without.again, not_pooled.again) == (True, False, False)
    assert [len(one.out_of_fold.labels) for one in (with_rest, without, not_pooled)] == [1200, 600, 600]
    assert without.model.texts == not_pooled.model.texts
    by_fit = sp.fit(None, ASK, train, held_out, sp.methods.Trees(), calibration=rest, refit=False)
    assert by_fit.model.texts == without.model.texts


def test_a_score_is_that_of_its_row_alone():
    train, held_out, rest = parts()
    model = sp.fit("trees", ASK, train, held_out, calibration=rest).model
    x = torch.cat([rings(seed=5)[0], torch.tensor([[float("nan"), 0, 0, 0], [1e30, -1e30, float("nan"), 0]])])
    together = score_rows(model, x)
    assert torch.equal(torch.cat([score_rows(model, row.unsqueeze(0)) for row in x]), together)
    backwards = score_rows(model, x.flip(0))
    assert torch.equal(backwards.flip(0), together)


def test_a_copy_from_the_state_gives_the_same_scores():
    train, held_out, rest = parts()
    model = sp.fit("trees", ASK, train, held_out, calibration=rest).model
    again = sp.methods.Boosted.restore(model.state_dict())
    assert torch.equal(again(rings(seed=7)[0]), model(rings(seed=7)[0]))


@slow
def test_the_result_does_not_depend_on_the_number_of_threads():
    code = (
        "import torch, setpoint as sp\n"
        "from test_trees import ASK, parts\n"
        "train, held_out, rest = parts()\n"
        "print(hash(tuple(sp.fit('trees', ASK, train, held_out, calibration=rest).model.texts)))\n"
    )
    path = os.pathsep.join(map(str, (Path(sp.__file__).parents[1], Path(__file__).parent, Path(__file__).parents[1])))
    known = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"}
    said = {
        subprocess.run(
            [sys.executable, "-c", code], env={**known, "OMP_NUM_THREADS": threads},
            capture_output=True, text=True, check=True,
        ).stdout
        for threads in ("1", "4")
    }  # fmt: skip
    assert len(said) == 1


def test_streams_and_classes_of_one_row_are_refused_in_a_sentence():
    _, held_out, rest = parts()
    with pytest.raises(NotEnoughMemory, match="cross-fitting needs all rows in memory as dense numbers"):
        sp.fit("trees", ASK, [rings()], held_out, calibration=rest)
    x, y = rings()
    y[:] = 0
    y[0] = 1
    with pytest.raises(TooFewSamples, match="at least 2 rows of each class"):
        sp.fit(None, ASK, sp.Batches(x, y), held_out, sp.methods.Trees(pool=False), calibration=rest)
    y[1:3] = 1
    few = sp.fit(None, ASK, sp.Batches(x, y), held_out, sp.methods.Trees(pool=False), calibration=rest)
    assert len(few.model.texts) == 3, "as many folds as rows of the rarer class"


def test_seconds_end_the_training_with_the_trees_so_far():
    train, held_out, _ = parts()
    rest = sp.Batches(*rings(seed=2))
    cut = sp.fit(None, ASK, train, held_out, sp.methods.Boosting(7, seconds=1e-9), calibration=rest)
    whole = sp.fit(None, ASK, train, held_out, sp.methods.Boosting(7), calibration=rest)
    trees = [lightgbm.Booster(model_str=one.model.texts[0]).num_trees() for one in (cut, whole)]
    assert trees[0] == 1
    assert trees[1] > 10


def test_without_lightgbm_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    train, held_out, rest = parts()
    with pytest.raises(ImportError, match=r"pip install 'setpoint\[trees\]'"):
        sp.fit("trees", ASK, train, held_out, calibration=rest)
