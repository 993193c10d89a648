"""Writes docs/evidence.md and its figures from the results on disk: every table with its command, seeds and errors.

    python -m benchmarks.evidence [--run] [--quick] [--data DIR]

`--run` first runs what the studies have not run yet; `--quick` means their small versions, and a page beside those.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

from benchmarks.data import arguments
from benchmarks.harness import results_folder
from benchmarks.plots import draw

PAGE = Path(__file__).parents[1] / "docs" / "evidence.md"
#: In the order of the page; `benchmarks/pages/` has a file for each.
STUDIES = (
    "default_study",
    "free_asks",
    "scalings",
    "networks",
    "paper_tabular",
    "paper_levels",
    "paper_ranges",
    "paper_images",
    "critical_class",
    "long_tailed",
    "paper_programs",
    "peers",
)


def page(quick: bool = False) -> str:
    """The whole page, from the json files."""
    parts = [
        "# Evidence\n\nWritten by `python -m benchmarks.evidence` from `benchmarks/results/`; nothing here is typed. "
        "`make evidence` runs what is missing and writes the page anew, `make evidence QUICK=1` a small version of "
        "each study, in minutes, into a temporary folder."
    ]
    for name in STUDIES:
        study = import_module(f"benchmarks.pages.{name}")
        path = results_folder(quick) / f"{name}.json"
        if not path.is_file():
            parts.append(f"## {study.TITLE}\n\nNot run yet: `python -m benchmarks.{name}`.")
            continue
        result = json.loads(path.read_text())
        note = f"`{result['command']}`, torch {result['versions']['torch']}, {result['machine']['cpu_count']} cores."
        parts.append(f"## {study.TITLE}\n\n{note}\n\n{study.section(result['figures'])}")
    return "\n\n".join(parts) + "\n"


def run(study: str, data: str, quick: bool) -> None:
    """One study in a process of its own, on one thread, its lines under its name; finished rows are not run again."""
    command = [sys.executable, "-W", "ignore", "-m", f"benchmarks.{study}", "--data", data, *["--quick"] * quick]
    start = time.perf_counter()
    with subprocess.Popen(
        command,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        for line in process.stdout or ():
            print(f"{study}: {line}", end="", flush=True)
    if process.returncode:
        raise SystemExit(f"benchmarks.{study} failed, as its lines above say: the page was not written")
    print(f"{study}: done in {(time.perf_counter() - start) / 60:.1f} minutes", flush=True)


def run_all(data: str, quick: bool) -> None:
    """Every study: small ones two at a time, real ones one by one, since they write down how long a step takes."""
    with ThreadPoolExecutor(2 if quick else 1) as pool:
        for number, _ in enumerate(pool.map(lambda study: run(study, data, quick), STUDIES), 1):
            print(f"{number} of {len(STUDIES)} studies done", flush=True)


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0])
    parser.add_argument("--run", action="store_true", help="run the studies first")
    options = parser.parse_args()
    if options.run:
        run_all(options.data, options.quick)
    path = results_folder(options.quick) / "evidence.md" if options.quick else PAGE
    path.write_text(page(options.quick))
    print(f"wrote {path}")
    for made in draw(path.parent / "images", options.quick):
        print(f"wrote {made}")


if __name__ == "__main__":
    main()
