"""The page of a run's life: its looks, the evidence on each bound, drift and recertifications, in one HTML file."""

from __future__ import annotations

import math
from html import escape
from string import Template
from typing import Any

from setpoint.decide.drift import SCORES, Drifted, drift_at_each
from setpoint.problem.problem import Problem
from setpoint.problem.watch import CALIBRATED, LOOK, Watch
from setpoint.report.frame import asset, framed
from setpoint.report.watching import drift_words, short, state_of, watch_words

SCRIPTS = ("chart.js", "life.js")
#: The looks that are drawn; of more of them every second, third and so on.
MOST = 200
_KINDS = {
    LOOK: "labelled rows",
    CALIBRATED: "threshold set anew",
    "scored": "rows without labels",
    "reference": "reference",
}


def make_life(watch: Watch) -> str:
    """Make the page of a watch as one self-contained HTML file; the same record gives the same bytes.

    Args:
        watch: The watch, with its whole record.

    Returns:
        The text of the file.

    Example:
        >>> import setpoint as sp
        >>> from setpoint.report.life import make_life
        >>> point = sp.calibrate("minimize fnr where fpr <= 50%", [0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
        >>> make_life(point.watch().update([0.1, 0.7, 0.9], [0, 0, 1]))[:15]
        '<!doctype html>'
    """
    drift = list(drift_at_each(watch.entries, watch.level))
    last = drift[-1] if drift else []
    said = "".join(f'<p class="note">{escape(line)}</p>' for line in drift_words(last))
    content = Template(asset("life.html")).substitute(
        ask=escape(str(watch.problem)),
        kind="verdict broken" if watch.broken else "verdict holds" if watch.holds else "answer",
        verdict=escape(watch_words(watch)),
        drift=said,
        level=escape(
            f"Level {watch.level:g} over all looks. Labelled looks since the threshold was set: {len(watch.looks)}. "
            f"Entries in all: {len(watch.entries)}."
        ),
        record=_record(watch),
        hash=escape(watch.hash[:16]),
    )
    return framed(f"{watch.problem} - setpoint watch", content, SCRIPTS, _data(watch, drift))


def _data(watch: Watch, drift: list[list[Drifted]]) -> dict[str, Any]:
    """The numbers of the charts: every look with all bounds as they were after it."""
    entries = watch.entries
    numbers = [place + 1 for place, entry in enumerate(entries) if entry["kind"] == LOOK]
    drawn = set(numbers[:: math.ceil(len(numbers) / MOST) or 1][-MOST:] + numbers[-1:])
    again, looks = Watch.of(watch.first, watch.level), []
    for number, entry in enumerate(entries, 1):
        again.add({name: value for name, value in entry.items() if name != "hash"})
        if number in drawn:
            bounds = [
                {"rate": b.rate, "low": b.low, "high": b.high, "against": _log(b.against), "favour": _log(b.in_favour)}
                for b in again.bounds
            ]
            looks.append({"number": number, "bounds": bounds})
    tested = sum(bound.against is not None for bound in watch.bounds)
    return {
        "entries": len(entries),
        "looks": looks,
        "restarts": [number for number, entry in enumerate(entries, 1) if entry["kind"] == CALIBRATED],
        "bounds": [
            {"name": b.place, "limit": math.log10(tested / watch.level), **_of(watch.problem, b.bound)}
            for b in watch.bounds
        ],
        "drift": [
            {
                "number": number,
                "scores": _log(next((one.evidence for one in found if one.name == SCORES), 1.0)),
                "feature": _log(max((one.evidence for one in found if one.name != SCORES), default=1.0)),
            }
            for number, found in enumerate(drift, 1)
            if entries[number - 1].get("bins")
        ],
        "driftLimit": math.log10(1 / next((one.level for one in (drift[-1] if drift else [])), watch.level)),
    }


def _of(problem: Problem, bound: str) -> dict[str, Any]:
    found = next(constraint for constraint in problem.constraints if str(constraint) == bound)
    return {"bound": found.bound, "upper": found.relation != ">="}


def _log(value: float | None) -> float:
    return 0.0 if value is None else math.log10(max(value, 1e-300))


def _record(watch: Watch) -> str:
    """The table of all entries."""
    rows = []
    for number, entry in enumerate(watch.entries, 1):
        counted = entry.get("rows", entry.get("late", ""))
        flagged = short(entry["flagged"] / entry["rows"]) if entry.get("flagged") is not None else ""
        cells = [number, entry.get("name", ""), _KINDS.get(entry["kind"], entry["kind"]), counted, flagged]
        kinds = ["n", "", "", "n", "n"]
        row = "".join(f'<td class="{kind}">{escape(str(cell))}</td>' for kind, cell in zip(kinds, cells))
        rows.append(f"<tr>{row}</tr>")
    states = ", ".join(f"{bound.place}: {state_of(bound)}" for bound in watch.bounds)
    head = "".join(f'<th scope="col" class="{k}">{n}</th>' for n, k in
                   (("entry", "n"), ("name", ""), ("kind", ""), ("rows", "n"), ("flagged", "n")))  # fmt: skip
    return f"<p>{escape(states)}</p><table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
