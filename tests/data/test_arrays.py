"""NumPy files as tables."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from doors import main_ok
from marks import quick_first
from setpoint.cli import main
from setpoint.data.frame import read_table
from setpoint.data.scan import scan_table
from setpoint.errors import BadTable

ROWS = 300


@pytest.fixture
def arrays():
    draw = np.random.default_rng(0)
    y = draw.random(ROWS) < 0.4
    return {
        "embeddings": (draw.normal(size=(ROWS, 4)) + y[:, None]).astype(np.float32),
        "image": draw.integers(0, 255, (ROWS, 2, 3), dtype=np.uint8),
        "age": draw.integers(18, 90, ROWS),
        "job": draw.choice(["clerk", "nurse"], ROWS),
        "joined": np.datetime64("2024-01-01") + draw.integers(0, 300, ROWS),
        "y": y,
    }


def test_each_array_is_a_column_as_a_parquet_file_has_it(arrays, tmp_path):
    np.savez_compressed(tmp_path / "t.npz", **arrays)
    read = read_table(tmp_path / "t.npz")
    assert read.columns == list(arrays)
    assert read["embeddings"].to_list() == arrays["embeddings"].tolist()
    assert read["image"].to_list() == arrays["image"].reshape(ROWS, 6).tolist()
    assert read["joined"].dtype == pl.Date
    for name in ("age", "job", "y"):
        assert read[name].to_list() == arrays[name].tolist()
    whole = pl.concat(list(scan_table(tmp_path / "t.npz", chunk=500)))
    assert whole.equals(read)


@pytest.mark.parametrize("stream", quick_first([[], ["--stream"]]))
def test_every_command_gives_the_answers_of_the_same_rows_in_parquet(arrays, tmp_path, monkeypatch, capsys, stream):
    monkeypatch.chdir(tmp_path)
    np.savez("t.npz", **arrays)
    read_table("t.npz").write_parquet("t.parquet")
    for kind in ("npz", "parquet"):
        fit = ("--target", "y", "--ask", "minimize fnr where fpr <= 20%", "--model", "linear", "--confidence", "none")
        main_ok("fit", f"t.{kind}", *fit, "--out", kind, "--quiet", *stream, *["--epochs", "3"][: 2 * len(stream)])
        main_ok("predict", kind, f"t.{kind}", "--out", f"{kind}.csv", *stream)
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["evaluate", "npz", "t.npz", "--json", "--quiet", *stream])
    assert json.loads(capsys.readouterr().out)["rows"] == ROWS
    assert (tmp_path / "npz.csv").read_bytes() == (tmp_path / "parquet.csv").read_bytes()


def test_an_npy_file_is_one_column_of_lists_or_a_column_per_field(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6.0).reshape(3, 2))
    assert read_table(tmp_path / "x.npy").to_dict(as_series=False) == {"X": [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]}
    np.save(tmp_path / "f.npy", np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "i8"), ("b", "f4")]))
    assert read_table(tmp_path / "f.npy").to_dict(as_series=False) == {"a": [1, 3], "b": [2.5, 4.5]}


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"x": np.array([{}, {}], dtype=object)}, "holds Python objects, which could run code"),
        ({"x": np.zeros(3), "y": np.zeros(2)}, "'x' and 'y' of .* have 3 and 2 rows"),
        ({"x": np.array(3.0)}, "'x' of .* holds a single value"),
        ({"x": np.zeros(3, dtype=complex)}, "'x' of .* holds values of type complex128"),
        ({"x": np.array([["a", "b"]])}, "'x' of .* holds <U1 in rows of"),
        ({}, "holds no array"),
    ],
)
def test_odd_arrays_are_refused_by_name(tmp_path, arrays, said):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(BadTable, match=said):
        read_table(tmp_path / "t.npz")


def test_a_damaged_file_is_refused(tmp_path):
    np.savez(tmp_path / "t.npz", x=np.zeros(3))
    content = (tmp_path / "t.npz").read_bytes()
    (tmp_path / "t.npz").write_bytes(content[: len(content) // 2])
    with pytest.raises(BadTable, match="is no NumPy file, or is damaged"):
        read_table(tmp_path / "t.npz")
