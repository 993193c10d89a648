"""A run as an MLflow model: logged, loaded and served by the real package, with the answers of `setpoint predict`."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import mlflow
import pandas as pd
import polars as pl
import pytest
from fastapi.testclient import TestClient
from mlflow.exceptions import MlflowException
from mlflow.pyfunc import scoring_server

import setpoint as sp
from doors import main_ok
from export.runs import linear, saved_run
from marks import quick_first, slow
from questions import QUESTIONS
from questions import table as questions_table
from setpoint.errors import CannotExport
from setpoint.integrations.mlflow import log_run, signature_of
from tables import loans


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A directory to be in, whose MLflow runs are kept in it, with the loans and a run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    loans().write_csv("loans.csv")
    yield tmp_path
    mlflow.set_tracking_uri(before)


def fitted(*asked, data="loans.csv"):
    main_ok("fit", data, *asked, "--model", "linear", "--solver", "cross-entropy", "--quiet")
    with mlflow.start_run() as run:
        logged = log_run("run")
    return run.info.run_id, logged


LOANS = ("--target", "default", "--ask", "minimize fnr where fpr <= 20%")


@slow
def test_a_run_is_logged_with_its_signature_and_its_certificate_as_tags(here):
    run_id, logged = fitted(*LOANS)
    tags = mlflow.get_run(run_id).data.tags
    point = sp.load_run("run").point
    assert tags["setpoint.ask"] == "minimize fnr where fpr <= 20%"
    assert tags["setpoint.certificate"] == str(point.certificate)
    assert point.certificate is not None
    assert json.loads(tags["setpoint.threshold"]) == point.threshold
    loaded = mlflow.pyfunc.load_model(logged.model_uri)
    assert loaded.metadata.metadata["setpoint.model"] == tags["setpoint.model"]
    types = {each.name: each.type.name for each in loaded.metadata.signature.inputs}
    assert types["age"] == "double"
    assert types["job"] == "string"
    assert [each.name for each in loaded.metadata.signature.outputs] == ["score", "decision"]


def test_the_scoring_server_answers_as_setpoint_predict_and_refuses_a_row_that_lacks_a_column(here):
    _, logged = fitted(*LOANS)
    new = loans(30, seed=5).drop("default")
    new.write_csv("new.csv")
    main_ok("predict", "run", "new.csv", "--quiet", "--out", "answers.csv")
    wanted = pl.read_csv("answers.csv")
    client = TestClient(scoring_server.init(mlflow.pyfunc.load_model(logged.model_uri)))
    rows = new.with_columns(pl.col(pl.Date).cast(pl.String)).to_dicts()
    answer = client.post("/invocations", json={"dataframe_records": rows})
    assert answer.status_code == 200, answer.text
    found = pl.DataFrame(answer.json()["predictions"])
    assert found["decision"].to_list() == wanted["decision"].to_list()
    assert found["score"].to_list() == pytest.approx(wanted["score"].to_list(), rel=1e-6)
    refused = client.post("/invocations", json={"dataframe_records": [{"age": 3.0}]})
    assert refused.status_code == 400
    assert "job" in refused.text


@pytest.mark.parametrize("kind", quick_first(["several labels", "review bands", "lists", "several classes", "areas"]))
def test_every_kind_of_decision_has_the_columns_of_setpoint_predict(kind, here):
    question = QUESTIONS[kind]
    lists = ("--lists", "query") if question.about_lists else ()
    others = [name for name in ("y", "kind", "z", "query") if name not in (*question.target.split(","), *lists)]
    questions_table().drop(others).write_csv("t.csv")
    _, logged = fitted("--target", question.target, "--ask", question.ask, *lists, data="t.csv")
    main_ok("predict", "run", "t.csv", "--quiet", "--out", "answers.csv")
    rows = pd.read_csv("t.csv").drop(columns=question.target.split(","))
    rows = rows.astype(dict.fromkeys(rows.select_dtypes("int64"), float))
    found = mlflow.pyfunc.load_model(logged.model_uri).predict(rows)
    wanted = pd.read_csv(io.StringIO((here / "answers.csv").read_text()))
    assert list(found.columns) == list(wanted.columns)
    last = [name for name in wanted.columns if name.startswith(("decision", "rank"))]
    assert found[last].astype(str).equals(wanted[last].astype(str))


def test_what_the_signature_does_not_allow_is_refused_by_mlflow(here):
    _, logged = fitted(*LOANS)
    loaded = mlflow.pyfunc.load_model(logged.model_uri)
    with pytest.raises(MlflowException, match="age"):
        loaded.predict(pd.DataFrame({"job": ["clerk"]}))


def test_durations_are_refused_before_anything_is_logged():
    served = replace(saved_run(linear()).served, about={"settings": {}})
    with pytest.raises(CannotExport, match="column 'span' holds durations"):
        signature_of(served)
