"""Cautions about a run on a table: the reasons to doubt its numbers, computed once for every door."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from setpoint.decide.estimate import estimate, estimate_of_counts
from setpoint.decide.estimate_labels import estimate_labels
from setpoint.decide.order import worth
from setpoint.measure.classes import CLASSES
from setpoint.measure.constraint import CUT
from setpoint.measure.in_first import LISTS
from setpoint.measure.labels import LABELS, OfLabel
from setpoint.measure.rate import flagged, fpr, recall
from setpoint.problem.caution import Caution, cautions_of_ask
from setpoint.problem.certificate import Estimate
from setpoint.problem.labels import LabelProblem
from setpoint.run.run import Run

#: A part with fewer rows of a class says next to nothing about it.
FEWEST = 20
#: A decision that finds no more of the positives flags nearly nothing; one that leaves no more of the negatives alone
#: flags nearly everything.
NEARLY = 0.05
#: The objective may be worse on test rows than on training rows by so much before it is told, if it is beyond noise.
GAP = 0.1
#: The two intervals that must not overlap hold the true values so often.
SURE = 0.99
#: The scores of a model may stand for the other class.
HIGHER_FOR_NEGATIVES = "higher-for-negatives"
#: A bound that holds is no good news beside one of these.
IN_DOUBT = ("cannot-bind", "trivial", "flags-nearly-nothing", "flags-nearly-everything", HIGHER_FOR_NEGATIVES)

#: The number of `rows` and of `positives` (or of each of its `classes` or `labels`) of each part.
Sizes = Mapping[str, Mapping[str, Any]]


def cautions_of_run(run: Run, sizes: Sizes) -> tuple[Caution, ...]:
    """All cautions about a run: of its ask, its rows, its decisions on test rows, and its fall from train to test."""
    found = [*cautions_of_ask(run.problem), *_few(sizes)]
    if isinstance(run.problem, LabelProblem):
        found += _extreme_labels(run, run.problem)
    elif run.problem.over is None and run.problem.kind not in (CLASSES, LISTS):
        found += [*_extreme_decisions(run), *_all_apart(run)]
    return (*found, *_learned_by_heart(run))


def _few(sizes: Sizes) -> list[Caution]:
    if "classes" in sizes["train"]:
        return _few_of_a_class(sizes)
    if "labels" in sizes["train"]:
        return _few_of_a_label(sizes)
    found = []
    for kind in ("positives", "negatives"):
        there = {
            part: size["positives"] if kind == "positives" else size["rows"] - size["positives"]
            for part, size in sizes.items()
        }
        few = [f"{n} among the {part.replace('_', '-')} rows" for part, n in there.items() if n < FEWEST]
        if few:
            said = f"fewer than {FEWEST} {kind} in a part ({', '.join(few)})"
            found.append(Caution(f"few-{kind}", f"{said}: rates of so few are uncertain by tens of points"))
    return found


def _few_of_a_class(sizes: Sizes) -> list[Caution]:
    least = {part: min(size["classes"], key=size["classes"].get) for part, size in sizes.items()}
    few = [
        f"{sizes[part]['classes'][name]} of class {name!r} among the {part.replace('_', '-')} rows"
        for part, name in least.items()
        if sizes[part]["classes"][name] < FEWEST
    ]
    if not few:
        return []
    said = f"fewer than {FEWEST} rows of a class in a part ({', '.join(few)})"
    return [Caution("few-of-a-class", f"{said}: rates of so few are uncertain by tens of points")]


def _few_of_a_label(sizes: Sizes) -> list[Caution]:
    few = [
        f"{least} of label {name!r} among the {part.replace('_', '-')} rows"
        for part, size in sizes.items()
        for name, own in size["labels"].items()
        if (least := min(own["positives"], own["known"] - own["positives"])) < FEWEST
    ]
    if not few:
        return []
    more = f" and {len(few) - 3} more" if len(few) > 3 else ""
    said = f"fewer than {FEWEST} rows that have a label, or lack it, in a part ({', '.join(few[:3])}{more})"
    return [Caution("few-of-a-label", f"{said}: rates of so few are uncertain by tens of points")]


def _extreme_labels(run: Run, problem: LabelProblem) -> list[Caution]:
    """A caution for the labels that are given to nearly no row that has them, or to nearly every row."""
    rates, labels = run.judged("test").rates, problem.labels
    lost = [label for label in labels if rates[str(OfLabel(recall, label))] <= NEARLY]
    given = [label for label in labels if rates[str(OfLabel(fpr, label))] >= 1 - NEARLY]
    told = (
        ("flags-nearly-nothing", lost, "finds nearly none of the rows that have"),
        ("flags-nearly-everything", given, "gives nearly all rows"),
    )
    return [
        Caution(
            code, f"on the test rows the model {does} {', '.join(map(repr, odd))}, so a bound that holds is no merit"
        )
        for code, odd, does in told
        if odd
    ]


def counts_at(run: Run, part: str) -> Tensor:
    """The rows of each kind of a part at the thresholds that the run ships with: (tp, fp, fn, tn), or other kinds."""
    if run.problem.kind != CUT:
        return run.point.thresholds.kinds(replace(run.sample(part).double(), values=None))
    rates, labels = run.judged(part).rates, run.sample(part).labels
    positives, negatives = int(labels.sum()), len(labels) - int(labels.sum())
    found, alarms = round(rates["recall"] * positives), round(rates["fpr"] * negatives)
    return torch.tensor([found, alarms, positives - found, negatives - alarms], dtype=torch.float64)


def _extreme_decisions(run: Run) -> list[Caution]:
    # Reviewed rows, the last two counts of a band, are neither flagged nor left alone.
    tp, fp, fn, tn, *reviewed = (int(count) for count in counts_at(run, "test"))
    positives, negatives = (sum(rows) for rows in ((tp, fn, *reviewed[:1]), (fp, tn, *reviewed[1:])))
    noun = run.point.thresholds.noun
    # A bound on the flagged share may allow no more than a few of the positives to be found.
    most = [c.bound for c in run.problem.constraints if bool(c.quantity == flagged) and c.relation != ">="]
    reach = min(most, default=1.0) * (tp + fp + fn + tn) / max(tp + fn, 1)
    if tp + fp == 0 or (tp <= NEARLY * (tp + fn) and reach > NEARLY):
        said = f"at its {noun} the model finds {tp} of {positives} positives on the test rows: it flags nearly nothing"
        return [Caution("flags-nearly-nothing", f"{said}, so a bound that holds is no merit")]
    if tn <= NEARLY * (fp + tn):
        said = f"at its {noun} the model leaves {tn} of {negatives} negatives alone on the test rows"
        return [Caution("flags-nearly-everything", f"{said}: it flags nearly everything")]
    return []


def _all_apart(run: Run) -> list[Caution]:
    """A caution if no positive of the test rows scores as low as any negative, where both are many."""
    sample = run.sample("test")
    if sample.scores.dim() > 1:
        return []
    positives, negatives = (sample.scores[sample.labels == label] for label in (1, 0))
    if min(len(positives), len(negatives)) < FEWEST or not positives.min() > negatives.max():
        return []
    said = f"on the test rows each of {len(positives)} positives scores above each of {len(negatives)} negatives"
    ask = "is a column known only with the outcome? The report shows which columns drive the score"
    return [Caution("tells-all-apart", f"{said}, which few tables allow: {ask}")]


def _objective_on(run: Run, part: str) -> Estimate:
    """The objective of a part with an interval, at the thresholds that the run ships with."""
    if run.problem.kind == LABELS:
        return estimate_labels(run.judged(part), run.sample(part).double(), SURE, fixed=True)
    if run.problem.columns or run.problem.kind == LISTS:
        return estimate(run.judged(part), run.sample(part).double(), SURE)[0]
    return estimate_of_counts(run.problem.objective, counts_at(run, part), SURE)


def _learned_by_heart(run: Run) -> list[Caution]:
    """A caution if the objective is far better on the training rows than on the test rows, at the same threshold."""
    objective, train, test = run.problem.objective, run.judged("train").objective, run.judged("test").objective
    if worth(run.problem, train) - worth(run.problem, test) < GAP:
        return []
    if run.problem.over is None:
        ends = [_objective_on(run, part) for part in ("train", "test")]
        apart = max(ends[0].low, ends[1].low) > min(ends[0].high, ends[1].high)
    else:
        labels = run.sample("test").labels
        smaller = min(float(labels.sum()), float(len(labels) - labels.sum()))
        apart = abs(train - test) > 3 * (max(test * (1 - test), 0.0) / smaller) ** 0.5
    if not apart:
        return []
    shown = [f"{100 * value:.1f}%" if objective.is_share else f"{value:.3g}" for value in (train, test)]
    said = f"{objective} is {shown[0]} on the training rows and {shown[1]} on the test rows, at the same threshold"
    return [Caution("gap-between-train-and-test", f"{said}: the model has learned rows by heart; trust the test rows")]
