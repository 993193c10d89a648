"""Every Python block of the README runs, as it stands; those of the docs are in test_docs.py."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.M | re.S)


def test_the_readme_has_blocks_to_run():
    assert len(BLOCKS) >= 3


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_the_block_runs(block, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "documentation", "exec"), {"__name__": "__main__"})
