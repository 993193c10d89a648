"""The docs: blocks run, links lead somewhere, pages are in the navigation, and public names in the reference."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
from pathlib import Path

import pytest

import setpoint
import story
from marks import quick_first, slow
from setpoint.cli import main

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
#: Pages whose blocks are one script, in order; on all others each block stands alone.
STORIES = [DOCS / "tutorial.md", *(path for path in PAGES if path.parent.name == "recipes" and path.stem != "index")]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def name_of(path: Path) -> str:
    return path.relative_to(DOCS).as_posix()


def blocks_of(path: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(path.read_text())


ALONE = [
    pytest.param(code, id=f"{name_of(path)}-{number}")
    for path in PAGES
    if path not in STORIES
    for number, (kind, code) in enumerate(blocks_of(path))
    if kind == "python"
]


def test_the_pages_hold_what_is_run():
    assert len(STORIES) == 9
    assert all(sum(kind == "python" for kind, _ in blocks_of(path)) >= 3 for path in STORIES)
    assert len(ALONE) > 20


@pytest.mark.parametrize("code", ALONE)
@slow
def test_the_block_runs(code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "documentation", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("path", quick_first(STORIES), ids=name_of)
def test_the_story_runs(path, tmp_path, monkeypatch):
    """Blocks in order: Python in one namespace, shell in the same directory; `text` is what the one before printed."""
    monkeypatch.chdir(tmp_path)
    names, printed = {"__name__": "__main__"}, ""
    for kind, code in blocks_of(path):
        if kind == "python":
            heard = io.StringIO()
            with contextlib.redirect_stdout(heard):
                exec(compile(code, path.name, "exec"), names)
            printed = heard.getvalue()
        elif kind == "sh":
            printed = in_a_shell(code)
        elif kind == "text":
            # The tutorial shows the numbers of the machine that wrote it; recipes leave out what may vary.
            own = story.pattern_of(code) if path == story.PAGE else re.escape(code).replace(r"\.\.\.", ".*")
            assert re.fullmatch(own, printed, re.S), printed


def in_a_shell(code: str) -> str:
    """What the commands print. `setpoint` is called in this process, which has loaded what it needs already."""
    heard = io.StringIO()
    for line in code.replace("\\\n", " ").splitlines():
        program, *arguments = shlex.split(line)
        if program == "setpoint":
            with contextlib.redirect_stdout(heard), pytest.raises(SystemExit) as end:
                main(arguments)
            assert end.value.code == 0, line
        else:
            heard.write(subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout)
    return heard.getvalue()


def test_other_languages_are_not_left_unrun():
    known = {"python", "sh", "text", "math"}
    # Pages of how-tos show scripts, which tests/test_way_in.py runs.
    pages = [path for path in PAGES if path.parent.name != "how_to"]
    assert {(name_of(path), kind) for path in pages for kind, _ in blocks_of(path) if kind not in known} == set()
    shell = [name_of(path) for path in PAGES if path not in STORIES and "sh" in {kind for kind, _ in blocks_of(path)}]
    assert shell == [], "shell blocks run on story pages only; indent them elsewhere"


def test_every_page_is_in_the_navigation_once():
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    listed = re.findall(r"- ([\w/]+\.md)$", navigation, re.M)
    assert sorted(listed) == sorted(map(name_of, PAGES))


def test_links_lead_somewhere():
    lost = [
        f"{path.relative_to(ROOT)} links to {target}"
        for path in [ROOT / "README.md", *PAGES]
        for target in LINK.findall(BLOCK.sub("", path.read_text()))
        if not re.match(r"https?:", target) and not leads_somewhere(path, target)
    ]
    assert lost == []


def leads_somewhere(path: Path, target: str) -> bool:
    file, _, anchor = target.partition("#")
    found = (path.parent / file).resolve() if file else path
    if found.suffix == ".png":
        return found.exists() and anchor in ("", "only-light", "only-dark")
    return found.exists() and (not anchor or anchor in anchors(found))


def anchors(path: Path) -> set[str]:
    """Headings as GitHub and MkDocs name them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.M)
    return {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip()) for heading in headings}


def test_every_public_name_is_in_the_reference():
    pages = "\n".join(path.read_text() for path in PAGES if path.parent.name == "reference")
    written = re.findall(r"^::: (setpoint[\w.]*)$", pages, re.M)
    assert len(written) == len(set(written)), "a name stands in the reference twice"
    places = [setpoint.losses, setpoint.classes, setpoint.rates, setpoint.steps, setpoint.methods, setpoint.lp]
    public = {*dir(setpoint), *(name for place in places for name in place.__all__)}
    last = {name.rpartition(".")[2] for name in written}
    assert public - {place.__name__.rpartition(".")[2] for place in places} - last == set()


def test_five_examples_are_short():
    lengths = {path.name: len(path.read_text().splitlines()) for path in (ROOT / "examples").glob("*.py")}
    assert len(lengths) >= 5
    assert {name: length for name, length in lengths.items() if length >= 60} == {}
    listed = re.findall(r"\.\./examples/(\w+\.py)", (DOCS / "examples.md").read_text())
    assert sorted(listed) == sorted(lengths)
