"""A contest: one ask, put to several methods on the same rows, their answers judged by one rule."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import setpoint as sp
from benchmarks.common.data import Split, with_ones
from benchmarks.peers.environments import python_of
from setpoint.data.rows import Rows
from setpoint.train.class_weights import class_weights
from setpoint.train.linear import cross_entropy

ROOT = Path(__file__).parents[2]
SHARES, MOST, MOST_SECONDS = (0.6, 0.2), 10_000, 900
STEPS, LOOK_EVERY = 150, 25


@dataclass(frozen=True)
class Method:
    """A module of this folder, the environment it runs in (None is this one) and further arguments."""

    module: str
    environment: str | None = None
    more: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """The rows of one split; where groups are compared, the number of each row's group, in the same three parts."""

    parts: Split
    groups: tuple[Tensor, Tensor, Tensor] | None = None


#: Of the ask, a case, and the names and the answers of all candidates on validation and test rows: the figures.
Judge = Callable[[sp.Problem, Case, np.ndarray, np.ndarray, np.ndarray], dict[str, Any]]


@dataclass(frozen=True)
class Contest:
    """Who is asked what, where. Of `compared` figures it is told by how much `ours` is better than each other one.

    `name` stands before its keys in the journal; `start` is the weight of positives in the cross-entropy that the
    methods start from, None balances the classes. `budget` is what a method is told to keep to.
    """

    name: str
    problem: sp.Problem
    sets: tuple[str, ...]
    seeds: range
    quick_set: str
    methods: dict[str, Method]
    ours: str
    load: Callable[[str, int, str, str], Case]
    judge: Judge
    averaged: tuple[str, ...]
    compared: tuple[str, ...]
    start: float | None = None
    budget: dict[str, float] = field(default_factory=lambda: {"steps": STEPS, "look_every": LOOK_EVERY})
    quick_methods: tuple[str, ...] = ()
    quick_budget: dict[str, float] = field(default_factory=dict)

    def small(self) -> Contest:
        """One split of one set, the quick methods (all, if none are named), and less of a budget."""
        methods = {name: self.methods[name] for name in self.quick_methods or self.methods}
        return replace(
            self, sets=(self.quick_set,), seeds=range(1), methods=methods, budget=self.budget | self.quick_budget
        )

    def key(self, name: str, seed: int, method: str) -> str:
        return " | ".join([*([self.name] if self.name else []), name, str(seed), method])

    def write_task(self, case: Case, path: Path) -> None:
        """The rows of a split, standardised as they come, and the start, as a peer reads them."""
        x, labels = case.parts.train
        rows = Rows(with_ones(x), labels, torch.ones_like(labels))
        ratio = float((rows.labels == 0).sum() / rows.labels.sum()) if self.start is None else self.start
        arrays = {"x_train": x, "y_train": labels}
        arrays["start"] = cross_entropy(rows, class_weights(rows, ratio))
        for name, (x, labels) in (("validation", case.parts.validation), ("test", case.parts.test)):
            arrays |= {f"x_{name}": x, f"y_{name}": labels}
        if case.groups is not None:
            arrays |= {f"groups_{name}": own for name, own in zip(("train", "validation", "test"), case.groups)}
        bound = {"bound": self.problem.constraints[0].bound} if self.problem.constraints else {}
        np.savez(path, **{name: array.numpy() for name, array in arrays.items()}, **self.budget, **bound)

    def run(self, method: str, task: Path, case: Case, cache: str) -> dict[str, Any]:
        """One method on one split: its figures, or the last line of its error."""
        answered = ask(self.methods[method], task, cache)
        if isinstance(answered, str):
            return {"error": answered}
        with np.load(answered) as arrays:
            names, validation, test = arrays["names"], arrays["validation"], arrays["test"]
            return self.judge(self.problem, case, names, validation, test) | json.loads(str(arrays["told"]))


def ask(method: Method, task: Path, cache: str) -> Path | str:
    """A method in a process of its own: the file with its answer, or what went wrong."""
    python = sys.executable if method.environment is None else str(python_of(method.environment, cache))
    if not Path(python).is_file():
        return f"no environment: python -m benchmarks.peers.environments {method.environment}"
    paths = [str(ROOT)] if method.environment else [str(ROOT), str(ROOT / "src")]
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    answer = task.with_name("answer.npz")
    answer.unlink(missing_ok=True)
    command = [python, "-W", "ignore", "-m", f"benchmarks.peers.{method.module}", str(task), str(answer), *method.more]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=surroundings, capture_output=True, text=True, timeout=MOST_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"not done after {MOST_SECONDS} s"
    if not done.returncode:
        return answer
    told = [line for line in done.stderr.splitlines() if line.strip()]
    last = told[-1][:300] if told else f"ended with {done.returncode}"
    return last.replace(str(Path(cache).resolve()), "CACHE").replace(str(ROOT), ".")


def numbered(names: np.ndarray) -> Tensor:
    """Groups by number, in the order of their names."""
    return torch.tensor(np.unique(names, return_inverse=True)[1])
