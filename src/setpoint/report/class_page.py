"""The page of a run of several classes: its answer, a slider, the rates of each class and the confusion matrix.

`whole_page` is the frame of it, for the pages of other kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from string import Template
from typing import Any

from torch import Tensor

from setpoint.measure.rate import flagged, precision, recall
from setpoint.problem.evidence import interval
from setpoint.problem.shifts import Shifts
from setpoint.report.class_positions import class_data
from setpoint.report.frame import framed
from setpoint.report.head import head
from setpoint.report.material import Contender, Material
from setpoint.report.page import facts_list, notes_list, solvers_table
from setpoint.report.training import training_section
from setpoint.report.words import part_name, show_share

_PAGE = Template("""<header>
$head
</header>
$parts
<section aria-labelledby="solvers-title"><h2 id="solvers-title">Methods side by side</h2>$solvers</section>
$training
<section aria-labelledby="facts-title"><h2 id="facts-title">Data and settings</h2>$facts$notes</section>
""")
_EXPLORE = Template("""<section aria-labelledby="explore-title">
<h2 id="explore-title">Each class, <span id="rows">$part</span> rows</h2>
<noscript><p class="note">The slider needs the script of this page, which is switched off here.</p></noscript>
<div id="controls" hidden>
<div class="switches">
<fieldset id="part"><legend>Rows</legend></fieldset>
<label class="choice" for="shifted">Class to shift <select id="shifted"></select></label>
</div>
<div class="bar">
<div class="readout">
<div class="labels">
<label for="shift">Its shift <output id="shift-value" for="shift"></output></label>
<span class="reading">$objective <output id="objective-value" for="shift"></output></span>
</div>
<p id="bounds" class="bounds"></p>
</div>
<input type="range" id="shift" min="0" max="1" value="0" step="1" aria-describedby="slider-help">
<div class="under"><button type="button" id="back">Back to the run's shift</button></div>
</div>
<p class="note" id="slider-help">A class is given to fewer rows to the right, where its shift is higher. The other classes keep the run's shifts. <span id="steps"></span> A promise is about the run's own shifts alone.</p>
</div>
$classes
<h3>Rows of each class (down) by the class they are given (across)</h3>
$confusion
</section>
""")  # noqa: E501  (one line of HTML is one paragraph)
SCRIPTS = ("interval.js", "chart.js", "class_page.js")


def make_class_page(material: Material) -> str:
    """Make the report of a run of several classes as one self-contained HTML file, with a slider per class.

    Args:
        material: Everything that the report shows.

    Returns:
        The text of the file.

    Example:
        >>> import setpoint as sp, torch
        >>> from setpoint.report.class_page import make_class_page
        >>> from setpoint.report.material import Contender, Material
        >>> scores, labels = torch.eye(3).repeat(4, 1), torch.arange(3).repeat(4)
        >>> point = sp.calibrate("maximize macro recall", scores, labels)
        >>> mine = Contender("mine", point.thresholds, {"test": scores})
        >>> '<table class="confusion" id="confusion">' in make_class_page(Material(point, [mine], {"test": labels}))
        True
    """
    chosen = material.contenders[0]
    assert isinstance(chosen.thresholds, Shifts)
    samples = {part: material.read(chosen, part) for part in material.parts}
    data = class_data(material.problem, chosen.thresholds, samples, {part: part_name(part) for part in samples})
    return whole_page(material, [_explore(material, chosen, material.parts[0])], script=(SCRIPTS, data))


def whole_page(
    material: Material,
    sections: list[str],
    verdicts: str | None = None,
    solvers: str | None = None,
    script: tuple[Sequence[str], Any] = ((), None),
) -> str:
    """A page: the head, sections on parts, the methods, and the facts.

    The verdicts on the bounds and the table of solvers are those of `material`, unless the page has its own.
    `script` is the files of its script and their data.
    """
    content = _PAGE.substitute(
        head=head(material, verdicts),
        parts="\n".join(sections),
        solvers=solvers_table(material) if solvers is None else solvers,
        training=training_section(material),
        facts=facts_list(material),
        notes=notes_list(material),
    )
    return framed(f"{material.problem} - setpoint report", content, *script)


def _explore(material: Material, chosen: Contender, part: str) -> str:
    """The slider, the rates of each class on a part, and how often each class is given to rows of each class."""
    names, sample = material.point.classes, material.read(chosen, part)
    counts, table = chosen.thresholds.count(sample)[0], chosen.thresholds.kinds(sample).view(len(names), -1)
    shifts = map(chosen.thresholds.shown, chosen.thresholds.values)
    each = "".join(_row(name, own, shift) for name, own, shift in zip(names, counts, shifts))
    given = "".join(cells(name, [f"{int(n):,}" for n in own]) for name, own in zip(names, table.tolist()))
    columns = ["class", "rows", "recall", "95% interval", "precision", "coverage", "shift"]
    return _EXPLORE.substitute(
        part=part_name(part),
        objective=escape(str(material.problem.objective)),
        classes=table_of("Each class", 'rates" id="classes', columns, each),
        confusion=table_of("Confusion matrix", 'confusion" id="confusion', ["", *map(escape, names)], given),
    )


def _row(name: str, counts: Tensor, shift: str) -> str:
    found, size = round(float(counts[0])), round(float(counts[0] + counts[2]))
    low, high = (show_share(float(end)) for end in interval(found, size, 0.95))
    rates = [show_share(float(rate(counts))) for rate in (recall, precision, flagged)]
    texts = [f"{size:,}", rates[0], f"{low} to {high}", rates[1], rates[2], shift]
    return cells(name, texts)


def table_of(title: str, kind: str, heads: list[str], body: str) -> str:
    """A table that can be scrolled, with these heads in HTML."""
    first, *others = heads
    above = "".join(f'<th scope="col" class="n">{head}</th>' for head in others)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{title}"><table class="{kind}"><thead><tr>'
        f'<th scope="col">{first}</th>{above}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def cells(name: str, texts: list[str]) -> str:
    """A row of a table: its name and its cells in HTML."""
    shown = "".join(f'<td class="n">{text}</td>' for text in texts)
    return f'<tr><th scope="row">{escape(name)}</th>{shown}</tr>'
