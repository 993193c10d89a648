"""Letter, linear model, partial PR area over recall 95 % to 100 %: the untuned default against cross-entropy.

    python -m benchmarks.studies.letter [--data DIR] [--quick]

10 splits of 50/25/25. The area is the mean precision over the range, the step form of `setpoint.measure.curve`.
Cross-entropy and balanced cross-entropy are ridge fits to convergence; for reference the best of 21 class weights,
tuned on validation, and the four-strength choice `Anchored.auto()`, chosen on validation, stand beside them.
"""

from __future__ import annotations

import statistics

import torch

import setpoint as sp
from benchmarks.common.data import Split, arguments, load_table, paired, split
from benchmarks.common.harness import write_result
from benchmarks.studies.fixed_fpr.study import CLASS_WEIGHTS, FIRST_SEED, default, judge, weighted

ASK = "maximize precision over recall in [95%, 100%] with 5 points"
SHARES = (0.5, 0.25)
PROMISED = {"cross-entropy": 1.40, "balanced cross-entropy": 1.10}


def balanced(problem: sp.Problem, parts: Split) -> float:
    labels = parts.train[1]
    return weighted(problem, parts, [float((labels == 0).sum() / (labels == 1).sum())])


def chosen(problem: sp.Problem, parts: Split) -> float:
    model = torch.nn.Linear(parts.train[0].shape[1], 1).double()
    sp.fit(model, problem, [parts.train], [parts.validation], sp.Anchored.auto())
    with torch.no_grad():
        return judge(problem, model(parts.test[0]).squeeze(-1), parts.test[1])


def main() -> None:
    options = arguments(str(__doc__).splitlines()[0]).parse_args()
    problem = sp.ask(ASK)
    x, y = load_table("letter", options.data)
    methods = {
        "cross-entropy": lambda p: weighted(problem, p, [1.0]),
        "balanced cross-entropy": lambda p: balanced(problem, p),
        "best of 21 weights": lambda p: weighted(problem, p, CLASS_WEIGHTS),
        "default": lambda p: default(problem, p),
        "four strengths": lambda p: chosen(problem, p),
    }
    seeds = range(FIRST_SEED, FIRST_SEED + (3 if options.quick else 10))
    areas = {name: [run(split(x, y, seed, SHARES)) for seed in seeds] for name, run in methods.items()}
    means = {name: statistics.mean(values) for name, values in areas.items()}
    ratios = {
        name: {
            "ratio": means["default"] / means[name],
            "promised": least,
            "met": means["default"] / means[name] >= least,
        }
        for name, least in PROMISED.items()
    }
    differences = {
        name: paired([a - b for a, b in zip(areas["default"], areas[name])], 0.25, 0.5)
        for name in areas
        if name != "default"
    }
    for name, mean in means.items():
        print(f"{name:24s} {100 * mean:6.2f}")
    for name, found in ratios.items():
        print(f"default / {name}: {found['ratio']:.3f} (promised {found['promised']})")
    write_result("letter", {"ask": ASK, "splits": list(seeds), "areas": areas, "means": means, "ratios": ratios,
                            "default minus": differences}, options.quick)  # fmt: skip
