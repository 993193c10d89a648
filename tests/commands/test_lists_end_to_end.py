"""Lists through the command line and the estimator: fit, predict, evaluate, compare, explain, report and resume."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold

import setpoint as sp
from marks import slow
from setpoint.cli import main
from setpoint.errors import BadFile, BadGroups, BadProblem, BadTable, TooFewSamples
from setpoint.run import table as module
from setpoint.run.artefact import load_run
from setpoint.run.settings import Settings
from setpoint.run.unfinished import Plan, begin, resume

ASK = "maximize precision in the first 2 where hit in the first 3 >= 40%"
FIT = ["--target", "grade", "--relevant", "2", "--lists", "query", "--ask", ASK]


def documents(lists=120, seed=0):
    draw = np.random.default_rng(seed)
    sizes = draw.integers(2, 9, lists)
    queries = draw.permutation(np.repeat([f"q{number:03d}" for number in range(lists)], sizes))
    quality, length = draw.normal(size=(2, len(queries)))
    grade = np.clip(np.round(quality + 0.7 * draw.normal(size=len(queries)) + 0.8), 0, 3).astype(int)
    return pl.DataFrame({"query": queries, "quality": quality, "length": length, "grade": grade})


def call(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(list(map(str, arguments)))
    return (ended.value.code, *capsys.readouterr())


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a table and a run of a linear model on it."""
    here = tmp_path_factory.mktemp("lists")
    documents().write_csv(here / "table.csv")
    with pytest.raises(SystemExit) as ended:
        main(["fit", str(here / "table.csv"), *FIT, "--model", "linear", "--out", str(here / "run"), "--quiet"])
    assert ended.value.code == 0
    return here


def test_a_run_keeps_whole_lists_in_one_part_and_learns_nothing_of_their_names(place):
    about = json.loads((place / "run" / "setpoint.json").read_text())
    assert about["point"]["threshold"] == {"first": 2}
    assert about["certificate"]["statement"] == "hit in the first 3 >= 40%"
    assert about["certificate"]["samples"] == about["rows"]["calibration"]["lists"]
    assert sum(part["lists"] for part in about["rows"].values()) == 120
    assert about["schema"]["dropped"] == {"query": "--lists names it"}
    assert list(about["results"]) == ["default", "cross-entropy"]
    assert 0.4 < about["results"]["default"]["test"]["objective"] < 0.9


def test_the_terminal_shows_lists_within_80_columns(place, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("setpoint.commands.terminal.WIDE", 80)
    code, out, _ = call(capsys, "fit", place / "table.csv", *FIT, "--model", "linear", "--out", tmp_path / "run")
    table = out[out.index("maximize") : out.index("Rows: ")].splitlines()
    assert code == 0
    assert max(map(len, table)) <= 80
    assert sum("precision" in line for line in table) == 2
    assert "…" not in out


def test_predictions_rank_each_list_and_depend_on_it_alone(place, capsys, tmp_path):
    out = tmp_path / "answers.csv"
    assert call(capsys, "predict", place / "run", place / "table.csv", "--out", out, "--keep", "query", "-q")[0] == 0
    answers = pl.read_csv(out)
    assert answers.columns == ["query", "score", "rank", "decision"]
    saved, table = load_run(place / "run"), documents()
    for name in ("q000", "q007", "q119"):
        own = answers.filter(pl.col("query") == name)
        order = own["score"].to_numpy().argsort()[::-1]
        assert own["rank"].to_numpy()[order].tolist() == list(range(1, len(own) + 1))
        assert (own["decision"] == (own["rank"] <= 2)).all()
        alone = saved.predict(table.filter(pl.col("query") == name).drop("grade"))
        assert alone.tolist() == own["decision"].to_list()
    shuffled = table.with_row_index().sample(fraction=1, shuffle=True, seed=3)
    found = saved.predict(shuffled.drop("grade", "index"))
    assert found[shuffled["index"].arg_sort().to_list()].tolist() == answers["decision"].to_list()
    with pytest.raises(BadTable, match="no column 'query', which names the list of each row"):
        saved.predict(table.drop("query"))


def test_a_run_is_evaluated_and_reported(place, capsys, tmp_path):
    documents(80, seed=5).write_csv(tmp_path / "later.csv")
    code, out, _ = call(capsys, "evaluate", place / "run", tmp_path / "later.csv")
    assert code == 0
    assert "lists" in out
    assert "best cut" not in out
    told = json.loads(call(capsys, "evaluate", place / "run", tmp_path / "later.csv", "--json")[1])
    saved, table = load_run(place / "run"), documents(80, seed=5)
    labels, scores = (table["grade"] >= 2).to_numpy(), saved.scores(table.drop("grade")).numpy()
    each = [labels[rows][scores[rows].argsort()[::-1][:2]].sum() / 2 for rows in groups_of(table["query"])]
    assert told["objective"] == pytest.approx(np.mean(each))
    assert told["bounds"][0]["samples"] == [80]
    bad = table.with_columns(grade=3 - pl.col("grade"))
    bad.write_csv(tmp_path / "bad.csv")
    assert call(capsys, "evaluate", place / "run", tmp_path / "bad.csv", "--quiet")[0] in (0, 1)
    assert call(capsys, "report", place / "run", "--out", tmp_path / "page.html")[0] == 0
    page = (tmp_path / "page.html").read_text()
    assert "Flag the first 2 rows of each list." in page
    assert "lists that have positives" in page
    assert "<script" not in page
    assert "calibration lists (exact binomial test over lists)" in page
    assert page.count("<details><summary>All ") == 2


def groups_of(names):
    return [np.flatnonzero(names.to_numpy() == name) for name in names.unique(maintain_order=True)]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--target", "grade", "--ask", ASK], "name the column that says which list a row is in with --lists"),
        (["--target", "grade", "--lists", "query", "--ask", ASK], "holds 4 grades; say from which grade on"),
        (["--target", "grade", "--lists", "grade", "--ask", ASK], "is the column to predict"),
        (["--target", "grade", "--lists", "quary", "--ask", ASK], "is no column; did you mean 'query'"),
        (["--target", "grade", "--lists", "query", "--ask", "minimize error"], "is not about lists"),
        (["--target", "grade", "--relevant", "1", "--ask", "minimize error"], "so it goes with --lists"),
        ([*FIT, "--positive", "3"], "--relevant and --positive both say which rows are positive"),
        ([*FIT[:2], "--relevant", "9", *FIT[4:]], "is below 9 in every row"),
        ([*FIT[:1], "query", *FIT[2:]], "is the column to predict"),
        ([*FIT, "--stream"], "is about lists, which --stream does not train"),
        ([*FIT, "--solver", "lagrangian"], "choose implicit or weighted or cross-entropy"),
        ([*FIT, "--tune", "3"], "solver 'auto' trains for plain rates"),
    ],
)  # fmt: skip
def test_what_is_refused_before_any_work(arguments, says, place, capsys):
    code, _, error = call(capsys, "fit", place / "table.csv", *arguments, "--out", place / "none")
    assert code == 2
    assert says in " ".join(error.split())
    assert not (place / "none").exists()


def test_streams_and_other_models_are_refused(place, capsys, tmp_path):
    code, _, error = call(
        capsys, "predict", place / "run", place / "table.csv", "--out", tmp_path / "x.csv", "--stream"
    )
    assert (code, "may cut a list" in " ".join(error.split())) == (2, True)
    code, _, error = call(capsys, "evaluate", place / "run", place / "table.csv", "--stream")
    assert (code, "is about lists, which --stream does not judge" in " ".join(error.split())) == (2, True)
    plain = ["--target", "grade", "--positive", "3", "--ask", "minimize error", "--model", "lambdarank"]
    code, _, error = call(capsys, "fit", place / "table.csv", *plain, "--out", tmp_path / "none")
    assert (code, "lambdarank orders the rows of lists" in " ".join(error.split())) == (2, True)


def test_a_missing_list_is_refused():
    odd = documents(30).with_columns(query=pl.when(pl.col("query") == "q003").then(None).otherwise(pl.col("query")))
    with pytest.raises(BadTable, match=r"column 'query' names no list in [0-9]+ of"):
        module.fit_table(odd, "grade", sp.ask(ASK), Settings(lists="query", relevant=2.0))


@slow
def test_methods_are_compared_and_explained(place, capsys):
    code, out, _ = call(
        capsys,
        "compare",
        place / "table.csv",
        *FIT,
        "--trials",
        "2",
        "--solvers",
        "implicit",
        "--epochs",
        "200",
        "--json",
    )
    assert code == 0
    told = json.loads(out)
    assert [one["solver"] for one in told["solvers"]] == ["cross-entropy", "implicit"]
    assert told["solvers"][1]["mean_shipped_on_test"] > 0.4
    out = call(capsys, "explain", ASK)[1]
    assert "hit in the first 3 >= 40%" in out
    assert "lists" in out
    assert "lambdarank" in out
    assert "lambdarank" not in call(capsys, "explain", "minimize fnr where fpr <= 1%")[1]


@slow
@pytest.mark.parametrize("model", ["lambdarank", "auto"])
def test_trees_and_the_best_kind_are_saved_and_read_back(model, tmp_path):
    plan = Plan((str(tmp_path / "t.csv"),), "grade", ASK, Settings(model=model, lists="query", relevant=2.0))
    documents(60).write_csv(tmp_path / "t.csv")
    run = begin(plan, tmp_path / "run")
    saved = load_run(tmp_path / "run")
    table = documents(60)
    names = [trial.name for trial in run.chosen.trials]
    assert names == (
        [] if model == "lambdarank" else ["cross-entropy", "linear", "trees", "lambdarank", "mlp", "stack"]
    )
    point = sp.evaluate(ASK, saved.scores(table), (table["grade"] >= 2).to_numpy(), lists=table["query"].to_numpy())
    assert point.objective > 0.4


@slow
def test_a_killed_run_goes_on_to_the_same_result(tmp_path, monkeypatch):
    documents(60).write_csv(tmp_path / "t.csv")
    settings = Settings(solver="implicit", epochs=6, batch_size=50, lists="query", relevant=2.0)
    plan = Plan((str(tmp_path / "t.csv"),), "grade", ASK, settings, seconds=0.0)
    whole = begin(plan, tmp_path / "whole")

    class Killed(BaseException):
        pass

    def kill(solver, done, rows, *doing):
        if solver == "implicit" and done == 4:
            raise Killed

    with pytest.raises(Killed):
        begin(plan, tmp_path / "run", on_epoch=kill)
    again = resume(tmp_path / "run")
    assert again.chosen.history == whole.chosen.history
    assert again.chosen.point == whole.chosen.point
    about = (tmp_path / "run" / "setpoint.json").read_text().replace('"lists": "query"', '"lists": null')
    (tmp_path / "run" / "setpoint.json").write_text(about)
    with pytest.raises(BadFile):
        load_run(tmp_path / "run")


@pytest.fixture(scope="module")
def arrays():
    table = documents()
    return table.select("quality", "length").to_numpy(), (table["grade"] >= 2).to_numpy(), table["query"].to_numpy()


def test_the_estimator_takes_lists(arrays):
    X, y, lists = arrays
    model = sp.SetpointClassifier(ASK).fit(X, y, lists=lists)
    assert "lists" in model.operating_point_.certificate.method
    flagged = model.predict(X, lists=lists)
    assert all(flagged[rows].sum() == min(2, len(rows)) for rows in groups_of(pl.Series(lists)))
    assert (model.decide(X, lists=lists) == flagged).all()
    assert model.score(X, y, lists=lists) == model.judge(X, y, lists=lists).objective > 0.4
    assert model.check(X, y, lists=lists).holds
    weights = np.where(lists < "q050", 2.0, 1.0)
    heavy = sp.SetpointClassifier(ASK, solver="implicit", epochs=3, confidence=None)
    assert heavy.fit(X, y, lists=lists, sample_weight=weights).operating_point_.threshold == {"first": 2}


@slow
def test_metadata_routing_passes_lists(arrays):
    X, y, lists = arrays
    with sklearn.config_context(enable_metadata_routing=True):
        model = sp.SetpointClassifier("maximize precision in the first 2", solver="default")
        model.set_fit_request(lists=True, groups=False).set_score_request(lists=True, groups=False)
        search = GridSearchCV(model, {"held_out": [0.2, 0.3]}, cv=GroupKFold(2)).fit(X, y, groups=lists, lists=lists)
    assert search.best_score_ > 0.4


def test_the_estimators_refuse_lists_that_are_missing_or_not_asked_for(arrays):
    X, y, lists = arrays
    with pytest.raises(BadGroups, match="is about lists; pass lists="):
        sp.SetpointClassifier(ASK).fit(X, y)
    with pytest.raises(BadGroups, match="leave lists= out"):
        sp.SetpointClassifier("minimize error").fit(X, y, lists=lists)
    with pytest.raises(TooFewSamples, match="needs 2,995 lists, but there are 24"):
        sp.SetpointClassifier(ASK.replace("40%", "99.9%"), confidence=0.95).fit(X, y, lists=lists)
    with pytest.raises(BadProblem, match="so there is no threshold to set around a model"):
        sp.Tuned(LogisticRegression(), ASK).fit(X, y)
