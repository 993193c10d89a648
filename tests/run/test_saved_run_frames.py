"""`sp.load_run(...).predict` on frames of every kind, with and without groups."""

from __future__ import annotations

import numpy as np
import pandas
import polars as pl
import pytest
import torch

import setpoint as sp
from setpoint.errors import BadTable
from setpoint.run.artefact import save_run
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table
from tables import loans


class Arrow:
    """A table that shows itself through the Arrow interface alone."""

    def __init__(self, frame):
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema=None):
        return self.frame.__arrow_c_stream__(requested_schema)


def saved(place, ask):
    table = fit_table(
        loans(), "default", sp.ask(ask), Settings(solver="cross-entropy", kinds={"region": "categorical"})
    )
    return sp.load_run(save_run(place / "run", table))


@pytest.mark.parametrize("ask", ["minimize fnr where fpr <= 20%", "minimize error where recall.gap(married) <= 50%"])
def test_decisions_are_those_of_the_point_whatever_the_frame(tmp_path, ask):
    run, frame = saved(tmp_path, ask), loans(50, seed=1)
    groups = run.schema.groups(frame, "married") if "gap" in ask else None
    expected = run.point.predict(run.scores(frame), groups)
    assert set(expected.tolist()) == {0, 1}
    plain = frame.to_dict(as_series=False)
    as_pandas = pandas.DataFrame(plain).astype({"region": "category", "job": "category"})
    for data in (frame, as_pandas, Arrow(frame), plain, frame.select(frame.columns[::-1])):
        assert torch.equal(run.predict(data), expected)
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
