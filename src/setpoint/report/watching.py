"""The words of a watch: what is known about each bound, drift, and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from setpoint.decide.by_kind import decider
from setpoint.decide.drift import SCORES, Drifted
from setpoint.decide.samples_needed import allowed_share, counted
from setpoint.decide.without_labels import Unlabelled
from setpoint.measure.constraint import percent
from setpoint.problem.evidence import is_testable
from setpoint.problem.watch import Watch
from setpoint.problem.watched_bound import WatchedBound

#: The confidence at which the rows for a new threshold are counted.
CONFIDENCE = 0.95
#: Features that a sentence names.
_SHOWN = 3


def short(share: float) -> str:
    """A share in percent, with two digits after the point."""
    return f"{100 * share:.2f}%"


def evidence(value: float | None) -> str:
    """An e-value in a few letters."""
    return "no test" if value is None else f"{value:.3g}"


def state_of(bound: WatchedBound) -> str:
    """A bound in one word: broken, holds or open."""
    return "broken" if bound.broken else "holds" if bound.holds else "open"


def evidence_words(watch: Watch) -> list[list[str]]:
    """One row per bound: the rate, its interval, the rows and the evidence against and for it."""
    return [
        [
            bound.place, short(bound.rate), f"{short(bound.low)} ... {short(bound.high)}",
            " and ".join(f"{size:,}" for size in bound.samples), evidence(bound.against), evidence(bound.in_favour),
        ]
        for bound in watch.bounds
    ]  # fmt: skip


def watch_words(watch: Watch) -> str:
    """Whether the promise is broken, holds or is open, in a sentence."""
    level = f"at most {percent(watch.level)} over all looks"
    if watch.broken:
        broken = " and ".join(bound.place for bound in watch.bounds if bound.broken)
        return f"The promise is broken: {broken} (a false alarm has a probability of {level})."
    if watch.holds:
        return f"The promise holds: {watch.problem.promise} (a mistake has a probability of {level})."
    return (
        f"The promise is open: no bound is found broken, and not all are shown to hold (level {percent(watch.level)})."
    )


def drift_words(drift: Sequence[Drifted]) -> list[str]:
    """A sentence on the drift that was found, or that none was."""
    found = [one for one in drift if one.drifts]
    if not found:
        tests = sum(one.looks > 0 for one in drift)
        if not tests:
            return ["No rows to test drift by."]
        first = len(drift) - tests
        own = f" These rows are the reference of {first:,} features; later rows are tested by them." if first else ""
        return [f"No drift is found in {tests:,} test{'s' * (tests != 1)}.{own}"]
    names = [one.name for one in sorted(found, key=lambda one: (one.name != SCORES, -one.most))]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return [
        f"Drift, not a broken promise: {', '.join(names[:_SHOWN])}{more} changed since the reference rows. Labels "
        "decide whether a bound is broken."
    ]


def unlabelled_words(rates: Sequence[Unlabelled], last: Mapping[str, Any] | None) -> list[str]:
    """The rates that the share of flagged rows in the last batch suggests, in words."""
    if not rates or last is None:
        return []
    each = ", ".join(f"{one.rate} {short(one.estimate)} ({short(one.low)} ... {short(one.high)})" for one in rates)
    return [
        f"The last batch flags {short(last['flagged'] / last['rows'])} of its rows. If only the share of positives has "
        f"changed: {each}. The range is for an unchanged share of positives and any other change."
    ]


def advice(watch: Watch, run: str, drifted: Sequence[Drifted]) -> list[str]:
    """The next step, with the number of labelled rows that a new threshold needs."""
    if not watch.broken and not drifted:
        return []
    needs = [
        f"{decider(watch.problem).needed(watch.problem, bound, CONFIDENCE):,} {counted(bound)}"
        for bound in watch.problem.constraints
        if is_testable(bound) and bound.relation != "==" and allowed_share(bound) > 0
    ]
    at_least = f", with at least {' and '.join(needs)}" if needs else ""
    command = f"setpoint calibrate {run} fresh.csv"
    if watch.broken:
        return [f"Set the threshold anew: {command}{at_least}."]
    return [f"Label rows of the last batch and watch them; if a bound breaks: {command}{at_least}."]
