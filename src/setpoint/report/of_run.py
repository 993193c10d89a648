"""From a run on disk to its report: read what `setpoint fit` wrote, write the page and, if asked, the picture."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from setpoint.data.frame import Frame
from setpoint.data.label_columns import LabelColumns
from setpoint.errors import BadFile
from setpoint.files import write_whole
from setpoint.lock import locked
from setpoint.measure.classes import CLASSES
from setpoint.measure.constraint import CUT, percent
from setpoint.measure.in_first import LISTS
from setpoint.measure.labels import LABELS
from setpoint.plain import number, reason, text, whole_number
from setpoint.problem.caution import Caution
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.problem.read_thresholds import read_thresholds
from setpoint.problem.thresholds import Thresholds
from setpoint.problem.watch import CALIBRATED, Watch
from setpoint.report.class_page import make_class_page
from setpoint.report.figure import draw_figure
from setpoint.report.label_page import make_label_page
from setpoint.report.life import make_life
from setpoint.report.list_page import make_list_page
from setpoint.report.material import Contender, Material, TriedMethod
from setpoint.report.names import distinct_names, method_words
from setpoint.report.page import make_page
from setpoint.report.words import GROUP, listed_classes, part_name
from setpoint.run.artefact import REPORTS, SavedRun, SavedScores, load_run, load_scores
from setpoint.run.insight import insight_of
from setpoint.serve.stored import HISTORY, LIFE, RECORD

#: In the order in which they are read.
SHOWN = ("test", "calibration")
#: Pages other than that of one threshold, by the kind of question.
_PAGES = {CLASSES: make_class_page, LABELS: make_label_page, LISTS: make_list_page}


def write_report(
    run: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    png: bool = False,
    data: Frame | None = None,
) -> list[Path]:
    """Write the report of a run on disk.

    Args:
        run: The directory that `setpoint fit` wrote.
        out: The HTML file to write; if None, `report.html` in the run.
        png: Whether to write a PNG picture beside the HTML file.
        data: The table that the run was trained on, to show what drives the score and where it errs.

    Returns:
        The paths of the files; of a run that is watched, the page of its life is one of them if `out` is None.

    Raises:
        BadFile: If the run is missing or damaged, or `out` is a directory.
        BadSetting: If a picture is asked for and matplotlib is not installed.
        BadTable: If `data` is another table than that of the run.

    Example:
        >>> import tempfile
        >>> import polars as pl, setpoint as sp
        >>> from setpoint.report.of_run import write_report
        >>> from setpoint.run.artefact import save_run
        >>> from setpoint.run.settings import Settings
        >>> from setpoint.run.table import fit_table
        >>> frame = pl.DataFrame({"x": [i / 7 % 1 for i in range(80)], "y": [i // 2 % 2 for i in range(80)]})
        >>> problem = sp.ask("minimize fnr where fpr <= 50%")
        >>> run = fit_table(frame, "y", problem, Settings(solver="cross-entropy", epochs=1))
        >>> with tempfile.TemporaryDirectory() as place:
        ...     saved = save_run(f"{place}/run", run)
        ...     [path.name for path in write_report(saved)]
        ['report.html']
    """
    page = Path(run) / REPORTS[0] if out is None else Path(out)
    if page.is_dir():
        raise BadFile(f"{page} is a directory; name a file for the report, such as {page / REPORTS[0]}")
    # A report inside the run must be of the run that is there when it is written.
    inside = Path(run).is_dir() and page.parent.is_dir() and page.parent.samefile(run)
    with locked(Path(run)) if inside else contextlib.nullcontext():
        material = read_material(run, data)
        make = _PAGES.get(material.problem.kind, make_page)
        picture = [draw_figure(material, page.with_suffix(".png"))] if png else []
        write_whole(page, make(material).encode())
        record = Path(run) / RECORD
        watch = Watch.load(record) if out is None and record.is_file() else None
        life = [Path(run) / LIFE] if watch is not None and watch.bounds else []
        for path in life:
            assert watch is not None
            write_whole(path, make_life(watch).encode())
    return [page, *picture, *life]


def read_material(run: str | os.PathLike[str], data: Frame | None = None) -> Material:
    """The material of a report, from a directory that `setpoint fit` wrote and the table that it was trained on."""
    saved = load_run(run)
    # The page is about the fit; points that were set later are on the page of the run's life.
    in_use = saved.point
    saved = replace(saved, point=OperatingPoint.from_dict(saved.about["point"]))
    kept = load_scores(run)
    rows = _history(Path(run) / HISTORY)
    try:
        results = _different(saved.about["results"], kept)
        names_of = distinct_names([result["method"] for result in results.values()])
        contenders = [
            Contender(
                name=shown_as,
                thresholds=read_thresholds(result["threshold"], saved.point.problem),
                bare=_bare(result, saved.point.problem),
                scores={part: kept.scores[name][part] for part in SHOWN},
                judged={part: result[part] for part in ("train", "held_out", "test")},
                history=[row for row in rows if row.get("trained") == name],
                best_epoch=result["best_epoch"],
                seconds=result["seconds"],
                tried=[_tried(one) for one in result["comparison"]],
            )
            for shown_as, (name, result) in zip(names_of, results.items())
        ]
        shown = {part: kept.labels[part] for part in SHOWN}
        names = list(saved.point.thresholds.by_group)
        groups = {part: [names[code] for code in codes.tolist()] for part, codes in kept.groups.items()}
        refusal = next(iter(saved.about["results"].values())).get("refusal")
        facts, notes = _facts(saved), saved.about["notes"]
        cautions = [Caution.from_dict(caution) for caution in saved.about["warnings"]]
        cost, why = saved.about["cost_of_certificate"], saved.about["why_shipped"]
        later = _set_later(Path(run), in_use, replace(contenders[0], thresholds=in_use.thresholds))
    except (KeyError, TypeError, AttributeError, IndexError) as cause:
        raise BadFile(f"{run} is damaged: {reason(cause)}") from cause
    return Material(
        saved.point, contenders, shown, groups=groups or None, facts=facts, notes=notes, refusal=refusal or "",
        cost=cost, cautions=cautions, why_shipped=why, values=kept.values or None, later=later,
        lists={part: kept.lists[part] for part in SHOWN} if kept.lists else None,
        **_insight(saved, kept, data),
    )  # fmt: skip


def _set_later(run: Path, point: OperatingPoint, shown: Contender) -> str:
    """The decision that was set since the fit, in a sentence; empty if there is none."""
    entries = Watch.load(run / RECORD).entries if (run / RECORD).is_file() else []
    last = next((entry for entry in reversed(entries) if entry["kind"] == CALIBRATED), None)
    if last is None:
        return ""
    own = point.certificate
    promise = f"{own.statement} with confidence {percent(own.confidence)}" if own else "without a certificate"
    rule = shown.thresholds.rule(GROUP)
    told = (
        f"In use since the fit: {rule[0].lower()}{rule[1:]}, set on {last['rows']:,} rows of {last['name']}, {promise}"
    )
    return f"{told}. The rest of this page is about the fit."


def _different(results: dict[str, Any], kept: SavedScores) -> dict[str, Any]:
    """The results without a last one that is the shipped model itself, as where plain cross-entropy is kept."""
    first, last = next(iter(results)), next(reversed(results))
    same = first != last and results[first]["threshold"] == results[last]["threshold"]
    if same and all(torch.equal(kept.scores[first][part], kept.scores[last][part]) for part in SHOWN):
        return {name: result for name, result in results.items() if name != last}
    return results


def _bare(result: dict[str, Any], problem: Problem) -> Thresholds | None:
    """The bare cut of a model whose thresholds have a certificate."""
    stored = result.get("bare_threshold")
    return None if stored is None else read_thresholds(stored, problem)


def _insight(saved: SavedRun, kept: SavedScores, data: Frame | None) -> dict[str, Any]:
    """Findings of test rows, for runs of one threshold in memory; else nothing, or a sentence on how to get them."""
    problem = saved.point.problem
    if problem.kind != CUT or saved.point.thresholds.single is None:
        return {}
    if data is None:
        table = " ".join(saved.about["data"].get("files") or ["TABLE"])
        how = f"setpoint report RUN --data {table}"
        return {"no_insight": f"A run keeps no rows. To see which columns drive the score and where it errs: {how}"}
    return {"insight": insight_of(saved, kept, data)}


def _history(path: Path) -> list[dict[str, Any]]:
    try:
        return [_epoch(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as cause:
        raise BadFile(f"{path} is missing or damaged; fit the run again with --force") from cause


def _epoch(row: Any) -> dict[str, Any]:
    """The values of an epoch that the report shows."""
    told = {name: None if row.get(name) is None else number(row[name]) for name in ("soft", "train", "held_out")}
    names = {name: text(row.get(name, "")) for name in ("trained", "solver")}
    return {**names, "member": whole_number(row.get("member", 0)), **told}


def _tried(row: dict[str, Any]) -> TriedMethod:
    value = None if row["objective"] is None else number(row["objective"])
    return TriedMethod(text(row["name"]), value, number(row["seconds"]), row["chosen"] is True, text(row["note"]))


def _facts(saved: SavedRun) -> list[tuple[str, str]]:
    about, target, settings = saved.about, saved.schema.target, saved.about["settings"]
    kind = (
        ("Labels", listed_classes(target.columns))
        if isinstance(target, LabelColumns)
        else ("Classes", f"{listed_classes(target.classes)} of {target.name!r}")
        if target.classes
        else ("Positive class", f"{target.name} = {target.positive} ({target.why})")
    )
    sizes = [
        f"{size['rows']:,} {part_name(part)}"
        + (f" ({size['positives']:,} positive)" if "positives" in size else "")
        + (f" in {size['lists']:,} lists" if "lists" in size else "")
        for part, size in about["rows"].items()
    ]
    members = f", {settings['ensemble']} members" if settings["ensemble"] > 1 else ""
    members += ", each on another split" if settings.get("over_splits") else ""
    confidence = settings["confidence"]
    data, versions = about["data"], about["versions"]
    rows = f"{sum(size['rows'] for size in about['rows'].values()):,} rows"
    files = ", ".join(data.get("files", []))
    kept = next(iter(about["results"].values()))
    return [
        ("Data", f"{files}, {rows}" if files else rows),
        *([("Date", about["date"])] if "date" in about else []),
        ("Rows", ", ".join(sizes)),
        kind,
        ("Columns", f"{len(saved.schema.columns)} used, as {len(saved.schema.features)} features"),
        *(("Dropped", f"{name!r}: {why}") for name, why in saved.schema.dropped),
        ("Model", f"{method_words(kept['method'])}{members}"),
        ("Asked for", f"--model {settings['model']}, --solver {settings['solver']}, --confidence {confidence}"),
        ("Steps", f"at most {settings['epochs']:,} epochs, {settings['batch_size']:,} rows per step"),
        ("Seed", str(settings["seed"])),
        ("Version", f"setpoint {versions['setpoint']}"),
        ("Beside it", ", ".join(f"{name} {version}" for name, version in versions.items() if name != "setpoint")),
        ("Fingerprint", f"data sha256 {data['sha256'][:12]}"),
    ]
