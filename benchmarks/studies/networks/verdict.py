"""What the network study says: every method against each rival, set by set and over all sets."""

from __future__ import annotations

import itertools
import math
import statistics
from typing import Any

import setpoint as sp
from benchmarks.common.data import paired
from benchmarks.studies.default_study.verdict import sides

PLAIN, WEIGHTS = "cross-entropy", "best of 7 weights"
#: The grid with all that helps without one.
HELPED = "best of 7 weights, averaged, all rows"
RIVALS = (PLAIN, WEIGHTS, HELPED)
JUDGED = ("test", "at threshold")
ERRORS = ("standard_error", "corrected_standard_error")
#: What the default must not lose to a rival on any set.
ALLOWED = 0.01


def cell(ask: str, rows: list[dict[str, Any]], test_share: float, train_share: float) -> dict[str, Any]:
    """One set and ask: means over the splits, and the paired gains of every method over each rival."""
    sign = 1 if sp.ask(ask).maximize else -1
    found: dict[str, Any] = {"set": rows[0]["set"], "ask": ask, "splits": len(rows)}
    by_split = [row["asks"][ask] for row in rows]
    # A method that came later stands on the splits that have it.
    names = dict.fromkeys(name for own in by_split for name in own)
    having = {name: [own for own in by_split if name in own] for name in names}
    for kind in (*JUDGED, "bounded rate", "seconds"):
        found[kind] = {name: statistics.mean(own[name][kind] for own in those) for name, those in having.items()}
    for judged in JUDGED:
        found[f"gain, {judged}"] = {name: {} for name in having}
        for name, rival in itertools.product(having, [rival for rival in RIVALS if rival in having]):
            both = [own for own in having[name] if rival in own]
            if name != rival:
                gains = [sign * (own[name][judged] - own[rival][judged]) for own in both]
                found[f"gain, {judged}"][name][rival] = paired(gains, test_share, train_share)
    return found


def together(cells: list[dict[str, Any]], judged: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Over all sets, each as heavy: the mean gain with its errors, and on how many sets it is better or worse."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    key = f"gain, {judged}"
    for name in dict.fromkeys(name for one in cells for name in one[key]):
        having = [one for one in cells if name in one[key]]
        found[name] = {}
        for rival in dict.fromkeys(rival for one in having for rival in one[key][name]):
            # Images go without some of both. One split alone says nothing, where there are sets with more.
            every = [one for one in having if rival in one[key][name]]
            shared = [one for one in every if not math.isnan(one[key][name][rival]["standard_error"])] or every
            gains = [one[key][name][rival] for one in shared]
            summed: dict[str, Any] = {"mean": statistics.mean(gain["mean"] for gain in gains), "sets": len(gains)}
            for error in ERRORS:
                # Splits of different sets are independent.
                summed[error] = sum(gain[error] ** 2 for gain in gains) ** 0.5 / len(gains)
                outcomes = [0 if math.isnan(gain[error]) else sides(gain, error) for gain in gains]
                summed[f"sets by {error}"] = {"better": outcomes.count(1), "worse": outcomes.count(-1)}
            summed["ahead on"] = sum(gain["mean"] > 0 for gain in gains)
            worst = min(range(len(gains)), key=lambda place: gains[place]["mean"])
            summed["worst"] = {"set": shared[worst]["set"], **gains[worst]}
            # A loss of more than a point; and one that is more than noise as well.
            lost = [place for place, gain in enumerate(gains) if gain["mean"] < -ALLOWED]
            summed["lost a point on"] = [shared[place]["set"] for place in lost]
            summed["clearly on"] = [
                shared[place]["set"] for place in lost if gains[place]["mean"] < -2 * gains[place]["standard_error"]
            ]
            found[name][rival] = summed
    return found


def to_show(found: dict[str, Any], judged: tuple[str, ...]) -> dict[str, Any]:
    """What the page shows of a summary: of every cell its figures at the best cut, with the gains over cross-entropy;
    over all sets, the gains over cross-entropy and the weights, and of the default over the grid with all that helps.
    """
    cells = [
        {name: one[name] for name in ("set", "ask", "splits", "test")}
        | {"gain, test": {name: {PLAIN: own[PLAIN]} if PLAIN in own else {} for name, own in one["gain, test"].items()}}
        for one in found["cells"]
    ]
    whole = {
        ask: {
            kind: {
                name: {rival: own[rival] for rival in (PLAIN, WEIGHTS, *[HELPED] * (name == "default")) if rival in own}
                for name, own in by_kind[kind].items()
            }
            for kind in judged
        }
        for ask, by_kind in found["together"].items()
    }
    return {"cells": cells, "together": whole}


def of_methods(row: dict[str, Any], methods: tuple[str, ...]) -> dict[str, Any]:
    """A row without the methods that were given up on the way."""
    asks = {ask: {name: found[name] for name in methods if name in found} for ask, found in row["asks"].items()}
    return {**row, "asks": asks}


def summary(rows: list[dict[str, Any]], test_share: float, train_share: float) -> dict[str, Any]:
    """Cells of a study whose rows have a set, a seed and methods by ask, and what they say together."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        for ask in row["asks"]:
            groups.setdefault((ask, row["set"]), []).append(row)
    cells = [cell(ask, group, test_share, train_share) for (ask, _), group in groups.items()]
    asks = dict.fromkeys(one["ask"] for one in cells)
    return {
        "cells": cells,
        "together": {
            ask: {judged: together([one for one in cells if one["ask"] == ask], judged) for judged in JUDGED}
            for ask in asks
        },
    }
