"""A run: the split, what each part may and may not influence, the comparison, and the artefact on disk."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

import setpoint
from marks import slow
from setpoint import ask
from setpoint.data.scan import fingerprint
from setpoint.data.split import split
from setpoint.errors import BadFile, BadProblem, BadSetting, BadTable, TooFewSamples
from setpoint.run.artefact import check_place, load_run, save_run, seal
from setpoint.run.settings import PARTS, Settings
from setpoint.run.table import fit_table
from setpoint.train.kinds import build_model
from setpoint.train.scoring import score_rows
from tables import loans

ASK = ask("minimize fnr where fpr <= 20%")
QUICK = Settings(solver="implicit", epochs=8)


def fitted(frame=None, settings=QUICK, problem=ASK):
    return fit_table(loans() if frame is None else frame, "default", problem, settings)


def parameters(run):
    return [torch.cat([p.flatten() for p in outcome.model.parameters()]) for outcome in run.runs]


def same_parameters(one, other):
    return all(torch.equal(a, b) for a, b in zip(parameters(one), parameters(other)))


def rows_of(part, frame, settings=QUICK):
    labels = torch.tensor((frame["default"] == "yes").to_list()).float()
    return split(labels, settings.shares, settings.seed)[PARTS.index(part)]


def changed(frame, part, **values):
    """The same table with some columns of all rows of one part set to a value."""
    rows = np.zeros(frame.height, dtype=bool)
    rows[rows_of(part, frame).numpy()] = True
    mask = pl.Series(rows)
    return frame.with_columns(
        pl.when(mask).then(pl.lit(value)).otherwise(pl.col(name)).alias(name) for name, value in values.items()
    )


@pytest.fixture(scope="module")
def run():
    return fitted()


def test_test_rows_influence_neither_schema_nor_model_nor_threshold(run):
    other = fitted(changed(loans(), "test", amount=1e7, age=500, job="astronaut", region=99))
    assert other.schema == run.schema
    assert same_parameters(other, run)
    assert [o.point for o in other.runs] == [o.point for o in run.runs]
    assert other.chosen.judged("test") != run.chosen.judged("test")


def test_calibration_rows_set_the_threshold_and_nothing_else(run):
    other = fitted(changed(loans(), "calibration", amount=5000.0, age=20))
    assert other.schema == run.schema
    assert same_parameters(other, run)
    assert other.chosen.point.threshold != run.chosen.point.threshold


def test_training_rows_make_the_schema(run):
    other = fitted(changed(loans(), "train", amount=1e7))
    assert other.schema != run.schema


def test_the_same_seed_gives_the_same_parameters_and_another_seed_others(run):
    torch.manual_seed(123)
    state = torch.get_rng_state()
    again = fitted()
    assert torch.equal(torch.get_rng_state(), state)
    assert same_parameters(again, run)
    assert again.chosen.history == run.chosen.history
    assert not same_parameters(fitted(settings=Settings(epochs=8, seed=1)), run)


def test_the_seed_also_fixes_the_order_of_batches():
    settings = Settings(epochs=3, batch_size=32, model="mlp")
    assert same_parameters(fitted(settings=settings), fitted(settings=settings))


def test_the_number_of_threads_is_left_as_it_was():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        fitted(settings=Settings(epochs=1))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_cross_entropy_always_stands_beside(run):
    assert [outcome.name for outcome in run.runs] == ["implicit", "cross-entropy"]
    weighted = fitted(settings=Settings(solver="weighted", epochs=8))
    assert [outcome.name for outcome in weighted.runs] == ["weighted", "cross-entropy"]
    assert torch.equal(parameters(weighted)[1], parameters(run)[1])
    assert not torch.equal(parameters(weighted)[0], parameters(weighted)[1])
    alone = fitted(settings=Settings(solver="cross-entropy", epochs=8))
    assert [outcome.name for outcome in alone.runs] == ["cross-entropy"]
    assert torch.equal(parameters(alone)[0], parameters(run)[1])


def test_every_part_is_judged_at_the_deployed_threshold(run):
    frame = loans()
    for outcome in run.runs:
        for part in PARTS:
            rows = frame[rows_of(part, frame).numpy()]
            passed = score_rows(outcome.model, run.schema.encode(rows)).double() > outcome.point.threshold
            positive = run.schema.labels(rows) > 0
            judged = outcome.judged(part)
            assert judged.threshold == outcome.point.threshold
            assert judged.objective == pytest.approx(float((~passed[positive]).double().mean()))
            assert judged.rates["fpr"] == pytest.approx(float(passed[~positive].double().mean()))
    assert run.sizes["test"] == {"rows": len(rows), "positives": int(positive.sum())}
    assert run.chosen.judged("calibration").rates == run.chosen.point.rates
    assert run.chosen.point.feasible


def test_the_best_cut_of_the_test_rows_is_at_least_as_good(run):
    for outcome in run.runs:
        assert outcome.best("test").feasible
        if outcome.judged("test").feasible:
            assert outcome.best("test").objective <= outcome.judged("test").objective


def test_a_run_learns():
    run = fitted(loans(2000), Settings(epochs=100))
    for outcome in run.runs:
        assert outcome.judged("test").objective < 0.55  # of 0.80 by chance at fpr 20 %


def test_progress_is_told():
    told = []
    fit_table(loans(), "default", ASK, Settings(solver="implicit", epochs=3), on_row=lambda *row: told.append(row))
    assert told == [*(("implicit", done, 3) for done in (1, 2, 3, 3)), *[("cross-entropy", 1, 1)] * 2]
    told.clear()
    fit_table(loans(), "default", ASK, Settings(epochs=2), on_row=lambda *row: told.append(row))
    assert told[:4] == [("default", done, 3) for done in (1, 2, 3, 3)]


@slow
def test_the_default_and_what_stands_beside_it_are_trained_on_held_out_rows_too():
    again, once = (fitted(settings=Settings(refit=refit)) for refit in (None, False))
    assert [outcome.trained.again for outcome in again.runs] == [True, True]
    assert [outcome.trained.again for outcome in once.runs] == [False, False]
    assert not any(torch.equal(a, b) for a, b in zip(parameters(again), parameters(once)))
    assert [row["held_out"] for row in again.chosen.history] == [row["held_out"] for row in once.chosen.history]
    assert any("--no-refit" in note for note in again.notes)
    assert not any("--no-refit" in note for note in once.notes)


@slow
def test_a_solver_that_is_named_keeps_to_the_training_rows_unless_it_is_asked_to():
    named, asked = (fitted(settings=Settings(solver="weighted", refit=refit)) for refit in (None, True))
    assert [outcome.trained.again for outcome in named.runs] == [False, False]
    assert [outcome.trained.again for outcome in asked.runs] == [True, True]
    for refused in ({"solver": "implicit"}, {"solver": "auto", "model": "mlp"}):
        with pytest.raises(BadSetting, match="refit goes with cross-entropy and the recipes for linear models"):
            fitted(settings=Settings(**refused, refit=True))


def test_the_second_training_of_a_network_moves_the_bar():
    told = []
    settings = Settings(model="mlp", epochs=3)
    fit_table(loans(), "default", ASK, settings, on_row=lambda *row: told.append(row))
    assert [row for row in told if row[0] == "default"][:4] == [("default", done, 6) for done in (1, 2, 3, 4)]
    assert [row for row in told if row[0] == "default"][-1] == ("default", 6, 6)


def test_the_default_says_what_it_came_down_to():
    linear = fitted(settings=Settings())
    assert linear.chosen.method == linear.to_dict()["results"]["default"]["method"] == "default: Anchored(0.25)"
    network = fitted(settings=Settings(model="mlp", epochs=2))
    assert network.chosen.method == "default: CrossEntropy"
    tight = fitted(settings=Settings(model="mlp", epochs=2), problem=ask("minimize fnr where fpr <= 5%"))
    assert "default: CrossEntropy(0.5)" in [run.method for run in tight.runs]
    network = fitted(settings=Settings(model="mlp", epochs=2, refit=False))
    assert network.chosen.method in ("default: CrossEntropy", "default: ProximalHead")


@slow
def test_a_certificate_that_the_rows_do_not_allow_leaves_the_bare_cut_and_a_reason():
    for problem, why in ((ask("minimize fnr where fpr <= 1%"), "299 negatives, but there are 44"), (GAP, "each group")):
        bare = fitted(settings=Settings(epochs=3, confidence=None), problem=problem)
        for confidence in (0.95, "auto"):
            run = fitted(settings=Settings(epochs=3, confidence=confidence), problem=problem)
            assert why in run.chosen.refusal
            assert run.chosen.point == bare.chosen.point
            assert run.to_dict()["cost_of_certificate"] is None
    certified = fitted(settings=Settings(epochs=3, confidence=0.95))
    assert all(outcome.point.certificate.samples == 44 for outcome in certified.runs)
    assert fitted(settings=Settings(epochs=3)).chosen.point == certified.chosen.point


def test_an_area_has_a_threshold_a_point():
    run = fitted(problem=ask("maximize recall over fpr in [0%, 20%] with 4 points"))
    assert len(run.chosen.point.threshold) == 4


GAP = ask("minimize error where recall.gap(married) <= 10%")


@pytest.mark.parametrize("settings", [QUICK, Settings(epochs=5), Settings(solver="weighted", model="mlp", epochs=3)])
def test_groups_get_a_threshold_each_and_the_rates_are_theirs(settings):
    run = fitted(settings=settings, problem=GAP)
    assert list(run.chosen.point.threshold) == ["false", "true"]
    frame, labels = loans(), torch.tensor((loans()["default"] == "yes").to_list()).float()
    for part, point in ((part, run.chosen.judged(part)) for part in PARTS):
        rows = split(labels, settings.shares, settings.seed)[PARTS.index(part)].numpy()
        scores = score_rows(run.chosen.model, run.schema.encode(frame[rows])).numpy()
        married = frame["married"].to_numpy()[rows]
        flagged = scores > np.where(married, *(run.chosen.point.threshold[name] for name in ("true", "false")))
        bad = labels.numpy()[rows] > 0
        recalls = [flagged[bad & (married == group)].mean() for group in (False, True)]
        assert point.rates["recall.gap(married)"] == pytest.approx(abs(recalls[0] - recalls[1]))
        assert point.objective == pytest.approx((flagged != bad).mean())


def test_groups_that_cannot_be_compared_are_refused_by_name():
    for column, message in (("maried", "did you mean 'married'"), ("id", "400 different values; at most 20")):
        with pytest.raises(BadTable, match=message):
            fitted(problem=ask(f"minimize error where recall.gap({column}) <= 2%"))
    rare = loans().with_columns(kind=pl.when(pl.int_range(pl.len()) < 2).then(pl.lit("odd")).otherwise(pl.lit("even")))
    with pytest.raises(TooFewSamples, match="no row of kind 'odd' among the"):
        fitted(rare, problem=ask("minimize error where recall.gap(kind) <= 2%"))


def test_rows_without_a_group_are_a_group():
    run = fitted(problem=ask("minimize error where fpr.gap(job) <= 50%"), settings=Settings(epochs=2))
    assert sorted(run.chosen.point.threshold) == ["(missing)", "clerk", "none at all", "nurse"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": "tree"}, {"solver": "magic"}, {"epochs": 0}, {"batch_size": 0}, {"confidence": 1.0},
        {"seed": -1}, {"shares": (0.5, 0.5, 0.0, 0.0)}, {"shares": (0.5, 0.2, 0.2, 0.2)},
    ],
)  # fmt: skip
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(BadSetting, match=next(iter(wrong)).replace("_", " ")):
        Settings(**wrong)


def test_sizes_are_chosen_by_the_number_of_rows():
    chosen = {rows: Settings().settled(rows) for rows in (100, 4096, 5000, 24_000, 10**6)}
    assert [s.batch_size for s in chosen.values()] == [100, 4096, 512, 512, 4096]
    assert [s.epochs for s in chosen.values()] == [400, 400, 200, 42, 10]
    given = Settings(epochs=7, batch_size=64).settled(1000)
    assert (given.epochs, given.batch_size) == (7, 64)


@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_a_score_does_not_depend_on_the_rows_beside_it(kind):
    model = build_model(kind, 50, seed=1)
    x = torch.randn(3000, 50, generator=torch.Generator().manual_seed(0))
    whole = score_rows(model, x)
    for rows in (slice(0, 1), slice(3, 10), slice(100, 433)):
        assert torch.equal(score_rows(model, x[rows]), whole[rows])
    assert whole.dtype == torch.float32
    torch.testing.assert_close(whole, model(x).detach().squeeze(-1))
    assert next(model.parameters()).dtype == torch.float32


@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_a_run_is_read_back_as_it_was_written(tmp_path, kind):
    run = fitted(settings=Settings(epochs=3, model=kind))
    saved = load_run(save_run(tmp_path / "deep" / "run", run))
    frame = loans(seed=9)
    assert torch.equal(saved.scores(frame), score_rows(run.chosen.model, run.schema.encode(frame)))
    assert saved.point == run.chosen.point
    assert saved.schema == run.schema
    assert sorted(p.name for p in (tmp_path / "deep").iterdir()) == ["run"]
    files = sorted(p.name for p in (tmp_path / "deep" / "run").iterdir())
    assert files == ["history.jsonl", "model.safetensors", "scores.safetensors", "setpoint.json"]


def test_what_setpoint_json_and_the_history_hold(tmp_path, run):
    save_run(tmp_path / "run", run)
    about = json.loads((tmp_path / "run" / "setpoint.json").read_text())
    assert about["format"] == "3.5"
    assert about["data"] == fingerprint(loans())
    assert about["data"]["rows"] == 400
    for name, written in about["files"].items():
        content = (tmp_path / "run" / name).read_bytes()
        assert written == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    assert set(about["files"]) == {"model.safetensors", "history.jsonl", "scores.safetensors"}
    columns = {column["name"]: column for column in about["schema"]["columns"]}
    assert columns["age"]["low"] >= 18
    assert "clerk" in columns["job"]["levels"]
    assert about["ask"] == "minimize fnr where fpr <= 20%"
    assert about["model"] == {"kind": "linear", "width": len(run.schema.features), "members": 1}
    assert about["settings"]["seed"] == 0
    assert about["settings"]["shares"] == [0.5, 0.15, 0.15, 0.2]
    assert set(about["versions"]) == {"setpoint", "torch", "python"}
    assert about["results"]["cross-entropy"]["test"]["rates"]["fpr"] == run.runs[1].judged("test").rates["fpr"]
    lines = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    assert [line["trained"] for line in lines] == ["implicit"] * 8 + ["cross-entropy"]
    assert {"soft", "train", "held_out"} <= lines[0].keys()


def test_an_earlier_run_is_replaced_only_by_force(tmp_path, run):
    place = save_run(tmp_path / "run", run)
    first = (place / "setpoint.json").read_bytes()
    with pytest.raises(BadFile, match="holds an earlier run; replace it with --force"):
        save_run(place, run)
    assert (place / "setpoint.json").read_bytes() == first
    other = fitted(settings=Settings(epochs=2, model="mlp"))
    save_run(place, other, force=True)
    assert load_run(place).about["model"]["kind"] == "mlp"
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_what_no_run_wrote_is_never_overwritten(tmp_path, run):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    save_run(tmp_path / "both", run)
    (tmp_path / "both" / "notes.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    for name in ("mine", "both", "file", "link", "file/run"):
        with pytest.raises(BadFile, match="choose another place"):
            save_run(tmp_path / name, run, force=True)
    assert (tmp_path / "mine" / "thesis.txt").exists()
    assert (tmp_path / "both" / "notes.txt").exists()
    assert check_place(tmp_path / "empty") == tmp_path / "empty"
    save_run(tmp_path / "empty", run)
    assert load_run(tmp_path / "empty").point == run.chosen.point


def test_a_failure_while_writing_leaves_what_was_there(tmp_path, run):
    unwritable = dataclasses.replace(fitted(settings=Settings(epochs=1, model="mlp")), notes=(object(),))
    with pytest.raises(TypeError):
        save_run(tmp_path / "new", unwritable)
    assert list(tmp_path.iterdir()) == []
    save_run(tmp_path / "run", run)
    with pytest.raises(TypeError):
        save_run(tmp_path / "run", unwritable, force=True)
    assert load_run(tmp_path / "run").point == run.chosen.point
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def _edit(path, change, sealed=True):
    """Change the description, and the hashes with it, so that what is behind them is seen."""
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps({**data, "seal": seal(data)} if sealed else data))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda place: (place / "setpoint.json").unlink(), "no run at"),
        (lambda place: (place / "setpoint.json").write_text("{"), "is damaged"),
        (lambda place: (place / "setpoint.json").write_text("[]"), "is damaged"),
        (lambda place: (place / "setpoint.json").write_bytes(b"\xff\xfe"), "is damaged"),
        (lambda place: (place / "model.safetensors").unlink(), "is damaged"),
        (lambda place: (place / "model.safetensors").write_bytes(b"\x80\x04pickle"), "model.safetensors was changed"),
        (lambda place: flip(place / "model.safetensors"), "model.safetensors was changed .* differs from its hash"),
        (lambda place: flip(place / "history.jsonl"), "history.jsonl was changed after the run wrote it"),
        (lambda place: (place / "history.jsonl").unlink(), "is damaged: .*history.jsonl"),
        (
            lambda place: _edit(place / "setpoint.json", lambda d: d.update(format="4.0")),
            "format 4.0.*upgrade setpoint",
        ),
        (lambda place: _edit(place / "setpoint.json", lambda d: d.update(format=2)), "is damaged"),
        (lambda place: _edit(place / "setpoint.json", lambda d: d.update(format="new")), "is damaged"),
        (lambda place: _edit(place / "setpoint.json", lambda d: d["model"].update(kind="os")), "no model that fits"),
        (lambda place: _edit(place / "setpoint.json", lambda d: d["model"].update(width=10**9)), "no model that fits"),
        (lambda place: _edit(place / "setpoint.json", lambda d: d["model"].update(kind="mlp")), "is damaged"),
        (lambda place: _edit(place / "setpoint.json", lambda d: d["schema"].pop("target")), "damaged schema"),
        (lambda place: _edit(place / "setpoint.json", lambda d: d["point"].pop("ask")), "damaged operating point"),
        (lambda place: _edit(place / "setpoint.json", lambda d: d["point"].update(ask="destroy")), "is damaged"),
    ],
)
def test_damaged_runs_are_refused(tmp_path, run, damage, message):
    place = save_run(tmp_path / "run", run)
    damage(place)
    with pytest.raises(BadFile, match=message) as caught:
        load_run(place)
    assert "\n" not in str(caught.value)


def flip(path):
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(bytes(content))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda d: d["point"].update(threshold=0.5), "point.threshold"),
        (lambda d: d["schema"]["columns"][0].update(mean=0.0), "schema.columns"),
        (lambda d: d["point"].pop("certificate"), "point.certificate"),
        (lambda d: d.update(more=1), "more"),
        (lambda d: d["files"]["model.safetensors"].update(sha256="0"), "files.model.safetensors"),
        (lambda d: d.update(ask="minimize fnr where fpr <= 30%"), "ask"),
    ],
)
def test_an_edited_description_is_noticed_and_the_entry_named(tmp_path, run, change, named):
    place = save_run(tmp_path / "run", run)
    _edit(place / "setpoint.json", change, sealed=False)
    with pytest.raises(BadFile, match=f"setpoint.json was changed after the run wrote it: {named} differs"):
        load_run(place)


def test_formats_of_the_same_first_number_are_read(tmp_path, run):
    place = save_run(tmp_path / "run", run)
    _edit(place / "setpoint.json", lambda d: d.update(format="3.7", wonders={"of": "the future"}))
    assert load_run(place).point == run.chosen.point


def test_the_fingerprint_is_that_of_names_types_and_values():
    frame = loans(50)
    first = fingerprint(frame)
    assert fingerprint(loans(50)) == first
    assert (first["rows"], first["columns"]) == (50, 8)
    bits = {
        "a name": frame.rename({"age": "years"}),
        "a type": frame.with_columns(pl.col("age").cast(pl.Float64)),
        "a number": frame.with_columns(age=pl.when(pl.int_range(pl.len()) == 7).then(17).otherwise(pl.col("age"))),
        "a word": frame.with_columns(job=pl.when(pl.int_range(pl.len()) == 7).then(pl.lit("x")).otherwise("job")),
        "a blank": frame.with_columns(job=pl.when(pl.int_range(pl.len()) == 7).then(None).otherwise("job")),
        "a boundary": frame.with_columns(id=pl.Series(["ab", "c", *frame["id"][2:]])),
        "another": frame.with_columns(id=pl.Series(["a", "bc", *frame["id"][2:]])),
        "a zero for a null": frame.with_columns(pl.col("amount").fill_null(0)),
        "order of rows": frame.reverse(),
        "order of columns": frame.select(frame.columns[::-1]),
        "fewer": frame[:-1],
        "dates": frame.with_columns(day=pl.date(2020, 1, 1)),
        "other dates": frame.with_columns(day=pl.date(2020, 1, 2)),
        "lists": frame.with_columns(more=pl.Series([[1, 2]] * 50)),
    }
    assert len({fingerprint(f)["sha256"] for f in [frame, *bits.values()]}) == 1 + len(bits)


def test_the_fingerprint_does_not_depend_on_the_process():
    code = "from tables import loans; from setpoint.data.scan import fingerprint; print(fingerprint(loans(50)))"
    paths = os.pathsep.join([str(Path(setpoint.__file__).parents[1]), str(Path(__file__).parents[1])])
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": seed}
        heard = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, check=True, text=True
        )
        assert heard.stdout.strip() == str(fingerprint(loans(50)))


def test_a_program_is_compared_with_cross_entropy_too():
    run = fitted(settings=Settings(solver="program", epochs=20), problem=ask("maximize precision where recall >= 60%"))
    assert [outcome.method for outcome in run.runs] == ["program", "cross-entropy"]
    assert run.chosen.judged("test").objective > 0.2
    with pytest.raises(BadProblem, match="no linear program"):
        fitted(settings=Settings(solver="program", epochs=1))


@pytest.mark.parametrize("over_splits", [False, True])
def test_an_ensemble_is_saved_and_loaded_as_one(tmp_path, over_splits):
    settings = Settings(model="mlp", solver="implicit", epochs=2, ensemble=3, over_splits=over_splits)
    run = fitted(settings=settings)
    assert not run.chosen.trained.again
    assert {row["member"] for row in run.chosen.history} == {0, 1, 2}
    save_run(tmp_path / "run", run)
    saved = load_run(tmp_path / "run")
    assert len(saved.model.members) == 3
    for name, value in run.chosen.model.state_dict().items():
        assert torch.equal(saved.model.state_dict()[name], value)


@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_fit_and_the_table_end_in_the_same_model_at_the_same_threshold(model):
    frame, settings = loans(), Settings(model=model, epochs=4, batch_size=64, seed=3)
    run = fitted(frame, settings)
    parts = {}
    for part in PARTS[:3]:
        rows = frame[rows_of(part, frame, settings).numpy()]
        shuffled = {"batch_size": 64, "shuffle": True, "seed": 3} if part == "train" else {}
        parts[part] = setpoint.Batches(run.schema.encode(rows), run.schema.labels(rows), **shuffled)
    network = build_model(model, len(run.schema.features), seed=3)
    result = setpoint.fit(network, ASK, **parts, epochs=4, confidence=0.95)
    assert torch.equal(torch.cat([p.flatten() for p in result.model.parameters()]), parameters(run)[0])
    assert result.point == run.chosen.point


@slow
@pytest.mark.parametrize("settings", [Settings(epochs=2), Settings(epochs=2, model="mlp"), Settings(solver="auto")])
def test_no_two_rows_of_the_table_carry_one_name(settings):
    run = fitted(settings=settings)
    names = [one.method.lower().replace("-", "") for one in run.runs]
    assert len(set(names)) == len(names)
    assert names[0].startswith(f"{settings.solver}: ")
