"""`setpoint watch`: one more look at a run that is in use, with labels, without, or with labels that come late."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from setpoint.commands.show import grid, write_json
from setpoint.commands.terminal import console, say
from setpoint.data.exchange import frames_of
from setpoint.data.scan import Scan, fingerprint, hash_of_files
from setpoint.data.text_format import TextFormat
from setpoint.decide.drift import drift_of
from setpoint.decide.without_labels import rates_without_labels
from setpoint.errors import BadSetting, BadTable
from setpoint.lock import locked
from setpoint.report.watching import advice, drift_words, evidence_words, unlabelled_words, watch_words
from setpoint.run.artefact import load_run
from setpoint.run.watching import SCORED, Batch, WatchedRun

BROKEN, DRIFT = 1, 4


def main(
    *,
    run: Path,
    data: list[Path],
    scores: bool,
    labels: bool,
    key: str | None,
    name: str | None,
    level: float | None,
    stream: bool,
    ignore_extra: bool,
    as_json: bool,
    quiet: bool,
    separator: str | None,
    encoding: str | None,
    no_header: bool,
) -> int:
    if scores and labels:
        raise BadSetting("--scores is for rows without labels and --labels for labels alone; give one of them")
    if labels and key is None:
        raise BadSetting("--labels finds the scored rows by a key; name its column with --key")
    found: list[str] = []
    frames = frames_of(
        data, stream=stream and not labels, layout=TextFormat(separator, encoding, not no_header), notes=found
    )
    named = name or ", ".join(path.name for path in data)
    batch = Batch(frames, fingerprint_of(data, frames), named, ignore_extra, key)
    with locked(run):
        watched = WatchedRun(run, load_run(run), level)
        notes = watched.saved.schema.notes()
        told = _take(watched, batch, notes, scores=scores, labels=labels)
        watched.write()
    say(console(stderr=True, quiet=quiet), *(f"note: {note}" for note in [*found, *told, *notes.sentences()]))
    return _answer(run, watched, as_json=as_json, quiet=quiet)


def _take(watched: WatchedRun, batch: Batch, notes: Any, *, scores: bool, labels: bool) -> list[str]:
    """Count the batch, unless it was counted before; notes on it."""
    before = watched.known(batch)
    if before is not None:
        return [f"{batch.name} was counted before, as entry {before} of the record; it is not counted again"]
    if labels:
        matched, strange = watched.late(batch)
        note = f"; {strange} labels have no scored row that waits for them" if strange else ""
        return [f"{matched} scored rows got their labels{note}"]
    target = watched.saved.schema.target.name
    if not scores and target not in next(iter(batch.frames)).columns:
        raise BadTable(f"{batch.name} has no column {target!r}; to watch rows without labels, add --scores")
    watched.look(batch, notes, labelled=not scores)
    return []


def fingerprint_of(paths: list[Path], frames: Any) -> str:
    """A hash of the bytes of the files, or of the values of a table that came through a pipe."""
    if all(path.is_file() for path in paths):
        return hash_of_files(paths)
    return str(frames.fingerprint()["sha256"] if isinstance(frames, Scan) else fingerprint(frames[0])["sha256"])


def _answer(run: Path, watched: WatchedRun, *, as_json: bool, quiet: bool) -> int:
    watch, entries = watched.watch, watched.current
    drift = drift_of(entries, watch.level)
    drifted = [one for one in drift if one.drifts]
    last = entries[-1] if entries and entries[-1]["kind"] == SCORED else None
    counts = next((entry["counts"] for entry in entries if entry["kind"] == "reference" and "counts" in entry), None)
    unlabelled = rates_without_labels(watch.problem, counts, last["flagged"] / last["rows"]) if last and counts else []
    code = BROKEN if watch.broken else DRIFT if drifted else 0
    if as_json:
        write_json(
            {
                "ask": str(watch.problem),
                "level": watch.level,
                "looks": len(watch.looks),
                "broken": watch.broken,
                "holds": watch.holds,
                "bounds": [asdict(bound) for bound in watch.bounds],
                "drift": [{**asdict(one), "drifts": one.drifts} for one in drift],
                "without_labels": [asdict(one) for one in unlabelled],
                "waiting": watched.rows_waiting,
                "advice": advice(watch, str(run), drifted),
                "hash": watch.hash,
            }
        )
        return code
    screen = console(quiet=quiet)
    say(screen, f"{watch.problem}, after {len(watch.looks)} labelled look{'s' * (len(watch.looks) != 1)}:")
    screen.print(grid(["bound", "rate", "interval", "rows", "e against", "e for"], evidence_words(watch)))
    say(screen, watch_words(watch), *drift_words(drift), *unlabelled_words(unlabelled, last))
    if watched.rows_waiting:
        say(screen, f"{watched.rows_waiting} scored rows wait for their labels.")
    say(screen, *advice(watch, str(run), drifted))
    return code
