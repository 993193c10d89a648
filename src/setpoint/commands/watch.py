"""`setpoint watch`: one more look at a run that is in use, with labels, without, or with labels that come late."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from setpoint.commands.show import grid, write_json
from setpoint.commands.terminal import console, say, tell
from setpoint.data.exchange import beside, frames_at, refuse_place, writing
from setpoint.data.scan import Scan, fingerprint, hash_of_files
from setpoint.data.text_format import TextFormat
from setpoint.decide.drift import drift_of
from setpoint.decide.without_labels import rates_without_labels
from setpoint.errors import BadSetting, BadTable
from setpoint.lock import locked
from setpoint.problem.label_plan import plan_words
from setpoint.report.watching import advice, drift_words, evidence_words, unlabelled_words, watch_words
from setpoint.run.artefact import load_run
from setpoint.run.watching import SCORED, Batch, WatchedRun

BROKEN, DRIFT = 1, 4
#: The column that rows to label get.
WEIGHT = "weight"


@dataclass(frozen=True)
class LookOptions:
    """How a batch is looked at: one field for each option of the command."""

    scores: bool
    labels: bool
    key: str | None
    weight: str | None
    most_weight: float | None
    plan: int | None
    out: Path | None
    name: str | None
    level: float | None
    stream: bool
    workers: str | None
    ignore_extra: bool

    def __post_init__(self) -> None:
        several = self.scores or self.labels or self.stream or self.workers
        if self.scores and self.labels:
            raise BadSetting("--scores is for rows without labels and --labels for labels alone; give one of them")
        if self.labels and self.key is None:
            raise BadSetting("--labels finds the scored rows by a key; name its column with --key")
        if self.weight is not None and several:
            raise BadSetting(
                "--weight is for a table of labelled rows; leave out --scores, --labels, --stream, --workers"
            )
        if self.weight is None and self.most_weight is not None:
            raise BadSetting("--most-weight is the largest weight of a column; name the column with --weight")
        if self.plan is not None and (several or self.weight or self.most_weight or self.out is None):
            raise BadSetting("--plan draws rows of one table to label; it needs --out, and takes no other kind of look")

    @property
    def reading(self) -> dict[str, Any]:
        """How the files are read: labels that come late are read whole."""
        return {"stream": self.stream and not self.labels, "workers": None if self.labels else self.workers}

    def batch(self, data: list[Path], frames: Any) -> Batch:
        """The tables as one batch of the record."""
        name = self.name or ", ".join(path.name for path in data)
        found = fingerprint_of(data, frames)
        return Batch(frames, found, name, self.ignore_extra, self.key, self.weight, self.most_weight)


def main(*, run: Path, data: list[Path], as_json: bool, quiet: bool, **asked: Any) -> int:
    layout = TextFormat(asked.pop("separator"), asked.pop("encoding"), not asked.pop("no_header"))
    look, found = LookOptions(**asked), list[str]()
    with locked(run), frames_at(data, **look.reading, layout=layout, notes=found) as frames:
        batch = look.batch(data, frames)
        watched = WatchedRun(run, load_run(run), look.level)
        notes = watched.saved.schema.notes()
        if look.plan is not None and look.out is not None:
            return _plan(watched, batch, look.plan, look.out, as_json=as_json, quiet=quiet)
        told = _take(watched, batch, notes, scores=look.scores, labels=look.labels)
        watched.write()
    tell(*(f"note: {note}" for note in [*found, *told, *notes.sentences()]), stderr=True, quiet=quiet)
    return _answer(run, watched, as_json=as_json, quiet=quiet)


def _take(watched: WatchedRun, batch: Batch, notes: Any, *, scores: bool, labels: bool) -> list[str]:
    """Count the batch, unless it was counted before; notes on it."""
    before = watched.known(batch)
    if before is not None:
        return [f"{batch.name} was counted before, as entry {before} of the record; it is not counted again"]
    if labels:
        # Rows without labels keep waiting.
        matched, strange = watched.late(batch)
        note = f"; {strange} labels have no scored row that waits for them" if strange else ""
        return [f"{matched} scored rows got their labels{note}", *watched.told, *_left_out(watched)]
    target = watched.saved.schema.target.name
    if not scores and target not in next(iter(batch.frames)).columns:
        raise BadTable(f"{batch.name} has no column {target!r}; to watch rows without labels, add --scores")
    watched.look(batch, notes, labelled=not scores)
    return [*watched.told, *_left_out(watched)]


def _left_out(watched: WatchedRun) -> list[str]:
    """A note on the clusters of the last look that an earlier look has counted."""
    times, column = watched.watch.entries[-1].get("left_out", 0), watched.saved.cluster
    known = "was counted before" if times == 1 else "were counted before"
    rule = f"each {column!r} counts once, since its rows depend on each other"
    return [f"{times} values of {column!r} {known} and are left out: {rule}"] if times else []


def _plan(watched: WatchedRun, batch: Batch, labels: int, out: Path, *, as_json: bool, quiet: bool) -> int:
    """Draw the rows to label, write them with their weights, and say what to do with them."""
    refuse_place(out)
    notes = watched.saved.schema.notes()
    planned = watched.plan(batch, labels, notes)
    if WEIGHT in planned.frame.columns:
        raise BadTable(f"{batch.name} has a column {WEIGHT!r}, which the rows to label get; rename it")
    with writing(out) as write:
        write(beside(planned.frame, list(planned.frame.columns), {WEIGHT: planned.weights}))
    watched.write()
    tell(*(f"note: {note}" for note in notes.sentences()), stderr=True, quiet=quiet)
    told = {"rows": sum(planned.rows), "drawn": sum(planned.drawn), "out": str(out), "edges": planned.plan.edges,
            "chances": planned.plan.chances, "drawn_by_stratum": planned.drawn}  # fmt: skip
    if as_json:
        write_json(told)
        return 0
    screen = console(quiet=quiet)
    say(screen, f"{told['drawn']:,} of {told['rows']:,} rows are to be labelled; about {labels:,} were asked for:")
    screen.print(
        grid(["scores", "rows", "to label", "each stands for"], plan_words(planned.plan, planned.rows, planned.drawn))
    )
    target = watched.saved.schema.target.name
    say(
        screen,
        f"They are in {out}. Fill in {target!r} in every row, leave no row out, and look: "
        f"setpoint watch {watched.path} {out} --weight {WEIGHT}",
    )
    return 0


def fingerprint_of(paths: list[Path], frames: Any) -> str:
    """A hash of the bytes of the files, or of the values of a table that came through a pipe."""
    if all(path.is_file() for path in paths):
        return hash_of_files(paths)
    return str(frames.fingerprint()["sha256"] if isinstance(frames, Scan) else fingerprint(frames[0])["sha256"])


def _answer(run: Path, watched: WatchedRun, *, as_json: bool, quiet: bool) -> int:
    watch, entries = watched.watch, watched.current
    drift = drift_of(entries, watch.level) if watched.saved.cluster is None else []
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
    counted, column = "clusters" if watch.by_clusters else "rows", watched.saved.cluster
    screen.print(grid(["bound", "rate", "interval", counted, "e against", "e for"], evidence_words(watch)))
    untested = [f"Drift is not tested, since rows of one {column!r} depend on each other."]
    said = drift_words(drift) if column is None else untested
    say(screen, watch_words(watch), *said, *unlabelled_words(unlabelled, last))
    if watched.rows_waiting:
        say(screen, f"{watched.rows_waiting} scored rows wait for their labels.")
    say(screen, *advice(watch, str(run), drifted))
    return code
