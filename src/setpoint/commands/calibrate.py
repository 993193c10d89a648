"""`setpoint calibrate`: the threshold of a run set anew on fresh labelled rows; the model and old points are kept."""

from __future__ import annotations

from pathlib import Path

from setpoint.commands.evaluate import rates_of
from setpoint.commands.fit import UNCERTIFIED, read_sure
from setpoint.commands.show import grid, write_json
from setpoint.commands.terminal import console, say, tell
from setpoint.commands.watch import fingerprint_of
from setpoint.data.exchange import frames_at
from setpoint.data.text_format import TextFormat
from setpoint.errors import BadSetting
from setpoint.lock import locked
from setpoint.run.recalibrate import recalibrate
from setpoint.run.watching import Batch


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
        named = ", ".join(path.name for path in data)
        batch = Batch(frames, fingerprint_of(data, frames), named, ignore_extra, weight=weight, most=most_weight)
        fresh = recalibrate(run, batch, sure, in_chunks=in_chunks)
    found += fresh.told
    problem, old, settled, here = fresh.old.problem, fresh.old, fresh.settled, fresh.here
    tell(*(f"note: {note}" for note in [*found, *fresh.notes.sentences()]), stderr=True, quiet=quiet)
    point, code = fresh.point, 0 if fresh.is_set else UNCERTIFIED
    if as_json:
        write_json(
            {"ask": str(problem), "rows": fresh.rows, "before": old.to_dict(), "before_here": here.rates,
             "point": point.to_dict(), "is_set": fresh.is_set, "refusal": settled.refusal}
        )  # fmt: skip
        return code
    screen, noun = console(quiet=quiet), "threshold" if old.thresholds.noun == "threshold" else "decision"
    say(screen, f"{problem}, on {fresh.rows} fresh rows:")
    heads = ["rate", f"old {noun}\nwhen set", f"old {noun}\nhere", f"new {noun}\nhere"]
    points = [old, here, *([point] if fresh.is_set else [])]
    screen.print(grid(heads[: 1 + len(points)], rates_of(*points)))
    if fresh.is_set:
        say(screen, f"The old {noun} was {old.thresholds.describe()}. {point.thresholds.rule()}.")
    else:
        say(screen, f"The run stays as it was: the {noun} is {point.thresholds.describe()}.")
    said = settled.refusal or (str(point.certificate) if point.certificate else "")
    say(screen, *([f"{'No certificate' if settled.refusal else 'Certificate'}: {said}."] if said else []))
    return code
