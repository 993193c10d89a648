"""Forest plots as SVG: one line per comparison, its mean and two standard errors; legible in the light and the dark."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

WIDTH, ROW, CHARACTER, VALUE = 960, 19, 6.4, 112
#: Longer labels are cut.
LONGEST = 62
STYLE = """text{font:12px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#1f2328}
.ground{fill:#fff}.title{font-weight:600}.faint{fill:#59636e}.grid{stroke:#d1d9e0}.mark{stroke:#59636e;stroke-width:1.2}
.ahead{stroke:#0969da;fill:#0969da}.level{stroke:#6e7781;fill:#6e7781}.behind{stroke:#bc4c00;fill:#bc4c00}
@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.ground{fill:#0d1117}.faint{fill:#9198a1}.grid{stroke:#30363d}
.mark{stroke:#9198a1}.ahead{stroke:#58a6ff;fill:#58a6ff}.level{stroke:#8b949e;fill:#8b949e}
.behind{stroke:#f0883e;fill:#f0883e}}"""


@dataclass(frozen=True)
class Line:
    """A mean with its standard errors: the plain one, and the one corrected for overlapping splits if there is one.

    `beside` is a second figure without an error, such as the published one: a hollow diamond.
    """

    label: str
    mean: float
    error: float
    corrected: float | None = None
    beside: float | None = None

    @classmethod
    def of(cls, label: str, gain: dict[str, float], scale: float = 100, beside: float | None = None) -> Line:
        corrected = gain.get("corrected_standard_error")
        return cls(label, scale * gain["mean"], scale * gain["standard_error"],
                   None if corrected is None else scale * corrected, beside)  # fmt: skip

    @property
    def errors(self) -> list[float]:
        """From the narrow to the wide, without those that one split alone does not give."""
        return [one for one in (self.error, self.corrected) if one is not None and math.isfinite(one)]


@dataclass(frozen=True)
class Panel:
    """Lines on one axis. `mark` is where nothing is gained, or the limit; `higher` is which side of it is better."""

    title: str
    axis: str
    lines: list[Line]
    mark: float = 0.0
    higher: bool = True

    def side(self, line: Line) -> str:
        """Ahead or behind where the mark lies beyond two of the widest errors."""
        distance = (line.mean - self.mark) * (1 if self.higher else -1)
        reach = 2 * max(line.errors, default=math.inf)
        return "ahead" if distance > reach else "behind" if distance < -reach else "level"


def ticks(low: float, high: float) -> list[float]:
    """Round numbers that cover the range, at most eight; a range of one number is widened."""
    if low == high:
        return [low - 1, low, low + 1]
    step = 10 ** math.floor(math.log10(max(high - low, 1e-9)))
    step = next(step * part for part in (0.1, 0.2, 0.5, 1, 2, 5) if (high - low) / (step * part) <= 7)
    first = math.floor(low / step)
    return [step * number for number in range(first, math.ceil(high / step) + 1)]


def draw(panels: list[Panel], described: str) -> str:
    """The whole picture, one panel below the other."""
    drawn, top = [], 6.0
    for panel in panels:
        own, top = _panel(panel, top)
        drawn += own
    height = round(top + 4)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            f'role="img" aria-label="{escape(described)}">',
            f"<style>{STYLE}</style>",
            f'<rect class="ground" width="{WIDTH}" height="{height}"/>',
            *drawn,
            "</svg>\n",
        ]
    )


def _panel(panel: Panel, top: float) -> tuple[list[str], float]:
    labels = [line.label if len(line.label) <= LONGEST else line.label[: LONGEST - 1] + "…" for line in panel.lines]
    left, right = 14 + CHARACTER * max(map(len, labels)), WIDTH - VALUE
    reaches = [(line.mean, 2 * max(line.errors, default=0.0)) for line in panel.lines]
    # One line with a huge error must not make all others a dot.
    usual = sorted(abs(mean - panel.mark) + reach for mean, reach in reaches)
    most = 1.6 * usual[int(0.9 * (len(usual) - 1))] or 1.0
    ends = [edge for mean, reach in reaches for edge in (mean - reach, mean + reach)]
    beside = [line.beside for line in panel.lines if line.beside is not None]
    marks = ticks(min(max(min(*ends, panel.mark), panel.mark - most), *beside, panel.mark),
                  max(min(max(*ends, panel.mark), panel.mark + most), *beside, panel.mark))  # fmt: skip
    low, high = marks[0], marks[-1]

    def x(value: float) -> float:
        return left + (right - left) * (min(max(value, low), high) - low) / (high - low)

    first, last = top + 30, top + 30 + ROW * len(labels)
    drawn = [f'<text class="title" x="8" y="{top + 16:g}">{escape(panel.title)}</text>']
    for value in marks:
        drawn.append(f'<path class="grid" d="M{x(value):.1f} {first - 6:g}V{last:g}"/>')
        drawn.append(f'<text class="faint" x="{x(value):.1f}" y="{last + 14:g}" text-anchor="middle">{value:g}</text>')
    drawn.append(f'<path class="mark" d="M{x(panel.mark):.1f} {first - 8:g}V{last + 2:g}"/>')
    axis = f'<text class="faint" x="{(left + right) / 2:.0f}" y="{last + 30:g}" text-anchor="middle">'
    drawn.append(f"{axis}{escape(panel.axis)}</text>")
    for place, (line, label) in enumerate(zip(panel.lines, labels)):
        drawn += _line(panel, line, label, first + ROW * place + ROW / 2, x, (low, high))
    return drawn, last + 40


def _line(panel: Panel, line: Line, label: str, y: float, x: Any, ends: tuple[float, float]) -> Iterator[str]:
    yield f'<text x="8" y="{y + 4:g}">{escape(label)}</text>'
    if line.beside is not None:
        yield f'<path class="ground mark" d="M{x(line.beside) - 6:.1f} {y:g}l6 -6 6 6 -6 6z"/>'
    yield f'<g class="{panel.side(line)}">'
    for error, width in zip(line.errors, (3, 1)):
        yield f'<path stroke-width="{width}" d="M{x(line.mean - 2 * error):.1f} {y:g}H{x(line.mean + 2 * error):.1f}"/>'
    reach = 2 * max(line.errors, default=0.0)
    for side, end in zip((-1, 1), ends):
        # The axis ends before the line does: an arrow says so.
        if side * (line.mean + side * reach - end) > 0:
            yield f'<path d="M{x(end) + 7 * side:.1f} {y:g}l{-7 * side} -4v8z"/>'
    yield f'<circle cx="{x(line.mean):.1f}" cy="{y:g}" r="4"/></g>'
    sign = "+" if panel.mark == 0 and panel.higher else ""
    error = f" ± {line.error:.2f}" if math.isfinite(line.error) else ""
    yield f'<text x="{WIDTH - 8}" y="{y + 4:g}" text-anchor="end">{line.mean:{sign}.2f}{error}</text>'
