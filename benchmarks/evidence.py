"""Writes every page of the docs that shows figures, from the results on disk; no figure is typed.

    python -m benchmarks.evidence [--run] [--quick] [--data DIR]

docs/evidence/ has an index, one page per study and its wide tables as CSV; docs/measured.md, docs/quality.md and the
marked places in other pages are written as well. `--run` first runs what the studies have not run yet; `--quick` means
their small versions, whose pages go to a temporary folder.
"""

from __future__ import annotations

import csv
import io
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from types import ModuleType

import matplotlib

from benchmarks import measured, passages
from benchmarks.common.data import arguments
from benchmarks.common.harness import ROOT, load_result, made_by, result_path, results_folder
from benchmarks.common.words import WIDE, slug, table, verdict
from benchmarks.faults import page as quality

FOLDER = ROOT / "docs" / "evidence"
#: In the order of the index. Each has a module `page`: a title, a section, the claims of the index, perhaps a figure.
STUDIES = (
    "tables",
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
    "watching",
)
#: These have a section in docs/measured.md, and stand in the index as well.
MEASURED = ("auto", "certificates", "dependence")
INDEX = """# Evidence

Written by `python -m benchmarks.evidence` from `benchmarks/results/`; nothing here is typed. `make evidence` runs what
is missing and writes the pages anew; `make evidence QUICK=1` runs a small version of each study, in minutes, into a
temporary folder. A cell is a set and an ask. An effect is the mean over cells, in points, with its standard error;
*better* and *worse* are by two standard errors, *corrected* for splits that overlap. More: [measured](../measured.md),
[quality](../quality.md), [peers](../peers.md)."""


def module_of(study: str) -> str:
    """What `python -m` runs."""
    return "benchmarks.peers" if study == "peers" else f"benchmarks.studies.{study}"


def page_of(study: str) -> ModuleType:
    return import_module(f"{module_of(study)}.page")


def pages(quick: bool = False) -> dict[str, str]:
    """Every file of docs/evidence by its name: the index, a page per study, and CSV files for the wide tables."""
    files, rows = {}, []
    for study in (*STUDIES, *MEASURED):
        page = page_of(study)
        if not result_path(study, quick).is_file():
            rows.append([f"not run yet: `python -m {module_of(study)}`", "", "", page.TITLE])
            continue
        result = load_result(study, quick)
        link = f"../measured.md#{slug(page.TITLE)}" if study in MEASURED else f"{study}.md"
        claims = [[claim, effect, verdict(met)] for claim, effect, met in page.claims(result["figures"])]
        rows += [[*claim, f"[{study}]({link})"] for claim in claims]
        if study not in MEASURED:
            told = table(["claim", "effect", "met"], claims)
            text = f"# {page.TITLE}\n\n{made_by(result)}\n\n{told}\n\n{page.section(result['figures'])}\n"
            files[link], tables = set_aside(study, text)
            files |= tables
    return {"index.md": f"{INDEX}\n\n{table(['claim', 'effect', 'met', 'study'], rows)}\n", **files}


def set_aside(study: str, text: str) -> tuple[str, dict[str, str]]:
    """The page with links in the place of its wide tables, and these as CSV."""
    files = {}

    def move(found: re.Match[str]) -> str:
        lines = [[cell.strip() for cell in line[1:-1].split("|")] for line in found[2].splitlines()]
        written = io.StringIO()
        csv.writer(written, lineterminator="\n").writerows([lines[0], *lines[2:]])
        name = f"{study}-{found[1]}.csv"
        files[name] = written.getvalue().replace("**", "")
        return f"[{found[1].replace('-', ' ').capitalize()}: {len(lines) - 2} rows, {len(lines[0])} columns]({name})"

    return WIDE.sub(move, text), files


def draw(folder: Path, quick: bool = False) -> list[Path]:
    """Write the figure of every study that has one and has rows."""
    # The same file for the same figures.
    matplotlib.rcParams["svg.hashsalt"] = "setpoint"
    made = []
    for study in STUDIES:
        plot = getattr(page_of(study), "figure", None)
        figure = plot(load_result(study, quick)["figures"]) if plot and result_path(study, quick).is_file() else None
        if figure is not None:
            folder.mkdir(parents=True, exist_ok=True)
            made.append(folder / f"{study}.svg")
            figure.savefig(made[-1], metadata={"Date": None})
    return made


def run(study: str, data: str, quick: bool) -> None:
    """One study in a process of its own, on one thread, its lines under its name; finished rows are not run again."""
    command = [sys.executable, "-W", "ignore", "-m", module_of(study), "--data", data, *["--quick"] * quick]
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
        raise SystemExit(f"{module_of(study)} failed, as its lines above say: no page was written")
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
    folder = results_folder(True) / "evidence" if options.quick else FOLDER
    written = {folder / name: text for name, text in pages(options.quick).items()}
    folder.mkdir(parents=True, exist_ok=True)
    for left in {*folder.glob("*.md"), *folder.glob("*.csv")} - set(written):
        left.unlink()
    if not options.quick:
        written |= {measured.PAGE: measured.page(), quality.PAGE: quality.page()}
        written |= {path: passages.filled(path.read_text()) for path in passages.pages()}
    for path, text in written.items():
        path.write_text(text)
    drawn = draw(folder.parent / "images", options.quick)
    print(f"wrote {len(written)} pages and tables and {len(drawn)} figures; the index is {folder / 'index.md'}")


if __name__ == "__main__":
    main()
