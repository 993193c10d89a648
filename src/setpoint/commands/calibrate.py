"""`setpoint calibrate`: the threshold of a run set anew on fresh labelled rows; the model and old points are kept."""

from __future__ import annotations

from pathlib import Path

from setpoint.commands.evaluate import rates_of
from setpoint.commands.fit import UNCERTIFIED, read_sure
from setpoint.commands.show import grid, write_json
from setpoint.commands.terminal import console, say
from setpoint.commands.watch import fingerprint_of
from setpoint.data.exchange import frames_of
from setpoint.data.text_format import TextFormat
from setpoint.decide.settle import demanded, settle
from setpoint.lock import locked
from setpoint.problem.point import OperatingPoint
from setpoint.problem.watch import CALIBRATED
from setpoint.run.artefact import load_run
from setpoint.run.watching import WatchedRun


def main(
    *,
    run: Path,
    data: list[Path],
    confidence: str,
    ignore_extra: bool,
    as_json: bool,
    quiet: bool,
    separator: str | None,
    encoding: str | None,
    no_header: bool,
) -> int:
    found: list[str] = []
    sure = read_sure(confidence)
    (frame,) = frames_of(data, stream=False, layout=TextFormat(separator, encoding, not no_header), notes=found)
    batch, named = fingerprint_of(data, [frame]), ", ".join(path.name for path in data)
    with locked(run):
        saved = load_run(run)
        watched, old, notes = WatchedRun(run, saved), saved.point, saved.schema.notes()
        problem = old.problem
        scores = saved.scores(frame, ignore_extra=ignore_extra, notes=notes)
        labels = saved.schema.labels(frame)
        groups = None if problem.group is None else saved.schema.groups(frame, problem.group)
        values = saved.schema.values(frame, problem.columns)
        last = next((entry for entry in reversed(watched.watch.entries) if entry["kind"] == CALIBRATED), None)
        again = last is not None and last["batch"] == batch
        if last is not None and again:
            found.append(f"the threshold is that of {named} already; it is not set again")
            old = OperatingPoint.from_dict(last["before"])
        elif known := watched.watch.place_of(batch):
            found.append(f"{named} was watched before, as entry {known}: rows that raised an alarm are no fair sample")
        settled = settle(problem, scores, labels, sure, weights=values, groups=groups, classes=old.classes or None)
        here = old.judge(scores, labels, weights=values, groups=groups)
        if not again:
            more = {"name": named, "batch": batch, "rows": len(labels), "before": old.to_dict()}
            watched.restart(settled.point, scores, labels, more)
            watched.write()
    refused = settled.refusal is not None and demanded(sure) is not None
    say(console(stderr=True, quiet=quiet), *(f"note: {note}" for note in [*found, *notes.sentences()]))
    new = settled.point
    if as_json:
        write_json(
            {"ask": str(problem), "rows": len(labels), "before": old.to_dict(), "before_here": here.rates,
             "point": new.to_dict(), "refusal": settled.refusal}
        )  # fmt: skip
        return UNCERTIFIED if refused else 0
    screen = console(quiet=quiet)
    say(screen, f"{problem}, on {len(labels)} fresh rows:")
    screen.print(grid(["rate", "old threshold\nwhen set", "old threshold\nhere", "new threshold\nhere"],
                      rates_of(old, here, new)))  # fmt: skip
    say(screen, f"The old {old.thresholds.noun} was {old.thresholds.describe()}. {new.thresholds.rule()}.")
    said = settled.refusal or (str(new.certificate) if new.certificate else "")
    say(screen, *([f"{'No certificate' if settled.refusal else 'Certificate'}: {said}."] if said else []))
    return UNCERTIFIED if refused else 0
