"""Every Python block of the README runs, as it stands; those of the docs are in test_docs.py."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pypi_readme

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.M | re.S)


def test_the_readme_has_blocks_to_run():
    assert len(BLOCKS) >= 3


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_the_block_runs(block, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "documentation", "exec"), {"__name__": "__main__"})


def test_nothing_of_the_readme_is_broken_on_pypi():
    """No picture and no link needs a file of the repository, and no sentence ends at a picture."""
    text = pypi_readme.for_pypi(README.read_text())
    assert re.findall(r"\]\((?!https?://)[^)]*\)", text) == []
    assert "<!--" not in text
    assert re.search(r":\n+#", text) is None
    assert text.count("|") == README.read_text().count("|")
    for block in BLOCKS:
        assert block in text
