"""Runs that may be killed: what was asked is kept with the checkpoint, inside the directory of the run, until it is
whole; `resume` needs nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from setpoint.data.frame import Frame, read_table
from setpoint.data.scan import Scan, fingerprint, scan_table
from setpoint.errors import BadFile, BadSetting, BadTable, SetpointError
from setpoint.lock import locked
from setpoint.problem.language import ask
from setpoint.processes import ALONE, Processes
from setpoint.run.artefact import UNFINISHED, check_place, place_run
from setpoint.run.settings import Settings
from setpoint.run.stream import fit_stream
from setpoint.run.table import TableRun, fit_table
from setpoint.train.checkpoint import STATE, Checkpoint, read_state, refusing_damage
from setpoint.train.work import Work

OnEpoch = Callable[[str, int, int], None]
#: Seconds between two states on the command line, where epochs can be shorter than writing one.
GAP = 1.0


@dataclass(frozen=True)
class Plan:
    """All that a run was asked for; `data` is the path of its table."""

    data: str
    target: str
    ask: str
    settings: Settings
    positive: str | None = None
    seconds: float = 30.0
    stream: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain data, good in any working directory."""
        return {**asdict(self), "data": str(Path(self.data).absolute())}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Plan:
        """The plan that `to_dict` wrote."""
        settings = Settings(**{**data["settings"], "shares": tuple(data["settings"]["shares"])})
        return cls(**{**data, "settings": settings})


def begin(
    plan: Plan,
    out: str | os.PathLike[str],
    *,
    force: bool = False,
    go_on: bool = False,
    on_epoch: OnEpoch | None = None,
    processes: Processes = ALONE,
) -> TableRun:
    """Carry out a plan and write the run. A mistake leaves nothing behind; a kill, what `resume` goes on from.

    An earlier run in that place, to be replaced by `force`, can be read until the new one is whole. With `go_on` what
    is there of this very plan is taken up. Of several `processes` the first alone touches that place, and holds its
    lock from here on until the run is written.
    """
    out = Path(out)
    ask(plan.ask)
    if not processes.leads:
        return _begin(plan, out, go_on, on_epoch, processes)
    check_place(out, force=True)
    with locked(out):
        check_place(out, force=force or go_on)
        return _begin(plan, out, go_on, on_epoch, processes)


def _begin(plan: Plan, out: Path, go_on: bool, on_epoch: OnEpoch | None, processes: Processes) -> TableRun:
    table = _open(plan)
    about = {**plan.to_dict(), "fingerprint": _fingerprint(table)}
    kept = Checkpoint(
        out / UNFINISHED, seconds=plan.seconds, gap=GAP, keep=True, anew=not go_on, about=about, processes=processes
    )
    try:
        run = _fit(plan, table, on_epoch, kept)
    except SetpointError:
        if kept.begun:
            kept.remove()
        raise
    _finish(out, run, kept)
    return run


def resume(out: str | os.PathLike[str], *, on_epoch: OnEpoch | None = None, processes: Processes = ALONE) -> TableRun:
    """Go on with a run that was killed. Data that are no longer those it began with are refused."""
    out = Path(out)
    if not processes.leads:
        return _resume(out, on_epoch, processes)
    _refuse_nothing(out)
    with locked(out):
        return _resume(out, on_epoch, processes)


def _resume(out: Path, on_epoch: OnEpoch | None, processes: Processes) -> TableRun:
    about = processes.from_first(_about(out) if processes.leads else {})
    then = about["fingerprint"]
    plan = Plan.from_dict({name: value for name, value in about.items() if name != "fingerprint"})
    if not Path(plan.data).is_file():
        raise BadFile(f"{plan.data}, which the run at {out} was training on, is no longer there; put it back")
    table = _open(plan)
    now = _fingerprint(table)
    if now != then:
        raise BadTable(
            f"{plan.data} has changed since the run at {out} began ({then['rows']} rows, hash {then['sha256'][:12]}; "
            f"now {now['rows']}, hash {now['sha256'][:12]}); put it back, or start anew with --force"
        )
    checkpoint = Checkpoint(
        out / UNFINISHED, seconds=plan.seconds, gap=GAP, keep=True, about=about, processes=processes
    )
    run = _fit(plan, table, on_epoch, checkpoint)
    _finish(out, run, checkpoint)
    return run


def _open(plan: Plan) -> Frame | Scan:
    return scan_table(plan.data) if plan.stream else read_table(plan.data)


def _fingerprint(table: Frame | Scan) -> dict[str, Any]:
    return table.fingerprint() if isinstance(table, Scan) else fingerprint(table)


def _fit(plan: Plan, table: Frame | Scan, on_epoch: OnEpoch | None, store: Checkpoint) -> TableRun:
    work = Work(store, processes=store.processes)
    how: dict[str, Any] = {"positive": plan.positive, "on_row": on_epoch, "work": work}
    if isinstance(table, Scan):
        if not store.processes.alone:
            raise BadSetting("--stream reads a table in one process; leave it out, or start without torchrun")
        return fit_stream(table, plan.target, ask(plan.ask), plan.settings, **how)
    return fit_table(table, plan.target, ask(plan.ask), plan.settings, **how)


def _about(out: Path) -> dict[str, Any]:
    """What the unfinished run in a place was asked for, and the fingerprint of its table."""
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


def _finish(out: Path, run: TableRun, kept: Checkpoint) -> None:
    if kept.processes.leads:
        place_run(out, run, force=True)
        kept.remove()


def how_to_go_on(out: str | os.PathLike[str]) -> str:
    """What to do about a run that stopped."""
    if (Path(out) / UNFINISHED / STATE).is_file():
        return f"go on with: setpoint fit --resume {out}"
    return "nothing was kept; start it again"
