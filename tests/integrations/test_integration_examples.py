"""The examples of the integrations run as they stand, and the one that can be interrupted loses nothing by it."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
import torch

from marks import slow

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["plain_torch", "with_lightning", "with_hugging_face"])
def test_the_example_is_short(name):
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) < 60


def test_an_interrupted_plain_loop_ends_where_an_unbroken_one_does(tmp_path, capsys):
    example = runpy.run_path(str(EXAMPLES / "plain_torch.py"))
    main = example["main"]
    main(tmp_path / "broken.pt")
    main(tmp_path / "broken.pt")
    assert f"after {example['EPOCHS']} epochs" in capsys.readouterr().out
    main.__globals__["EPOCHS"] *= 2
    main(tmp_path / "unbroken.pt")
    broken, unbroken = (torch.load(tmp_path / f"{name}.pt", weights_only=True) for name in ("broken", "unbroken"))
    assert broken["epoch"] == unbroken["epoch"] == example["EPOCHS"]
    for part in ("model", "solver"):
        assert all(torch.equal(broken[part][name], value) for name, value in unbroken[part].items())


@pytest.mark.parametrize("name", ["with_lightning", "with_hugging_face"])
@slow
def test_the_example_ends_with_a_feasible_point_that_beats_chance(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    said = capsys.readouterr().out
    point = next(line for line in said.splitlines() if line.startswith("minimize fnr where"))
    assert ": feasible, threshold" in point
    assert float(point.split(" fnr ")[2].split("%,")[0]) < 60
