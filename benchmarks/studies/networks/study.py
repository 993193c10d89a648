"""The default for networks against cross-entropy and the best of seven class weights: MLPs and small CNNs.

    python -m benchmarks.studies.networks [--data DIR] [--cache DIR] [--quick] [--phase NAME] [--so-far] [--sets a;b]

Stratified splits of 50/15/15/20: train (at most 10,000 rows), held-out rows that stop and choose, calibration rows that
only set the threshold, test rows. Every net from scratch has the same epochs, Adam on a cosine, and is stopped early by
its own loss on held-out rows (`nets.py`); what is compared is in `methods.py`. The phase
`screening` tries everything on the splits from 700 on. Confirmations on those from 800 on led to a little weight decay
and a lower rate for convolutions; on those from 900 on, to training again on held-out rows as the default; one on those
from 1000 on was broken off, since it showed that a fixed weight was needed beside the grid, and that stopping by the
loss stops too early. That weight was a quarter at first; on the splits from 1200 on it cost more than a point on two
sets, so that they became the phase `weights`, in which other weights were tried. The `confirmation` of what the default
is now is on the splits from 1300 on, which nothing was chosen on. A model is judged on test rows at the best cut of the
test curve, which compares models, and at the threshold that is best on calibration rows. Each finished set and split is
a row of `results/rows/networks*.parquet`, and only methods that it lacks are run; `--so-far` sums up what is there.
"""

from __future__ import annotations

import time
from argparse import Namespace
from dataclasses import dataclass
from typing import Any

import torch

import setpoint as sp
from benchmarks.common.data import arguments
from benchmarks.common.harness import Journal, write_result
from benchmarks.common.sets import CACHE
from benchmarks.studies.networks.bench import Bench, Scores, objective
from benchmarks.studies.networks.methods import BASELINES, METHODS, run_method
from benchmarks.studies.networks.nets import IMAGES, MOST, SETS, SHARES, Parts, load_parts
from benchmarks.studies.networks.verdict import JUDGED, of_methods, summary, to_show

ASKS = (
    "minimize fnr where fpr <= 1%",
    "minimize fnr where fpr <= 0.1%",
)


@dataclass(frozen=True)
class Phase:
    """Where its rows are, from which seed on, how many splits of each set, and what is tried on them."""

    journal: str
    first: int
    splits: dict[str, int]
    methods: tuple[str, ...]
    left_out_for_images: tuple[str, ...] = ()

    def plan(self) -> list[tuple[str, int]]:
        """Sets and splits in the order of running."""
        turns = [
            (place + WAITS.get(name, 0), name, place) for name in SETS for place in range(self.splits.get(name, 0))
        ]
        return [(name, self.first + place) for _, name, place in sorted(turns, key=lambda turn: turn[0])]

    def methods_for(self, name: str) -> tuple[str, ...]:
        left_out = self.left_out_for_images if name in IMAGES else ()
        return tuple(one for one in self.methods if one not in left_out)


#: Images wait so many turns: a study that is stopped has several splits of every table by then.
WAITS = {"pneumoniamnist": 2, "CIFAR-10, truck": 4}
#: So many splits to confirm on that a point is more than noise, where there is time for it.
PHASES = {
    "screening": Phase(
        "networks_screening", 700,
        {"letter": 1, "ijcnn1": 1, "adult": 1, "spambase": 3, "communities_crime": 3, "german_credit": 3},
        tuple(METHODS),
    ),
    "weights": Phase(
        "networks_weights", 1200,
        {"letter": 3, "ijcnn1": 10, "adult": 12, "spambase": 30, "communities_crime": 40, "german_credit": 80,
         "pneumoniamnist": 12, "CIFAR-10, truck": 6},
        (*BASELINES, "weight 1", "weight 1/2", "weight 1/4", "hard negatives", "mean of 3", "mean of 3, all rows"),
        ("hard negatives", "mean of 3, all rows"),
    ),
    "confirmation": Phase(
        "networks", 1300,
        {"letter": 4, "ijcnn1": 10, "adult": 12, "spambase": 24, "communities_crime": 40, "german_credit": 60,
         "pneumoniamnist": 24, "CIFAR-10, truck": 6},
        (*BASELINES, "default", "default, refit=False", "weight 1", "weight 1/4"),
        ("weight 1/4",),
    ),
}  # fmt: skip
QUICK = Phase("networks_screening", 700, {"german_credit": 1, "communities_crime": 1, "spambase": 1}, tuple(METHODS))


def judge(problem: sp.Problem, scores: Scores, parts: Parts) -> dict[str, float]:
    """One model by one ask: on held-out rows, at the best cut of the test rows, and at a threshold set beforehand."""
    point = sp.evaluate(problem, scores.calibration, parts.calibration[1])
    there = point.judge(scores.test, parts.test[1])
    bounded = problem.constraints[0].quantity
    return {
        "held out": objective(problem, scores.held_out, parts.held_out[1]),
        "test": objective(problem, scores.test, parts.test[1]),
        "at threshold": there.objective,
        "bounded rate": there.rates[str(bounded)],
        "seconds": scores.seconds,
    }


def fits(ask: str, parts: Parts) -> bool:
    """Images have the first ask alone; at FPR 0.1 % one test negative at least must be allowed to pass."""
    if parts.is_image:
        return ask == ASKS[0]
    return not ask.endswith("0.1%") or float((parts.test[1] == 0).sum()) >= 1000


def run_split(parts: Parts, seed: int, methods: tuple[str, ...], epochs: int | None = None) -> dict[str, Any]:
    """All methods of one set and split, by ask."""
    bench = Bench(parts, seed, epochs)
    found: dict[str, dict[str, dict[str, float]]] = {}
    for ask in (ask for ask in ASKS if fits(ask, parts)):
        problem = sp.ask(ask)
        found[ask] = {
            name: judge(problem, run_method(name, bench, problem), parts)
            for name in methods
            if METHODS[name].tries(ask)
        }
    return found


def run(phase: Phase, journal: Journal, sets: list[str] | None, options: Namespace) -> None:
    """Every set and split that is not written down yet, and every method that one does not have."""
    for name, seed in phase.plan():
        if sets and name not in sets:
            continue
        key = f"{name} | {seed}"
        before = journal.rows.get(key, {"seconds": 0.0, "asks": {}, "tried": []})
        missing = tuple(one for one in phase.methods_for(name) if one not in before["tried"])
        if not missing:
            continue
        started = time.process_time()
        parts = load_parts(name, seed, options.data, options.cache)
        found = run_split(parts, seed, missing, 8 if options.quick else None)
        asks = {ask: {**before["asks"].get(ask, {}), **own} for ask, own in found.items()}
        spent = time.process_time() - started
        told = {"set": name, "seed": seed, "tried": [*before["tried"], *missing]}
        journal.add(key, {**told, "seconds": before["seconds"] + spent, "asks": asks})
        print(f"{key}: {spent:.0f} s", flush=True)


def figures_of(phase: Phase, journal: Journal) -> dict[str, Any] | None:
    """What the rows that are there say; nothing if there are none."""
    planned = [f"{name} | {seed}" for name, seed in phase.plan()]
    rows = [of_methods(journal[key], phase.methods) for key in planned if key in journal]
    if not rows:
        return None
    found = summary(rows, test_share=1 - sum(SHARES), train_share=SHARES[0])
    figures = to_show(found, JUDGED if phase is PHASES["confirmation"] else JUDGED[:1])
    seeds = sorted({row["seed"] for row in rows})
    minutes = sum(row["seconds"] for row in rows) / 60
    return {**figures, "seeds": seeds, "planned": len(planned), "done": len(rows), "minutes": minutes}


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0])
    parser.add_argument("--cache", default=str(CACHE), help="where the pixels of CIFAR-10 are kept")
    parser.add_argument("--phase", default="confirmation", choices=PHASES, help="what is run")
    parser.add_argument("--so-far", action="store_true", help="run nothing, sum up what is there")
    parser.add_argument("--sets", help="some of the sets, separated by semicolons; nothing is then summed up")
    options = parser.parse_args()
    torch.set_num_threads(1)
    phases = {"screening": QUICK} if options.quick else PHASES
    journals = {name: Journal(phase.journal, options.quick) for name, phase in phases.items()}
    if not options.so_far:
        sets = options.sets.split(";") if options.sets else None
        chosen = "screening" if options.quick else options.phase
        run(phases[chosen], journals[chosen], sets, options)
    if options.sets:
        return
    figures: dict[str, Any] = {"most training rows": MOST}
    figures |= {name: figures_of(phase, journals[name]) for name, phase in phases.items()}
    for journal in journals.values():
        journal.fold()
    write_result("networks", figures, options.quick)


if __name__ == "__main__":
    main()
