"""The default for networks against cross-entropy and the best of seven class weights: MLPs and small CNNs.

    python -m benchmarks.networks [--data DIR] [--cache DIR] [--quick] [--screen] [--so-far] [--sets a;b]

Stratified splits of 50/15/15/20: train (at most 10,000 rows), held-out rows that stop and choose, calibration rows that
only set the threshold, test rows. Every net from scratch has the same epochs, Adam on a cosine, and is stopped early by
its own loss on held-out rows (`benchmarks/nets.py`); what is compared is in `benchmarks/network_methods.py`. `--screen`
tries everything on the splits from 700 on. A first confirmation on those from 800 on led to a little weight decay and a
lower rate for convolutions; one on those from 900 on, to training again on held-out rows as the default; one on those
from 1000 on was broken off, since it showed that a fixed weight was needed beside the grid, and that stopping by the
loss stops too early. Both were tried on those from 700 on. What the default is now is confirmed on those from 1200 on,
which nothing was chosen on. A model is judged on test rows at the best cut of the test curve, which compares models,
and at the threshold that is best on calibration rows. Each finished set and split is one line of
`results/networks*.jsonl`, and not run again; `--so-far` sums up what is there.
"""

from __future__ import annotations

import time
from argparse import Namespace
from typing import Any

import torch

import setpoint as sp
from benchmarks.data import arguments
from benchmarks.harness import Journal, write_result
from benchmarks.nets import MOST, SETS, SHARES, Parts, load_parts
from benchmarks.network_bench import Bench, Scores, objective
from benchmarks.network_methods import BASELINES, METHODS, run_method
from benchmarks.network_verdicts import of_methods, summary
from benchmarks.sets import CACHE

ASKS = (
    "minimize fnr where fpr <= 1%",
    "minimize fnr where fpr <= 0.1%",
)
#: From which seed on, and how many splits of each set, screened and confirmed: so many that a point is more than noise,
#: where there is time for it.
SCREENING_FROM, CONFIRMING_FROM = 700, 1200
SPLITS = {
    "letter": (1, 3), "ijcnn1": (1, 10), "adult": (1, 12), "spambase": (3, 30), "communities_crime": (3, 40),
    "german_credit": (3, 80), "CIFAR-10, truck": (0, 6), "pneumoniamnist": (0, 12),
}  # fmt: skip
#: Images wait so many turns: a study that is stopped has several splits of every table by then.
WAITS = {"pneumoniamnist": 2, "CIFAR-10, truck": 4}
JOURNALS = {"confirmation": "networks", "screening": "networks_screening"}
#: What was best in the screening, and is confirmed; and what of it there is time for with images.
CONFIRMED = ("default", "default, refit=False", "default, weight 1", "mean of 3", "mean of 3, all rows")
LEFT_OUT_FOR_IMAGES = ("mean of 3, all rows",)


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


def plan(screen: bool, quick: bool) -> list[tuple[str, int]]:
    """Sets and splits in the order of running."""
    if quick:
        return [(name, SCREENING_FROM) for name in ("german_credit", "communities_crime", "spambase")]
    splits = {name: own[not screen] for name, own in SPLITS.items()}
    first = SCREENING_FROM if screen else CONFIRMING_FROM
    turns = [(place + WAITS.get(name, 0), name, place) for name in SETS for place in range(splits[name])]
    return [(name, first + place) for _, name, place in sorted(turns, key=lambda turn: turn[0])]


def run(journal: Journal, planned: list[tuple[str, int]], methods: tuple[str, ...], options: Namespace) -> None:
    """Every pair of a set and a split that is not written down yet."""
    for name, seed in planned:
        if row_key(name, seed) in journal:
            continue
        started = time.process_time()
        parts = load_parts(name, seed, options.data, options.cache)
        tried = tuple(one for one in methods if not (parts.is_image and one in LEFT_OUT_FOR_IMAGES))
        asks = run_split(parts, seed, tried, 8 if options.quick else None)
        spent = time.process_time() - started
        journal.add(row_key(name, seed), {"set": name, "seed": seed, "seconds": spent, "asks": asks})
        print(f"{row_key(name, seed)}: {spent:.0f} s", flush=True)


def row_key(name: str, seed: int) -> str:
    return f"{name} | {seed}"


def figures_of(journal: Journal, planned: list[tuple[str, int]], methods: tuple[str, ...]) -> dict[str, Any] | None:
    """What the rows that are there say; nothing if there are none."""
    rows = [of_methods(journal[row_key(*one)], methods) for one in planned if row_key(*one) in journal]
    if not rows:
        return None
    figures = summary(rows, test_share=1 - sum(SHARES), train_share=SHARES[0])
    seeds = sorted({row["seed"] for row in rows})
    minutes = sum(row["seconds"] for row in rows) / 60
    return {**figures, "seeds": seeds, "planned": len(planned), "done": len(rows), "minutes": minutes}


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0])
    parser.add_argument("--cache", default=str(CACHE), help="where the pixels of CIFAR-10 are kept")
    parser.add_argument("--screen", action="store_true", help="the splits on which things were tried, and all of them")
    parser.add_argument("--so-far", action="store_true", help="run nothing, sum up what is there")
    parser.add_argument("--sets", help="some of the sets, separated by semicolons; nothing is then summed up")
    options = parser.parse_args()
    torch.set_num_threads(1)
    journals = {kind: Journal(name, options.quick) for kind, name in JOURNALS.items()}
    plans = {kind: plan(kind == "screening", options.quick) for kind in JOURNALS}
    methods = {"confirmation": (*BASELINES, *CONFIRMED), "screening": tuple(METHODS)}
    kind = "screening" if options.screen or options.quick else "confirmation"
    if options.sets:
        plans[kind] = [one for one in plans[kind] if one[0] in options.sets.split(";")]
    if not options.so_far:
        run(journals[kind], plans[kind], methods[kind], options)
    if options.sets:
        return
    figures: dict[str, Any] = {"most training rows": MOST}
    for kind, journal in journals.items():
        figures[kind] = figures_of(journal, plans[kind], methods[kind])
    write_result("networks", figures, options.quick)


if __name__ == "__main__":
    main()
