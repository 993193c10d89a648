"""Table 5 of the implicit-thresholds paper: partial PR area over recall 95 % to 100 %, linear models, five sets.

    python -m benchmarks.studies.paper_tabular [--data DIR] [--quick] [--without-auto]

10 splits of 50/25/25, at most 10,000 training rows (the paper takes all; it binds on ijcnn1 and adult). Features are
standardised on the training rows and clipped to +-5. The area is the mean precision over the range, the step form of
`setpoint.measure.curve`; what is tuned is tuned on validation rows by that same area.

- cross-entropy, balanced, best of 21 weights: ridge fits to convergence.
- Lagrangian: full batch, Adam, its learning rate and that of the prices over the paper's grid for TFCO, from
  balanced cross-entropy.
- implicit, as published: full batch, Adagrad 0.1, sigmoid of temperature 0.5, 1 or 5, slope penalty 0, 0.05 or 0.1,
  a correction every 10 steps and thresholds held in between, as the paper's section 3.4 has it for areas, from small
  random weights.
- implicit, following: the same, but thresholds follow the model to first order between corrections (line 10 of the
  paper's Algorithm 1), and the slope penalty is divided by the squared temperature. It shows what these two are worth.
- of these three the best of the iterates, looked at every 25 of 300 steps, by validation.
- default: `Anchored()`, nothing tuned. auto: `Auto()`.

Each finished row is a row of `results/rows/paper_tabular.parquet`, and not run again.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

import setpoint as sp
from benchmarks.common.data import Split, arguments, paired, split
from benchmarks.common.harness import Journal, write_result
from benchmarks.common.sets import read_table
from benchmarks.studies.default_study.study import CLASS_WEIGHTS, training_rows
from benchmarks.studies.paper_tabular.published import IMPLICIT_TABLE_5
from setpoint.data.rows import Rows
from setpoint.errors import SetpointError
from setpoint.solve.solver import Solver
from setpoint.train.class_weights import class_weights
from setpoint.train.linear import cross_entropy
from setpoint.train.recipes import Recipes

ASK = "maximize precision over recall in [95%, 100%] with 5 points"
SHARES, MOST, SEEDS = (0.5, 0.25), 10_000, range(540, 550)
SETS = ("letter", "communities_crime", "spambase", "ijcnn1", "adult")
STEPS, LOOK_EVERY = 300, 25
AS_PUBLISHED, FOLLOWING = "implicit, as published", "implicit, following"
#: The column of the paper's table that a method stands beside.
PUBLISHED = {
    "cross-entropy": "cross-entropy", "Lagrangian": "TFCO", AS_PUBLISHED: "implicit",
    "default": "implicit", "auto": "implicit",
}  # fmt: skip
Candidates = Iterator[tuple[str, Tensor]]


class Study:
    """One split: candidates by method; the best on validation rows is judged on test rows."""

    def __init__(self, parts: Split, ask: str = ASK) -> None:
        self.problem = sp.ask(ask)
        self.parts = parts
        self.rows, self.scaling = training_rows(parts.train)

    def area(self, theta: Tensor, on: str) -> float:
        x, labels = getattr(self.parts, on)
        return sp.evaluate(self.problem, self.scaling.with_ones(x) @ theta, labels).objective

    def pick(self, candidates: Candidates) -> tuple[float, str, Tensor]:
        """The best on validation rows: its area there, its name and its weights."""
        tried = [(self.area(theta, "validation"), name, theta) for name, theta in candidates]
        return max(tried, key=lambda one: one[0])

    def best(self, candidates: Candidates) -> dict[str, Any]:
        start = time.process_time()
        validation, name, theta = self.pick(candidates)
        spent = time.process_time() - start
        return {"validation": validation, "test": self.area(theta, "test"), "chosen": name, "seconds": spent}

    def weighted(self, weights: list[float]) -> Candidates:
        for weight in weights:
            yield f"{weight:g}", cross_entropy(self.rows, class_weights(self.rows, weight))

    @property
    def balance(self) -> float:
        return float((self.rows.labels == 0).sum() / self.rows.labels.sum())

    def lagrangian(self) -> Candidates:
        start = cross_entropy(self.rows, class_weights(self.rows, self.balance))
        for rate, price_rate in itertools.product((0.01, 0.1, 1.0), (0.1, 1.0, 10.0)):
            solver = sp.Lagrangian(self.problem, climb=sp.losses.Climb(price_rate), memory=0, temperature=1.0).double()
            theta = start.clone().requires_grad_()
            optimizer = torch.optim.Adam([theta, *solver.parameters()], lr=rate)
            yield from iterates(f"{rate:g}, {price_rate:g}", self.rows, theta, solver, optimizer)

    def published(self, following: bool = False) -> Candidates:
        draw = torch.Generator().manual_seed(0)
        start = 0.01 * torch.randn(self.rows.x.shape[1], generator=draw, dtype=torch.float64)
        for temperature, penalty in itertools.product((0.5, 1.0, 5.0), (0.0, 0.05, 0.1)):
            solver = sp.ImplicitThreshold(
                self.problem, temperature=temperature, memory=0, correction=sp.losses.Correction(every=10),
                slope_penalty=penalty / temperature**2 if following else penalty,
            ).double()  # fmt: skip
            theta = start.clone().requires_grad_()
            optimizer = torch.optim.Adagrad([theta], lr=0.1)
            if following:
                solver.follow(optimizer)
            yield from iterates(f"{temperature:g}, {penalty:g}", self.rows, theta, solver, optimizer)

    def default(self) -> Candidates:
        yield "0.25", Recipes(self.problem, self.rows).anchored()

    def auto(self) -> Candidates:
        x, labels = self.parts.train
        model = torch.nn.Linear(x.shape[1], 1).double()
        result = sp.fit(model, self.problem, [(x, labels)], [self.parts.validation], sp.Auto())
        chosen = next(trial.name for trial in result.comparison if trial.chosen)
        yield chosen, self.scaling.redo(model.weight.detach()[0], model.bias.detach()[0])


def iterates(name: str, rows: Rows, theta: Tensor, solver: Solver, optimizer: torch.optim.Optimizer) -> Candidates:
    """The parameters now and then on the way; a run that diverges ends there."""
    for step in range(1, STEPS + 1):
        try:
            loss = solver(rows.x @ theta, rows.labels)
        except SetpointError:
            return
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % LOOK_EVERY == 0:
            yield f"{name}, step {step}", theta.detach().clone()


METHODS: dict[str, Callable[[Study], Candidates]] = {
    "cross-entropy": lambda on: on.weighted([1.0]),
    "balanced": lambda on: on.weighted([on.balance]),
    "best of 21 weights": lambda on: on.weighted(CLASS_WEIGHTS),
    "default": Study.default,
    "Lagrangian": Study.lagrangian,
    FOLLOWING: lambda on: on.published(following=True),
    AS_PUBLISHED: Study.published,
    "auto": Study.auto,
}


def summary(journal: Journal, sets: tuple[str, ...], seeds: range) -> list[dict[str, Any]]:
    """A row a set and method, on the splits that are done: mean, error, ratio to cross-entropy, what is published."""
    rows = []
    for name in sets:
        required = [method for method in METHODS if method != "auto"]
        done = [seed for seed in seeds if all(f"{name} | {seed} | {method}" in journal for method in required)]
        if len(done) < 2:
            continue
        areas = {
            method: [100 * journal[f"{name} | {seed} | {method}"]["test"] for seed in done]
            for method in METHODS
            if all(f"{name} | {seed} | {method}" in journal for seed in done)
        }
        for method, values in areas.items():
            row: dict[str, Any] = {"set": name, "method": method, "splits": len(values)}
            row["area"] = paired(values, 0.25, 0.5)
            row["ratio to cross-entropy"] = statistics.mean(values) / statistics.mean(areas["cross-entropy"])
            for rival in ("cross-entropy", "best of 21 weights", *([FOLLOWING] if method == AS_PUBLISHED else [])):
                row[f"minus {rival}"] = paired([a - b for a, b in zip(values, areas[rival])], 0.25, 0.5)
            times = [journal[f"{name} | {seed} | {method}"]["seconds"] for seed in done]
            row["seconds"] = statistics.mean(times)
            if method in PUBLISHED:
                figures = IMPLICIT_TABLE_5[name]
                mean, error = figures[PUBLISHED[method]]
                row["published"] = {
                    "column": PUBLISHED[method], "mean": mean, "error": error,
                    "ratio to cross-entropy": mean / figures["cross-entropy"][0],
                    "within both errors": abs(row["area"]["mean"] - mean)
                    <= 2 * (error**2 + row["area"]["standard_error"] ** 2) ** 0.5,
                }  # fmt: skip
            rows.append(row)
    return rows


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0])
    parser.add_argument("--without-auto", action="store_true", help="leave the dearest method for later")
    parser.add_argument("--so-far", action="store_true", help="run nothing, sum up the splits that are done")
    options = parser.parse_args()
    torch.set_num_threads(1)
    sets, seeds = SETS, SEEDS
    methods = {name: run for name, run in METHODS.items() if not (options.without_auto and name == "auto")}
    if options.quick:
        sets, seeds = ("communities_crime",), range(2)
        methods.pop("auto", None)
    journal = Journal("paper_tabular", options.quick)
    for name in () if options.so_far else sets:
        for seed in seeds:
            study = None
            for method, run in methods.items():
                key = f"{name} | {seed} | {method}"
                if key in journal:
                    continue
                study = study or Study(split(*read_table(name, options.data), seed, SHARES, most=MOST))
                row = journal.add(key, {"set": name, "seed": seed, "method": method, **study.best(run(study))})
                print(f"{key}: {100 * row['test']:.2f} ({row['chosen']}), {row['seconds']:.1f} s", flush=True)
    rows = summary(journal, sets, seeds)
    for row in rows:
        print(f"{row['set']:18s} {row['method']:24s} {row['area']['mean']:6.2f} +- {row['area']['standard_error']:.2f}")
    journal.fold()
    write_result("paper_tabular", {"ask": ASK, "seeds": list(seeds), "rows": rows}, options.quick)
