"""Runs that may be killed: the plan is stored with the checkpoint in the directory of the run until the run is whole,
and `resume` needs nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from setpoint.data.exchange import copy_piped, is_piped
from setpoint.data.frame import Frame, read_table
from setpoint.data.opened import PIPED
from setpoint.data.partitions import workers_at
from setpoint.data.scan import Scan, fingerprint, scan_table
from setpoint.data.text_format import TextFormat
from setpoint.errors import BadFile, BadSetting, BadTable, SetpointError
from setpoint.files import PENDING
from setpoint.lock import locked
from setpoint.problem.language import ask
from setpoint.processes import ALONE, Processes
from setpoint.run.artefact import check_place, place_run
from setpoint.run.settings import Settings
from setpoint.run.stream import fit_stream
from setpoint.run.table import TableRun, fit_table
from setpoint.serve.stored import STATE, UNFINISHED
from setpoint.train.checkpoint import Checkpoint, read_state, refusing_damage
from setpoint.train.work import Work

OnEpoch = Callable[..., None]
#: The least seconds between two states on the command line, where an epoch may be shorter than saving a state.
GAP = 1.0
#: What came through standard input, in the directory of the run until that is whole.
COPY = f"{PENDING}{PIPED}"


@dataclass(frozen=True)
class Plan:
    """All that is needed to repeat a run; `data` are the paths of its table, and `-` is standard input."""

    data: tuple[str, ...]
    target: str
    ask: str
    settings: Settings
    positive: str | None = None
    seconds: float = 30.0
    stream: bool = False
    layout: TextFormat = field(default_factory=TextFormat)
    workers: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with absolute paths, so that any working directory will do."""
        return {**asdict(self), "data": [str(Path(path).absolute()) for path in self.data]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Plan:
        """Read the plan that `to_dict` wrote."""
        listed = {name: tuple(data["settings"][name]) for name in ("shares", "drop", "columns")}
        settings, layout = Settings(**{**data["settings"], **listed}), TextFormat(**data["layout"])
        return cls(**{**data, "data": tuple(data["data"]), "settings": settings, "layout": layout})


def begin(
    plan: Plan,
    out: str | os.PathLike[str],
    *,
    force: bool = False,
    go_on: bool = False,
    on_epoch: OnEpoch | None = None,
    processes: Processes = ALONE,
    notes: list[str] | None = None,
) -> TableRun:
    """Carry out a plan and write the run. An error leaves nothing behind; after a kill, `resume` continues.

    With `force` an earlier run in this place is replaced; it can be read until the new one is whole. With `go_on` an
    unfinished run of the same plan is continued. Only the first of several `processes` writes to this place, and it
    holds the lock until the run is written. A table from standard input is kept beside the run until that is
    whole. `notes` takes what was found out about the files, as soon as it is.
    """
    out = Path(out)
    ask(plan.ask)
    if processes.leads:
        check_place(out, force=True)
    with locked(out) if processes.leads else nullcontext():
        if processes.leads:
            check_place(out, force=force or go_on)
        kept, notes = None, [] if notes is None else notes
        try:
            plan = _kept(plan, out, processes)
            table = _open(plan, notes)
            about = {**plan.to_dict(), "fingerprint": _fingerprint(table)}
            kept = _store(plan, out, about, processes, anew=not go_on)
            return _carry_out(plan, table, out, kept, on_epoch, notes)
        except BaseException as cause:
            if isinstance(cause, SetpointError) and kept is not None and kept.begun:
                kept.remove()
            if not (out / UNFINISHED / STATE).is_file():
                (out / COPY).unlink(missing_ok=True)
            raise


def _kept(plan: Plan, out: Path, processes: Processes) -> Plan:
    """The plan to read a copy of standard input, if the table comes that way."""
    if not is_piped([Path(path) for path in plan.data]):
        return plan
    if not processes.alone:
        raise BadSetting("several processes cannot share standard input; write the table to a file and give that")
    copy_piped(out / COPY)
    return replace(plan, data=(str(out / COPY),))


def resume(out: str | os.PathLike[str], *, on_epoch: OnEpoch | None = None, processes: Processes = ALONE) -> TableRun:
    """Continue a run that was killed. A table that has changed since is refused."""
    out = Path(out)
    if processes.leads:
        _refuse_nothing(out)
    with locked(out) if processes.leads else nullcontext():
        about = processes.from_first(_about(out) if processes.leads else {})
        then = about["fingerprint"]
        plan = Plan.from_dict({name: value for name, value in about.items() if name != "fingerprint"})
        gone = [path for path in plan.data if not Path(path).exists()]
        if gone:
            raise BadFile(f"{gone[0]}, which the run at {out} was training on, is no longer there; put it back")
        notes: list[str] = []
        table = _open(plan, notes)
        now = _fingerprint(table)
        if now != then:
            raise BadTable(
                f"{', '.join(plan.data)} has changed since the run at {out} began ({then['rows']} rows, hash "
                f"{then['sha256'][:12]}; now {now['rows']}, hash {now['sha256'][:12]}); put it back, or start anew "
                "with --force"
            )
        return _carry_out(plan, table, out, _store(plan, out, about, processes), on_epoch, notes)


def _store(plan: Plan, out: Path, about: dict[str, Any], processes: Processes, *, anew: bool = False) -> Checkpoint:
    return Checkpoint(
        out / UNFINISHED, seconds=plan.seconds, gap=GAP, keep=True, anew=anew, about=about, processes=processes
    )


def _carry_out(
    plan: Plan, table: Frame | Scan, out: Path, store: Checkpoint, on_epoch: OnEpoch | None, notes: list[str]
) -> TableRun:
    """Train, write the run and remove its store."""
    work = Work(store, processes=store.processes)
    how: dict[str, Any] = {"positive": plan.positive, "on_row": on_epoch, "work": work}
    if isinstance(table, Scan):
        if not store.processes.alone:
            raise BadSetting("--stream reads a table in one process; leave it out, or start without torchrun")
        with nullcontext() if plan.workers is None else workers_at(plan.workers) as table.workers:
            run = fit_stream(table, plan.target, ask(plan.ask), plan.settings, **how)
    else:
        run = fit_table(table, plan.target, ask(plan.ask), plan.settings, **how)
    files = [Path(path).name for path in plan.data if Path(path).name != COPY] or [PIPED]
    run = replace(run, notes=(*notes, *run.notes), data={**run.data, "files": files})
    if store.processes.leads:
        place_run(out, run, force=True)
        store.remove()
        (out / COPY).unlink(missing_ok=True)
    return run


def _open(plan: Plan, notes: list[str]) -> Frame | Scan:
    if plan.stream:
        return scan_table(plan.data, layout=plan.layout, notes=notes)
    return read_table(plan.data, plan.layout, notes)


def _fingerprint(table: Frame | Scan) -> dict[str, Any]:
    return table.fingerprint() if isinstance(table, Scan) else fingerprint(table)


def _about(out: Path) -> dict[str, Any]:
    """The plan of the unfinished run in a place, and the fingerprint of its table."""
    _refuse_nothing(out)
    kept = out / UNFINISHED
    with refusing_damage(kept):
        about = dict(read_state(kept)["about"])
        Plan.from_dict({name: value for name, value in about.items() if name != "fingerprint"})
        about["fingerprint"]["sha256"], about["fingerprint"]["rows"]
    return about


def _refuse_nothing(out: Path) -> None:
    if not (out / UNFINISHED / STATE).is_file():
        raise BadFile(f"no unfinished run at {out}, so there is nothing to resume")


def how_to_go_on(out: str | os.PathLike[str]) -> str:
    """A sentence that says how to continue a run that stopped."""
    if (Path(out) / UNFINISHED / STATE).is_file():
        return f"go on with: setpoint fit --resume {out}"
    return "nothing was kept; start it again"
