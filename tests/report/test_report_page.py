"""The page as a file: self-contained, the same every time, safe with any name, and the command that writes it."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image

import setpoint
from marks import quick_first, slow
from materials import ASK, BAND, material
from setpoint.cli import main
from setpoint.decide.calibrate import calibrate
from setpoint.errors import BadFile, BadGroups, SetpointError, ShapeMismatch
from setpoint.problem.language import ask
from setpoint.problem.thresholds import OneThreshold
from setpoint.report.class_page import make_class_page
from setpoint.report.data import page_data
from setpoint.report.frame import as_json
from setpoint.report.label_page import make_label_page
from setpoint.report.list_page import make_list_page
from setpoint.report.material import Contender, Material, TriedMethod
from setpoint.report.of_run import read_material, write_report
from setpoint.report.page import make_page
from setpoint.report.question import question
from setpoint.report.verdict import first_line, sentences
from setpoint.run.artefact import check_place, load_scores, save_run
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table
from tables import loans

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&<!--'\"\u2028$title"


class Outline(HTMLParser):
    """Elements with their attributes, and the text inside each kind."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.text, self.open = [], {}, []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in ("meta", "link", "input", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"{tag} closes what is not open"

    def handle_data(self, data):
        if self.open:
            self.text.setdefault(self.open[-1], []).append(data)


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))


@pytest.fixture(scope="module")
def run():
    return fit_table(loans(), "default", ask("minimize fnr where fpr <= 20%"), Settings(solver="implicit", epochs=8))


@pytest.fixture
def place(run, tmp_path):
    return save_run(tmp_path / "run", run)


def test_the_page_loads_nothing_and_is_well_formed():
    page = make_page(material(groups=["a", "b"]))
    outline = Outline(page)
    assert outline.open == []
    for tag, attributes in outline.elements:
        for name in ("src", "href", "srcset", "action", "data"):
            assert attributes.get(name, "data:,") == "data:,", tag
        assert not any(name.startswith("on") or name == "style" for name in attributes)
    assert "default-src 'none'" in page
    assert "@import" not in page
    assert "url(#" in page
    assert "http://www.w3.org/2000/svg" in page
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", page) == []
    assert {"main", "h1", "h2", "input", "table", "fieldset"} <= {tag for tag, _ in outline.elements}


def test_names_cannot_break_out():
    told = material(
        names=(EVIL, "b"), groups=[EVIL, "x"], group_by=EVIL, facts=[(EVIL, EVIL)], notes=[EVIL],
    )  # fmt: skip
    page = make_page(told)
    outline, plain = Outline(page), Outline(make_page(material(groups=["a", "x"], facts=[("a", "b")], notes=["c"])))
    assert [tag for tag, _ in outline.elements] == [tag for tag, _ in plain.elements]
    assert EVIL in "".join(outline.text["li"])
    assert data_of(page)["contenders"][0]["name"] == EVIL
    assert page.count("</script>") == 2
    assert "alert(1)</script>" not in page


def test_an_ask_cannot_break_out():
    question = setpoint.minimize(setpoint.error, setpoint.recall.gap("</script><b>") <= 0.5)
    page = make_page(material(str(question), groups=["a", "b"]))
    assert "<b>" not in page
    assert data_of(page)["ask"] == str(question)


def test_json_for_a_script_element_reads_back():
    assert json.loads(as_json({EVIL: [EVIL, 0.1]})) == {EVIL: [EVIL, 0.1]}
    assert not set("<>&\u2028") & set(as_json(EVIL))
    with pytest.raises(ValueError, match="not JSON compliant"):
        as_json(float("nan"))


def test_the_same_material_gives_the_same_bytes_and_all_its_numbers():
    one, other = make_page(material()), make_page(material())
    assert one == other
    assert data_of(one) == json.loads(json.dumps(page_data(material())))


def test_a_large_run_stays_small():
    told = material(rows=60_000)
    page = make_page(told)
    assert len(page) < 500_000
    rows = data_of(page)["contenders"][0]["parts"]["test"]
    assert rows["kept"] <= 2000 < rows["cuts"]


@pytest.mark.parametrize(
    "question",
    ["maximize recall over fpr in [0%, 20%] with 4 points", "maximize kappa", "maximize precision where flagged == 10%",
     "maximize recall where precision >= 100% and fpr <= 1%"],
)  # fmt: skip
def test_every_kind_of_ask_has_a_page(question):
    data = data_of(make_page(material(question, rows=20)))
    assert data["ask"] == str(ask(question))
    assert len(data["contenders"][0]["parts"]["test"]["own"]) == ask(question).n_thresholds


def test_a_band_has_two_handles_and_three_decisions():
    page = make_page(material(BAND))
    outline = Outline(page)
    handles = [a["id"] for tag, a in outline.elements if tag == "input" and a["type"] == "range"]
    labelled = [a["for"] for tag, a in outline.elements if tag == "label" and "for" in a]
    assert handles == labelled == ["low", "high"]
    cells = [a.get("id") for tag, a in outline.elements if tag == "td"]
    assert cells[1:10] == ["tp", "rp", "fn", "fp", "rn", "tn", "tp-fp", "rp-rn", "fn-tn"]
    text = " ".join(piece for pieces in outline.text.values() for piece in pieces)
    for words in ("Move the two cuts", "Review above", "Flag above", "pair of cuts", "each at its own cuts"):
        assert words in text
    # Nothing else on the page speaks of a threshold; the last is about all models.
    said = {piece for tag in ("p", "h2", "th", "label") for piece in outline.text[tag] if "threshold" in piece}
    assert [piece[:31] for piece in said] == ["Rows by predicted probability, "]


def test_one_threshold_has_one_handle_and_two_decisions():
    outline = Outline(make_page(material()))
    assert [a["id"] for tag, a in outline.elements if tag == "input" and a["type"] == "range"] == ["threshold"]
    assert [a.get("id") for tag, a in outline.elements if tag == "td"][1:5] == ["tp", "fn", "fp", "tn"]


def test_separable_and_constant_scores_have_a_page():
    told = material(rows=60)
    labels = told.labels["test"]
    for scores in (20 * labels - 10, torch.zeros(60)):
        contender = Contender("x", OneThreshold(0.5), {"test": scores})
        page = make_page(dataclasses.replace(told, contenders=[contender], labels={"test": labels}))
        assert data_of(page)["contenders"][0]["parts"]["test"]["cuts"] == len(set(scores.tolist())) + 1


def test_groups_that_do_not_fit_are_refused():
    told = material("minimize error where recall.gap(sex) <= 5%", groups=["f", "m"])
    with pytest.raises(BadGroups, match="one threshold per sex; pass the groups of the test rows"):
        make_page(dataclasses.replace(told, groups=None))
    with pytest.raises(BadGroups, match="no threshold for sex 'x'; known are f, m"):
        make_page(dataclasses.replace(told, groups={**told.groups, "test": np.full(400, "x")}))
    with pytest.raises(ShapeMismatch, match="3 groups and 400 test rows"):
        make_page(dataclasses.replace(told, groups={**told.groups, "test": ["f", "m", "f"]}))


def test_scores_and_labels_are_saved_as_they_were(run, place):
    saved = load_scores(place)
    assert set(saved.labels) == {"calibration", "test"}
    assert saved.groups == {}
    for outcome in run.runs:
        for part, labels in saved.labels.items():
            assert torch.equal(saved.scores[outcome.name][part], outcome.sample(part).scores)
            point = outcome.point.judge(saved.scores[outcome.name][part], labels)
            assert point.rates == outcome.judged(part).rates


def test_the_report_of_a_run_tells_what_the_run_found(run, place):
    (path,) = write_report(place)
    assert path == place / "report.html"
    page = path.read_text()
    data = data_of(page)
    assert [contender["name"] for contender in data["contenders"]] == ["implicit thresholds", "cross-entropy"]
    for outcome, contender in zip(run.runs, data["contenders"]):
        rows = contender["parts"]["test"]
        own = rows["own"][0]
        assert rows["threshold"][own] == outcome.point.threshold
        assert rows["fp"][own] / rows["negatives"] == pytest.approx(outcome.judged("test").rates["fpr"])
        assert [row["held_out"] for row in contender["history"]] == [row["held_out"] for row in outcome.history]
        assert contender["best"] == outcome.trained.best
    text = "".join(piece for pieces in Outline(page).text.values() for piece in pieces)
    for word in (
        "minimize fnr where fpr <= 20%",
        "default = yes (the value that means yes)",
        "'id': no value occurs twice",
        "torch ",
        "Seed",
    ):
        assert word in text
    before = path.read_bytes()
    write_report(place)
    assert path.read_bytes() == before


def test_a_run_that_compared_groups_shows_them(tmp_path):
    gap = ask("minimize error where recall.gap(married) <= 20%")
    grouped = fit_table(loans(), "default", gap, Settings(epochs=2))
    place = save_run(tmp_path / "run", grouped)
    told = read_material(place)
    for part, groups in told.groups.items():
        assert list(groups) == grouped.chosen.groups(part).tolist()
    (path,) = write_report(place)
    rows = data_of(path.read_text())["contenders"][0]["parts"]["test"]
    assert [group["name"] for group in rows["groups"]] == list(grouped.chosen.point.threshold)
    gap_there = grouped.chosen.judged("test").rates["recall.gap(married)"]
    assert rows["values"]["recall.gap(married)"][rows["own"][0]] == pytest.approx(gap_there)


def test_the_report_of_a_run_with_a_band(tmp_path):
    question = ask("minimize review where precision >= 60% and npv >= 60%")
    run = fit_table(loans(), "default", question, Settings(solver="cross-entropy", epochs=2))
    own = run.chosen.point.thresholds
    told = sentences(run)
    assert any(line.startswith(f"{own.rule()}: review ") for line in told)
    assert not any("threshold" in line for line in [*first_line(run), *told])
    (path,) = write_report(save_run(tmp_path / "run", run))
    rows = data_of(path.read_text())["contenders"][0]["parts"]["test"]
    high, low = rows["own"]
    assert (rows["threshold"][low], rows["threshold"][high]) == (own.low, own.high)
    reviewed = rows["tp"][low] + rows["fp"][low] - rows["tp"][high] - rows["fp"][high]
    everything = rows["positives"] + rows["negatives"]
    assert reviewed / everything == pytest.approx(run.chosen.judged("test").rates["review"])
    assert f"{own.rule()}. On the {everything} test rows review is " in path.read_text()


def test_a_refused_certificate_says_why():
    assert "Not certified: too few of them.</p>" in make_page(material(refusal="too few of them"))


def test_a_run_with_a_report_can_be_replaced_by_force(run, place):
    write_report(place, png=True)
    assert sorted(p.name for p in place.iterdir() if p.name.startswith("report")) == ["report.html", "report.png"]
    with pytest.raises(BadFile, match="--force"):
        check_place(place)
    save_run(place, run, force=True)
    assert not (place / "report.html").exists()


def test_the_picture_shows_something(place, tmp_path):
    page, picture = write_report(place, tmp_path / "deep" / "mine.html", png=True)
    assert (page.name, picture.name) == ("mine.html", "mine.png")
    with Image.open(picture) as image:
        assert min(image.size) > 1000
        shown = {colour for _, colour in image.convert("RGB").getcolors(1 << 24)}
    assert (0x0B, 0x64, 0x85) in shown


@pytest.mark.parametrize(
    "question",
    quick_first([ASK, "maximize recall over fpr in [0%, 5%]", "minimize error where recall.gap(x) <= 9%", BAND]),
)
def test_every_kind_of_run_has_a_picture(tmp_path, question):
    from setpoint.report.figure import draw_figure  # noqa: PLC0415

    names = ("$ours", "b", "c")
    told = material(question, names=names, groups=["f", "m"] if "gap" in question else None)
    assert draw_figure(told, tmp_path / "x.png").stat().st_size > 10_000


def test_without_matplotlib_one_sentence(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(SetpointError, match=r"pip install 'setpoint\[report\]'"):
        write_report(place, png=True)
    assert not (place / "report.html").exists()


def broken(place, name, change):
    (place / name).write_bytes(change((place / name).read_bytes()))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda p: (p / "scores.safetensors").unlink(), "lacks scores.safetensors.*fit it again with --force"),
        (lambda p: (p / "scores.safetensors").write_bytes(b"\x80\x04"), "scores.safetensors was changed"),
        (lambda p: (p / "history.jsonl").write_text("{"), "history.jsonl was changed"),
        (lambda p: (p / "history.jsonl").unlink(), "lacks history.jsonl"),
        (lambda p: broken(p, "setpoint.json", lambda b: b.replace(b'"best_epoch"', b'"worst"')), "was changed"),
        (lambda p: broken(p, "scores.safetensors", lambda b: b.replace(b"labels/test", b"labels/tess")), "was changed"),
    ],
)  # fmt: skip
def test_damaged_runs_end_in_one_sentence(place, damage, message):
    damage(place)
    with pytest.raises(BadFile, match=message) as caught:
        write_report(place)
    assert "\n" not in str(caught.value)
    assert not (place / "report.html").exists()


@slow
def test_the_command_in_a_process_of_its_own(place, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(setpoint.__file__).parents[1])}
    command = [sys.executable, "-m", "setpoint.cli", "report", "run"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=100
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"Written to {Path('run') / 'report.html'}.\n"
    assert (place / "report.html").read_text().startswith("<!doctype html>")


def test_the_command_opens_the_browser_when_asked(place, monkeypatch, capsys):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    with pytest.raises(SystemExit) as ended:
        main(["report", str(place), "--open", "--out", str(place / "report.html")])
    assert ended.value.code == 0
    assert opened == [(place / "report.html").as_uri()]


@pytest.mark.parametrize(
    ("arguments", "message"), [(["nowhere"], "no run at nowhere"), (["run", "--out", "run"], "is a directory")]
)
def test_mistakes_end_in_one_sentence(place, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(place.parent)
    before = sorted(place.parent.rglob("*"))
    with pytest.raises(SystemExit) as ended:
        main(["report", *arguments])
    heard = capsys.readouterr()
    assert (ended.value.code, heard.out) == (2, "")
    assert message in heard.err
    assert heard.err.count("\n") == 1
    assert sorted(place.parent.rglob("*")) == before


def test_columns_with_evil_names(tmp_path):
    frame = loans().rename({"amount": EVIL, "default": "</script>"}).with_columns(pl.lit("x").alias("<img src=x>"))
    run = fit_table(
        frame, "</script>", ask("minimize fnr where fpr <= 20%"), Settings(solver="cross-entropy", epochs=1)
    )
    place = save_run(tmp_path / "run", run)
    (path,) = write_report(place)
    outline = Outline(path.read_text())
    assert "img" not in {tag for tag, _ in outline.elements}
    assert "'<img src=x>': it is constant" in "".join(outline.text["dd"])
    assert read_material(place).contenders[0].name == "cross-entropy"


CLASSES = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


def told_of_classes():
    scores, labels = torch.tensor(CLASSES).repeat(60, 1), torch.arange(3).repeat(60)
    point = calibrate("maximize accuracy where recall of class b >= 50%", scores, labels, confidence=0.9,
                      classes=["a", "b", "c"])  # fmt: skip
    return make_class_page, point, scores, labels, {}


def told_of_labels():
    labels = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).repeat(60, 1)
    scores = labels + 0.01 * torch.arange(120.0)[:, None] / 120
    point = calibrate("minimize fnr where fpr <= 30%", scores, labels, confidence=0.9, classes=["spam", "toxic"])
    return make_label_page, point, scores, labels, {}


def told_of_lists():
    scores, labels, lists = torch.arange(400.0), torch.arange(400) % 4 == 3, torch.arange(400) // 4
    ask_of_lists = "maximize precision in the first 2 where recall in the first 2 >= 50%"
    point = calibrate(ask_of_lists, scores, labels, lists=lists, confidence=0.9)
    return make_list_page, point, scores, labels, {"lists": {"test": lists}}


@pytest.mark.parametrize("told", [told_of_classes, told_of_labels, told_of_lists])
def test_the_head_is_the_same_for_every_kind_of_page(told):
    make, point, scores, labels, more = told()
    assert point.certificate is not None
    mine = [Contender(name, point.thresholds, {"test": scores}) for name in ("mine", "theirs")]
    facts = [("Data", "a.csv, 9 rows"), ("Date", "2030-01-02"), ("Version", "setpoint 1"), ("Fingerprint", "data abc")]
    page = make(Material(point, mine, {"test": labels}, facts=facts, **more))
    text = Outline(page).text
    assert text["h1"] == [question(point.problem)]
    assert {"Data", "Date", "Version", "Fingerprint"} <= set(text["dt"])
    assert page.count('<div class="tile ') == 3
    assert "The difference is" in "".join(text["p"])
    assert f"Certified: {point.certificate.statement} on new data like these" in "".join(text["p"])
    assert {"Same source", "Independent rows", "One look"} <= set(text["strong"])
    assert "about 10 at most break the bound" in " ".join(text["p"]) or point.labels


def test_training_shows_the_methods_that_were_tried_in_words_and_draws_epochs_only():
    told = material()
    tried = [TriedMethod("Given", 0.5, 1.0, False, "-0.5 points against stack; log-loss"),
             TriedMethod("mlp", None, 0.0, False, "left out"),
             TriedMethod("stack", 0.6, 2.0, True, "logits weighted 0.51 trees, 0.21 linear")]  # fmt: skip
    first = dataclasses.replace(told.contenders[0], tried=tried)
    one, other = Contender("rival", first.thresholds, first.scores, history=first.history[:1]), first
    page = make_page(dataclasses.replace(told, contenders=[other, one]))
    cells = Outline(page).text
    assert [name for name in cells["th"] if name in ("cross-entropy", "neural network", "stack of models (kept)")] == [
        "cross-entropy", "neural network", "stack of models (kept)"]  # fmt: skip
    assert "-0.5 points against stack of models; log-loss" in cells["td"]
    assert "logits weighted 0.51 boosted trees, 0.21 linear model for the ask" in cells["td"]
    assert 'data-contender="' not in page.partition("<script")[0]
    assert 'data-contender="0"' in make_page(told).partition("<script")[0]
    alone = dataclasses.replace(told, contenders=[one, one])
    assert ">Training<" not in make_page(alone)


def test_an_area_and_a_cost_have_their_numbers_in_the_head():
    area = make_page(material("maximize recall over fpr in [0%, 20%] with 4 points"))
    assert area.count('<div class="tile ') == 2
    assert "recall, mean over fpr" in area
    assert "The difference is" in "".join(Outline(area).text["p"])
    assert "cost(miss=5, alarm=1), per row" in make_page(material("minimize cost(miss=5, alarm=1)"))
