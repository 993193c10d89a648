"""Watching a promise: false alarms over many looks, and months until a broken bound is noticed.

    python -m benchmarks.studies.watching [--quick] [--mapie PYTHON]

The bound is fpr <= 1 %, and a month brings 1,000 negatives. Streams in which the bound is kept are watched for 10,000
looks: the rate at the bound, at 0.8 %, between 0.5 and 1 % with the season, at the bound with labels that come over
three months, in two groups that share the level, and a gap of 2 points between groups that is just kept. Scores without
drift, against a reference of 1,000 rows, likewise. In other streams the rate rises in month 7 to 1.6 or 2 times the
bound, and 24 months are watched. Beside the watch: the exact test of each month alone at 5 %, the same at 5 % / 24
(Bonferroni), and MAPIE's monitor in an environment of its own (`--mapie`: its Python), on the first `--few` streams of
each cell, at the same level. `delay` counts months from month 7 on, the month of the alarm included; streams without an
alarm, or with one before month 7, are counted apart.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import betaincc, betaln
from scipy.stats import binom

import setpoint as sp
from benchmarks.common.harness import Journal, write_result
from setpoint.decide.drift import DriftEvidence, Reference
from setpoint.problem.anytime import RateEvidence, _log_average, _prior, gap_evidence, log_above

BOUND, ROWS, LEVEL, MONTHS, CHANGE = 0.01, 1000, 0.05, 24, 7
Looks = Iterator[tuple[np.ndarray, np.ndarray]]


def steady(rate: Callable[[int], float]) -> Callable[[np.random.Generator, int, int], Looks]:
    """Months of 1,000 negatives, with the rate of each month."""

    def looks(draw: np.random.Generator, streams: int, months: int) -> Looks:
        for month in range(1, months + 1):
            yield draw.binomial(ROWS, rate(month), streams), np.full(streams, ROWS)

    return looks


def late(rate: Callable[[int], float]) -> Callable[[np.random.Generator, int, int], Looks]:
    """The same, where labels come in the same month (half of them), in the next (0.3) or in the one after that."""

    def looks(draw: np.random.Generator, streams: int, months: int) -> Looks:
        waiting = np.zeros((2, 2, streams), dtype=int)
        for month in range(1, months + 1):
            rows = draw.multinomial(ROWS, [0.5, 0.3, 0.2], streams).T
            flagged = draw.binomial(rows, rate(month))
            yield flagged[0] + waiting[0, 0], rows[0] + waiting[1, 0]
            waiting = np.stack([[part[1] + waiting[i, 1], part[2]] for i, part in enumerate((flagged, rows))])

    return looks


def risen(before: float, times: float) -> Callable[[int], float]:
    return lambda month: before if month < CHANGE else times * BOUND


def season(month: int) -> float:
    return 0.0075 + 0.0025 * float(np.sin(2 * np.pi * month / 12))


KEPT = {
    "at the bound": steady(lambda _: BOUND),
    "at 0.8 of the bound": steady(lambda _: 0.8 * BOUND),
    "seasonal, up to the bound": steady(season),
    "labels come late": late(lambda _: BOUND),
}
BROKEN = {
    "1.6 x from month 7, before at the bound": steady(risen(BOUND, 1.6)),
    "2 x from month 7, before at the bound": steady(risen(BOUND, 2)),
    "1.6 x from month 7, before at 0.8": steady(risen(0.8 * BOUND, 1.6)),
    "2 x from month 7, before at 0.8": steady(risen(0.8 * BOUND, 2)),
    "2 x from month 7, labels come late": late(risen(BOUND, 2)),
}


class Alarms(RateEvidence):
    """The same evidence, whose closed form is evaluated only where it could reach a new peak: alarms are the same."""

    @property
    def now(self) -> np.ndarray:
        first, second = _prior(self.bound)
        rest = self.whole - self.part
        tail = np.log(betaincc(first, second, self.bound))
        most = betaln(first + self.part, second + rest) - betaln(first, second) - tail
        most -= self.part * np.log(self.bound) + rest * np.log1p(-self.bound)
        could = self.together(most) >= self.peak
        first_bets = np.full(len(self.part), -np.inf)
        first_bets[could] = log_above(self.part[could], self.whole[could], self.bound)
        return np.where(could, self.together(first_bets), -np.inf)


def alarms_over_looks(cell: Any, streams: int, looks: int, seed: int) -> float:
    """The share of streams that are ever called broken."""
    evidence, draw = Alarms(BOUND, streams), np.random.default_rng(seed)
    for part, whole in cell(draw, streams, looks):
        evidence.look(part, whole)
    return float((evidence.peak >= -np.log(LEVEL)).mean())


def alarms_in_groups(streams: int, looks: int, seed: int) -> float:
    """The same for two groups at the bound, each with half of the level."""
    draw, both = np.random.default_rng(seed), [Alarms(BOUND, streams) for _ in range(2)]
    whole = np.full(streams, ROWS // 2)
    for _ in range(looks):
        for evidence in both:
            evidence.look(draw.binomial(ROWS // 2, BOUND, streams), whole)
    return float(np.any([e.peak >= -np.log(LEVEL / 2) for e in both], axis=0).mean())


def alarms_of_gap(streams: int, looks: int, seed: int) -> float:
    """The same for two groups at 5 and 7 %, whose gap of 2 points is the bound.

    The evidence is the least over all pairs of rates that keep the bound, so it is computed only where it could reach
    the level at the pairs that are tried first, (5 %, 7 %) among them.
    """
    draw, rates = np.random.default_rng(seed), np.array([0.05, 0.07])
    part, whole, open_ = np.zeros((streams, 2)), 0, np.ones(streams, dtype=bool)
    for _ in range(looks):
        part, whole = part + draw.binomial(ROWS // 2, rates, (streams, 2)), whole + ROWS // 2
        most = np.maximum(_at_pair(part[:, 1], part[:, 0], whole, 0.05), _at_pair(part[:, 0], part[:, 1], whole, 0.06))
        for stream in np.flatnonzero(open_ & (most >= -np.log(LEVEL))):
            open_[stream] = gap_evidence(part[stream], np.full(2, float(whole)), 0.02)[0] < -np.log(LEVEL)
    return float((~open_).mean())


def _at_pair(above: np.ndarray, below: np.ndarray, whole: int, rate: float) -> np.ndarray:
    """The logarithm of the evidence that one rate is above `rate` + 2 points and the other below `rate`."""
    upper = _log_average(above[:, None], whole, np.array(rate + 0.02), 1)  # type: ignore[arg-type]
    return upper + _log_average(below[:, None], whole, np.array(rate), -1)  # type: ignore[arg-type]


def alarms_of_drift(streams: int, looks: int, seed: int) -> float:
    """The same for scores without drift; the bins of new rows follow from the ranks of the reference alone."""
    draw = np.random.default_rng(seed)
    ranks = Reference.of(np.arange(1000), draw).ranks
    evidence, shares = DriftEvidence(np.tile(ranks, (streams, 1))), draw.dirichlet(ranks, streams)
    for _ in range(looks):
        evidence.look(draw.multinomial(300, shares))
    return float((evidence.peak >= -np.log(LEVEL)).mean())


def summary(months: np.ndarray) -> dict[str, Any]:
    """The months of the first alarm (0 without one) as shares and delays."""
    after = months[months >= CHANGE] - CHANGE + 1
    return {
        "streams": len(months), "early": float(((months > 0) & (months < CHANGE)).mean()),
        "missed": float((months == 0).mean()), "median": float(np.median(after)) if len(after) else None,
        "mean": float(after.mean()) if len(after) else None,
    }  # fmt: skip


def first(alarm: np.ndarray) -> np.ndarray:
    """The month of the first alarm of each stream, `(months, streams)`; 0 if there is none."""
    return np.where(alarm.any(0), alarm.argmax(0) + 1, 0)


def delays(cell: Any, streams: int, seed: int, by_mapie: Callable[[Any], dict[str, Any]] | None) -> dict[str, Any]:
    """Months until the alarm by every method, and MAPIE's on the first streams beside the watch on the same."""
    draw, evidence = np.random.default_rng(seed), RateEvidence(BOUND, streams)
    looks = list(cell(draw, streams, MONTHS))
    watch = first(np.stack([evidence.look(part, whole) >= -np.log(LEVEL) for part, whole in looks]))
    p_values = np.stack([binom.sf(part - 1, whole, BOUND) for part, whole in looks])
    row = {"watch": summary(watch), "monthly test": summary(first(p_values <= LEVEL)),
           "Bonferroni": summary(first(p_values <= LEVEL / MONTHS))}  # fmt: skip
    if by_mapie is not None:
        answer = by_mapie(looks)
        row["MAPIE"] = {**summary(np.array(answer["months"])), "seconds": answer["seconds"]}
        row["watch on these"] = summary(watch[: len(answer["months"])])
    return row


def months_by_mapie(python: str | None, few: int, looks: Any) -> dict[str, Any]:
    """The months of MAPIE's alarms in the first streams, and its seconds per look."""
    if python is None:
        raise SystemExit("MAPIE has not seen these streams yet; give its Python with --mapie, or --few 0")
    parts, wholes = (np.stack(each)[:, :few].T.tolist() for each in zip(*looks))
    given = json.dumps({"bound": BOUND, "streams": parts, "rows": wholes})
    script = Path(__file__).with_name("by_mapie.py")
    done = subprocess.run([python, str(script)], input=given, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def seconds_per_look() -> float:
    """Processor time of one look of the library at 1,000 labelled rows, on average over 24 looks."""
    draw = np.random.default_rng(0)
    scores = draw.random((MONTHS, ROWS))
    point = sp.calibrate("minimize fnr where fpr <= 1%", draw.random(5000), draw.random(5000) < 0.5)
    watch, labels = point.watch(), np.zeros(ROWS, dtype=int)
    start = time.process_time()
    for month in scores:
        watch.update(month, labels)
        assert watch.bounds
    return (time.process_time() - start) / MONTHS


def many(rows: int) -> dict[str, float]:
    """Watch this many scores in updates of a million: seconds of processor time, and the most memory in MB."""
    draw = np.random.default_rng(0)
    point = sp.calibrate("minimize fnr where fpr <= 1%", draw.random(5000), draw.random(5000) < 0.5)
    watch, start = point.watch(), time.process_time()
    for _ in range(rows // 10**6):
        watch.update(draw.random(10**6, dtype=np.float32), draw.random(10**6, dtype=np.float32) < 0.1)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"rows": rows, "seconds": time.process_time() - start, "megabytes": most}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="100 streams, 200 looks")
    parser.add_argument("--mapie", help="the Python of an environment that has MAPIE 1.6")
    parser.add_argument("--few", type=int, default=30, help="streams per cell for MAPIE; 0 leaves it out")
    parser.add_argument("--data", help="not used: streams are drawn")
    options = parser.parse_args()
    streams, looks, rows = (100, 200, 10**6) if options.quick else (1000, 10_000, 10**8)
    few = 0 if options.quick and not options.mapie else options.few
    journal = Journal("watching", options.quick)
    whole = {
        name: partial(alarms_over_looks, cell, streams, looks, seed) for seed, (name, cell) in enumerate(KEPT.items())
    }
    whole["two groups at the bound"] = partial(alarms_in_groups, streams, looks, 10)
    whole["no drift of scores"] = partial(alarms_of_drift, streams, looks, 11)
    whole["gap between groups at its bound"] = partial(alarms_of_gap, streams, looks, 12)
    error, kept = float(np.sqrt(LEVEL * (1 - LEVEL) / streams)), []
    for name, find in whole.items():
        row = journal.row(f"{name} | {streams} x {looks}", lambda find=find: {"alarms": find()})  # type: ignore[misc]
        met = row["alarms"] <= LEVEL + 2 * error
        kept.append({"cell": name, "streams": streams, "looks": looks, "alarms": row["alarms"], "met": met})
        print(kept[-1], flush=True)
    memory = journal.row("many", lambda: many(rows))
    broken = []
    for seed, (name, cell) in enumerate(BROKEN.items(), 20):

        def seen_by_mapie(of: Any, key: str = f"MAPIE | {name} | {few}") -> dict[str, Any]:
            return journal.row(key, lambda: months_by_mapie(options.mapie, few, of))

        broken.append({"cell": name, **delays(cell, streams, seed, seen_by_mapie if few else None)})
        print(broken[-1], flush=True)
    naive = delays(KEPT["at the bound"], streams, 30, None)["monthly test"]
    memory = {k: v for k, v in memory.items() if k not in ("key", "torch")}
    figures = {"level": LEVEL, "kept": kept, "broken": broken, "seconds": seconds_per_look(), "many": memory,
               "monthly_alarms": 1 - naive["missed"]}  # fmt: skip
    journal.fold()
    print(write_result("watching", figures, options.quick))


if __name__ == "__main__":
    main()
