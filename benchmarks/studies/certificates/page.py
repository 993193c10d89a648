"""The section of docs/measured.md on this study."""

from __future__ import annotations

from typing import Any

from benchmarks.common.words import Claims, share, table, verdict

TITLE = "How often promises are broken"


def claims(figures: dict[str, Any]) -> Claims:
    cells, confidence = figures["cells"], figures["confidence"]
    worst = max(cells, key=lambda cell: cell["certified"]["broken"])
    error = 100 * (confidence * (1 - confidence) / worst["repeats"]) ** 0.5
    broken, plain = (100 * max(cell[name]["broken"] for cell in cells) for name in ("certified", "plug-in"))
    claim = (
        f"promises made with {100 * confidence:.0f} % confidence are broken in {100 * (1 - confidence):.0f} % at most"
    )
    effect = f"{broken:.1f} ± {error:.1f} % in the worst of {len(cells)} cells; without a certificate {plain:.0f} %"
    return [(claim, effect, all(cell["met"] for cell in cells))]


def among_issued(found: dict[str, float]) -> float | None:
    """The share of the promises made that are wrong; `broken` is that of all repeats, refusals among them."""
    return found["broken"] / (1 - found["refused"]) if found["refused"] < 1 else None


def section(figures: dict[str, Any]) -> str:
    rows = []
    for cell in figures["cells"]:
        found = [cell.get(method) for method in ("certified", "plug-in", "MAPIE")]
        shown = [("" if f is None else f"{100 * f['broken']:.1f} %") for f in found]
        given = ["" if f is None or f["objective"] is None else f"{100 * f['objective']:.1f} %" for f in found]
        refused, among = f"{100 * cell['certified']['refused']:.0f} %", share(among_issued(cell["certified"]))
        shown.insert(1, among)
        rows.append([cell["ask"], cell["scores"], f"{cell['n']:,}", *shown, *given, refused, verdict(cell["met"])])
    header = ["ask", "scores", "n", "broken: certified", "among those issued", "plug-in", "MAPIE"]
    header += ["objective: certified", "plug-in", "MAPIE"]
    first = figures["cells"][0]
    note = (
        f"Of {first['repeats']:,} repeats, promises with confidence {100 * figures['confidence']:.0f} % that the true "
        f"distribution breaks (at most {100 * first['limit']:.1f} % is asked, noise included), and the true "
        "objective at the thresholds that were set. A refusal, where these samples certify nothing, breaks no promise; "
        "the next column divides by the certificates that were issued, which no confidence limits."
    )
    return note + "\n\n" + table([*header, "refused", "met"], rows)
