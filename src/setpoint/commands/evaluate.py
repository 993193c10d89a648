"""`setpoint evaluate`: a saved run against new labelled rows, every bound by an exact test."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from setpoint.commands.show import grid, write_json
from setpoint.commands.terminal import console, say, unlike_training
from setpoint.data.exchange import frames_at
from setpoint.data.frame import Frame
from setpoint.data.scan import Scan, fingerprint, hash_of_files
from setpoint.data.sketch import Hashes, row_hashes, share_known
from setpoint.data.text_format import TextFormat
from setpoint.decide.calibrate import evaluate
from setpoint.errors import BadSetting
from setpoint.measure.rate import recall
from setpoint.problem.caution import Caution, cautions_of_ask
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.problem.watch import Watch
from setpoint.report.words import checked, has_best_cut, show_value, units
from setpoint.run.artefact import SavedRun, load_run
from setpoint.run.labelled_rows import labelled_rows
from setpoint.run.tallies import judged_in_chunks
from setpoint.run.weighted_rows import read_weights, refuse_weighted_columns
from setpoint.serve.stored import RECORD

BROKEN = 1
#: A table is taken for that of the training if it holds at least this share of rows that the run has seen.
MOST = 0.5


def main(
    *,
    run: Path,
    data: list[Path],
    level: float,
    weight: str | None,
    most_weight: float | None,
    stream: bool,
    workers: str | None,
    ignore_extra: bool,
    strict: bool,
    as_json: bool,
    quiet: bool,
    separator: str | None,
    encoding: str | None,
    no_header: bool,
) -> int:
    saved = load_run(run)
    found: list[str] = []
    point, problem = saved.point, saved.point.problem
    several = bool(point.classes or point.labels)
    notes = saved.schema.notes()
    if weight is not None and (stream or workers):
        raise BadSetting("--weight is for a table in memory; leave out --stream and --workers")
    aside, layout = console(stderr=True, quiet=quiet), TextFormat(separator, encoding, not no_header)
    with frames_at(data, stream=stream, workers=workers, layout=layout, notes=found) as whole:
        known = Known(saved)
        frames, left_out = labelled_rows(saved, whole)
        say(aside, *(f"note: {note}" for note in [*found, *left_out]))
        if stream or workers:
            judged = judged_in_chunks(saved, frames, level, ignore_extra=ignore_extra)
            here, check, best, size = judged.here, judged.check, judged.best, (judged.rows, judged.positives)
            notes.merge(judged.notes)
            known.hashes += judged.hashes
        else:
            (frame,) = frames
            record = run / RECORD
            entries = Watch.load(record).entries if record.is_file() else ()
            frame, heavy = read_weights(frame, weight, most_weight, entries)
            refuse_weighted_columns(heavy, problem.columns)
            known.look(frame)
            labels, scores = saved.schema.labels(frame), saved.scores(frame, ignore_extra=ignore_extra, notes=notes)
            groups = None if problem.group is None else saved.schema.groups(frame, problem.group)
            values = saved.schema.values(frame, problem.columns)
            given, clusters = {"groups": groups, "lists": saved.lists(frame)}, saved.clusters(frame)
            plain = values if heavy is None else heavy.weights
            here = point.judge(scores, labels, weights=plain, **given)
            tested = values if heavy is None else heavy
            check = point.check(scores, labels, weights=tested, **given, clusters=clusters, level=level)
            best = evaluate(problem, scores, labels, weights=plain, **given, classes=point.classes or None)
            size = (len(labels), 0 if several else int(labels.sum()))
    if strict and unlike_training(notes.alarms()):
        return BROKEN
    code = 0 if check.holds else BROKEN
    say(aside, *(f"note: {note}" for note in notes.sentences()))
    cautions = [*cautions_of_ask(problem), *known.cautions(data, whole)]
    if as_json:
        write_json(
            {
                "ask": str(problem),
                "rows": size[0],
                **({} if several else {"positives": size[1]}),
                "threshold": here.threshold,
                "objective": here.objective,
                "rates": here.rates,
                "holds": bool(check.holds),
                "p_value": float(check.p_value),
                "level": check.level,
                "bounds": [asdict(row) for row in check.bounds],
                "best": {"feasible": best.feasible, "objective": best.objective, "threshold": best.threshold},
                "sentence": str(check),
                "warnings": [caution.to_dict() for caution in cautions],
            }
        )
        return code
    screen = console(quiet=quiet)
    positive = "" if several else f", {size[1]} of them positive"
    say(screen, f"{problem}, on {size[0]} rows{positive}:")
    points = [point, here, *([best] if has_best_cut(problem) else [])]
    screen.print(grid(["rate", "when set", "here", "best cut\nhere"][: 1 + len(points)], rates_of(*points)))
    if check.bounds:
        counted = check.bounds[0].units if check.by_clusters else units(problem)
        screen.print(grid(["bound", "here", counted, "p-value"], [_bound(problem, row) for row in check.bounds]))
    if check.by_clusters:
        say(screen, clusters_words(saved.cluster))
    say(screen, *checked(point, check, best), *(f"warning: {caution.sentence}" for caution in cautions))
    return code


def clusters_words(column: str | None) -> str:
    """A sentence on what a test by clusters counts."""
    return (
        f"Rows of one {column!r} depend on each other, so each {column!r} counts once: a tested rate is that of a "
        f"random row of a random {column!r}."
    )


class Known:
    """Finds out whether a table holds the rows that a run was trained on.

    Args:
        saved: The run, with the fingerprint of its table and a sketch of its rows.
    """

    def __init__(self, saved: SavedRun) -> None:
        self.saved = saved
        self.hashes: list[Hashes] = []

    def look(self, frame: Frame) -> None:
        """Take note of the rows of a table, or of a chunk of it."""
        schema = self.saved.schema
        if self.saved.about["sketch"]:
            self.hashes.append(row_hashes(schema.encode(frame, ignore_extra=True), schema.labels(frame)))

    def cautions(self, paths: list[Path], frames: Iterable[Frame]) -> list[Caution]:
        """A caution if the table is that of the training, or shares most of its rows with it."""
        path = ", ".join(map(str, paths))
        # A run that was streamed knows its table by the bytes of the files, any other by the values.
        known = [hash_of_files(paths)] if all(one.is_file() for one in paths) else []
        known += [] if isinstance(frames, Scan) else [fingerprint(next(iter(frames)))["sha256"]]
        share = share_known(np.concatenate(self.hashes), self.saved.about["sketch"]) if self.hashes else 0.0
        if self.saved.about["data"]["sha256"] in known:
            said = f"{path} is the very table that the run was trained on"
        elif share >= MOST:
            said = f"about {100 * share:.0f}% of the rows of {path} set the parameters or the threshold of the run"
        else:
            return []
        return [Caution("evaluated-on-training", f"{said}: these rates look better than those of new rows will be")]


def rates_of(*points: OperatingPoint) -> list[list[str]]:
    """One row per rate that all points have, with its value at each."""
    quantities = {str(q): q for q in (points[0].problem.objective, *(c.quantity for c in points[0].problem.bounds))}
    names = [name for name in points[0].rates if all(name in point.rates for point in points)]
    # Whatever is not named in the ask is one of the rates shown beside it, all of them shares.
    return [
        [name, *(show_value(quantities.get(name, recall), point.rates[name]) for point in points)] for name in names
    ]


def _bound(problem: Problem, row: Any) -> list[str]:
    quantity = {str(constraint): constraint.quantity for constraint in problem.constraints}[row.bound]
    place = f"{row.bound} in {row.group}" if row.group else row.bound
    p_value = "no exact test" if row.p_value is None else f"{row.p_value:.3g}"
    return [place, show_value(quantity, row.rate), " and ".join(map(str, row.samples)), p_value]
