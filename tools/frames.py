"""Frames of our own between a call and the loss of a batch, by `sys.setprofile`, and the files that a call runs."""

from __future__ import annotations

import contextlib
import csv
import importlib
import io
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

#: The places that are traced, in order.
PLACES = ("command line", "fit linear", "fit network", "plain step")
#: Doors that `fit` and the command line do not pass, with packages that take long to load.
OTHER_DOORS = ("estimator", "integrations", "report")
ASK = "minimize fnr where fpr <= 5%"


@dataclass
class Trace:
    """Our own frames between a call and the loss of a batch, at the shortest, and the files that the call ran.

    The loss is the function `loss` of a solver, or the refinement of linear models, which has it in closed form.
    """

    source: Path
    loss: int | None = None

    def __post_init__(self) -> None:
        self.own, self.touched = str(self.source) + os.sep, set[str]()

    def of(self, call: Callable[[], object]) -> Trace:
        sys.setprofile(self._look)
        try:
            call()
        finally:
            sys.setprofile(None)
        return self

    def _look(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(self.own):
            return
        self.touched.add(code.co_filename)
        solver = code.co_name == "loss" and code.co_filename.startswith(f"{self.own}solve{os.sep}")
        if solver or (code.co_name == "refine_lean" and code.co_filename == f"{self.own}train{os.sep}lean.py"):
            depth, at = 0, frame
            while at is not None:
                depth += at.f_code.co_filename.startswith(self.own)
                at = at.f_back  # type: ignore[assignment]
            self.loss = depth if self.loss is None else min(self.loss, depth)


def traces(source: Path) -> dict[str, Trace]:
    """The command line, `fit` of a linear model and of a network, and the plain training step, each run once."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.path.insert(0, str(source.parent))
    for path in sorted(source.rglob("*.py")):
        # Files are loaded before, so that a file counts as touched when it runs, not when it is loaded.
        name = ".".join(path.relative_to(source.parent).with_suffix("").parts).removesuffix(".__init__")
        if not name.startswith(tuple(f"setpoint.{door}" for door in (*OTHER_DOORS, "__main__"))):
            importlib.import_module(name)
    sp, torch, cli = map(importlib.import_module, ("setpoint", "torch", "setpoint.cli"))

    draw = torch.Generator().manual_seed(0)
    x = torch.randn(900, 4, generator=draw)
    labels = (x[:, 0] + 0.5 * torch.randn(900, generator=draw) > 1).float()
    train, held_out, calibration = (sp.Batches(x[r], labels[r], batch_size=100) for r in torch.arange(900).split(300))

    def network() -> Any:
        return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))

    def fit(model: Any) -> None:
        sp.fit(model, ASK, train, held_out, calibration=calibration, epochs=2)

    def step() -> None:
        sp.ImplicitThreshold(sp.ask(ASK))(network()(x).squeeze(-1), labels).backward()

    def command() -> None:
        head = ["a", "b", "c", "d", "y"]
        with tempfile.TemporaryDirectory() as place:
            table = Path(place) / "table.csv"
            with table.open("w", newline="") as file:
                csv.writer(file).writerows([head, *([*row, int(y)] for row, y in zip(x.tolist(), labels.tolist()))])
            try:
                cli.main(["fit", str(table), "--target", "y", "--ask", ASK, "--out", str(Path(place) / "run")])
            except SystemExit as end:
                if end.code:
                    raise RuntimeError(f"`setpoint fit` ended with {end.code}") from end

    calls = {
        "command line": command,
        "fit linear": lambda: fit(torch.nn.Linear(4, 1)),
        "fit network": lambda: fit(network()),
        "plain step": step,
    }
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        return {name: Trace(source).of(call) for name, call in calls.items()}
