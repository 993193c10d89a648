"""Exported runs decide every row as Python does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import polars as pl
import pytest
import torch
from torch import nn

import setpoint as sp
from export.runs import (
    ABOUT,
    ASKS,
    FRAME,
    MODELS,
    SCHEMA,
    in_lists,
    linear,
    run_of_classes,
    run_of_labels,
    run_of_lists,
    saved_run,
    table,
)
from marks import quick_first, slow
from setpoint.data.reading import Reading
from setpoint.data.schema import Schema, Target
from setpoint.data.several import PARTS
from setpoint.data.several import time_part as time_part_in_python
from setpoint.data.standardise import soften as soften_in_python
from setpoint.errors import CannotExport
from setpoint.export.decision import DECISIONS
from setpoint.export.feeds import feeds_of
from setpoint.export.graph import DOUBLE, TEXT, Graph
from setpoint.export.made_rows import at_the_cut, columns_of, made_rows
from setpoint.export.of_run import export_graph
from setpoint.export.soften import soften
from setpoint.export.times import moments, time_part
from setpoint.export.verify import refuse_differences, run_session, session_of, verify
from setpoint.measure.lists import ranks_in_lists
from setpoint.problem.thresholds import OneThreshold
from setpoint.run.artefact import SavedRun
from setpoint.train.each_label import LabelModels
from setpoint.train.scoring import score_rows


def ran(saved, frame):
    exported = export_graph(saved)
    return run_session(session_of(exported.content), feeds_of(frame, exported.given, SCHEMA.readings))


@pytest.mark.parametrize("kind", MODELS)
def test_scores_and_decisions_are_those_of_python(kind):
    saved, frame = saved_run(MODELS[kind]()), table(3000, seed=1)
    scores, decisions = ran(saved, frame)
    assert (scores == saved.scores(frame).numpy()).all()
    assert (decisions == saved.predict(frame).numpy()).all()
    assert 0.01 < decisions.mean() < 0.99


@pytest.mark.parametrize("kind", quick_first(MODELS))
def test_made_rows_and_rows_at_the_threshold_are_decided_alike(kind):
    saved = saved_run(MODELS[kind]())
    tried = verify(saved, export_graph(saved), FRAME)
    assert tried.given == FRAME.height
    assert tried.at_cut > 10


def test_rows_of_lists_alone_are_tried_on_both_sides_of_the_threshold():
    # Embeddings: pairs of rows differ in one number of the list, by the least step of a float64.
    saved = run_of_embeddings()
    exported = export_graph(saved)
    assert verify(saved, exported).at_cut > 10
    rows = made_rows(saved, exported.given, 500, np.random.default_rng(0))
    decide = lambda some: saved.predict(columns_of(some)).numpy()
    low, high = at_the_cut(rows, ["list"], decide, 20, np.random.default_rng(1))
    assert (decide(low) != decide(high)).all()
    for one, other in zip(low["list"], high["list"]):
        (place,) = np.flatnonzero(np.array(one) != np.array(other))
        assert np.nextafter(one[place], other[place]) == other[place]


def run_of_embeddings():
    frame = FRAME.select("list", "y")
    schema = Schema.of(frame, Target.of(frame, "y"))
    model = nn.Linear(len(schema.features), 1)
    scores = score_rows(model, schema.encode(frame))
    point = sp.calibrate(ASKS["one threshold"], scores, frame["y"].to_numpy())
    return SavedRun(model, point, schema, ABOUT)


@pytest.mark.parametrize("ask", [ask for ask in ASKS if ask != "one threshold"])
def test_every_kind_of_thresholds_decides_alike(ask):
    saved = saved_run(linear(), ASKS[ask])
    _, decisions = ran(saved, FRAME)
    assert (decisions == saved.predict(FRAME).numpy()).all()
    assert len(np.unique(decisions)) > 1


@slow
@pytest.mark.parametrize("ask", [ask for ask in ASKS if ask != "one threshold"])
def test_made_rows_are_decided_alike_by_every_kind_of_thresholds(ask):
    saved = saved_run(linear(), ASKS[ask])
    verify(saved, export_graph(saved))


@pytest.mark.parametrize("kind", ["linear", "trees"])
def test_several_classes_are_decided_alike(kind):
    saved = run_of_classes(MODELS[kind](3))
    scores, decisions = ran(saved, FRAME)
    assert (scores == saved.scores(FRAME).numpy()).all()
    assert (decisions == saved.predict(FRAME).numpy()).all()
    assert len(np.unique(decisions)) == 3


@pytest.mark.parametrize("kind", quick_first(["one model per label", "linear"]))
def test_several_labels_are_decided_alike(kind):
    saved = run_of_labels(linear(2) if kind == "linear" else LabelModels([linear(), MODELS["stack"]()]))
    scores, decisions = ran(saved, FRAME)
    assert (scores == saved.scores(FRAME).numpy()).all()
    assert decisions.shape == (FRAME.height, 2)
    assert (decisions == saved.predict(FRAME).numpy()).all()
    assert 0 < decisions.mean() < 1
    assert verify(saved, export_graph(saved)).at_cut > 10


@pytest.mark.parametrize("column", ["query", "number"])
def test_lists_are_ranked_alike_also_where_scores_tie(column):
    saved, frame = run_of_lists(linear(), column), in_lists(table(3000, seed=1))
    exported = export_graph(saved)
    feeds = feeds_of(frame, exported.given, saved.schema.readings)
    ranks, decisions = session_of(exported.content).run(["rank", "decision"], feeds)
    scores = saved.scores(frame, ignore_extra=True)
    wanted = ranks_in_lists(scores.double().numpy(), saved.lists(frame))
    assert (ranks == wanted).all()
    assert (decisions == (wanted <= 2)).all()
    assert verify(saved, exported, frame).given == 3000


def test_a_row_without_a_list_stops_the_graph_as_it_stops_python():
    saved, frame = run_of_lists(linear(), "query"), in_lists(FRAME)
    for odd in (None, " query 1"):
        with pytest.raises(Exception, match="Out of range"):
            ran(saved, frame.with_columns(query=pl.lit(odd)))


def test_a_file_that_decides_one_row_differently_is_refused_with_that_row():
    saved = saved_run(linear())
    scores = saved.scores(FRAME).sort().values.double()
    assert refuse_differences(ran(saved, FRAME), python(saved), None) == 0
    moved = OneThreshold(float(scores[scores <= saved.point.threshold][-2:].mean()))
    other = replace(saved, point=replace(saved.point, thresholds=moved))
    with pytest.raises(CannotExport, match=r"decides 1 of 600 rows differently.*'amount': .* in Python"):
        refuse_differences(ran(other, FRAME), python(saved), lambda place: FRAME.row(place, named=True))


def python(saved):
    return saved.scores(FRAME).numpy(), saved.predict(FRAME).numpy()


def test_a_score_that_equals_the_threshold_is_not_flagged():
    # At, one float32 step below and one above the threshold.
    graph = Graph()
    scores = graph.input("scores", DOUBLE, 1)
    graph.output("decision", DECISIONS[OneThreshold](graph, OneThreshold(0.1), scores, None), 7, ["n", 1])
    near = [np.nextafter(0.1, 0), 0.1, np.nextafter(0.1, 1)]
    (found,) = session_of(graph.model({}).SerializeToString()).run(None, {"scores": np.array(near).reshape(-1, 1)})
    assert found[:, 0].tolist() == [0, 0, 1]


def test_an_unknown_group_stops_the_graph_as_it_stops_python():
    saved = saved_run(linear(), ASKS["words as groups"])
    with pytest.raises(Exception, match="out of data bounds"):
        ran(saved, FRAME.with_columns(word=pl.lit("never seen")))


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("time", ["2024-02-29", "1969-12-31 23:59:59.999999", "2000-03-01T12:30", " NA ", "0001-01-01", "9999-12-31"]),
        ("time with a zone", ["2024-03-01T12:30:00+01:00", "1900-01-01 00:00:00.5-0530", "2024-12-31T23:59Z", ""]),
    ],
)
def test_times_are_read_as_in_python(kind, texts):
    read = Reading(kind).read(pl.Series("t", texts))
    graph = Graph()
    micros, absent = moments(graph, graph.input("t", TEXT, 1), kind)
    for part in PARTS:
        graph.output(part, time_part(graph, micros, part), DOUBLE, ["n", 1])
    graph.output("missing", absent, onnx.TensorProto.BOOL, ["n", 1])
    feeds = {"t": np.array(texts, dtype=object).reshape(-1, 1)}
    *found, missing = (v[:, 0] for v in session_of(graph.model({}).SerializeToString()).run(None, feeds))
    assert missing.tolist() == read.is_null().to_list()
    for part, values in zip(PARTS, found):
        assert values[~missing].tolist() == time_part_in_python(read, part)[~missing].tolist()


@pytest.mark.parametrize("text", ["2024-02-30", "2023-02-29", "2024-13-01", "1/2/2024", "2024-01-01 25:00"])
def test_text_that_is_no_time_stops_the_graph(text):
    graph = Graph()
    graph.output("t", moments(graph, graph.input("x", TEXT, 1), "time")[0], 7, ["n", 1])
    session = session_of(graph.model({}).SerializeToString())
    with pytest.raises(Exception, match="Out of range"):
        session.run(None, {"x": np.array([[text]], dtype=object)})


def test_tails_are_those_of_python_to_the_last_bit():
    draw = np.random.default_rng(0)
    z = np.concatenate(
        [draw.normal(0, 10, 5000), 10 ** draw.uniform(0, 308, 5000), [5.0, np.nextafter(5, 6), -1.7e308]]
    )
    graph = Graph()
    graph.output("soft", soften(graph, graph.input("z", DOUBLE, 1)), DOUBLE, ["n", 1])
    (found,) = session_of(graph.model({}).SerializeToString()).run(None, {"z": z.reshape(-1, 1)})
    assert found[:, 0].tolist() == soften_in_python(z).tolist()


def test_words_with_blanks_around_them_are_the_same_words():
    saved = saved_run(linear())
    rows = FRAME[:6].with_columns(
        word=pl.Series([" a", "a\t", "\u00a0new york ", " odd  blanks", " n/a ", "odd blanks"])
    )
    scores, _ = ran(saved, rows)
    assert scores.tolist() == saved.scores(rows).tolist()
    assert scores[4] == saved.scores(rows.with_columns(word=pl.lit(None, dtype=pl.String)))[4]


def test_the_metadata_say_what_was_asked_and_promised():
    saved = saved_run(linear())
    held = {each.key: each.value for each in onnx.load_from_string(export_graph(saved).content).metadata_props}
    assert held["setpoint.ask"] == str(saved.point.problem)
    assert {"setpoint.certificate", "setpoint.schema", "setpoint.files", "setpoint.inputs"} <= set(held)


def test_a_column_named_like_an_output_gets_another_input():
    frame = FRAME.select(pl.col("amount").alias("score"), "y")
    schema = Schema.of(frame, Target.of(frame, "y"))
    saved = replace(saved_run(linear()), schema=schema, model=torch.nn.Linear(1, 1))
    exported = export_graph(saved)
    assert [each.name for each in exported.given] == ["column score"]
    verify(saved, exported)


def test_models_columns_and_decisions_that_no_file_can_hold_are_refused():
    saved = saved_run(linear())
    with pytest.raises(CannotExport, match="class Bilinear cannot be exported"):
        export_graph(replace(saved, model=torch.nn.Bilinear(1, 1, 1)))
    hashed = Schema.of(FRAME, Target.of(FRAME, "y"), kinds={"word": "hash"})
    with pytest.raises(CannotExport, match=r"column 'word' is of kind hashed.*--drop"):
        export_graph(replace(saved, schema=hashed))

    class Other(OneThreshold):
        pass

    with pytest.raises(CannotExport, match="a decision by Other cannot be exported"):
        export_graph(replace(saved, point=replace(saved.point, thresholds=Other(0.0))))
