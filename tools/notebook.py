"""The tutorial as a notebook, from its page: `python tools/notebook.py` writes docs/tutorial.ipynb."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
#: A code block of the page: its language and its text. Blocks of output are left out; the notebook prints its own.
WIDTH = re.compile(r"\{ width=\d+ \}")
BLOCK = re.compile(r"^```(python|sh|text)\n(.*?)^```\n", re.M | re.S)


def cell(kind: str, text: str) -> dict[str, Any]:
    own = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": text.strip().splitlines(keepends=True), **own}


def shell(text: str) -> str:
    """The lines of a shell block as commands of a notebook."""
    return "%%sh\n" + text


def notebook(page: str) -> dict[str, Any]:
    """The notebook of a page: words as they stand, blocks as cells."""
    cells, place = [], 0
    for block in BLOCK.finditer(page):
        cells.append(cell("markdown", WIDTH.sub("", page[place : block.start()])))
        if block[1] != "text":
            cells.append(cell("code", block[2] if block[1] == "python" else shell(block[2])))
        place = block.end()
    cells.append(cell("markdown", page[place:]))
    cells = [{**one, "id": f"cell-{number}"} for number, one in enumerate(one for one in cells if one["source"])]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def written() -> str:
    """The text of the notebook of the tutorial."""
    return json.dumps(notebook((DOCS / "tutorial.md").read_text()), indent=1) + "\n"


def main() -> None:
    (DOCS / "tutorial.ipynb").write_text(written())
    print("wrote docs/tutorial.ipynb")


if __name__ == "__main__":
    main()
