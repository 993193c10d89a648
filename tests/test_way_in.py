"""The way in: the first page answers five questions at once, how-tos are their scripts, and prose keeps its rules."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import setpoint
from marks import slow

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT / "tools"))
import gallery  # noqa: E402
import notebook  # noqa: E402
import prose  # noqa: E402

#: Words that people read in a second.
PACE = 3.5


def test_each_of_five_questions_is_one_click_from_home():
    rows = re.findall(
        r"^\| ([^|]+\?) \| [^|]+ \| \[[^]]+\]\(([^)#]+)#([^)]+)\) \| (\d+) \|$", (DOCS / "index.md").read_text(), re.M
    )
    assert len(rows) == 5
    for question, page, anchor, seconds in rows:
        assert anchor == re.sub(r"[^a-z ]", "", question.lower()).replace(" ", "-")
        section = (DOCS / page).read_text().partition(f"\n## {question}\n")[2].partition("\n## ")[0]
        words = len(re.findall(r"(?<!\S)[(*`\[]*\w", section))
        assert abs(int(seconds) - words / PACE) <= 8, (question, words / PACE)
        assert int(seconds) <= 60
        assert section.count("](") >= 2, "where to read on"


def test_the_readme_is_short_and_its_pictures_are_there():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) < 150
    for picture in re.findall(r"!\[[^]]+\]\((?!https)([^)]+)\)", text):
        assert (ROOT / picture).stat().st_size < 400_000


@pytest.mark.parametrize("name", gallery.HOW_TO)
def test_a_how_to_shows_its_script_as_it_is(name):
    page = (DOCS / "how_to" / f"{name}.md").read_text()
    printed = re.search(r"It prints:\n\n```text\n(.*?)\n```", page, re.S)[1]
    assert page == gallery.page_of(name, printed), "run python tools/gallery.py"


@slow
@pytest.mark.parametrize("name", gallery.HOW_TO)
def test_the_script_of_a_how_to_runs(name, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(setpoint.__file__).parents[1]), "MPLBACKEND": "Agg"}
    command = [sys.executable, "-W", "ignore", str(ROOT / "examples" / f"{name}.py")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_notebook_is_that_of_the_tutorial():
    assert (DOCS / "tutorial.ipynb").read_text() == notebook.written(), "run python tools/notebook.py"


@slow
def test_the_notebook_runs(tmp_path):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    book = nbformat.reads((DOCS / "tutorial.ipynb").read_text(), as_version=4)
    (tmp_path / "setpoint").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m setpoint "$@"\n')
    (tmp_path / "setpoint").chmod(0o755)
    paths = {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(setpoint.__file__).parents[1]),
    }
    client = nbclient.NotebookClient(book, timeout=280, resources={"metadata": {"path": str(tmp_path)}})
    client.execute(env={**os.environ, **paths})
    told = "".join(out.get("text", "") for one in book.cells for out in one.get("outputs", []))
    assert "Certified: recall >= 95% with confidence 95%" in told


@slow
def test_prose_keeps_its_rules_and_the_rules_bite(tmp_path, monkeypatch):
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "It is done. What scores tell apart is kept. Take the one that is best, obviously.\n\n    the one that\n"
    )
    assert len(prose.faults(page)) == 3
    monkeypatch.undo()
    assert prose.main() == 0
