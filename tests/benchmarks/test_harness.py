"""The harness neither repeats nor invents rows; data are split once, and errors are those of the books."""

from __future__ import annotations

import json
import statistics

import pytest
import torch
from benchmarks.common import harness
from benchmarks.common.data import Parts, Split, halves_of, load_arrays, paired, split_rows


@pytest.fixture
def journal(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    return lambda: harness.Journal("study")


def test_a_written_row_is_not_made_again(journal):
    assert journal().row("a", lambda: {"value": 1.5})["value"] == 1.5
    again = journal()
    assert again.row("a", lambda: pytest.fail("made twice"))["value"] == 1.5
    assert again["a"]["torch"] == torch.__version__


def test_a_line_that_was_cut_off_is_made_again(journal):
    first = journal()
    first.add("a", {"value": 1})
    first.add("b", {"value": 2})
    text = first.path.read_text()
    first.path.write_text(text[: len(text) - 7])
    again = journal()
    assert "a" in again
    assert "b" not in again


def test_rows_survive_folding_and_new_ones_join_them(journal):
    first = journal()
    rows = {"a": {"value": 1.25, "names": ["x", "1"], "none": None}, "b": {"text": "1", "nested": {"é": float("nan")}}}
    for key, row in rows.items():
        first.add(key, row)
    first.fold()
    assert not first.path.exists()
    again = journal()
    assert json.dumps(again.rows, sort_keys=True) == json.dumps(first.rows, sort_keys=True)
    again.add("b", {"text": "2"})
    again.fold()
    last = journal()
    assert list(last.rows) == ["a", "b"]
    assert (last["a"]["names"], last["b"]["text"], "nested" in last["b"]) == (["x", "1"], "2", False)


def test_rows_of_another_process_are_folded_too(journal):
    ours, theirs = journal(), journal()
    ours.add("a", {"value": 1})
    theirs.add("b", {"value": 2})
    ours.fold()
    assert set(journal().rows) == {"a", "b"}


@pytest.mark.parametrize("most", [12, 60, 10_000])
def test_a_summary_is_the_same_json_on_few_lines(most):
    rows = [
        {"set": f"set {i}", "gain": {"mean": i / 7, "errors": [0.1] * 9}, "more": list(range(20))} for i in range(30)
    ]
    value = {"command": "x", "figures": {"rows": rows, "empty": [], "one": {"a": {"b": "ü" * 200}}}}
    text = harness.compact(value, most)
    assert json.loads(text) == value
    assert len(text.splitlines()) <= most
    if most == 60:
        assert sum(line.startswith('   {"set": ') for line in text.splitlines()) == 30, "a row a line"


def test_a_result_tells_its_command_without_folders(monkeypatch, tmp_path):
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    monkeypatch.setattr("sys.argv", ["study", "--data", "/somewhere", "--seeds", "3"])
    harness.write_result("letter", {"area": 1 / 3})
    told = harness.load_result("letter")
    assert told["command"] == "python -m benchmarks.studies.letter --seeds 3"
    assert told["figures"] == {"area": 0.3333333}


def test_a_missing_file_is_named_with_how_to_get_it(tmp_path):
    with pytest.raises(SystemExit, match=r"letter\.npz is missing: pass --data DIR.*UCI Letter"):
        load_arrays("letter", str(tmp_path))


def test_rows_are_split_once_each_and_by_class():
    y = (torch.arange(1000) % 10 == 0).double().numpy()
    parts = split_rows(y, 3, (0.6, 0.2))
    assert sorted(row for part in parts for row in part) == list(range(1000))
    assert [int(y[part].sum()) for part in parts] == [60, 20, 20]
    assert [list(part) for part in split_rows(y, 3, (0.6, 0.2))] == [list(part) for part in parts]


def test_the_corrected_error_is_that_of_nadeau_and_bengio():
    values = [0.1, 0.3, 0.2, 0.6]
    found = paired(values, test_share=0.2, train_share=0.6)
    spread = statistics.stdev(values)
    assert found["standard_error"] == pytest.approx(spread / 2)
    assert found["corrected_standard_error"] == pytest.approx(spread * (1 / 4 + 1 / 3) ** 0.5)


def test_validation_rows_are_halved_each_class_apart():
    labels = (torch.arange(100) % 10 == 0).double()
    halves = halves_of(labels)
    assert sorted(torch.cat(halves).tolist()) == list(range(100))
    assert [float(labels[half].sum()) for half in halves] == [5, 5]
    rows = (torch.arange(100).double().unsqueeze(-1), labels)
    parts = Parts.of(Split(rows, rows, rows), most=20)
    assert [len(part[1]) for part in vars(parts).values()] == [100, 20, 20, 100]
