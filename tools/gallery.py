"""Run the example of each how-to and write its page: words from the docstring, the script, and what it printed.

python tools/gallery.py
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "how_to"
#: The example of each how-to, its title, and where to read on.
HOW_TO = {
    "scores": ("I have scores", "[certificates](../certificates.md), [report](../report.md)"),
    "keep_your_model": ("I have a fitted model", "[estimator](../estimator.md)"),
    "table": ("I have a table", "[command line](../cli.md), [tables](../table.md), [messy files](../messy_files.md)"),
    "plain_torch": ("I have a training loop", "[solvers](../solve.md), [integrations](../integrations.md)"),
    "embeddings": ("I have embeddings", "[training](../train.md), [linear models](../methods/anchored.md)"),
    "several_classes": ("I have several classes", "[asks](../asks.md), [questions](../questions.md)"),
    "review_team": ("I have a review team", "[the recipe](../recipes/review.md)"),
    "monthly_labels": ("I get labels every month", "[the recipe](../recipes/watching.md)"),
}


def parts_of(name: str) -> tuple[str, str]:
    """The docstring of an example, and its code without it."""
    text = (ROOT / "examples" / f"{name}.py").read_text()
    words = ast.get_docstring(ast.parse(text)) or ""
    return words, text.split('"""', 2)[2].strip()


def run(name: str) -> str:
    """What an example prints; its errors are errors here."""
    environment = {**os.environ, "COLUMNS": "100", "MPLBACKEND": "Agg"}
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-W", "ignore", str(ROOT / "examples" / f"{name}.py")]
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name}.py ended with {done.returncode}:\n{done.stderr}")
    return "\n".join(folded(line.rstrip()) for line in done.stdout.strip().splitlines())


def folded(line: str, width: int = 100) -> str:
    """A line as a terminal of this width shows it, broken at words."""
    return line if len(line) <= width else "\n".join(textwrap.wrap(line, width))


def page_of(name: str, printed: str) -> str:
    """The page of one how-to."""
    title, more = HOW_TO[name]
    words, code = parts_of(name)
    said = words.partition(": ")[2]
    return (
        f"# {title}\n\n{said[:1].upper()}{said[1:]}\n\n```py\n{code}\n```\n\nIt prints:\n\n```text\n{printed}\n```\n\n"
        f"Script: [{name}.py](../../examples/{name}.py). Read on: {more}.\n"
    )


def main() -> None:
    PAGES.mkdir(exist_ok=True)
    for name in sys.argv[1:] or HOW_TO:
        (PAGES / f"{name}.md").write_text(page_of(name, run(name)))
        print(f"wrote docs/how_to/{name}.md", flush=True)


if __name__ == "__main__":
    main()
