"""Sections of a page about the test rows: what drives the score, the rows nearest to the cut, the worst slices."""

from __future__ import annotations

from html import escape

from setpoint.report.words import show_share
from setpoint.run.insight import Insight


def insight_sections(found: Insight | None, why_not: str = "") -> str:
    """All sections as HTML; one sentence where the table was not there to look at."""
    if found is None:
        note = f'<p class="note">{escape(why_not)}</p>' if why_not else ""
        return _section("insight", "What drives the score", note) if note else ""
    return "\n".join([_drivers(found), _near(found), _slices(found)])


def _drivers(found: Insight) -> str:
    most = max([1e-9, *(abs(end) for one in found.drivers for end in (one.low, one.high))])
    rows = "".join(
        f'<tr><th scope="row">{escape(one.column)}</th><td class="bar-cell">{_bar(one.lost, one.low, one.high, most)}'
        f'</td><td class="n">{100 * one.lost:.1f}</td>'
        f'<td class="n">{100 * one.low:.1f} to {100 * one.high:.1f}</td></tr>'
        for one in found.drivers
    )
    note = (
        "Recall that is lost, in points, when the values of one column are shuffled among the test rows and as many "
        "negatives are flagged as before, with 95% intervals over the positives. Columns that say the same as others "
        "can look unimportant here, since the others stand in for them."
    )
    table = _table("drivers", ["column", "", "points", "interval"], rows, "Columns by the recall that they carry")
    parts = [f'<p class="note">{note}</p>{table}']
    if found.coefficients:
        largest = max(abs(value) for _, value in found.coefficients) or 1.0
        lines = "".join(
            f'<tr><th scope="row">{escape(name)}</th><td class="bar-cell">{_bar(value, value, value, largest)}</td>'
            f'<td class="n">{value:+.3f}</td></tr>'
            for name, value in found.coefficients
        )
        told = "The score is a weighted sum. Weights are per standard deviation of the feature, in logits."
        heads = ["feature", "", "weight"]
        parts.append(f'<h3>Weights</h3><p class="note">{told}</p>{_table("drivers", heads, lines, "Weights")}')
    return _section("drivers", "What drives the score", "".join(parts))


def _bar(value: float, low: float, high: float, most: float) -> str:
    """A bar from the middle, with its interval as a line."""
    here, left, right = (100 + 96 * number / most for number in (value, low, high))
    start, width = min(100.0, here), abs(here - 100)
    line = f'<path class="whisker ours" d="M{left:.1f} 7H{right:.1f}"/>' if high > low else ""
    kind = "pos" if value >= 0 else "neg"
    return (
        f'<svg viewBox="0 0 200 14" preserveAspectRatio="none" aria-hidden="true"><path class="axis" d="M100 0V14"/>'
        f'<rect class="{kind}" x="{start:.1f}" y="3" width="{width:.1f}" height="8"/>{line}</svg>'
    )


def _near(found: Insight) -> str:
    rows = "".join(
        f'<tr><th scope="row">{one.row:,}</th><td>{"positive" if one.positive else "negative"}</td>'
        f"<td>{'flagged' if one.flagged else 'not flagged'}</td>"
        f'<td class="n">{one.score:.4g}</td>{"".join(f"<td>{escape(value)}</td>" for value in one.values)}</tr>'
        for one in found.near
    )
    heads = ["row of the table", "label", "decision", "score", *found.columns]
    table = _table("near", heads, rows, "Test rows nearest to the threshold")
    note = "A small change of the threshold decides these test rows otherwise. Look at them before you trust it."
    return _section("near", "Rows nearest to the threshold", f'<p class="note">{note}</p>{table}')


def _slices(found: Insight) -> str:
    told = f"{found.tested:,} slices were tested, exactly, with Holm's correction for all of them at a level of 5%."
    if not found.slices:
        note = f"No slice of the test rows errs more often than the others beyond noise. {told}"
        return _section("slices", "Where it errs most", f'<p class="note">{note}</p>')
    rows = "".join(
        f'<tr><th scope="row">{escape(one.column)}: {escape(one.value)}</th><td>{one.error}</td>'
        f'<td class="n">{show_share(one.wrong / one.rows)}</td>'
        f'<td class="n">{show_share(one.ends[0])} to {show_share(one.ends[1])}</td>'
        f'<td class="n">{one.wrong:,} of {one.rows:,}</td><td class="n">{show_share(one.elsewhere)}</td></tr>'
        for one in found.slices
    )
    heads = ["slice of the test rows", "error", "rate", "95% interval", "rows", "elsewhere"]
    note = f"Slices that err more often than all other rows, beyond noise. {told}"
    table = _table("slices", heads, rows, "Slices with more errors than elsewhere")
    return _section("slices", "Where it errs most", f'<p class="note">{note}</p>{table}')


def _table(kind: str, heads: list[str], rows: str, name: str) -> str:
    right = {"points", "interval", "weight", "score", "rate", "95% interval", "rows", "elsewhere"}
    above = "".join(
        f'<th scope="col"{" class=n" if head in right else ""}>{escape(head)}</th>' if head else "<td></td>"
        for head in heads
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(name)}"><table class="{kind}"><thead><tr>'
        f"{above}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _section(name: str, title: str, body: str) -> str:
    return f'<section aria-labelledby="{name}-title"><h2 id="{name}-title">{title}</h2>{body}</section>'
