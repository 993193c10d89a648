"""The report from scores and labels alone, at every door, and how points and runs show themselves in a notebook."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import setpoint as sp
from doors import main_ok
from marks import slow
from setpoint.cli import main
from setpoint.errors import BadProblem, BadSetting, ShapeMismatch
from setpoint.problem.legible import spelled
from setpoint.report.data import page_data
from setpoint.report.notebook import HEIGHT
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table
from tables import loans

ASK = "minimize fnr where fpr <= 5%"


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    labels = rng.random(3000) < 0.2
    return rng.normal(size=3000) + 2 * labels, labels


def test_the_page_is_judged_on_rows_that_did_not_set_the_threshold(rows):
    scores, labels = rows
    page = sp.report(ASK, scores, labels, name="mine", data="march")
    parts = page.material.labels
    assert {part: len(own) for part, own in parts.items()} == {"test": 1500, "calibration": 1500}
    assert page.point.certificate.statement == "fpr <= 5%"
    test = page.material.contenders[0].scores["test"].numpy()
    flagged = test[~parts["test"].numpy().astype(bool)] > page.point.threshold
    assert page.judged.rates["fpr"] == pytest.approx(flagged.mean())
    assert "Miss as few positives as possible, with at most 5% of negatives flagged" in page.html
    assert "march, 3,000 rows" in page.html
    assert sp.report(ASK, scores, labels, name="mine", data="march").html == page.html
    assert sp.report(ASK, scores, labels, confidence=None).point.certificate is None


def test_what_it_cannot_show_is_refused(rows):
    scores, labels = rows
    with pytest.raises(BadProblem, match="one score and one label"):
        sp.report("maximize macro recall", scores, labels)
    with pytest.raises(ShapeMismatch, match="must match"):
        sp.report("minimize error where recall.gap(sex) <= 5%", scores, labels, groups=["a", "b"])


def test_the_command_takes_a_file_of_scores(rows, tmp_path, monkeypatch, capsys):
    scores, labels = rows
    monkeypatch.chdir(tmp_path)
    lines = [f"{score},{'yes' if label else 'no'}" for score, label in zip(scores, labels)]
    (tmp_path / "scores.csv").write_text("\n".join(["score,label", *lines]))
    main_ok("report", "--scores", "scores.csv", "--ask", ASK)
    assert "Written to report.html" in capsys.readouterr().out
    assert "scores.csv, 3,000 rows" in (tmp_path / "report.html").read_text()
    (tmp_path / "odd.csv").write_text("skore,label\n1,0\n2,1\n")
    for arguments, said in (
        (["--scores", "scores.csv"], "--scores needs --ask"),
        ([], "either the directory of a run, or --scores"),
        (["--scores", "odd.csv", "--ask", ASK], "no column 'score'; did you mean 'skore'?"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["report", *arguments])
        assert ended.value.code == 2
        assert said in capsys.readouterr().err


def test_the_page_names_the_positive_class_and_doubts_scores_that_are_higher_for_the_other(
    rows, tmp_path, monkeypatch, capsys
):
    """Of good and bad rows the rarer good ones are positive unless somebody says otherwise."""
    scores, labels = rows
    monkeypatch.chdir(tmp_path)
    lines = [f"{score},{'good' if label else 'bad'}" for score, label in zip(-scores, labels)]
    (tmp_path / "scores.csv").write_text("\n".join(["score,label", *lines]))
    wrong = "scores are higher for negatives than for positives"
    main_ok("report", "--scores", "scores.csv", "--ask", ASK)
    heard, page = capsys.readouterr().err, (tmp_path / "report.html").read_text()
    assert "note: Positive is 'good' in 'label', the rarer class; --positive changes it" in heard
    assert wrong in heard
    assert wrong in unescape(page).lower()
    assert "higher-for-negatives" in page
    assert "label = good (the rarer class)" in unescape(page)
    assert 'class="verdict holds"' not in page
    main_ok("report", "--scores", "scores.csv", "--ask", ASK, "--positive", "bad")
    heard, page = capsys.readouterr().err, (tmp_path / "report.html").read_text()
    assert heard == "note: Positive is 'bad' in 'label', as asked\n"
    assert "higher-for-negatives" not in page
    assert "label = bad (as asked)" in unescape(page)
    assert [one.code for one in sp.report(ASK, -scores, labels).material.cautions] == ["higher-for-negatives"]
    assert sp.report(ASK, scores, labels).material.cautions == ()


def test_thresholds_on_the_page_decide_its_rows_when_they_are_copied(rows):
    """Probabilities near 1 need more than four digits; the slider has as many at each of its places."""
    scores, labels = rows
    near = 1 / (1 + np.exp(-12 - scores))
    page = sp.report(ASK, near, labels)
    copied = float(re.search(r"Run at threshold (\S+)\. On", page.html)[1])
    assert ((near > copied) == (near > page.point.threshold)).all()
    found = page_data(page.material)["contenders"][0]["parts"]["test"]
    test = page.material.contenders[0].scores["test"].numpy()
    assert max(found["digits"]) > 6
    for threshold, digits in zip(found["threshold"], found["digits"]):
        assert ((test > float(spelled(threshold, digits))) == (test > threshold)).all()


def test_points_runs_and_tuned_models_show_themselves(rows):
    scores, labels = rows
    point = sp.calibrate(ASK, scores, labels, confidence=0.95)
    shown = point._repr_html_()
    assert "Certified: fpr &lt;= 5% with confidence 95%" in shown
    assert f"{100 * point.rates['fnr']:.2f}%" in shown
    tuned = sp.Tuned(LogisticRegression(), ASK, confidence=0.95)
    assert "setpoint-card" not in tuned._repr_html_()
    assert "setpoint-card" in tuned.fit(scores[:, None], labels)._repr_html_()
    run = fit_table(loans(), "default", sp.ask("minimize fnr where fpr <= 20%"), Settings(model="linear", epochs=2))
    page = unescape(re.search(r'srcdoc="(.*?)"', run._repr_html_(), flags=re.DOTALL)[1])
    assert page.startswith("<!doctype html>")
    assert '<body class="brief">' in page


def test_the_display_shows_the_curve_and_the_point_of_scikit_learn(rows):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from sklearn.metrics import roc_curve  # noqa: PLC0415

    scores, labels = rows
    shown = sp.report.OperatingPointDisplay.from_predictions(ASK, labels, scores)
    x, y, _ = roc_curve(labels, scores, drop_intermediate=False)
    np.testing.assert_allclose(shown.fpr, x)
    np.testing.assert_allclose(shown.recall, y)
    assert shown.point.rates["fpr"] <= 0.05
    tuned = sp.Tuned(LogisticRegression(), ASK).fit(scores[:, None], labels)
    mine = sp.report.OperatingPointDisplay.from_estimator(tuned, scores[:, None], labels)
    assert mine.point.threshold == tuned.operating_point_.threshold
    with pytest.raises(BadSetting, match="pass ask="):
        sp.report.OperatingPointDisplay.from_estimator(tuned.estimator_, scores[:, None], labels)


NOTEBOOK = """
import numpy as np, setpoint as sp
rng = np.random.default_rng(0)
labels = rng.random(3000) < 0.2
sp.report("minimize fnr where fpr <= 5%", rng.normal(size=3000) + 2 * labels, labels)
"""


@slow
@pytest.mark.parametrize("dark", [False, True])
def test_a_notebook_shows_the_page_with_its_slider(browser, tmp_path, dark):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    html = pytest.importorskip("nbconvert").HTMLExporter(theme="dark" if dark else "light")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(NOTEBOOK)])
    nbclient.NotebookClient(book, timeout=100).execute()
    (tmp_path / "book.html").write_text(html.from_notebook_node(book)[0])
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
    browser.get((tmp_path / "book.html").as_uri())
    browser.switch_to.frame(browser.find_element("css selector", "iframe.setpoint-report"))
    slider = browser.find_element("id", "threshold")
    assert slider.is_displayed()
    assert slider.rect["y"] + 250 < HEIGHT, "the slider and the top of the counts are seen without scrolling"
    assert browser.find_elements("css selector", "#roc svg path.curve")
    before = browser.find_element("id", "threshold-value").text
    slider.send_keys("\ue012" * 3)
    assert browser.find_element("id", "threshold-value").text != before
    ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 200) == dark
    width = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1]
    browser.switch_to.default_content()
    assert browser.get_screenshot_as_png()
    # nbconvert asks a network for its own scripts; the next test reads the log of this browser.
    assert all("://cdn" in line["message"] for line in browser.get_log("browser") if line["level"] == "SEVERE")
