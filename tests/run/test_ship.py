"""Which model ships: held-out rows choose, and neither calibration nor test rows take part."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from marks import slow
from setpoint import ask
from setpoint.report.of_run import read_material
from setpoint.report.page import make_page
from setpoint.report.verdict import sentences
from setpoint.run.artefact import load_run, save_run
from setpoint.run.settings import Settings
from setpoint.run.ship import shipped
from setpoint.run.table import fit_table
from tables import loans

PROBLEM = ask("minimize fnr where fpr <= 20%")


@pytest.fixture(scope="module")
def run():
    return fit_table(loans(), "default", PROBLEM, Settings(epochs=2))


def with_held_out(run, ours, theirs):
    """The run with other scores of the held-out rows before the retraining: the labels, and so much noise."""
    noise = torch.Generator().manual_seed(0)
    chosen = run.chosen

    def told(one, size):
        sample = one.trained.held_out
        scores = sample.labels + size * torch.randn(len(sample.labels), generator=noise)
        return dataclasses.replace(
            one, trained=dataclasses.replace(one.trained, held_out=dataclasses.replace(sample, scores=scores))
        )

    return dataclasses.replace(told(chosen, ours), beside=(told(chosen.beside[0], theirs),))


@slow
def test_the_scores_of_the_held_out_rows_are_those_before_the_retraining(run):
    for one in run.runs:
        assert one.trained.again
        assert not torch.equal(one.trained.held_out.scores, one.sample("held_out").scores)
        assert torch.equal(one.trained.held_out.labels, one.sample("held_out").labels)
    once = fit_table(loans(), "default", PROBLEM, Settings(epochs=2, refit=False))
    before = once.chosen.sample("held_out").scores
    torch.testing.assert_close(run.chosen.trained.held_out.scores, before)


def test_cross_entropy_is_shipped_if_held_out_rows_clearly_prefer_it(run, tmp_path):
    assert run.chosen.name == "default"
    found = shipped(with_held_out(run, ours=5.0, theirs=0.1))
    assert [found.name, *(one.name for one in found.beside)] == ["cross-entropy", "default"]
    assert found.why_shipped.startswith("on the held-out rows plain cross-entropy was better than the default by +62.")
    assert found.point == run.chosen.beside[0].point

    # The artefact, the sentences and the report are then those of plain cross-entropy.
    table = dataclasses.replace(run, chosen=found)
    assert any(line.startswith("Shipped is plain cross-entropy: on the held-out rows") for line in sentences(table))
    assert table.to_dict()["against"]["solver"] == "default"
    saved = load_run(save_run(tmp_path / "run", table))
    assert saved.about["shipped"] == "cross-entropy"
    assert torch.equal(saved.model.weight, run.chosen.beside[0].model.weight)
    assert saved.point == run.chosen.beside[0].point
    page = make_page(read_material(tmp_path / "run"))
    assert "Shipped is plain cross-entropy" in page


def test_the_default_is_shipped_otherwise(run):
    for ours, theirs in ((0.1, 5.0), (1.0, 1.0)):
        found = shipped(with_held_out(run, ours, theirs))
        assert (found.name, found.why_shipped) == ("default", "")
    named = with_held_out(run, ours=5.0, theirs=0.1)
    assert shipped(dataclasses.replace(named, name="weighted")).name == "weighted"
    without = dataclasses.replace(named, trained=dataclasses.replace(named.trained, held_out=None))
    assert shipped(without).name == "default"
