"""The study of ranges of recall, its table, its figure and its verdict."""

from __future__ import annotations

import pytest
import torch
from benchmarks.common import harness
from benchmarks.studies.paper_ranges import page as ranges_page
from benchmarks.studies.paper_ranges import study as paper_ranges
from benchmarks.studies.paper_tabular import study as paper_tabular

from benchmarks import evidence


def test_the_figure_of_ranges_shows_the_gains_of_the_results():
    figures = harness.load_figures("paper_ranges")
    rows, panel = figures["rows"], ranges_page.figure(figures).axes[1]
    (line, _, (bars,)) = next(shown for shown in panel.containers if shown.get_label() == "default")
    gains = [row["minus cross-entropy"] for row in rows if (row["set"], row["method"]) == ("ijcnn1", "default")]
    assert panel.get_title() == "ijcnn1"
    assert line.get_ydata().tolist() == [gain["mean"] for gain in gains]
    reach = [(end[1] - start[1]) / 2 for start, end in bars.get_segments()]
    assert reach == pytest.approx([2 * gain["standard_error"] for gain in gains])


def test_the_small_sweep_over_ranges_has_its_tables_and_its_figure(monkeypatch, tmp_path):
    draw = torch.Generator().manual_seed(0)
    labels = (torch.arange(400) % 4 == 0).double()
    x = torch.randn(400, 3, generator=draw, dtype=torch.float64) + labels.unsqueeze(-1)
    monkeypatch.setattr(harness, "QUICK_RESULTS", tmp_path)
    monkeypatch.setattr(paper_ranges, "read_table", lambda name, data: (x.numpy(), labels.numpy()))
    monkeypatch.setattr("sys.argv", ["paper_ranges", "--quick"])
    paper_ranges.main()
    made = evidence.draw(tmp_path / "images", quick=True)
    assert [path.name for path in made] == ["paper_ranges.svg", "evidence.svg"]
    pages = evidence.pages(quick=True)
    assert "letter,0.95,2," in pages["paper_ranges-areas.csv"]
    assert "letter,0.95,default," in pages["paper_ranges-gains.csv"]
    assert "not run yet: `python -m benchmarks.studies.networks`" in pages["index.md"]


def test_the_ranges_are_counted_by_plain_and_by_corrected_errors():
    def row(beta, over_plain, over_weights):
        errors = {"standard_error": 0.4, "corrected_standard_error": 1.0}
        gains = {"minus cross-entropy": over_plain, "minus best of 21 weights": over_weights}
        return {"set": "letter", "beta": beta, "method": "auto", **{k: {"mean": v, **errors} for k, v in gains.items()}}

    told = ranges_page.verdict([row(0.5, 1, 3), row(0.8, 9, 1), row(0.9, 2, -0.9), row(0.99, 0, 0.5)])
    assert "at beta 0.8 (letter); of 4 cells" in told
    assert "in 2 by plain errors (1 by corrected ones), worse in 1 (0)" in told


@pytest.mark.parametrize("study", ["paper_tabular", "paper_ranges"])
def test_what_is_set_beside_the_paper_has_every_method_on_ten_splits(study):
    rows = harness.load_figures(study)["rows"]
    cells = {(row["set"], row.get("beta")) for row in rows}
    done = {(row["set"], row.get("beta"), row["method"]): row["splits"] for row in rows}
    assert done == {(*cell, method): 10 for cell in cells for method in paper_tabular.METHODS}
    assert {name for name, _ in cells} == set(paper_ranges.SETS if study == "paper_ranges" else paper_tabular.SETS)
