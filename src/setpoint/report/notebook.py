"""Operating points and runs as a notebook shows them: a card, or a frame with the curve and its slider."""

from __future__ import annotations

from html import escape
from typing import Any

from setpoint.measure.band import BAND
from setpoint.measure.constraint import CUT, percent
from setpoint.problem.point import OperatingPoint
from setpoint.report.material import Contender, Material
from setpoint.report.names import distinct_names
from setpoint.report.page import make_page
from setpoint.report.question import question
from setpoint.report.words import show_estimate, show_objective, show_value
from setpoint.run.run import Run

#: The most positions of the slider, and the height of the frame in pixels.
POSITIONS, HEIGHT = 300, 760
#: Colours that notebooks set for their own theme, and those of systems that ask for the dark.
_STYLE = (
    "font:14px/1.5 system-ui,sans-serif;border:1px solid #8884;border-radius:6px;padding:10px 14px;max-width:46rem;"
    "color:inherit;background:transparent"
)


def html_of(thing: Any) -> str:
    """A card of an operating point; the page of a run of one threshold or two, without the sections below the curve."""
    if isinstance(thing, Run):
        material = material_of(thing)
        return card(thing.point) if material is None else framed(material)
    return card(thing)


def card(point: OperatingPoint) -> str:
    """The question, the decision, the rates it was set at, and the promise."""
    problem = point.problem
    quantities = {str(q): q for q in (problem.objective, *(c.quantity for c in problem.constraints))}
    rates = ", ".join(
        f"{name} {show_value(quantity, point.rates[name])}"
        for name, quantity in quantities.items()
        if name in point.rates
    )
    if point.certificate is not None:
        sure = percent(point.certificate.confidence)
        promise = f"&#10003; Certified: {escape(point.certificate.statement)} with confidence {sure}"
    else:
        promise = "Not certified: the bounds are met on the rows that set the threshold, and promised on no others"
        promise = promise if problem.constraints else "The ask has no bound, so there is nothing to promise"
    estimates = "".join(f"<div>{escape(show_estimate(one, problem))}</div>" for one in point.estimates)
    return (
        f'<div class="setpoint-card" style="{_STYLE}"><strong>{escape(question(problem))}</strong>'
        f"<div><code>{escape(str(problem))}</code></div><div>{escape(point.thresholds.rule())}: "
        f"{escape(rates or show_objective(point))}</div><div>{promise}</div>{estimates}</div>"
    )


def framed(material: Material) -> str:
    """The head of the page, the slider and the curves in a frame of their own, so that no style meets another."""
    page = make_page(material, POSITIONS, brief=True)
    return (
        f'<iframe class="setpoint-report" title="setpoint report" srcdoc="{escape(page)}" '
        f'style="width:100%;height:{HEIGHT}px;border:1px solid #8884;border-radius:6px"></iframe>'
    )


def material_of(run: Run) -> Material | None:
    """The material of a page, from a run in memory; None where its ask has another kind of page."""
    if run.problem.kind not in (CUT, BAND) or run.data.test is None or run.data.calibration is None:
        return None
    runs, parts = (run, *run.beside), ("test", "calibration")
    names = distinct_names([one.method for one in runs])
    contenders = [
        Contender(name, one.point.thresholds, {part: one.sample(part).scores for part in parts})
        for name, one in zip(names, runs)
    ]
    groups = None if run.problem.group is None else {part: run.groups(part) for part in parts}
    return Material(
        run.point, contenders, {part: run.sample(part).labels for part in parts}, groups=groups,
        refusal=run.refusal or "", cost=run.cost_of_certificate, why_shipped=run.why_shipped,
    )  # fmt: skip
