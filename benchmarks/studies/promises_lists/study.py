"""How often certificates over lists are wrong, and how often they are issued, where the truth is known.

    python -m benchmarks.studies.promises_lists [--quick] [--repeats 1000]

Lists of 8 rows. The share of positives of a list is drawn from a Beta distribution, so that lists differ; scores know
nothing of the labels. Hence all means over lists are known in closed form: precision in the first k is the mean share,
a hit in the first k has the probability 1 - E[(1 - share)^k], and recall in the first k is k / 8 in each list that has
a positive. Two kinds of cells, each at 95 %, from 30 and from 200 lists:

- `false`: the bound lies 0.1 points beyond the truth, so that every certificate that is issued is wrong. With two
  bounds the second is true.
- `true`: the bound lies 10 points on the safe side of the truth. The share of issued certificates is the power, given
  beside that of the Hoeffding-Bentkus test of the same values, which is valid as well.

"met" says whether certificates are wrong in no more than 5 % of the repeats, and two standard errors.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator

import numpy as np
import torch
from scipy.special import betaln
from scipy.stats import binom

import setpoint as sp
from benchmarks.common.harness import write_result
from setpoint.decide.lists import values_of
from setpoint.errors import TooFewSamples
from setpoint.measure.constraint import Constraint
from setpoint.problem.read_sample import read_sample
from setpoint.problem.read_thresholds import first_rows

CONFIDENCE, ROWS, SIZES = 0.95, 8, (30, 200)
#: The shape of the Beta distribution of the shares of positives: lists that are alike, and lists that differ.
WORLDS = {"alike": (6.0, 14.0), "different": (0.6, 1.4)}
BEYOND, SAFE = 0.001, 0.1


def truth(name: str, k: int, a: float, b: float) -> float:
    """The mean over lists of a rate in the first k."""
    none_in = {places: math.exp(betaln(a, b + places) - betaln(a, b)) for places in (k, ROWS)}
    some = 1 - none_in[ROWS]
    return {
        "precision": a / (a + b), "hit": 1 - none_in[k], "recall": k / ROWS * some, "fnr": (1 - k / ROWS) * some,
    }[name]  # fmt: skip


#: Name, k and relation of the bound; a second bound that is true goes with the last.
BOUNDS = (("hit", 2, ">="), ("hit", 2, "<="), ("precision", 3, ">="), ("precision", 3, "<="), ("recall", 4, ">="),
          ("fnr", 4, "<="), ("precision", 3, ">= and hit"))  # fmt: skip


def drawn(lists: int, world: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    draw = np.random.default_rng((seed, lists))
    shares = draw.beta(*WORLDS[world], size=lists).repeat(ROWS)
    return (
        draw.normal(size=lists * ROWS),
        (draw.random(lists * ROWS) < shares).astype(int),
        np.arange(lists).repeat(ROWS),
    )


def asked(bound: tuple[str, int, str], world: str, margin: float) -> sp.Problem:
    """The ask with the bound so far beyond the truth (above 0) or on its safe side (below 0)."""
    name, k, relation = bound[0], bound[1], bound[2][:2]
    true = truth(name, k, *WORLDS[world])
    bounds = [Constraint(sp.rates.InFirst(RATES[name], k), relation, true + (margin if relation == ">=" else -margin))]
    if "and" in bound[2]:
        bounds.append(sp.rates.InFirst(sp.rates.hit, 2) >= truth("hit", 2, *WORLDS[world]) - SAFE)
    return sp.maximize(sp.rates.InFirst(sp.recall, 5), *bounds)


RATES = {"precision": sp.precision, "hit": sp.rates.hit, "recall": sp.recall, "fnr": sp.fnr}


def hoeffding_bentkus(constraint: Constraint, values: np.ndarray) -> float:
    """The p-value of Hoeffding and Bentkus for a mean of values in [0, 1] against the bound."""
    losses, bound = (1 - values, 1 - constraint.bound) if constraint.relation == ">=" else (values, constraint.bound)
    mean, size = losses.mean(), len(losses)
    if mean >= bound:
        return 1.0
    parts = ((mean, bound), (1 - mean, 1 - bound))
    gap = sum(a * math.log(a / b) for a, b in parts if a > 0)
    return min(1.0, math.exp(-size * gap), math.e * float(binom.cdf(math.ceil(size * mean), size, bound)))


def cells(repeats: int) -> Iterator[dict[str, object]]:
    for world in WORLDS:
        for lists in SIZES:
            for bound in BOUNDS:
                for kind, margin in (("false", BEYOND), ("true", -SAFE)):
                    problem, issued, bentkus = asked(bound, world, margin), 0, 0
                    for seed in range(repeats):
                        scores, labels, each = drawn(lists, world, seed)
                        try:
                            sp.calibrate(problem, scores, labels, lists=each, confidence=CONFIDENCE)
                            issued += 1
                        except TooFewSamples:
                            pass
                        if kind == "true":
                            sample = read_sample(problem, torch.from_numpy(scores), labels, None, each)
                            p = [
                                hoeffding_bentkus(c, values_of(c.quantity, first_rows(problem), sample))
                                for c in problem.constraints
                            ]
                            bentkus += max(p) <= 1 - CONFIDENCE
                    limit = 1 - CONFIDENCE + 2 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / repeats)
                    cell = {"world": world, "lists": lists, "bound": f"{bound[0]} in the first {bound[1]} {bound[2]}"}
                    cell |= {"kind": kind, "repeats": repeats, "issued": issued / repeats}
                    cell |= {"met": issued / repeats <= limit} if kind == "false" else {"bentkus": bentkus / repeats}
                    print(cell, flush=True)
                    yield cell


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--quick", action="store_true", help="20 repeats; nothing is kept")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    found = list(cells(20 if arguments.quick else arguments.repeats))
    write_result("promises_lists", {"confidence": CONFIDENCE, "cells": found}, arguments.quick)
