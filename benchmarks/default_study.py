"""The default for linear models and heads against cross-entropy and the best of 21 class weights: ten sets, five asks.

    python -m benchmarks.default_study [--data DIR] [--cache DIR] [--quick] [--screen]

12 stratified splits of 60/20/20, at most 10,000 training rows. All methods are linear, on the same standardised
features (clipped to +-5; random features and heads are standardised again), with the same ridge; cross-entropy and each
of its 21 weights go to convergence by Newton's method. What is chosen (a class weight; a strength, of
`Anchored.auto()`) is chosen on validation rows by the exact metric of the ask; the default, `Anchored()`, chooses
nothing. A model is judged on test rows twice: at the best cut of the test curve, which compares models and decides the
counts, and at the threshold that is best on validation rows. The first default, with an anchor whose strength grew with
1 / alpha, was better than the weights in 19 of 50 cells on the splits 520 to 531 (`results/default_study_first.jsonl`),
and so were four strengths of it to choose from. These showed how the strength should depend on alpha; what it is now
was chosen on splits 0 to 3. The splits from 620 on were not used before. `--screen` uses others (0 to 5), on which
things may be tried. Seconds are of one thread's processor. Each finished row is one line of
`results/default_study.jsonl`, and not run again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import setpoint as sp
from benchmarks.data import Part, Split, arguments
from benchmarks.harness import Journal, write_result
from benchmarks.sets import CACHE, SETS, load_split
from benchmarks.verdicts import summary
from setpoint.measure.rate import Rate
from setpoint.train.linear import Rows, Scaling, anchor_strength, class_weights, cross_entropy, deciding_bound
from setpoint.train.recipes import Recipes

ASKS = (
    "minimize fnr where fpr <= 0.1%",
    "minimize fnr where fpr <= 1%",
    "minimize fnr where fpr <= 5%",
    "maximize precision where recall >= 95%",
    "maximize precision over recall in [95%, 100%] with 5 points",
)
CLASS_WEIGHTS = [2.0**power for power in range(-10, 11)]
KAPPAS, (KAPPA,) = sp.Anchored.auto().kappas, sp.Anchored().kappas
#: The default beside the baselines; its other strengths; and the one strength as it was at first.
FIRST_FORM = "anchored, first form"
STAGES = ("", "strengths", FIRST_FORM)
SHARES, MOST = (0.6, 0.2), 10_000
SEEDS, SCREENING_SEEDS = range(620, 632), range(6)


class Judged:
    """Parameters judged by one ask on the rows of a split that they were not fitted on."""

    def __init__(self, problem: sp.Problem, scaling: Scaling, parts: Split) -> None:
        self.problem = problem
        self.validation, self.test = (_prepared(scaling, part) for part in (parts.validation, parts.test))

    def __call__(self, theta: Tensor) -> dict[str, float]:
        point = sp.evaluate(self.problem, self.validation[0] @ theta, self.validation[1])
        scores, labels = self.test[0] @ theta, self.test[1]
        return {
            "validation": point.objective,
            "test": sp.evaluate(self.problem, scores, labels).objective,
            "at threshold": point.judge(scores, labels).objective,
        }


def _prepared(scaling: Scaling, part: Part) -> Part:
    return scaling.apply(part[0]), part[1]


def training_rows(parts: Split) -> tuple[Rows, Scaling]:
    """The rows as `sp.fit` makes them."""
    x, labels = parts.train
    scaling = Scaling.of(x, torch.ones_like(labels))
    return Rows(scaling.apply(x), labels, torch.ones_like(labels)), scaling


def timed(work: Callable[[], Tensor]) -> tuple[Tensor, float]:
    start = time.process_time()
    return work(), time.process_time() - start


def train_weights(rows: Rows) -> tuple[dict[float, Tensor], dict[str, float]]:
    """Cross-entropy under each class weight, plain first; the seconds of the plain one and of all."""
    found: dict[float, Tensor] = {}

    def plain() -> Tensor:
        found[1.0] = cross_entropy(rows, class_weights(rows, 1.0))
        return found[1.0]

    def others() -> Tensor:
        for side in (reversed([w for w in CLASS_WEIGHTS if w < 1]), [w for w in CLASS_WEIGHTS if w > 1]):
            theta = found[1.0]
            for weight in side:
                theta = found[weight] = cross_entropy(rows, class_weights(rows, weight), theta)
        return theta

    first, rest = timed(plain)[1], timed(others)[1]
    return found, {"cross-entropy": first, "best of 21 weights": first + rest}


def baselines(weights: dict[float, Tensor], judged: Judged) -> dict[str, dict[str, Any]]:
    """Plain cross-entropy and the best of the weights on validation rows; ties go to the nearest to 1."""
    sign = 1 if judged.problem.maximize else -1
    tried = {weight: judged(theta) for weight, theta in weights.items()}
    nearest = sorted(tried, key=lambda weight: max(weight, 1 / weight))
    best = max(nearest, key=lambda weight: sign * tried[weight]["validation"])
    return {"cross-entropy": tried[1.0], "best of 21 weights": {**tried[best], "weight": best}}


def ours(recipes: Recipes, judged: Judged, kappas: dict[str, float]) -> dict[str, dict[str, Any]]:
    """Matched cross-entropy and what is refined from it."""
    matched, seconds = timed(recipes.matched)
    methods: dict[str, dict[str, Any]] = {"matched": {**judged(matched), "seconds": seconds}}
    for name, kappa in kappas.items():
        theta, spent = timed(lambda kappa=kappa: recipes.anchored(kappa))
        methods[name] = {**judged(theta), "seconds": seconds + spent}
    return methods


def kappas_of(stage: str, problem: sp.Problem, rows: Rows) -> dict[str, float]:
    """The strengths of a stage of the study, by name."""
    if stage == FIRST_FORM:
        return {FIRST_FORM: KAPPA * first_strength(problem, rows) / anchor_strength(problem, rows)}
    return {f"anchored {kappa:g}": kappa for kappa in KAPPAS if (kappa == KAPPA) == (stage == "")}


def first_strength(problem: sp.Problem, rows: Rows) -> float:
    """The strength as it was at first: d (1 / (alpha N_C) + 1 / N_O); here C is always one of the classes."""
    bound = deciding_bound(problem)
    assert bound is not None
    assert isinstance(bound.quantity, Rate)
    sizes = [float((rows.labels == label).sum()) for label in (0, 1)]
    bounded = bound.quantity.whole == (1, 0, 1, 0)
    share = min(bound.bound, 1 - bound.bound)
    return (rows.x.shape[1] - 1) * (1 / (share * sizes[bounded]) + 1 / sizes[not bounded])


def row_key(name: str, ask: str, seed: int, stage: str = "") -> str:
    return " | ".join([name, ask, str(seed), *[stage] * bool(stage)])


def run_split(journal: Journal, name: str, seed: int, parts: Callable[[], Split], stage: str = "") -> None:
    """All asks of one set and split: the baselines, trained once for all asks, and the default; or other strengths."""
    missing = [ask for ask in ASKS if row_key(name, ask, seed, stage) not in journal]
    if not missing:
        return
    split = parts()
    rows, scaling = training_rows(split)
    weights, seconds = ({}, {}) if stage else train_weights(rows)
    for ask in missing:
        judged = Judged(sp.ask(ask), scaling, split)
        methods = {} if stage else baselines(weights, judged)
        for method, spent in seconds.items():
            methods[method]["seconds"] = spent
        methods |= ours(Recipes(judged.problem, rows), judged, kappas_of(stage, judged.problem, rows))
        key = row_key(name, ask, seed, stage)
        journal.add(key, {"set": name, "ask": ask, "seed": seed, "methods": methods})
        figures = ", ".join(f"{method} {100 * found['test']:.2f}" for method, found in methods.items())
        print(f"{key}: {figures}", flush=True)


def joined(journal: Journal, sets: tuple[str, ...], seeds: range) -> list[dict[str, Any]]:
    """The rows of a study, each with the further stages that all rows have."""
    every = [(name, ask, seed) for name in sets for ask in ASKS for seed in seeds]
    stages = [stage for stage in STAGES if all(row_key(*one, stage) in journal for one in every)]
    rows = []
    for one in every:
        methods: dict[str, Any] = {}
        for stage in reversed(stages):
            methods |= journal[row_key(*one, stage)]["methods"]
        rows.append({**journal[row_key(*one)], "methods": methods})
    return rows


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0])
    parser.add_argument("--cache", default=str(CACHE), help="where the features of the CIFAR-10 heads are kept")
    parser.add_argument("--screen", action="store_true", help="the splits on which things were tried")
    parser.add_argument("--only-default", action="store_true", help="leave the other strengths for later")
    parser.add_argument("--splits", type=int, help="only the first so many")
    parser.add_argument("--sets", help="some of the sets, separated by semicolons; nothing is then summed up")
    options = parser.parse_args()
    torch.set_num_threads(1)
    name = "default_screening" if options.screen else "default_study"
    sets, seeds = SETS, SCREENING_SEEDS if options.screen else SEEDS
    if options.quick:
        sets, seeds = ("letter", "spambase", "communities_crime", "german_credit"), SCREENING_SEEDS[:2]
    seeds = seeds[: options.splits]
    if options.sets:
        sets = tuple(options.sets.split(";"))
    journal = Journal(name, options.quick)
    for stage in STAGES[:1] if options.only_default else STAGES:
        for seed in seeds:
            for one in sets:

                def parts(one: str = one, seed: int = seed) -> Split:
                    return load_split(one, seed, SHARES, data=options.data, cache_folder=options.cache, most=MOST)

                run_split(journal, one, seed, parts, stage)
    if options.sets:
        return
    figures = summary(joined(journal, sets, seeds), test_share=1 - sum(SHARES), train_share=SHARES[0])
    figures |= {"seeds": list(seeds), "most training rows": MOST, "class weights": CLASS_WEIGHTS}
    figures["planned splits"] = len(SCREENING_SEEDS if options.screen or options.quick else SEEDS)
    for compared, found in figures["counts"].items():
        print(compared, found)
    write_result(name, figures, options.quick)


if __name__ == "__main__":
    main()
