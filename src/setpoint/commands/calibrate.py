"""`setpoint calibrate`: the threshold of a run set anew on fresh labelled rows; the model and old points are kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from setpoint.commands.evaluate import judged_counts, rates_of
from setpoint.commands.fit import UNCERTIFIED, read_sure
from setpoint.commands.show import grid, write_json
from setpoint.commands.terminal import console, say
from setpoint.commands.watch import fingerprint_of
from setpoint.data.exchange import frames_at
from setpoint.data.frame import Frame
from setpoint.data.seen import Notes
from setpoint.data.text_format import TextFormat
from setpoint.decide.settle import Confidence, Settled, demanded, settle
from setpoint.decide.settle_tally import settle_tally
from setpoint.errors import BadSetting
from setpoint.lock import locked
from setpoint.problem.point import OperatingPoint
from setpoint.problem.population import PopulationWeights
from setpoint.problem.watch import CALIBRATED
from setpoint.run.artefact import SavedRun, load_run
from setpoint.run.tallies import first_look, second_look
from setpoint.run.watching import WatchedRun
from setpoint.run.weighted_rows import read_weights, refuse_weighted_columns


def main(
    *,
    run: Path,
    data: list[Path],
    confidence: str,
    weight: str | None,
    most_weight: float | None,
    stream: bool,
    workers: str | None,
    ignore_extra: bool,
    as_json: bool,
    quiet: bool,
    separator: str | None,
    encoding: str | None,
    no_header: bool,
) -> int:
    found: list[str] = []
    sure = read_sure(confidence)
    layout = TextFormat(separator, encoding, not no_header)
    in_chunks = stream or workers is not None
    if weight is not None and in_chunks:
        raise BadSetting("--weight is for a table in memory; leave out --stream and --workers")
    with locked(run), frames_at(data, stream=stream, workers=workers, layout=layout, notes=found) as frames:
        batch, named = fingerprint_of(data, frames), ", ".join(path.name for path in data)
        saved = load_run(run)
        watched, old, notes = WatchedRun(run, saved), saved.point, saved.schema.notes()
        problem = old.problem
        last = next((entry for entry in reversed(watched.watch.entries) if entry["kind"] == CALIBRATED), None)
        again = last is not None and last["batch"] == batch
        if last is not None and again:
            found.append(f"the threshold is that of {named} already; it is not set again")
            old = OperatingPoint.from_dict(last["before"])
        elif known := watched.watch.place_of(batch):
            found.append(f"{named} was watched before, as entry {known}: rows that raised an alarm are no fair sample")
        if in_chunks:
            fresh = _in_chunks(saved, old, frames, sure, ignore_extra)
        else:
            (frame,) = frames
            frame, weights = read_weights(frame, weight, most_weight, watched.current)
            refuse_weighted_columns(weights, problem.columns)
            fresh = _whole(saved, old, frame, weights, sure, ignore_extra)
        settled, here = fresh.settled, fresh.here
        notes.merge(fresh.notes)
        if not again:
            more = {"name": named, "batch": batch, "rows": fresh.rows, "before": old.to_dict()}
            watched.restart(settled.point, fresh.scores, fresh.labels, more)
            watched.write()
    refused = settled.refusal is not None and demanded(sure) is not None
    say(console(stderr=True, quiet=quiet), *(f"note: {note}" for note in [*found, *notes.sentences()]))
    new = settled.point
    if as_json:
        write_json(
            {"ask": str(problem), "rows": fresh.rows, "before": old.to_dict(), "before_here": here.rates,
             "point": new.to_dict(), "refusal": settled.refusal}
        )  # fmt: skip
        return UNCERTIFIED if refused else 0
    screen = console(quiet=quiet)
    say(screen, f"{problem}, on {fresh.rows} fresh rows:")
    screen.print(grid(["rate", "old threshold\nwhen set", "old threshold\nhere", "new threshold\nhere"],
                      rates_of(old, here, new)))  # fmt: skip
    say(screen, f"The old {old.thresholds.noun} was {old.thresholds.describe()}. {new.thresholds.rule()}.")
    said = settled.refusal or (str(new.certificate) if new.certificate else "")
    say(screen, *([f"{'No certificate' if settled.refusal else 'Certificate'}: {said}."] if said else []))
    return UNCERTIFIED if refused else 0


def _as_drawn(scores: Tensor, labels: Tensor, weights: PopulationWeights | None) -> tuple[Tensor, Tensor]:
    """Rows with which new ones are compared: all of them, or a random part in which each stands for one."""
    if weights is None:
        return scores, labels
    heavy = torch.as_tensor(weights.weights, dtype=torch.float64)
    kept = (
        torch.rand(len(heavy), generator=torch.Generator().manual_seed(0), dtype=torch.float64) * weights.most < heavy
    )
    return scores[kept], labels[kept]


@dataclass(frozen=True)
class Fresh:
    """The new point and the old one, judged on fresh rows.

    Attributes:
        settled: The new point.
        here: The old point on the fresh rows.
        rows: The number of fresh rows.
        scores: Their scores, or some of them if the table was read in chunks.
        labels: The labels of these scores.
        notes: Values that training never saw.
    """

    settled: Settled
    here: OperatingPoint
    rows: int
    scores: Tensor
    labels: Tensor
    notes: Notes


def _whole(
    saved: SavedRun,
    old: OperatingPoint,
    frame: Frame,
    weights: PopulationWeights | None,
    sure: Confidence,
    ignore_extra: bool,
) -> Fresh:
    problem, notes = old.problem, saved.schema.notes()
    scores = saved.scores(frame, ignore_extra=ignore_extra, notes=notes)
    labels = saved.schema.labels(frame)
    groups = None if problem.group is None else saved.schema.groups(frame, problem.group)
    values = saved.schema.values(frame, problem.columns) if weights is None else weights
    settled = settle(problem, scores, labels, sure, weights=values, groups=groups, classes=old.classes or None)
    here = old.judge(scores, labels, weights=values if weights is None else weights.weights, groups=groups)
    return Fresh(settled, here, len(labels), *_as_drawn(scores, labels, weights), notes)


def _in_chunks(
    saved: SavedRun, old: OperatingPoint, frames: Iterable[Frame], sure: Confidence, ignore_extra: bool
) -> Fresh:
    """The same without estimates, from tallies of all scores, in two passes over the table."""
    look = first_look(saved, frames, ignore_extra=ignore_extra)
    again = partial(second_look, saved, frames, ignore_extra=ignore_extra)
    settled = settle_tally(old.problem, look.tally, again, sure)
    here = judged_counts(old, look.counts)
    return Fresh(settled, here, look.rows, torch.cat(look.scores), torch.cat(look.labels), look.notes)
