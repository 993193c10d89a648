"""Targets: what is read back from disk, damaged: nothing in it is run, and the reader says so or reads it whole."""

from __future__ import annotations

import functools
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from hypothesis import strategies as st

import setpoint as sp
from fuzz.inputs import numbers
from fuzz.laws import Draw, finite, target
from fuzz.mutate import mutated_bytes, mutated_json
from fuzz.of_problem import judged
from setpoint.data.schema import Schema
from setpoint.run.artefact import ABOUT, MODEL, load_run, save_run
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table
from setpoint.train.checkpoint import STATE

FORBIDDEN = ("exec", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "pickle.find_class", "marshal.loads")
_watching: list[str] = []


def _listen(event: str, _: Any) -> None:
    if _watching and event in FORBIDDEN:
        _watching.append(event)


@functools.cache
def _hooked() -> None:
    """Once a process: an audit hook cannot be taken off again."""
    sys.addaudithook(_listen)


@contextmanager
def nothing_is_run() -> Iterator[None]:
    """No code is made or run, no program started and nothing unpickled meanwhile."""
    _hooked()
    _watching.append("watching")
    try:
        yield
        assert _watching == ["watching"], f"reading a file caused {_watching[1:]}"
    finally:
        _watching.clear()


def table(rows: int = 120) -> pl.DataFrame:
    draw = np.random.default_rng(0)
    label = draw.random(rows) < 0.4
    job = np.where(label, draw.choice(["clerk", "none"], rows), draw.choice(["clerk", "nurse"], rows))
    return pl.DataFrame({"amount": draw.normal(size=rows) + label, "job": job, "label": label})


@functools.cache
def saved() -> dict[str, bytes]:
    """The files of one small run."""
    run = fit_table(table(), "label", sp.ask("minimize fnr where fpr <= 30%"), Settings(solver="implicit", epochs=2))
    with tempfile.TemporaryDirectory() as place:
        path = save_run(Path(place) / "run", run)
        return {file.name: file.read_bytes() for file in path.iterdir()}


def reads(files: dict[str, bytes]) -> None:
    """A run with these files is read whole, or refused; either way nothing of it is executed."""
    with tempfile.TemporaryDirectory() as place:
        for name, data in files.items():
            (Path(place) / name).write_bytes(data)
        before = {name: os.stat(Path(place) / name).st_mtime_ns for name in files}
        with nothing_is_run():
            run = load_run(place)
        assert before == {name: os.stat(Path(place) / name).st_mtime_ns for name in files}
        judged(run.point)
        finite(run.model.state_dict(), "parameters")
        scores = run.scores(table(20))
        finite(scores, "scores")


def scheme(data: Any) -> None:
    """A schema is read, or refused; what is read makes finite features of the table it is for."""
    with nothing_is_run():
        schema = Schema.from_dict(data)
    finite(schema.encode(table(20)), "features")


@target
def reading_runs(draw: Draw) -> None:
    files = dict(saved())
    files[ABOUT] = draw(mutated_json(files[ABOUT]))
    reads(files)


@target
def reading_parameters(draw: Draw) -> None:
    files = dict(saved())
    whole = files[MODEL]
    size = 8 + int.from_bytes(whole[:8], "little")
    kind = draw(st.integers(0, 3))
    if kind == 0:
        files[MODEL] = draw(mutated_bytes(whole))
    elif kind == 1:
        header = draw(mutated_json(whole[8:size]))
        files[MODEL] = len(header).to_bytes(8, "little") + header + whole[size:]
    elif kind == 2:
        files[MODEL] = whole[:size] + draw(mutated_bytes(whole[size:]))
    else:
        files.pop(draw(st.sampled_from(sorted(files))))
    reads(files)


@target
def reading_checkpoints(draw: Draw) -> None:
    values = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.floats(allow_nan=False))
    state = draw(st.dictionaries(st.text(max_size=5), st.one_of(values, st.lists(values, max_size=3)), max_size=3))
    with tempfile.TemporaryDirectory() as place:
        kept = sp.Checkpoint(place, keep=True, seconds=draw(st.one_of(*[st.floats(0, 9)] * 6, numbers)))
        kept.open({})
        kept.save(state)
        assert sp.Checkpoint(place).open({}) == state
        file = Path(place) / STATE
        whole = file.read_bytes()
        file.write_bytes(draw(mutated_bytes(whole)))
        with nothing_is_run():
            read = sp.Checkpoint(place).open({})
        assert file.read_bytes() == whole
        assert read == state


@target
def reading_schemas(draw: Draw) -> None:
    whole = json.dumps(json.loads(saved()[ABOUT])["schema"]).encode()
    try:
        data = json.loads(draw(mutated_json(whole)))
    except ValueError:
        return
    scheme(data)
