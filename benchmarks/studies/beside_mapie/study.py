"""Certified thresholds beside MAPIE's controller, set up in three ways, the last two in its favour.

    python -m benchmarks.peers.environments mapie
    python -m benchmarks.studies.beside_mapie [--quick] [--repeats N] [--sizes N ...] [--mapie PYTHON]

Question: how much of the difference between our certificates and MAPIE's comes from the grid of thresholds that we
gave it? In the study of certificates it refuses where the lowest FPR of that grid is too high already.

Fixed before the first result: the worlds and the confidence of 95 % of the study of certificates; 500 and 2,000 rows;
bounds on FPR and on precision; 300 repeats; the ways of `by_mapie.py`; a refusal counts as the objective of the cut
that flags nothing, so that refusing is not rewarded. A gain is paired over repeats, in points of the true objective.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import setpoint as sp
from benchmarks.common.data import arguments, paired
from benchmarks.common.harness import ROOT, Journal, write_result
from benchmarks.common.sets import CACHE
from benchmarks.peers.environments import python_of
from benchmarks.studies.certificates.study import CONFIDENCE, World
from setpoint.errors import TooFewSamples

ASKS = ("minimize fnr where fpr <= 1%", "maximize recall where precision >= 80%")
SIZES, REPEATS = (500, 2_000), 300
#: A cut that flags nothing in any world.
NOWHERE = 1e9
OURS, WAYS = "setpoint", ("quantiles", "cut above", "split")


def ours(problem: sp.Problem, scores: np.ndarray, labels: np.ndarray) -> float:
    try:
        return float(sp.calibrate(problem, scores, labels, confidence=CONFIDENCE).threshold)  # type: ignore[arg-type]
    except TooFewSamples:
        return float("nan")


def theirs(python: str, problem: sp.Problem, scores: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    """The cuts of MAPIE by way, from an environment of its own."""
    bound = problem.constraints[0]
    with tempfile.TemporaryDirectory() as folder:
        given, answer = (Path(folder) / name for name in ("given.npz", "answer.npz"))
        np.savez(given, scores=scores, labels=labels, risk=str(bound.quantity), bound=bound.bound,
                 confidence=CONFIDENCE, ways=WAYS)  # fmt: skip
        module = ROOT / "benchmarks" / "studies" / "beside_mapie" / "by_mapie.py"
        subprocess.run([python, str(module), str(given), str(answer)], check=True, stdout=sys.stderr)
        with np.load(answer) as arrays:
            return {way: arrays[way.replace(" ", "_")] for way in WAYS}


def cell(ask: str, kind: str, n: int, repeats: int, python: str) -> dict[str, Any]:
    """By method: the share of broken promises and of refusals, the mean true objective, and our gain over it."""
    world, problem = World(kind), sp.ask(ask)
    bound, sign = problem.constraints[0], 1 if problem.maximize else -1
    drawn = [world.sample(np.random.default_rng((n, len(ask), repeat, 26)), n, False)[:2] for repeat in range(repeats)]
    scores, labels = (np.stack(part) for part in zip(*drawn))
    cuts = {OURS: np.array([ours(problem, *pair) for pair in drawn])} | theirs(python, problem, scores, labels)
    found: dict[str, Any] = {"ask": ask, "scores": kind, "n": n, "repeats": repeats}
    objectives = {}
    for name, own in cuts.items():
        rates = [world.rates(NOWHERE if np.isnan(cut) else cut) for cut in own]
        excess = np.array([rate[str(bound.quantity)] - bound.bound for rate in rates])
        broken = ~np.isnan(own) & ((excess if bound.relation == "<=" else -excess) > 1e-12)
        objectives[name] = np.array([rate[str(problem.objective)] for rate in rates])
        found[name] = {"broken": broken.mean(), "refused": np.isnan(own).mean(), "objective": objectives[name].mean()}
    for way in WAYS:
        found[way]["gain"] = paired(list(sign * (objectives[OURS] - objectives[way])), 0.0, 1.0)
    return found


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0])
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="how many rows set a threshold")
    parser.add_argument("--mapie", default=str(python_of("mapie", CACHE)), help="a Python that has MAPIE")
    options = parser.parse_args()
    if not Path(options.mapie).is_file():
        print(
            f"nothing run: {options.mapie} is missing; python -m benchmarks.peers.environments mapie, or --mapie PYTHON"
        )
        return
    repeats, sizes = (10, SIZES[:1]) if options.quick else (options.repeats, options.sizes)
    journal = Journal("beside_mapie", options.quick)
    rows = []
    for ask, n, kind in itertools.product(ASKS, sizes, ("continuous", "tied", "heavy-tailed")):
        key = f"{ask} | {kind} | {n} | {repeats}"
        row = journal.row(key, lambda one=(ask, kind, n): cell(*one, repeats, options.mapie))  # type: ignore[misc, call-arg]
        rows.append({name: value for name, value in row.items() if name not in ("key", "torch")})
        told = {name: f"{row[name]['refused']:.2f} {row[name]['objective']:.3f}" for name in (OURS, *WAYS)}
        print(f"{key}: refused and objective {told}", flush=True)
    journal.fold()
    write_result("beside_mapie", {"confidence": CONFIDENCE, "rows": rows}, options.quick)
