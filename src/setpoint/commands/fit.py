"""`setpoint fit`: from a table and an ask to a run on disk, or on with one that was killed."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from setpoint.commands.asks import read_asks
from setpoint.commands.show import label_table, progress, result_table, trials_table, write_json
from setpoint.commands.terminal import console, say
from setpoint.data.learn import ENCODER
from setpoint.data.text_format import TextFormat
from setpoint.decide.settle import demanded
from setpoint.errors import BadSetting, SetpointError
from setpoint.measure.labels import LABELS
from setpoint.problem.certificate import AUTO
from setpoint.processes import ALONE, Processes
from setpoint.report.verdict import first_line, sentences
from setpoint.run.settings import Settings
from setpoint.run.stream import memory_note, refuse_to_stream, refuse_workers
from setpoint.run.table import TableRun
from setpoint.run.unfinished import Plan, begin, how_to_go_on
from setpoint.run.unfinished import resume as go_on

MISTAKE, UNCERTIFIED, STOPPED = 2, 3, 130
#: While the first process trains what needs all rows in one place, the others wait.
PATIENCE = timedelta(days=7)
#: The options that say what a column is, and the kind that each of them means.
KINDS = {
    "categorical": "categorical",
    "numeric": "numeric",
    "hashed": "hash",
    "text": "text",
    "target_encode": "target-encode",
}


def main(*, context: Any, out: Path, resume: Path | None, as_json: bool, quiet: bool, **asked: Any) -> int:
    found: list[str] = []
    with launched() as processes:
        # One process speaks, and one writes.
        quiet = quiet or not processes.leads
        aside = console(stderr=True, quiet=quiet)
        if resume is not None:
            _refuse_others(context)
            out = resume
        else:
            force = asked.pop("force")
            plan = _plan(**asked)
            if plan.stream and not restarts():
                say(aside, f"note: {memory_note(plan.data)}")
        try:
            with progress(aside) as on_epoch:
                if resume is not None:
                    run = go_on(out, on_epoch=on_epoch, processes=processes)
                else:
                    again = restarts() > 0
                    run = begin(
                        plan, out, force=force, go_on=again, on_epoch=on_epoch, processes=processes, notes=found
                    )
        except SetpointError:
            # How the file was read may explain what is wrong with it.
            say(aside, *(f"note: {note}" for note in found))
            raise
        except KeyboardInterrupt:
            print(f"setpoint: interrupted; {how_to_go_on(out)}", file=sys.stderr)
            return STOPPED
        except OSError as cause:
            where = f"{cause.filename or out} cannot be written or read: {cause.strerror or cause}"
            print(f"setpoint: {where}; {how_to_go_on(out)}", file=sys.stderr)
            return MISTAKE
        say(aside, *(f"note: {note}" for note in run.notes))
        code = _refused(run, out) if processes.leads else 0
        if as_json and processes.leads:
            write_json({"out": str(out), **run.to_dict(), "sentences": [*first_line(run), *sentences(run)]})
            return code
        screen = console(quiet=quiet)
        say(screen, *first_line(run))
        screen.print(result_table(run))
        if run.chosen.point.labels:
            screen.print(label_table(run))
        if run.chosen.trials:
            screen.print(trials_table(run))
        say(
            screen,
            *sentences(run),
            *(f"warning: {caution.sentence}" for caution in run.cautions),
            f"Written to {out}. Look at it: setpoint report {out} --open",
            f"Decide new rows: setpoint predict {out} new.csv --out decisions.csv",
            f"Check the promise on later rows: setpoint evaluate {out} labelled.csv",
        )
        return code


def _refused(run: TableRun, out: Path) -> int:
    """The exit code: `UNCERTIFIED` if --confidence demanded a certificate that could not be given, which is said."""
    if demanded(run.settings.confidence) is None or run.chosen.refusal is None:
        return 0
    print(f"setpoint: no certificate: {run.chosen.refusal}; the run is kept in {out}, without one", file=sys.stderr)
    return UNCERTIFIED


def _plan(
    *,
    data: list[Path] | None,
    target: str | None,
    ask: str | None,
    positive: str | None,
    checkpoint_seconds: float,
    stream: bool,
    workers: str | None,
    separator: str | None,
    encoding: str | None,
    no_header: bool,
    **how: Any,
) -> Plan:
    problem = None if ask is None else read_asks(ask)
    if not data or problem is None or (target is None and problem.kind != LABELS):
        lacking = "a table" if not data else "--ask" if problem is None else "--target"
        raise BadSetting(f"{lacking} is missing; see setpoint fit --help")
    if workers is not None and how["model"] is None:
        how["model"] = "linear"
    settings = read_settings(**how)
    settings.refuse_other_lists(problem)
    if stream or workers is not None:
        refuse_to_stream(problem, settings)
    if workers is not None:
        refuse_workers(settings)
    layout, paths = TextFormat(separator, encoding, not no_header), tuple(map(str, data))
    stream = stream or workers is not None
    return Plan(paths, target or "", str(problem), settings, positive, checkpoint_seconds, stream, layout, workers)


def _refuse_others(context: Any) -> None:
    """Refuse options beside --resume that would change the stored ask."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    given = [name for name, source in sources.items() if source is not None and source.name != "DEFAULT"]
    others = [name for name in given if name not in ("resume", "as_json", "quiet")]
    if others:
        raise BadSetting(f"--resume takes what was asked from the run; leave out {others[0].replace('_', ' ')}")


def read_settings(
    *,
    shares: str,
    solver: str,
    model: str | None,
    confidence: str = AUTO,
    tune: int = 0,
    monotone: str | None = None,
    **rest: Any,
) -> Settings:
    """Settings from options; the four shares come as one text, and to tune is to choose `auto`.

    The model is the best of all kinds, unless an option says how a linear model or a network is to be trained.
    """
    try:
        train, held_out, calibration, test = (float(share) for share in shares.split(","))
    except ValueError as cause:
        raise BadSetting(f"shares must be four numbers such as 0.5,0.15,0.15,0.2, got {shares!r}") from cause
    solver = "auto" if tune and solver == "default" else solver
    kinds = read_kinds({option: rest.pop(option, None) or () for option in (*KINDS, "encoder")})
    rest = {**rest, **{option: tuple(rest.get(option) or ()) for option in ("drop", "columns")}}
    if model is None:
        by_solver = solver != "default" or rest.get("epochs") or rest.get("batch_size")
        model = "linear" if by_solver else "trees" if monotone else "auto"
    return Settings(
        shares=(train, held_out, calibration, test), solver=solver, model=model, tune=tune,
        monotone=read_monotone(monotone), kinds=kinds, confidence=read_sure(confidence), **rest,
    )  # fmt: skip


def read_kinds(given: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The kind of each column that an option names: the options of `KINDS`, and "encoder" with texts COLUMN=NAME."""
    named = [(name, kind) for option, kind in KINDS.items() for name in given[option]]
    for text in given["encoder"]:
        name, equals, wanted = text.partition("=")
        if not (name and equals and wanted):
            raise BadSetting(f"--encoder takes a column and an encoder, as in text=NAME; got {text!r}")
        named.append((name, f"{ENCODER}{wanted}"))
    kinds: dict[str, str] = {}
    for name, kind in named:
        if kinds.setdefault(name, kind) != kind:
            raise BadSetting(f"--{kinds[name]} and --{kind} both name column {name!r}; choose one")
    return kinds


def read_monotone(text: str | None) -> dict[str, int]:
    """The direction of each column, from a text such as "+age,-income"."""
    signs = {"+": 1, "-": -1}
    parts = [part.strip() for part in (text or "").split(",") if part.strip()]
    odd = [part for part in parts if part[0] not in signs or len(part) < 2]
    if odd:
        raise BadSetting(f"--monotone takes columns with + or - before them, such as +age,-income; got {odd[0]!r}")
    return {part[1:]: signs[part[0]] for part in parts}


def read_sure(confidence: str) -> float | str | None:
    """The confidence from its option: a number, "auto" or "none"."""
    if confidence.lower() in (AUTO, "none"):
        return AUTO if confidence.lower() == AUTO else None
    try:
        return float(confidence)
    except ValueError as cause:
        raise BadSetting(f"confidence must be a number such as 0.95, auto or none, got {confidence!r}") from cause


@contextlib.contextmanager
def launched() -> Iterator[Processes]:
    """All processes of a `torchrun`; without one, this process alone."""
    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or "RANK" not in os.environ:
        yield ALONE
        return
    store, rank, size = next(rendezvous("env://"))
    if os.environ.get("LOCAL_WORLD_SIZE") == os.environ["WORLD_SIZE"]:
        # On one machine the store outlives a restart, and with it the addresses of processes that are no more.
        store = PrefixStore(f"start-{restarts()}", store)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=PATIENCE)
    try:
        yield Processes.of()
    finally:
        dist.destroy_process_group()


def restarts() -> int:
    """The number of times that `torchrun` has started the processes again, after one of them failed."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
