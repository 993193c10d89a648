"""One writer for the page of every study.

The module `page` of a study declares what is its own, and nothing else:

- `TITLE` and `QUESTION`;
- `answer(figures)`, if a page has one: a few plain sentences that answer the question;
- `claims(figures)`: what was asked for, as `Claim`s;
- `forest(figures)`: the panels of its figure, none for a study without one (or `figure(figures)`, drawn otherwise);
- `CAPTION`, if a page has one: what its figure shows beyond what every forest plot does;
- `section(figures)`: its short table, and the full ones marked by `words.wide`, which become CSV files;
- `design(figures)`: what was fixed before looking, and `THREATS`: reasons to doubt the result.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from benchmarks.common.forest import Line, Panel, draw
from benchmarks.common.harness import made_by
from benchmarks.common.words import WIDE, table

STATES = {True: "met", False: "not met", None: "not tried"}
#: The columns of claims, on the page of a study and in the index.
HEAD = ["claim", "effect ± standard error", "against", "on"]
OF_FOREST = (
    "Blue is better, orange worse, grey neither, by two of the wider errors. Thick lines reach two standard "
    "errors to either side, thin lines two corrected ones (Nadeau and Bengio's, for splits that overlap)."
)


@dataclass(frozen=True)
class Claim:
    """What was asked for, and what was found.

    Args:
        says: The claim in a few words.
        effect: The effect with its error.
        met: Whether it is met; None if nobody has tried.
        against: The rival, or the limit.
        on: On how much it was tried: tables, splits, repeats.
        index: Whether it stands in the index and in its picture; the others stand on the page of the study alone.
        gain: Mean and standard error in points, ours less the rival's, for the picture.
        broken: Share of broken promises and its standard error in percent, for the picture.
        command: The module behind `benchmarks.` that makes these figures; empty is the study's own.
    """

    says: str
    effect: str
    met: bool | None
    against: str = ""
    on: str = ""
    index: bool = False
    gain: tuple[float, float] | None = None
    broken: tuple[float, float] | None = None
    command: str = ""

    @property
    def subject(self) -> str:
        """What stands before the colon, for the picture."""
        return self.says.split(":")[0]

    @property
    def cells(self) -> list[str]:
        return [self.says, self.effect, self.against, self.on]

    @property
    def state(self) -> str:
        return STATES[self.met]


def page_text(study: str, page: ModuleType, result: dict[str, Any]) -> str:
    """The page of one study, with its full tables still in it."""
    figures = result["figures"]
    parts = [f"# {page.TITLE}", f"**Question.** {page.QUESTION}"]
    if hasattr(page, "answer") and (answer := page.answer(figures)):
        parts.append(f"**Answer.** {answer}")
    if told := page.claims(figures):
        parts.append(table_of(told))
    if figure_of(page, figures) is not None:
        parts.append(f"![{page.TITLE}: the figure](../images/evidence/{study}.svg)")
        captions = [OF_FOREST if hasattr(page, "forest") else "", getattr(page, "CAPTION", "")]
        parts.append(" ".join(filter(None, captions)))
    parts += [page.section(figures), "## Design", page.design(figures), "## Threats to validity"]
    parts += ["\n".join(f"- {threat}" for threat in page.THREATS), f"Made by {made_by(result)}"]
    return "\n\n".join(part for part in parts if part) + "\n"


def table_of(claims: list[Claim]) -> str:
    return table([*HEAD, "state"], [[*claim.cells, claim.state] for claim in claims])


def figure_of(page: ModuleType, figures: dict[str, Any]) -> str | Any | None:
    """The figure as SVG text, or as a Matplotlib figure; None without one."""
    if hasattr(page, "figure"):
        return page.figure(figures)
    panels = [panel for panel in page.forest(figures) if panel.lines]
    return draw(panels, page.TITLE) if panels else None


def set_aside(study: str, text: str) -> tuple[str, dict[str, str]]:
    """The page with links in the place of its full tables, and these as CSV."""
    files = {}

    def move(found: re.Match[str]) -> str:
        lines = [[cell.strip() for cell in line[1:-1].split("|")] for line in found[2].splitlines()]
        written = io.StringIO()
        csv.writer(written, lineterminator="\n").writerows([lines[0], *lines[2:]])
        name = f"{study}-{found[1]}.csv"
        files[name] = written.getvalue().replace("**", "")
        return f"[{found[1].replace('-', ' ').capitalize()}: {len(lines) - 2} rows, {len(lines[0])} columns]({name})"

    return WIDE.sub(move, text), files


def in_order(claims: Iterable[tuple[str, Claim]]) -> list[tuple[str, Claim]]:
    """Claims of the index: those that are met first, then those that are not, then those that nobody has tried."""
    order = list(STATES)
    return sorted(((study, claim) for study, claim in claims if claim.index), key=lambda one: order.index(one[1].met))


def picture(claims: list[Claim]) -> str:
    """All claims of the index that have a number of their own, as one forest plot."""
    gains = [Line(f"{claim.subject} / {claim.against.split(';')[0]}", *claim.gain) for claim in claims if claim.gain]
    broken = [Line(claim.subject, *claim.broken) for claim in claims if claim.broken]
    panels = [
        Panel("What it gains: ours against the rival after the stroke", "points, two standard errors to either side",
              sorted(gains, key=lambda line: -line.mean)),
        Panel("What a promise is worth: how often a certified bound is broken, in the worst case tried",
              "percent of all promises made with a confidence of 95 %", broken, 5.0, False),
    ]  # fmt: skip
    return draw([panel for panel in panels if panel.lines], "Evidence for setpoint: gains, and promises that were kept")
