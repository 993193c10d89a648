"""`Auto` against cross-entropy, tuned class weights and gradient-boosted trees, on six sets and three asks.

    python -m benchmarks.studies.auto [--data DIR] [--quick] [--sets a,b]

5 splits: 50 % train (at most 10,000 rows), 15 % held-out to choose on, 15 % calibration to set the threshold on, 20 %
test. All methods see the same standardised features. Judged on test at its best cut, which compares models, and at the
calibrated threshold. The weight of 21 is chosen on held-out rows, the trees are stopped early on them. The rule of
`Auto` was set on the splits 200 to 205; those here, from 310 on, were not looked at before. Seconds are of one thread's
processor, so that a busy machine changes nothing. Each finished run is a row of `results/rows/auto.parquet`, and not
run again; `--sets` runs some of them, to share the work between processes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import setpoint as sp
from benchmarks.common.data import Parts, arguments, load_table, paired, split
from benchmarks.common.harness import Journal, write_result
from benchmarks.studies.fixed_fpr.study import CLASS_WEIGHTS
from setpoint.data.rows import Rows
from setpoint.data.standardise import Standardiser
from setpoint.train.class_weights import class_weights
from setpoint.train.kinds import build_model
from setpoint.train.linear import cross_entropy

try:
    import lightgbm
except ModuleNotFoundError:
    lightgbm = None

SETS = ("letter", "ijcnn1", "adult", "spambase", "communities_crime", "german_credit")
NETWORK_SETS = ("letter", "spambase")
ASKS = (
    "minimize fnr where fpr <= 1%",
    "maximize precision where recall >= 90%",
    "maximize precision over recall in [95%, 100%] with 5 points",
)
FIRST_SEED, SPLITS, MOST = 310, 5, 10_000
SHARES = (0.5, 0.3)
EPOCHS = 30


@dataclass(frozen=True)
class Found:
    """A scoring function, and which candidate it is where there were several."""

    score: Callable[[Tensor], Tensor]
    chosen: str = ""


def four_parts(name: str, folder: str, seed: int) -> Parts:
    return Parts.of(split(*load_table(name, folder), seed, SHARES, most=MOST))


def weighted(problem: sp.Problem, parts: Parts, weights: list[float]) -> Found:
    """Ridge cross-entropy to convergence, as `sp.Ridge`; of several class weights the best on held-out rows."""
    x, labels = parts.train
    scaling = Standardiser.of(x, torch.ones_like(labels))
    rows = Rows(scaling.with_ones(x), labels, torch.ones_like(labels))
    tried, theta = [], None
    for weight in weights:
        theta = cross_entropy(rows, class_weights(rows, weight), theta)
        on_held_out = sp.evaluate(problem, scaling.with_ones(parts.held_out[0]) @ theta, parts.held_out[1]).objective
        tried.append((on_held_out, theta, weight))
    _, best, weight = (max if problem.maximize else min)(tried, key=lambda one: one[0])
    return Found(lambda x: scaling.with_ones(x) @ best, f"{weight:g}")


def balanced(problem: sp.Problem, parts: Parts) -> Found:
    labels = parts.train[1]
    return weighted(problem, parts, [float((labels == 0).sum() / (labels == 1).sum())])


def trees(problem: sp.Problem, parts: Parts) -> Found:
    """LightGBM, at most 500 trees, stopped early by the loss on held-out rows."""
    model = lightgbm.LGBMClassifier(n_estimators=500, learning_rate=0.05, n_jobs=1, verbose=-1, random_state=0)
    stop = lightgbm.early_stopping(30, verbose=False)
    held_out = [tuple(part.numpy() for part in parts.held_out)]
    model.fit(*(part.numpy() for part in parts.train), eval_set=held_out, callbacks=[stop])
    return Found(lambda x: torch.from_numpy(model.booster_.predict(x.numpy(), raw_score=True)))


def fitted(problem: sp.Problem, parts: Parts, model: nn.Module, solver: Any) -> Found:
    kind = next(model.parameters()).dtype
    size = None if isinstance(model, nn.Linear) else 256
    loader = sp.Batches(parts.train[0].to(kind), parts.train[1].to(kind), batch_size=size, shuffle=size is not None)
    others = [[(x.to(kind), labels.to(kind))] for x, labels in (parts.held_out, parts.calibration)]
    patience = None if isinstance(model, nn.Linear) else max(5, EPOCHS // 4)
    # Solvers are compared on the same rows: none is trained on held-out ones in the end.
    result = sp.fit(model, problem, loader, others[0], solver, calibration=others[1], epochs=EPOCHS, patience=patience,
                    refit=False)  # fmt: skip
    chosen = [trial.name for trial in result.comparison if trial.chosen]

    def score(x: Tensor) -> Tensor:
        with torch.no_grad():
            scores: Tensor = result.model(x.to(kind))
        return scores.squeeze(-1).double()

    return Found(score, *chosen)


def linear(problem: sp.Problem, parts: Parts, solver: Any) -> Found:
    return fitted(problem, parts, nn.Linear(parts.train[0].shape[1], 1).double(), solver)


def network(problem: sp.Problem, parts: Parts, solver: Any) -> Found:
    torch.manual_seed(0)
    return fitted(problem, parts, build_model("mlp", parts.train[0].shape[1]), solver)


Method = Callable[[sp.Problem, Parts], Found]
BASELINE = "cross-entropy"
METHODS: dict[str, dict[str, Method]] = {
    "linear": {
        BASELINE: lambda problem, parts: weighted(problem, parts, [1.0]),
        "balanced": balanced,
        "best of 21 weights": lambda problem, parts: weighted(problem, parts, CLASS_WEIGHTS),
        "auto": lambda problem, parts: linear(problem, parts, sp.Auto()),
        **({} if lightgbm is None else {"LightGBM": trees}),
    },
    "mlp": {
        BASELINE: lambda problem, parts: network(problem, parts, sp.CrossEntropy()),
        "auto": lambda problem, parts: network(problem, parts, sp.Auto()),
    },
}


def run_once(problem: sp.Problem, parts: Parts, method: Method) -> dict[str, Any]:
    """What a method reaches on test, at the best cut of the test rows and at the calibrated threshold."""
    wall, processor = time.perf_counter(), time.process_time()
    found = method(problem, parts)
    point = sp.calibrate(problem, found.score(parts.calibration[0]), parts.calibration[1])
    spent = time.process_time() - processor, time.perf_counter() - wall
    scores, labels = found.score(parts.test[0]), parts.test[1]
    run_at = point.judge(scores, labels)
    return {
        "best cut": sp.evaluate(problem, scores, labels).objective, "calibrated": run_at.objective,
        "bounds": {str(c): run_at.rates[str(c.quantity)] for c in problem.constraints},
        "seconds": spent[0], "wall seconds": spent[1], "chosen": found.chosen,
    }  # fmt: skip


def run_all(cells: list[tuple[str, str, str, int]], folder: str, journal: Journal) -> list[dict[str, Any]]:
    runs = []
    for model, name, ask, seed in cells:
        cell, parts = f"{model} {name} {ask} {seed}", None
        methods = {}
        for method, run in METHODS[model].items():
            key = f"{cell} {method}"
            if key not in journal:
                parts = parts or four_parts(name, folder, seed)
                journal.add(key, run_once(sp.ask(ask), parts, run))
            methods[method] = journal[key]
        if parts is not None:
            figures = ", ".join(f"{n} {m['best cut']:.4f} ({m['seconds']:.1f} s)" for n, m in methods.items())
            print(f"{cell}: {figures}; chosen: {methods['auto']['chosen']}", flush=True)
        runs.append({"model": model, "set": name, "ask": ask, "seed": seed, "methods": methods})
    return runs


def summary(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row a model, set and ask: means over the splits, and the paired gains of `auto` over each other method."""
    rows = []
    for model, name, ask in dict.fromkeys((run["model"], run["set"], run["ask"]) for run in runs):
        group = [run["methods"] for run in runs if (run["model"], run["set"], run["ask"]) == (model, name, ask)]
        methods = [method for method in group[0] if all(method in one for one in group)]
        sign = 1 if sp.ask(ask).maximize else -1
        row: dict[str, Any] = {"model": model, "set": name, "ask": ask, "splits": len(group)}
        for judged in ("best cut", "calibrated", "seconds"):
            row[judged] = {method: statistics.mean(one[method][judged] for one in group) for method in methods}
        for judged in ("best cut", "calibrated"):
            row[f"gain, {judged}"] = {
                method: paired([sign * (one["auto"][judged] - one[method][judged]) for one in group], 0.2, 0.5)
                for method in methods
                if method != "auto"
            }
        row["bounds at the calibrated threshold"] = {
            method: {b: statistics.mean(one[method]["bounds"][b] for one in group) for b in group[0]["auto"]["bounds"]}
            for method in methods
        }
        row["chosen"] = [one["auto"]["chosen"] for one in group]
        gain = row["gain, best cut"][BASELINE]
        row["never worse"] = bool(gain["mean"] >= -2 * gain["standard_error"])
        rows.append(row)
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        gain = row["gain, best cut"][BASELINE]
        means = ", ".join(f"{name} {100 * mean:.2f}" for name, mean in row["best cut"].items())
        print(f"{row['model']} {row['set']}, {row['ask']}: {means}; auto better than cross-entropy by "
              f"{100 * gain['mean']:+.2f} +- {100 * gain['standard_error']:.2f} "
              f"({100 * gain['corrected_standard_error']:.2f}){'' if row['never worse'] else '  WORSE'}")  # fmt: skip


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0])
    parser.add_argument("--sets", help="some of the sets, separated by commas; nothing is then summed up")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if lightgbm is None:
        print("LightGBM is not installed, and is not reported")
    sets, seeds = SETS, range(FIRST_SEED, FIRST_SEED + SPLITS)
    if options.quick:
        sets, seeds = ("spambase", "german_credit"), range(FIRST_SEED, FIRST_SEED + 2)
    if options.sets:
        sets = tuple(options.sets.split(","))
    journal = Journal("auto", options.quick)
    cells = [("linear", name, ask, seed) for seed in seeds for name in sets for ask in ASKS]
    if not options.quick:
        cells += [("mlp", name, ask, seed) for seed in seeds for name in NETWORK_SETS if name in sets for ask in ASKS]
    rows = summary(run_all(cells, options.data, journal))
    show(rows)
    if not options.sets:
        notes: dict[str, str] = {} if lightgbm is not None else {"LightGBM": "not installed"}
        journal.fold()
        told = {"rows": rows, "seeds": list(seeds), "most training rows": MOST, "notes": notes}
        write_result("auto", told, options.quick)
