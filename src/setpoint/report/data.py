"""The numbers that the page draws, as plain data: curves, histograms, reliability, history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from setpoint.measure.constraint import SLACK, Constraint, Quantity, percent
from setpoint.measure.rate import Gap, Rate
from setpoint.measure.sample import Sample
from setpoint.measure.worth import Worth, plain_of
from setpoint.problem.evidence import interval
from setpoint.problem.problem import Problem
from setpoint.report.decision import Decision
from setpoint.report.material import Contender, Material
from setpoint.report.meaning import MEANS
from setpoint.report.positions import MOST, Positions, find_positions, limits, view
from setpoint.report.words import is_counted, part_name

#: A history of more rows than this is thinned.
MOST_EPOCHS = 500


def page_data(material: Material, most: int = MOST) -> dict[str, Any]:
    """Everything that the page's script needs, ready for JSON."""
    problem, parts, decision = material.problem, material.parts, material.decision
    shown = shown_quantities(problem, decision)
    samples = {(c.name, part): material.sample(c, part) for c in material.contenders for part in parts}
    found = {key: find_positions(sample, own, most) for key, (sample, own) in samples.items()}
    contenders = []
    for contender in material.contenders:
        judged = {}
        for part in parts:
            sample, own = samples[contender.name, part]
            raw = material.raw(contender, part)
            judged[part] = {
                **positions_data(found[contender.name, part], shown, material.group_names()),
                "holds": held_at(found[contender.name, part], problem) if len(decision.handles) == 1 else [],
                "histogram": asdict(histogram(sample, own)),
                "reliability": reliability(raw),
            }
        named = {
            "name": contender.name,
            "thresholds": contender.thresholds.by_group,
            "digits": contender.thresholds.digits,
        }
        contenders.append({**named, "parts": judged, **history_data(contender)})
    return {
        "ask": str(problem),
        "parts": [{"key": part, "name": part_name(part)} for part in parts],
        "quantities": [_quantity(q, problem) for q in shown],
        "bounds": [_bound(c, shown) for c in problem.constraints],
        "limits": limits(problem),
        "view": {part: view(problem, [found[c.name, part] for c in material.contenders]) for part in parts},
        "own_title": "" if problem.over is None else f"Own thresholds, by {problem.over.rate}:",
        "own_names": [] if problem.over is None else [percent(float(f"{b:.4g}")) for b in problem.over.bounds],
        "group_rates": [_quantity(q, problem) for q in group_rates(problem, decision)]
        if material.group_names()
        else [],
        "handles": [asdict(handle) for handle in decision.handles],
        "words": decision.words,
        "margins": bool(material.point.thresholds.by_group),
        "contenders": contenders,
    }


def shown_quantities(problem: Problem, decision: Decision) -> list[Quantity]:
    """The quantities of the problem, then those that people usually look at."""
    asked = [problem.objective, *(c.quantity for c in problem.bounds)]
    return list(dict.fromkeys([*map(plain_of, asked), *decision.rates]))


def group_rates(problem: Problem, decision: Decision) -> list[Quantity]:
    """The rates that are shown per group: those of the problem, and four that are always shown."""
    asked = [problem.objective, *(c.quantity for c in problem.constraints)]
    plain = [q.rate if isinstance(q, Gap) else q for q in asked]
    return list(dict.fromkeys([*filter(is_counted, plain), *decision.by_group]))


def _bound(constraint: Constraint, shown: Sequence[Quantity]) -> dict[str, Any]:
    """A bound, with the range of values that keep it where it is no equality."""
    upper, lower = constraint.relation == "<=", constraint.relation == ">="
    return {
        "text": str(constraint),
        "quantity": shown.index(plain_of(constraint.quantity)),
        "most": constraint.bound + SLACK if upper else None,
        "least": constraint.bound - SLACK if lower else None,
    }


def _quantity(quantity: Quantity, problem: Problem) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "name": str(quantity),
        "means": MEANS.get(str(quantity), ""),
        "share": quantity.is_share,
        "counted": is_counted(quantity),
        "asked": any(quantity == plain_of(q) for q in (problem.objective, *(c.quantity for c in problem.bounds))),
    }
    if isinstance(quantity, Rate):
        plain |= {"part": list(quantity.part), "whole": list(quantity.whole)}
    return plain


def held_at(positions: Positions, problem: Problem) -> list[str]:
    """Whether each bound holds at each position, as a text of 0 and 1."""
    return [_flags(c.holds(_seen_by(c.quantity, positions))) for c in problem.constraints]


def _seen_by(quantity: Quantity, positions: Positions) -> Tensor:
    """The counts at each position that a quantity takes: by group for gaps, of values for columns."""
    if isinstance(quantity, Gap):
        return _given(positions.by_group)
    return _given(positions.of_values) if isinstance(quantity, Worth) else positions.counts


def positions_data(positions: Positions, shown: Sequence[Quantity], group_names: Sequence[str]) -> dict[str, Any]:
    """Thresholds and counts, and the values that counts of one group cannot give."""
    counts = positions.counts
    split = positions.by_group
    values = {
        str(q): [round(v, 12) for v in q(_seen_by(q, positions)).tolist()] for q in shown if not isinstance(q, Rate)
    }
    plain: dict[str, Any] = {
        "threshold": positions.thresholds.tolist(),
        "digits": positions.digits,
        "tp": _whole(counts[:, 0]),
        "fp": _whole(counts[:, 1]),
        "positives": int(counts[0, 0] + counts[0, 2]),
        "negatives": int(counts[0, 1] + counts[0, 3]),
        "own": positions.own,
        "kept": positions.kept,
        "cuts": positions.cuts,
        "values": values,
    }
    if split is not None:
        plain["groups"] = [
            {
                "name": name,
                "tp": _whole(split[:, g, 0]),
                "fp": _whole(split[:, g, 1]),
                "positives": int(split[0, g, 0] + split[0, g, 2]),
                "negatives": int(split[0, g, 1] + split[0, g, 3]),
            }
            for g, name in enumerate(group_names)
        ]
    return plain


def history_data(contender: Contender) -> dict[str, Any]:
    """The three numbers of every epoch, thinned evenly; the best epoch always stays."""
    history = list(contender.history)
    step = max(1, -(-len(history) // MOST_EPOCHS))
    kept = [i for i in range(len(history)) if i % step == 0 or i in (contender.best_epoch, len(history) - 1)]
    return {
        "history": [_epoch(history[i], i) for i in kept],
        "best": kept.index(contender.best_epoch) if contender.best_epoch in kept else None,
    }


@dataclass(frozen=True)
class Histogram:
    """Rows of either class by score. `beyond` rows lie outside the edges and stand in the first and the last bin."""

    low: float
    high: float
    positives: list[int]
    negatives: list[int]
    beyond: int


def histogram(sample: Sample, own: list[float], bins: int = 48) -> Histogram:
    """Bins of equal width over all but the outermost scores, wide enough to show the run's own thresholds."""
    scores = sample.scores
    ends = torch.quantile(_few(scores), torch.tensor([0.001, 0.999], dtype=torch.float64))
    low, high = min(float(ends[0]), *own), max(float(ends[1]), *own)
    width = (high - low) or max(abs(high), 1.0)
    low, high = low - 0.02 * width, high + 0.02 * width
    places = ((scores - low) / (high - low) * bins).floor().clamp(0, bins - 1).long()
    each = [torch.bincount(places[sample.labels == label], minlength=bins).tolist() for label in (1, 0)]
    return Histogram(low, high, each[0], each[1], int(((scores < low) | (scores > high)).sum()))


def _few(scores: Tensor, most: int = 1_000_000) -> Tensor:
    """Every k-th of the sorted scores: `torch.quantile` takes no more than 16 million."""
    return scores.sort().values[:: max(1, len(scores) // most)]


def reliability(sample: Sample, bins: int = 10) -> list[dict[str, Any]]:
    """By bin of sigmoid(score): the mean of it, the observed share of positives with its interval, and the count."""
    chance = sample.scores.sigmoid()
    places = (chance * bins).floor().clamp(max=bins - 1).long()
    rows = []
    for place in range(bins):
        inside = places == place
        n, k = int(inside.sum()), int(sample.labels[inside].sum())
        if n:
            low, high = map(float, interval(k, n, 0.95))
            rows.append({"mean": float(chance[inside].mean()), "share": k / n, "n": n, "low": low, "high": high})
    return rows


def _epoch(row: Mapping[str, Any], place: int) -> dict[str, Any]:
    values = {name: row.get(name) for name in ("soft", "train", "held_out")}
    return {"epoch": place + 1, "name": str(row.get("solver", "")), "member": row.get("member", 0), **values}


def _whole(values: Tensor) -> list[int]:
    return [int(value) for value in values.tolist()]


def _flags(held: Tensor) -> str:
    return "".join("1" if h else "0" for h in held.tolist())


def _given(counts: Tensor | None) -> Tensor:
    assert counts is not None, "a gap or a column is asked for, so there are groups or values"
    return counts
