"""What a step costs: a net of five convolutions and a loss, at 64 samples and ten times as many, in time and memory.

Each in a process of its own, on one thread, so that the peak of its memory is its own; the steps of a plain net come
off. The loss alone is timed as well.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Container, Iterator
from importlib import import_module
from typing import Any

import torch

import setpoint as sp
from benchmarks.common.harness import ROOT
from benchmarks.common.image_nets import five_convolutions
from benchmarks.peers.environments import python_of
from benchmarks.peers.exchange import peak_megabytes
from benchmarks.studies.lp_training import losses

SIZES, STEPS = (64, 640), 7
#: The short form has so many of the losses, the cheapest first.
QUICK = 3
#: Beyond so many gigabytes a dense program is not tried.
MOST = 8.0
MAKERS: dict[str, Any] = {
    "cross-entropy": sp.CrossEntropy,
    "area, closed form": lambda: sp.losses.AUCLoss(1.0),
    "area, our engine": lambda: losses.engine("area", 1.0),
    "area, penalty": lambda: losses.penalty("area", 1.0, 0.01),
    "area, unrolled": lambda: losses.with_burn_in("area", 1.0),
    "f-score, closed form": lambda: sp.losses.FScoreLoss(margin=0.0),
    "f-score, our engine": lambda: losses.engine("f-score", 0.0),
    "f-score, penalty": lambda: losses.penalty("f-score", 0.0, 0.01),
    "f-score, unrolled": lambda: losses.with_burn_in("f-score", 0.0),
    "f-score, 16 directions": lambda: losses.Reduced(0.01),
}
#: The environment and the module of each loss that needs one.
NEEDS = {"f-score, cvxpylayers, SCS": ("cvxpylayers", "by_scs"), "f-score, ap-perf": ("ap_perf", "by_ap_perf")}


def dense_gigabytes(name: str, size: int) -> float:
    """The rows of an area program written down, which only the bare penalty and its unrolled steps do."""
    if not name.startswith("area, ") or name.split(", ")[1] not in ("penalty", "unrolled"):
        return 0.0
    pairs = round(0.91 * size) * (size - round(0.91 * size))
    return 2 * pairs * pairs * 8 / 2**30


def measured(name: str, size: int) -> dict[str, float]:
    """Milliseconds of the loss and its gradient, of a whole step, and megabytes of the loss beside the net."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = five_convolutions(8, 1).to(memory_format=torch.channels_last)
    x = torch.randn(size, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    labels = (torch.arange(size) < round((0.91 if name.startswith("area") else 0.5) * size)).float()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    for _ in range(3):
        net(x).squeeze(-1).mean().backward()
        optimizer.step()
    torch.autograd.grad(sp.CrossEntropy()(net(x).squeeze(-1), labels), list(net.parameters()))
    make = import_module(f"benchmarks.studies.lp_training.{NEEDS[name][1]}").LOSS if name in NEEDS else MAKERS[name]
    before, loss = peak_megabytes(), make()
    alone, whole = [], []
    for _ in range(STEPS if size == SIZES[0] else 3):
        start = time.process_time()
        scores = net(x).squeeze(-1)
        half = time.process_time()
        value = loss(scores, labels)
        (slope,) = torch.autograd.grad(value, scores, retain_graph=True)
        alone.append(time.process_time() - half)
        optimizer.zero_grad()
        scores.backward(slope)
        optimizer.step()
        whole.append(time.process_time() - start)
    told = {"loss, ms": alone, "step, ms": whole}
    return {k: 1e3 * statistics.median(v[1:]) for k, v in told.items()} | {"megabytes": peak_megabytes() - before}


def study(quick: bool, cache: str, done: Container[str]) -> Iterator[dict[str, Any]]:
    """A row per loss and size of batch; those whose key is `done` are not measured again."""
    for size in SIZES[:1] if quick else SIZES:
        for name in list(MAKERS)[:QUICK] if quick else (*MAKERS, *NEEDS):
            row: dict[str, Any] = {"key": f"costs | {name} | {size}", "part": "costs", "loss": name, "samples": size}
            if row["key"] in done:
                continue
            python = str(python_of(NEEDS[name][0], cache)) if name in NEEDS else sys.executable
            if dense_gigabytes(name, size) > MOST:
                row["not tried"] = f"its rows alone take {dense_gigabytes(name, size):.0f} GB"
            elif not os.path.isfile(python):
                continue
            elif name == "f-score, ap-perf" and size > SIZES[0]:
                row["not tried"] = "its time grows steeply with the batch"
            else:
                environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "OMP_NUM_THREADS": "1"}
                command = [python, "-W", "ignore", "-m", "benchmarks.studies.lp_training.costs", name, str(size)]
                told = subprocess.run(command, env=environment, cwd=ROOT, text=True, stdout=subprocess.PIPE, check=True)
                row |= json.loads(told.stdout.splitlines()[-1])
            print(row, flush=True)
            yield row


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], int(sys.argv[2]))))
