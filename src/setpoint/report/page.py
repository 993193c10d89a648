"""The page of one threshold or two: sentences and tables in HTML, numbers for the script."""

from __future__ import annotations

from html import escape
from string import Template
from typing import Any

from setpoint.measure.constraint import Constraint
from setpoint.report.data import page_data
from setpoint.report.decision import Decision, Handle
from setpoint.report.frame import asset, framed
from setpoint.report.head import head
from setpoint.report.insight_sections import insight_sections
from setpoint.report.material import Contender, Material
from setpoint.report.positions import MOST
from setpoint.report.training import training_section
from setpoint.report.words import GROUP, part_name, show_bound, show_bounded, show_value

SCRIPTS = ("interval.js", "chart.js", "curves.js", "page.js")
SHOWN = ("train", "held_out", "test")


def make_page(material: Material, most: int = MOST, *, brief: bool = False) -> str:
    """Make the report as one self-contained HTML file; the same material gives the same bytes.

    Args:
        material: Everything that the report shows.
        most: The most positions of the slider per contender and part.
        brief: Whether to show the head, the slider and the curves alone, as in a notebook.

    Returns:
        The text of the file.

    Example:
        >>> import setpoint as sp, torch
        >>> from setpoint.report.material import Contender, Material
        >>> scores, labels = torch.linspace(-2, 2, 40), torch.arange(40) % 5 > 2
        >>> point = sp.calibrate("minimize fnr where fpr <= 50%", scores, labels)
        >>> mine = Contender("mine", point.thresholds, {"test": scores})
        >>> material = Material(point, [mine], {"test": labels})
        >>> from setpoint.report.page import make_page
        >>> make_page(material)[:15]
        '<!doctype html>'
    """
    data, decision = page_data(material, most), material.decision
    content = Template(asset("page.html")).substitute(
        head=head(material),
        explore=escape(decision.title),
        labels="\n".join(map(_label, decision.handles)),
        slider=_slider(decision),
        own=escape(decision.own),
        help=escape(decision.help),
        counts=_counts(decision),
        groups=_groups(material),
        insight=insight_sections(material.insight, material.no_insight),
        solvers=solvers_table(material),
        training=training_section(material, drawn=True),
        facts=facts_list(material),
        notes=notes_list(material),
    )
    return framed(f"{material.problem} - setpoint report", content, SCRIPTS, data, kind="brief" if brief else "whole")


def _label(handle: Handle) -> str:
    value = f'<output id="{handle.key}-value" for="{handle.key}"></output>'
    return f'<label for="{handle.key}">{escape(handle.name)} {value}</label>'


def _slider(decision: Decision) -> str:
    """One input per handle; several of them lie over one track that shows which rows are flagged and reviewed."""
    inputs = [
        f'<input type="range" id="{handle.key}" min="0" max="1" value="0" step="1" aria-describedby="slider-help">'
        for handle in decision.handles
    ]
    if len(inputs) == 1:
        return inputs[0]
    track = '<svg class="track" id="track" aria-hidden="true"></svg>'
    return f'<div class="handles" id="handles">{track}{"".join(inputs)}</div>'


def _counts(decision: Decision) -> str:
    """The table of counts: a row per class, a column per decision, and where rows are reviewed a row of all rows."""
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name, _, _ in decision.cells)
    rows = [("positive", [up for _, up, _ in decision.cells]), ("negative", [down for _, _, down in decision.cells])]
    if len(decision.cells) > 2:
        rows.append(("all rows", [f"{up}-{down}" for _, up, down in decision.cells]))
    body = "\n".join(
        f'<tr><th scope="row">{name}</th>{"".join(f"""<td id="{key}"></td>""" for key in keys)}</tr>'
        for name, keys in rows
    )
    return f"<thead><tr><td></td>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>"


def _groups(material: Material) -> str:
    if not material.group_names():
        return ""
    by = escape(material.grouping)
    where = " and ".join(handle.cut for handle in material.decision.handles)
    return (
        f'<figure><figcaption>By {by}, at the {where} of the slider</figcaption><div class="wide" tabindex="0" '
        f'role="region" aria-label="Rates by {by}"><table class="groups" id="groups"></table></div></figure>'
    )


def solvers_table(material: Material) -> str:
    """One row per contender: the objective and each bounded rate on every part."""
    problem = material.problem
    over = "" if problem.over is None else f", mean over {problem.over.rate}"
    heads = [f"{problem.objective}{over}", *map(str, problem.constraints)]
    above = "".join(f'<th scope="colgroup" colspan="{len(SHOWN)}">{escape(head)}</th>' for head in heads)
    below = "".join(f'<th scope="col" class="n">{part_name(part)}</th>' for part in SHOWN) * len(heads)
    rows = "\n".join(_solver_row(material, contender) for contender in material.contenders)
    noun = material.point.thresholds.noun
    broken = '<p class="note">&#9888; beyond the bound on those rows.</p>' if "&#9888;" in rows else ""
    return (
        '<div class="wide" tabindex="0" role="region" aria-label="Methods side by side"><table class="solvers"><thead>'
        f'<tr><th scope="col" rowspan="2">method</th>{above}<th scope="col" rowspan="2" class="n each few">{noun}</th>'
        f'<th scope="col" rowspan="2" class="n">seconds</th></tr><tr>{below}</tr></thead>'
        f"<tbody>\n{rows}\n</tbody></table></div>{broken}"
    )


def _solver_row(material: Material, contender: Contender) -> str:
    objective = material.problem.objective
    judged = {part: contender.judged.get(part) for part in SHOWN}
    cells = [show_value(objective, j["objective"]) if j else "" for j in judged.values()]
    cells += [_bounded(c, j) if j else "" for c in material.problem.constraints for j in judged.values()]
    row = "".join(f'<td class="n">{cell}</td>' for cell in cells)
    few = "" if contender.thresholds.by_group else " few"
    each = "" if contender.thresholds.single is not None else f" each{few}"
    row += f'<td class="n{each}">{escape(contender.thresholds.describe(GROUP))}</td>'
    row += f'<td class="n">{"" if contender.seconds is None else f"{contender.seconds:.1f}"}</td>'
    return f'<tr><th scope="row">{escape(contender.name)}</th>{row}</tr>'


def _bounded(constraint: Constraint, judged: Any) -> str:
    text, beyond = show_bounded(constraint, judged["rates"], feasible=judged["feasible"])
    told = f'<span class="sr">beyond the bound of {show_bound(constraint)}</span>'
    return f'<span class="broken"><span aria-hidden="true">&#9888; </span>{text}{told}</span>' if beyond else text


def facts_list(material: Material) -> str:
    """The facts about the run."""
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in material.facts)
    return f"<dl>{rows}</dl>" if rows else ""


def notes_list(material: Material) -> str:
    """The notes on the run."""
    rows = "".join(f"<li>{escape(note)}</li>" for note in material.notes)
    return f'<h3>Notes</h3><ul class="notes">{rows}</ul>' if rows else ""
