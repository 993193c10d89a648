"""`sp.load_run(...).predict` on frames of every kind, with and without groups."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas
import polars as pl
import pytest

import setpoint as sp
from setpoint.errors import BadTable
from setpoint.run.artefact import load_run, save_run
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table
from setpoint.train.scoring import ScoredByTorch
from tables import loans


class Arrow:
    """A table that shows itself through the Arrow interface alone."""

    def __init__(self, frame):
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema=None):
        return self.frame.__arrow_c_stream__(requested_schema)


def saved(place, ask, model="linear"):
    solver = {} if model == "trees" else {"solver": "cross-entropy"}
    settings = Settings(model=model, kinds={"region": "categorical"}, **solver)
    table = fit_table(loans(), "default", sp.ask(ask), settings)
    return sp.load_run(save_run(place / "run", table))


@pytest.mark.parametrize("ask", ["minimize fnr where fpr <= 20%", "minimize error where recall.gap(married) <= 50%"])
def test_decisions_are_those_of_the_point_whatever_the_frame(tmp_path, ask):
    run, frame = saved(tmp_path, ask), loans(50, seed=1)
    groups = run.schema.groups(frame, "married") if "gap" in ask else None
    expected = run.point.predict(run.scores(frame), groups)
    assert set(expected.tolist()) == {0, 1}
    plain = frame.to_dict(as_series=False)
    as_pandas = pandas.DataFrame(plain).astype({"region": "category", "job": "category"})
    for data in (frame, as_pandas, Arrow(frame), plain, frame.to_dicts(), frame.select(frame.columns[::-1])):
        np.testing.assert_array_equal(run.predict(data), expected)
    assert run.predict(frame.row(3, named=True)).tolist() == expected[3:4].tolist()
    single = np.concatenate([run.predict(frame[row : row + 1]) for row in range(10)])
    np.testing.assert_array_equal(single, expected[:10])


def test_tables_that_do_not_fit_are_refused_by_name(tmp_path):
    run, frame = saved(tmp_path, "minimize fnr where fpr <= 20%"), loans(20, seed=1)
    assert [block.kind for block in run.schema.blocks if block.name == "region"] == ["levels"]
    with pytest.raises(BadTable, match="lacks 'age'"):
        run.predict(frame.drop("age"))
    with pytest.raises(BadTable, match="training never had"):
        run.predict(frame.with_columns(more=1))
    notes = run.schema.notes()
    run.predict(frame.with_columns(more=1, job=pl.lit("pilot")), ignore_extra=True, notes=notes)
    assert any("'pilot'" in note for note in notes.sentences())


def test_an_answer_has_scores_decisions_and_notes(tmp_path):
    run, rows = saved(tmp_path, "minimize fnr where fpr <= 20%"), loans(20, seed=1).drop("default").to_dicts()
    rows[0]["job"] = "pilot"
    answer = run.answer(rows)
    assert answer.scores.tolist() == run.scores(rows).tolist()
    assert answer.decisions.tolist() == run.predict(rows).tolist()
    assert any("'pilot'" in note for note in answer.notes)
    with pytest.raises(BadTable, match="a list of rows, got int"):
        run.answer(3)


@pytest.mark.parametrize("kind", ["linear", "trees", "scored by PyTorch"])
def test_threads_get_the_answers_of_one_thread(tmp_path, kind):
    run, frame = saved(tmp_path, "minimize fnr where fpr <= 20%", "trees" if kind == "trees" else "linear"), loans(64)
    if kind == "scored by PyTorch":
        run = replace(run, model=ScoredByTorch(load_run(tmp_path / "run").model))
    parts = [frame[k % 8 * 8 : k % 8 * 8 + 8] for k in range(160)]
    expected = [run.scores(part).tolist() for part in parts[:8]]
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda part: run.scores(part).tolist(), parts))
    finally:
        sys.setswitchinterval(switch)
    assert found == expected * 20
