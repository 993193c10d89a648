"""The report of any model, from its scores and labels alone: half of the rows set the threshold, half judge it."""

from __future__ import annotations

import os
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from setpoint.data.split import split
from setpoint.decide.settle import Confidence, read_confidence, settle
from setpoint.errors import BadProblem, ShapeMismatch
from setpoint.files import write_whole
from setpoint.measure.band import BAND
from setpoint.measure.constraint import CUT
from setpoint.measure.pairs import concordance
from setpoint.measure.sample import Sample, check_sample
from setpoint.measure.worth import WORTH
from setpoint.problem.caution import Caution, cautions_of_ask
from setpoint.problem.certificate import AUTO
from setpoint.problem.language import read_problem
from setpoint.problem.point import OperatingPoint
from setpoint.problem.problem import Problem
from setpoint.report.material import Contender, Material
from setpoint.report.notebook import framed
from setpoint.report.page import make_page
from setpoint.run.sanity import HIGHER_FOR_NEGATIVES


@dataclass(frozen=True)
class Report:
    """A page about the scores of a model. In a notebook it shows itself.

    Attributes:
        point: The operating point, set on the calibration rows.
        judged: The same point with its rates on the test rows.
        html: The text of the page, self-contained.
        material: The scores and points that the page is made from.

    Example:
        >>> import numpy as np, setpoint as sp
        >>> rng = np.random.default_rng(0)
        >>> labels = rng.random(4000) < 0.2
        >>> page = sp.report("minimize fnr where fpr <= 5%", rng.normal(size=4000) + 2 * labels, labels)
        >>> page.point.certificate.statement, page.html[:15]
        ('fpr <= 5%', '<!doctype html>')
    """

    point: OperatingPoint
    judged: OperatingPoint
    html: str
    material: Material

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file.

        Args:
            path: The HTML file.

        Returns:
            Its path.
        """
        write_whole(Path(path), self.html.encode())
        return Path(path)

    def open(self, path: str | os.PathLike[str] = "report.html") -> Path:
        """Write the page to a file and show it in the browser.

        Args:
            path: The HTML file.

        Returns:
            Its path.
        """
        written = self.save(path)
        webbrowser.open(written.absolute().as_uri())
        return written

    def _repr_html_(self) -> str:
        return framed(self.material)


def report(
    ask: Problem | str,
    scores: Any,
    labels: Any,
    *,
    confidence: Confidence = AUTO,
    groups: Any = None,
    name: str = "your model",
    data: str = "",
    positive: str = "",
    seed: int = 0,
) -> Report:
    """Make the report of a model that you have already, from its scores and labels.

    The rows must be new to the model. Half of them, drawn at random from each class, set the threshold and its
    certificate; the other half judge it. Curves, slider, counts, rates and warnings are those of `setpoint report`. A
    warning says so where scores are higher for negatives than for positives.

    Args:
        ask: The question: the text of an ask, or a problem.
        scores: One score per row; higher means positive.
        labels: 1 or 0 (or booleans), one per row.
        confidence: "auto" certifies at 95 % where the rows suffice, a number demands it, None wants no certificate.
        groups: One group per row, for asks that compare groups.
        name: The name of the model on the page.
        data: The name of the data on the page.
        positive: The name of the positive class on the page.
        seed: The seed of the split.

    Returns:
        The page, with the operating point.

    Raises:
        BadProblem: If the ask is about several classes, labels or lists.
        ShapeMismatch: If scores, labels and groups differ in number.
        TooFewSamples: If a class has fewer than two rows.

    Example:
        >>> import numpy as np, setpoint as sp
        >>> rng = np.random.default_rng(0)
        >>> labels = rng.random(4000) < 0.2
        >>> page = sp.report("minimize fnr where fpr <= 5%", rng.normal(size=4000) + 2 * labels, labels)
        >>> page.judged.rates["fpr"] < 0.06
        True
    """
    problem, confidence = read_problem(ask), read_confidence(confidence)
    if problem.kind not in (CUT, BAND, WORTH) or problem.columns:
        raise BadProblem(
            f"'{problem}' is about several classes, labels, lists or columns; sp.report takes one score and one label "
            "per row: use setpoint fit and setpoint report for such asks"
        )
    sample = check_sample(scores, labels)
    named = None if groups is None else np.asarray(groups).astype(str)
    if named is not None and len(named) != len(sample.scores):
        raise ShapeMismatch(f"{len(named)} groups and {len(sample.scores)} scores must match in number")
    calibration, test = split(sample.labels, (0.5, 0.5), seed)
    settled = settle(
        problem, sample.scores[calibration], sample.labels[calibration], confidence,
        groups=None if named is None else named[calibration.numpy()],
    )  # fmt: skip
    parts = {"test": test, "calibration": calibration}
    mine = Contender(name, settled.point.thresholds, {part: sample.scores[rows] for part, rows in parts.items()})
    material = Material(
        settled.point,
        [mine],
        {part: sample.labels[rows] for part, rows in parts.items()},
        groups=None if named is None else {part: named[rows.numpy()] for part, rows in parts.items()},
        facts=_facts(sample.labels, parts, name, data, positive, seed),
        refusal=settled.refusal or "",
        cost=settled.cost,
        cautions=(*cautions_of_ask(problem), *upside_down(sample)),
    )
    return Report(settled.point, material.judge(mine, "test"), make_page(material), material)


def upside_down(sample: Sample) -> list[Caution]:
    """A caution where negatives have the higher score more often than positives: their area under the curve is < 1/2.

    Args:
        sample: Scores and labels, with rows of both classes.

    Returns:
        The caution, or nothing.

    Example:
        >>> from setpoint.measure.sample import check_sample
        >>> from setpoint.report.of_scores import upside_down
        >>> [caution.code for caution in upside_down(check_sample([0.1, 0.9], [1, 0]))]
        ['higher-for-negatives']
    """
    positives, negatives = (sample.scores[sample.labels == label].double() for label in (1, 0))
    area = float(concordance(positives, negatives))
    if area >= 0.5:
        return []
    said = f"scores are higher for negatives than for positives: only {100 * area:.3g}% of pairs of a positive and a "
    said += "negative row have the higher score at the positive one; "
    said += "take the other class as positive, or change the sign of the scores"
    return [Caution(HIGHER_FOR_NEGATIVES, said)]


def _facts(
    labels: Tensor, parts: dict[str, Tensor], name: str, data: str, positive: str, seed: int
) -> list[tuple[str, str]]:
    sizes = [f"{len(rows):,} {part} ({int(labels[rows].sum()):,} positive)" for part, rows in parts.items()]
    rows = f"{len(labels):,} rows, {int(labels.sum()):,} positive"
    return [
        ("Data", f"{data}, {rows}" if data else rows),
        ("Rows", f"{', '.join(sizes)}, drawn at random from each class"),
        *([("Positive class", positive)] if positive else []),
        ("Model", name),
        ("Seed", str(seed)),
    ]
