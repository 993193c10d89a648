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

A certificate is issued if the test of every bound passes, as in `sp.calibrate`; the tests are called by themselves, on
the lists of all repeats at once. `tests/decide/test_of_lists.py` counts 1,000 repeats of `sp.calibrate` itself. "met"
says whether certificates are wrong in no more than 5 % of the repeats, and two standard errors.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import torch
from scipy.special import betaln
from scipy.stats import binom
from torch import Tensor

import setpoint as sp
from benchmarks.common.harness import write_result
from setpoint.measure.constraint import Constraint
from setpoint.measure.lists import Ordered, with_lists
from setpoint.measure.sample import check_sample
from setpoint.problem.evidence_of_lists import p_beyond

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


def drawn(lists: int, world: str, repeats: int) -> Tensor:
    """The counts of all lists of all repeats, one repeat after the other."""
    draw, size = np.random.default_rng((7, lists)), lists * repeats
    shares = draw.beta(*WORLDS[world], size=size).repeat(ROWS)
    scores, labels = torch.from_numpy(draw.normal(size=size * ROWS)), (draw.random(size * ROWS) < shares).astype(float)
    return Ordered(with_lists(check_sample(scores, labels), np.arange(size).repeat(ROWS))).counts(ROWS)


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
    for world, lists in itertools.product(WORLDS, SIZES):
        counts = drawn(lists, world, repeats)
        for bound, (kind, margin) in itertools.product(BOUNDS, (("false", BEYOND), ("true", -SAFE))):
            bounds = asked(bound, world, margin).constraints
            each = [c.quantity.of_each(counts).numpy().reshape(repeats, lists) for c in bounds]  # type: ignore[attr-defined]

            def issued(test: Callable[[Constraint, np.ndarray], float], bounds=bounds, each=each) -> float:
                """The share of the repeats in which the test of every bound passes."""
                passed = [
                    all(test(c, own[n]) <= 1 - CONFIDENCE for c, own in zip(bounds, each)) for n in range(repeats)
                ]
                return sum(passed) / repeats

            ours = issued(lambda c, values: p_beyond(c, values, c.relation))
            limit = 1 - CONFIDENCE + 2 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / repeats)
            cell = {"world": world, "lists": lists, "bound": f"{bound[0]} in the first {bound[1]} {bound[2]}"}
            cell |= {"kind": kind, "repeats": repeats, "issued": ours}
            cell |= {"met": ours <= limit} if kind == "false" else {"bentkus": issued(hoeffding_bentkus)}
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
