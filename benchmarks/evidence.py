"""Writes every page of the docs that shows figures, from the results on disk; no figure is typed.

    python -m benchmarks.evidence [--run] [--quick] [--data DIR]

docs/evidence/ has an index, one page per study and its full tables as CSV; docs/measured*.md, docs/quality.md and the
marked places in other pages are written as well. `--run` first runs what the studies have not run yet; `--quick` means
their small versions, whose pages go to a temporary folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib

from benchmarks import measured, not_claimed, papers, passages, quick
from benchmarks.common.data import arguments
from benchmarks.common.harness import ROOT, load_result, result_path, results_folder
from benchmarks.common.telling import HEAD, Claim, figure_of, in_order, page_text, picture, set_aside
from benchmarks.common.words import table
from benchmarks.faults import page as quality

FOLDER = ROOT / "docs" / "evidence"
IMAGES = ROOT / "docs" / "images"
#: In the order of the index. The module `page` of each declares what `benchmarks.common.telling` writes a page of.
STUDIES = (
    "tables",
    "default_study",
    "free_asks",
    "networks",
    "small_nets",
    "rare_events",
    "auto",
    "peers",
    "certificates",
    "beside_mapie",
    "promises_tables",
    "labels",
    "promises_lists",
    "promises_kinds",
    "precision_walk",
    "dependence",
    "watching",
    "label_plan",
    "paper_figures",
    "paper_ranges",
    "paper_tabular",
    "paper_images",
    "paper_fashion",
    "critical_class",
    "long_tailed",
    "paper_programs",
    "lp_training",
    "classes",
    "lists",
    "fixed_fpr",
    "scalings",
    "regularised",
    "letter",
    "mq2008",
    "promises",
    "paper_levels",
    "lp_programs",
    "lp_gradients",
)
#: Studies of worlds of our own, which read no data.
WORLDS = {"certificates", "labels", "lp_gradients", "lp_programs", "promises", "promises_lists"}
#: The small version of a study takes so many seconds at most.
MOST_QUICK = 60
#: Pages of the folder that are written from more than one study.
OTHERS: dict[str, Callable[[], str]] = {
    "papers.md": papers.page,
    "not_claimed.md": not_claimed.page,
    "quick.md": quick.page,
}
INDEX = """---
hide: [navigation, toc]
---

# Evidence

Effects are means over cells (a data set and an ask) in points, positive when ours is better. *Better* and *worse* count
cells beyond two standard errors; *corrected*: beyond two of the wider error for splits that overlap, which stands in
brackets after an effect. Promises of 95 % count as kept
if at most 5 % and two standard errors of the repeats are broken. Commands begin with `python -m benchmarks.`;
[`--quick`](quick.md) runs a rough, short form. Nothing is typed: `python -m benchmarks.evidence` writes all.
[What we do not claim](not_claimed.md) ·
[the papers' 13 tables and 7 figures](papers.md) · [speed](../measured.md) · [peers](../peers.md) ·
[quality](../quality.md)
{: .evidence }"""
PICTURE = "![The claims above as a forest plot](../images/evidence.svg)"


def module_of(study: str) -> str:
    """What `python -m` runs."""
    return "benchmarks.peers" if study == "peers" else f"benchmarks.studies.{study}"


def page_of(study: str) -> ModuleType:
    return import_module(f"{module_of(study)}.page")


def results(quick: bool = False) -> dict[str, dict[str, Any]]:
    """What the studies have found, by name; those that have not run yet are missing."""
    return {study: load_result(study, quick) for study in STUDIES if result_path(study, quick).is_file()}


def claims_of(found: dict[str, dict[str, Any]]) -> list[tuple[str, Claim]]:
    """The claims of the index, each with its study, in its order."""
    return in_order((study, claim) for study, own in found.items() for claim in page_of(study).claims(own["figures"]))


def index_of(found: dict[str, dict[str, Any]]) -> str:
    rows = [
        [*claim.cells, f"[`{claim.command or module_of(study).removeprefix('benchmarks.')}`]({study}.md)", claim.state]
        for study, claim in claims_of(found)
    ]
    named = {study for study, _ in claims_of(found)}
    rest = [f"[{page_of(study).TITLE}]({study}.md)" for study in found if study not in named]
    missing = [f"not run yet: `python -m {module_of(study)}`" for study in STUDIES if study not in found]
    more = f"More studies: {'; '.join([*rest, *missing])}."
    return "\n\n".join([INDEX, table([*HEAD, "command", "state"], rows), PICTURE, more]) + "\n"


def pages(quick: bool = False) -> dict[str, str]:
    """Every file of docs/evidence by its name: the index, a page per study, and CSV files for the full tables."""
    found = results(quick)
    files = {"index.md": index_of(found)} | {name: write() for name, write in OTHERS.items() if not quick}
    for study, result in found.items():
        files[f"{study}.md"], tables = set_aside(study, page_text(study, page_of(study), result))
        files |= tables
    return files


def draw(folder: Path, quick: bool = False) -> list[Path]:
    """Write the picture of the index, and the figure of every study that has one and has rows."""
    # The same file for the same figures.
    matplotlib.rcParams["svg.hashsalt"] = "setpoint"
    found = results(quick)
    figures = {f"evidence/{study}": figure_of(page_of(study), own["figures"]) for study, own in found.items()}
    figures["evidence"] = picture([claim for _, claim in claims_of(found)])
    (folder / "evidence").mkdir(parents=True, exist_ok=True)
    made = []
    for name, figure in figures.items():
        if figure is not None:
            made.append(folder / f"{name}.svg")
            if isinstance(figure, str):
                made[-1].write_text(figure)
            else:
                figure.savefig(made[-1], metadata={"Date": None})
    return made


def run(study: str, data: str, quick: bool) -> float:
    """One study in a process of its own, on one thread, its lines under its name; finished rows are not run again.

    Returns the seconds of the processor, which other work on the machine does not change.
    """
    more = [*([] if study in WORLDS else ["--data", data]), *["--quick"] * quick]
    command = [sys.executable, "-W", "ignore", "-m", module_of(study), *more]
    with subprocess.Popen(
        command,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        for line in process.stdout or ():
            print(f"{study}: {line}", end="", flush=True)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{module_of(study)} failed, as its lines above say: no page was written")
    print(f"{study}: done in {used.ru_utime + used.ru_stime:.0f} s of the processor", flush=True)
    return used.ru_utime + used.ru_stime


def run_all(data: str, quick: bool, some: Sequence[str] | None = None) -> tuple[dict[str, float], float]:
    """Every study, or some: small ones two at a time, real ones one by one, since they write down the time of a step.

    Returns the seconds of the processor by study, and the minutes of all on the wall.
    """
    studies = STUDIES if some is None else some
    started, spent = time.perf_counter(), {}
    with ThreadPoolExecutor(2 if quick else 1) as pool:
        for study, seconds in zip(studies, pool.map(lambda study: run(study, data, quick), studies)):
            spent[study] = seconds
            print(f"{len(spent)} of {len(studies)} studies done", flush=True)
    minutes = (time.perf_counter() - started) / 60
    if quick:
        long = {study: seconds for study, seconds in spent.items() if seconds > MOST_QUICK}
        told = ", ".join(f"{study} {seconds:.0f} s" for study, seconds in long.items()) or "none"
        print(f"{minutes:.1f} minutes; more than {MOST_QUICK} s of the processor: {told}", flush=True)
    return spent, minutes


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
        written |= measured.pages() | {quality.PAGE: quality.page()}
        written |= {path: passages.filled(path.read_text()) for path in passages.pages()}
    for path, text in written.items():
        path.write_text(text)
    drawn = draw(folder.parent / "images" if options.quick else IMAGES, options.quick)
    print(f"wrote {len(written)} pages and tables and {len(drawn)} figures; the index is {folder / 'index.md'}")


if __name__ == "__main__":
    main()
