"""Every page that shows figures is what the results say, and nothing else; summaries are small."""

from __future__ import annotations

import ast
import csv
import importlib
import itertools
import json
import math
import re
import threading

import pytest
from benchmarks.common import forest, harness, telling
from benchmarks.common.forest import Line, Panel
from benchmarks.common.words import table, wide
from benchmarks.faults import page as quality
from benchmarks.studies.lp_training import page as lp_training
from benchmarks.studies.tables import page as tables

from benchmarks import evidence, measured, papers, passages

SAY = "run: python -m benchmarks.evidence"


def test_the_pages_of_studies_are_up_to_date():
    there = {path.name: path.read_text() for path in evidence.FOLDER.iterdir()}
    assert there == evidence.pages(), SAY


def test_the_page_of_figures_is_up_to_date():
    assert all(path.read_text() == text for path, text in measured.pages().items()), SAY


def test_the_page_on_testing_is_up_to_date():
    assert quality.PAGE.read_text() == quality.page(), SAY


@pytest.mark.parametrize("path", passages.pages(), ids=lambda path: path.name)
def test_tables_within_pages_are_up_to_date(path):
    assert path.read_text() == passages.filled(path.read_text()), SAY


def test_the_decision_table_is_filled():
    choosing = passages.DOCS / "choosing.md"
    assert choosing in passages.pages()
    assert "best of 21 class weights" in choosing.read_text()
    assert all(words in choosing.read_text() for words in ("against best of 7 weights", "7/3 as many steps"))


def test_the_index_has_at_most_25_rows_gains_first_and_links_to_every_study():
    index = evidence.pages()["index.md"]
    states = [line.split(" | ")[-1].removesuffix(" |") for line in index.splitlines() if line.startswith("| ")][2:]
    assert 0 < len(states) <= 25
    assert states == sorted(states, key=["met", "not met", "not tried"].index)
    assert all(f"]({study}.md)" in index for study in evidence.STUDIES)


def test_every_page_of_a_study_says_what_was_asked_how_and_why_to_doubt_it():
    written = evidence.pages()
    for study in evidence.STUDIES:
        page = written[f"{study}.md"]
        assert all(part in page for part in ("**Question.** ", "\n## Design\n", "\n## Threats to validity\n\n- ")), (
            study
        )


def longest_table(text):
    """The rows of the longest table of a page, without its head."""
    lines = [line.startswith("|") for line in text.splitlines()]
    return max(len(list(run)) - 2 for is_row, run in itertools.groupby(lines) if is_row)


def test_the_tables_of_a_study_are_short_and_what_is_long_is_csv():
    written = evidence.pages()
    assert {study: rows for study in evidence.STUDIES if (rows := longest_table(written[f"{study}.md"])) > 20} == {}


def test_every_figure_is_what_the_results_say(tmp_path):
    shown = [line.split("](")[1].rstrip(")") for text in evidence.pages().values() for line in text.splitlines()
             if line.startswith("![")]  # fmt: skip
    made = {str(path.relative_to(tmp_path)): path.read_text() for path in evidence.draw(tmp_path)}
    assert {name.removeprefix("../images/") for name in shown} == set(made)
    assert {name: (evidence.IMAGES / name).read_text() for name in made} == made, SAY


def test_the_list_of_the_papers_has_all_tables_and_figures():
    kinds = [entry.what.split(" ")[0] for entry in papers.entries()]
    assert (kinds.count("Table"), kinds.count("Figure")) == (13, 7)
    assert all(entry.found for entry in papers.entries() if entry.state not in (papers.NO_DATA, papers.NO_RESULT))
    assert all(entry.why and entry.why.lead.endswith(".") for entry in papers.entries() if papers.NOT in entry.state)


def test_a_line_of_a_forest_plot_is_ahead_only_beyond_two_of_its_wider_errors():
    panel = Panel("", "", [])
    assert [panel.side(Line("", mean, 1.0, 2.0)) for mean in (3.9, 4.1, -4.1)] == ["level", "ahead", "behind"]
    assert Panel("", "", [], mark=5.0, higher=False).side(Line("", 2.0, 1.0)) == "ahead"
    assert panel.side(Line("", 3.0, math.nan)) == "level"


def test_a_second_figure_of_a_line_is_a_hollow_mark_on_an_axis_that_reaches_it():
    lines = [Line("", 0.1 * place, 0.2) for place in range(10)]
    plain, marked = (
        forest.draw([Panel("", "", [*lines, Line("", 0.0, 0.2, beside=beside)])], "") for beside in (None, 40.0)
    )
    assert ("ground mark" in plain, marked.count("ground mark")) == (False, 1)
    assert ">40</text>" in marked


def test_answers_and_captions_stand_above_claims_and_below_the_figure():
    page = importlib.import_module("benchmarks.studies.critical_class.page")
    text = telling.page_text("critical_class", page, harness.load_result("critical_class"))
    places = [text.index(part) for part in ("**Question.**", "**Answer.**", "| claim |", "![", page.CAPTION)]
    assert places == sorted(places)


#: Studies whose page has an answer under its question.
ANSWERED = (
    "small_nets critical_class paper_fashion networks default_study rare_events peers certificates promises_tables "
    "labels promises_lists promises_kinds dependence watching paper_tabular paper_images long_tailed classes auto "
    "paper_ranges paper_figures free_asks beside_mapie paper_programs lp_training letter"
)


@pytest.mark.parametrize("study", ANSWERED.split())
def test_pages_with_an_answer_have_it_in_two_to_five_sentences_beside_their_figure(study):
    text = evidence.pages()[f"{study}.md"]
    answer = text.split("**Answer.** ")[1].split("\n\n")[0]
    assert 2 <= len(re.findall(r"[.?!](?: |$)", answer)) <= 5
    assert f"../images/evidence/{study}.svg" in text


def test_a_wide_table_becomes_csv_with_a_link_in_its_place():
    shown = table(["set", "area"], [["a, b", "**1.50** ± 0.20"], ["c", ""]])
    page, files = telling.set_aside("study", f"before\n\n{wide('cells', shown)}\n\nafter\n\n{shown}\n")
    assert page == f"before\n\n[Cells: 2 rows, 2 columns](study-cells.csv)\n\nafter\n\n{shown}\n"
    read = list(csv.reader(files["study-cells.csv"].splitlines()))
    assert read == [["set", "area"], ["a, b", "1.50 ± 0.20"], ["c", ""]]


def test_summaries_have_less_than_200_lines_and_all_of_them_less_than_5000():
    lines = {path.name: len(path.read_text().splitlines()) for path in harness.RESULTS.glob("*.json")}
    assert max(lines.values()) < 200
    assert sum(lines.values()) < 5000


def leaves(value, floats, path=()):
    """The floats of a summary, or all else, by where they stand."""
    if not isinstance(value, (dict, list)):
        return {path: value} if isinstance(value, float) == floats else {}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return {place: leaf for name, item in items for place, leaf in leaves(item, floats, (*path, name)).items()}


#: What sums up without its data; some go over their data first if they are not told to run nothing. The study of
#: paper 003 is not among them: the labels of its test images are in its data.
SUMMED = {
    **dict.fromkeys(("default_study", "free_asks", "scalings", "auto", "peers", "certificates"), ()),
    **dict.fromkeys(("networks", "paper_tabular", "paper_levels", "paper_ranges", "paper_images"), ("--so-far",)),
    **dict.fromkeys(("long_tailed", "paper_programs", "small_nets", "lp_training", "paper_figures"), ("--so-far",)),
    "small_nets_auto": ("--so-far",),
    "tables_fresh": ("--sum-up",),
}
#: The modules of summaries that are not those of a study of the same name.
MODULES = {
    "peers": "benchmarks.peers.__main__",
    "small_nets_auto": "benchmarks.studies.small_nets.as_candidate",
    "tables_fresh": "benchmarks.studies.tables.fresh",
}


@pytest.mark.parametrize("study", SUMMED)
def test_a_summary_says_what_its_rows_say(study, monkeypatch):
    told = {}
    module = importlib.import_module(MODULES.get(study, f"benchmarks.studies.{study}.study"))
    monkeypatch.setattr(module, "write_result", lambda name, figures, quick=False: told.update({name: figures}))
    monkeypatch.setattr("sys.argv", [study, *SUMMED[study]])
    monkeypatch.chdir(harness.RESULTS)
    module.main()
    summed, written = json.loads(json.dumps(told[study])), harness.load_figures(study)
    assert leaves(summed, False) == leaves(written, False)
    assert leaves(summed, True) == pytest.approx(leaves(written, True), rel=1e-4, abs=1e-5, nan_ok=True)


def writes(tree):
    """The calls of `write_result` in a module, each with what stands around it."""
    around = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "write_result":
            outer, tests = node, []
            while outer in around:
                outer = around[outer]
                tests += [ast.unparse(outer.test)] if isinstance(outer, ast.If) else []
            yield ast.unparse(node), tests


@pytest.mark.parametrize("study", evidence.STUDIES)
def test_the_short_form_of_a_study_writes_its_figures_and_never_over_those_of_the_whole(study):
    folder = evidence.ROOT / evidence.module_of(study).replace(".", "/")
    name = "__main__" if study == "peers" else "study"
    calls = list(writes(ast.parse((folder / f"{name}.py").read_text())))
    assert any("quick" in call for call, _ in calls), "its short form writes nothing, and no page can be written of it"
    assert all("quick" in call or any("quick" in test for test in tests) for call, tests in calls), calls


def test_pages_are_written_of_short_forms_that_leave_methods_out():
    """One line without an error, one split, and none of the methods through the solver."""
    assert "<circle" in forest.draw([Panel("", "", [Line("one split", 0.0, math.nan)])], "")
    short = {"rows": [{"figure": figure, "method": "cross-entropy"} for figure in lp_training.FIGURES], "seeds": [0]}
    assert lp_training.claims(short) == []
    one = {"cells": [{"table": "t", "gain": {"test": {"LightGBM tuned": {"splits": 1}}}}]}
    assert tables.claims(one) == []


def test_a_line_beyond_the_axis_ends_in_an_arrow():
    lines = [Line("", 0.1 * place, 0.2) for place in range(10)]
    shown = [forest.draw([Panel("", "", [*lines, Line("", mean, 0.2)])], "") for mean in (0.5, 50.0, -50.0)]
    assert ["l-7 -4v8z" in one for one in shown] == [False, True, False]
    assert ["l7 -4v8z" in one for one in shown] == [False, False, True]


def test_a_study_that_has_no_rows_yet_has_no_figure(monkeypatch, tmp_path):
    monkeypatch.setattr(harness, "QUICK_RESULTS", tmp_path)
    harness.write_result("paper_ranges", {"rows": []}, quick=True)
    assert [path.name for path in evidence.draw(tmp_path / "images", quick=True)] == ["evidence.svg"]


def test_small_studies_run_two_at_a_time_and_real_ones_one_by_one(monkeypatch, capsys):
    meeting = threading.Barrier(2, timeout=20)
    monkeypatch.setattr(evidence, "STUDIES", ("one", "two"))
    monkeypatch.setattr(evidence, "run", lambda study, data, quick: meeting.wait() + 60.5)
    evidence.run_all("data", quick=True)
    told = capsys.readouterr().out
    assert "more than 60 s of the processor: " in told
    assert all(study in told.split("processor: ")[1] for study in ("one", "two"))
    meeting = threading.Barrier(2, timeout=0.2)
    with pytest.raises(threading.BrokenBarrierError):
        evidence.run_all("data", quick=False)


def test_a_study_that_fails_is_named_and_no_page_is_written(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(evidence, "STUDIES", ("no_such_study",))
    monkeypatch.setattr(evidence, "FOLDER", tmp_path / "evidence")
    monkeypatch.setattr("sys.argv", ["evidence", "--run"])
    with pytest.raises(SystemExit, match=r"benchmarks\.studies\.no_such_study failed.*no page was written"):
        evidence.main()
    assert "no_such_study: " in capsys.readouterr().out
    assert not evidence.FOLDER.exists()
