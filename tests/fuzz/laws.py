"""What must hold for every input: a clear refusal or finite numbers, in five seconds, and nothing run from a file."""

from __future__ import annotations

import faulthandler
import math
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from setpoint.errors import SetpointError

#: Seconds of processor time that one case may take, and of wall time after which the process is given up.
LIMIT, GIVE_UP = 5.0, 120.0
Draw = Callable[[st.SearchStrategy[Any]], Any]
Law = Callable[[Draw], None]


@dataclass(frozen=True)
class Target:
    """One entrance to the library, and what is drawn, done and checked there."""

    name: str
    law: Law


TARGETS: dict[str, Target] = {}


def target(law: Law) -> Law:
    """Register a law under its own name."""
    assert law.__name__ not in TARGETS, law.__name__
    TARGETS[law.__name__] = Target(law.__name__, law)
    return law


class Hang(AssertionError):
    """A case took longer than it may."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """A `Hang` after so many seconds of processor time; a process that cannot even raise it ends with its stacks."""
    if threading.current_thread() is not threading.main_thread() or sys.gettrace() is not None:
        yield
        return

    def too_long(*_: Any) -> None:
        raise Hang(f"more than {seconds:g} s of processor time")

    before = signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    faulthandler.dump_traceback_later(GIVE_UP, exit=True)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        faulthandler.cancel_dump_traceback_later()


def run_case(target: Target, draw: Draw) -> bool:
    """Run one case; whether it was answered rather than refused. All else than a refusal of ours is an error."""
    with within(LIMIT):
        try:
            target.law(draw)
        except SetpointError as refusal:
            if not str(refusal).strip():
                raise AssertionError("a refusal must say why") from refusal
            return False
    return True


def finite(what: Any, name: str = "value") -> None:
    """Every number in `what` is finite: tensors, arrays, numbers, and mappings and lists of them."""
    if isinstance(what, torch.Tensor):
        assert not what.is_floating_point() or bool(torch.isfinite(what).all()), f"{name} is not finite: {what}"
    elif isinstance(what, np.ndarray):
        assert np.isfinite(what).all(), f"{name} is not finite: {what}"
    elif isinstance(what, Mapping):
        for key, value in what.items():
            finite(value, f"{name}[{key!r}]")
    elif isinstance(what, list | tuple):
        for place, value in enumerate(what):
            finite(value, f"{name}[{place}]")
    elif isinstance(what, float):
        assert math.isfinite(what), f"{name} is {what}"


def finite_gradient(value: torch.Tensor, *leaves: torch.Tensor) -> None:
    """The slope of a scalar (or of the sum) by each leaf that it depends on is finite.

    Beyond 65,504 there is only infinity in float16, and `GradScaler` waits for it; but never NaN.
    """
    finite(value.detach(), "value")
    wanted = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if not wanted or not value.requires_grad:
        return
    for slope in torch.autograd.grad(value.sum(), wanted, allow_unused=True):
        if slope is not None and slope.dtype == torch.float16:
            assert not bool(slope.isnan().any()), f"gradient is not a number: {slope}"
        elif slope is not None:
            finite(slope, "gradient")
