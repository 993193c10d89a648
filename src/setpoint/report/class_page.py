"""The page of a run of several classes: its answer, a table per class and the confusion matrix of each part.

`whole_page` is the frame of it, for other pages without a script.
"""

from __future__ import annotations

from html import escape
from string import Template

from torch import Tensor

from setpoint.measure.rate import flagged, precision, recall
from setpoint.problem.evidence import interval
from setpoint.report.head import cautions_list, rival_lines
from setpoint.report.material import Contender, Material
from setpoint.report.page import asset, facts_list, hash_of, notes_list, solvers_table
from setpoint.report.words import part_name, promise, show_objective, show_share, show_value

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src '$style_hash'">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>$title</title>
<style>$style</style>
</head>
<body>
<main>
<header>
<p class="kicker">setpoint report</p>
<h1>$ask</h1>
<p class="answer">$answer</p>
$verdicts
<p class="promise $promise_kind">$promise</p>
<div class="rival">$rival</div>
$cautions
</header>
$parts
<section aria-labelledby="solvers-title"><h2 id="solvers-title">All solvers</h2>$solvers</section>
<section aria-labelledby="facts-title"><h2 id="facts-title">About the run</h2>$facts$notes</section>
</main>
</body>
</html>
""")


def make_class_page(material: Material) -> str:
    """Make the report of a run of several classes as one self-contained HTML file, without a script.

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
        >>> "<h2>Each class, test rows</h2>" in make_class_page(Material(point, [mine], {"test": labels}))
        True
    """
    chosen = material.contenders[0]
    rule = f"Run it at the shifts {chosen.thresholds.describe()}"
    return whole_page(material, rule, [_part(material, chosen, each) for each in material.parts])


def whole_page(
    material: Material, rule: str, sections: list[str], verdicts: str | None = None, solvers: str | None = None
) -> str:
    """A page without a script: the answer, which begins with the decision rule, sections on parts, and the facts.

    The verdicts on the bounds and the table of solvers are those of `material`, unless the page has its own.
    """
    problem, part, style = material.problem, material.parts[0], asset("style.css")
    judged = material.judge(material.contenders[0], part)
    rows = f"{len(material.labels[part]):,} {part_name(part)} rows"
    return _PAGE.substitute(
        title=escape(f"{problem} - setpoint report"),
        ask=escape(str(problem)),
        answer=escape(f"{rule}. On the {rows}: {show_objective(judged)}."),
        verdicts="\n".join(_verdict(material, part)) if verdicts is None else verdicts,
        promise=escape(promise(material)),
        promise_kind="kept" if material.point.certificate else "open",
        rival=rival_lines(material),
        cautions=cautions_list(material),
        parts="\n".join(sections),
        solvers=solvers_table(material) if solvers is None else solvers,
        facts=facts_list(material),
        notes=notes_list(material),
        style=style,
        style_hash=hash_of(style),
    )


def _verdict(material: Material, part: str) -> list[str]:
    """Whether each bound held on a part."""
    chosen, told = material.contenders[0], []
    counts, judged = material.counts(chosen, part), material.judge(chosen, part)
    for c in material.problem.constraints:
        held = bool(c.holds(counts).all())
        value = show_value(c.quantity, judged.rates[str(c.quantity)])
        said = f"The bound {c} {'held' if held else 'did not hold'} on {part_name(part)}: {c.quantity} is {value}."
        told.append(f'<p class="verdict {"holds" if held else "broken"}">{escape(said)}</p>')
    return told


def _part(material: Material, chosen: Contender, part: str) -> str:
    """The rates of each class on a part, and how often each class is given to rows of each class."""
    names, sample = material.point.classes, material.read(chosen, part)
    counts, table = chosen.thresholds.count(sample)[0], chosen.thresholds.kinds(sample).view(len(names), -1)
    shifts = chosen.thresholds.values
    each = "".join(_row(name, own, shift) for name, own, shift in zip(names, counts, shifts))
    heads = "".join(f'<th scope="col" class="n">{escape(name)}</th>' for name in names)
    given = "".join(cells(name, [f"{int(n):,}" for n in own]) for name, own in zip(names, table.tolist()))
    title = f"{part_name(part)} rows"
    columns = ["class", "rows", "recall", "95% interval", "precision", "coverage", "shift"]
    return (
        f"<section><h2>Each class, {title}</h2>{table_of(f'Each class, {title}', 'rates', columns, each)}"
        f'<h3>Rows of each class (down) by the class they are given (across)</h3><div class="wide" tabindex="0" '
        f'role="region" aria-label="Confusion matrix, {title}"><table class="confusion"><thead><tr><td></td>{heads}'
        f"</tr></thead><tbody>{given}</tbody></table></div></section>"
    )


def _row(name: str, counts: Tensor, shift: float) -> str:
    found, size = round(float(counts[0])), round(float(counts[0] + counts[2]))
    low, high = (show_share(float(end)) for end in interval(found, size, 0.95))
    rates = [show_share(float(rate(counts))) for rate in (recall, precision, flagged)]
    texts = [f"{size:,}", rates[0], f"{low} to {high}", rates[1], rates[2], f"{shift:.4g}"]
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
