"""The head of a page: the question, the result in three numbers and one sentence, the promise, and the warnings."""

from __future__ import annotations

from html import escape

from setpoint.measure.classes import CLASSES
from setpoint.measure.in_first import LISTS
from setpoint.measure.labels import LABELS
from setpoint.problem.point import OperatingPoint
from setpoint.report.by_label import bounds_held
from setpoint.report.material import Material
from setpoint.report.question import question
from setpoint.report.verdict import against, best_cuts, compared_at, shipped_instead
from setpoint.report.words import (
    GROUP,
    answer,
    bounds_on_rows,
    has_best_cut,
    part_name,
    promise,
    refuted,
    show_bound,
    show_points,
    show_value,
    value_and_interval,
    verdicts,
)

#: The facts that stand below the question.
IN_TITLE = ("Data", "Date", "Positive class", "Model", "Version", "Fingerprint")
#: What a certificate takes for granted, for those who have to rely on it.
ASSUMPTIONS = (
    ("Same source", "new rows come from the population that the calibration rows were drawn from; "
     "setpoint watch looks for drift."),
    ("Independent rows", "one row says nothing about another, such as two visits of one patient; "
     "fit with --cluster where rows belong together."),
    ("One look", "the threshold was set once on the calibration rows, which neither trained nor chose the model; "
     "a threshold that is picked by looking at this page has no promise."),
)  # fmt: skip


def head(material: Material, said: str | None = None) -> str:
    """The head of a page, as HTML.

    Args:
        material: Everything that the report shows.
        said: The verdicts on the bounds in HTML, where a page has its own.

    Returns:
        The question, the facts, three large numbers, then the result beside the promise, then the warnings.
    """
    point = material.point
    kept = point.certificate is not None
    promised = "".join(f"<p>{escape(line)}</p>" for line in promise(material))
    if said is None:
        said = "\n".join(f'<p class="verdict {kind}">{escape(text)}</p>' for kind, text in verdicts(material))
    later = f'<p class="later">{escape(material.later)}</p>\n' if material.later else ""
    return f"""{title(material)}
{later}{tiles(material)}
<div class="findings">
<div class="result"><h2>Result</h2>
{"".join(f'<p class="answer">{escape(line)}</p>' for line in verdict(material))}
{said}
{behind(material)}{cautions_list(material)}</div>
<div class="promise {"kept" if kept else "open"}"><h2>Promise{" of the fit" if later else ""}</h2>
{promised}{assumptions(point) if kept else ""}</div>
</div>"""


def title(material: Material) -> str:
    """The question in words, the ask, and what the page is about."""
    known = dict(material.facts)
    shown = [(name, known[name]) for name in IN_TITLE if name in known]
    about = "".join(f"<div><dt>{name}</dt><dd>{escape(text)}</dd></div>" for name, text in shown)
    return f"""<p class="kicker">setpoint report</p>
<h1>{escape(question(material.problem))}</h1>
<p class="ask"><code>{escape(str(material.problem))}</code></p>
{f'<dl class="about">{about}</dl>' if about else ""}"""


def assumptions(point: OperatingPoint) -> str:
    """The meaning of the confidence of a promise, and its conditions as a list."""
    assert point.certificate is not None
    broken, noun = f"{100 * (1 - point.certificate.confidence):.3g}", point.thresholds.noun
    bound = "the bound" if len(point.problem.constraints) == 1 else "any of the bounds"
    means = (
        f"The confidence is about the {noun}: of 100 that are set in this way, each on calibration rows of its own, "
        f"about {broken} at most break {bound}. The promise holds under three conditions."
    )
    rows = "".join(f"<li><strong>{escape(name)}</strong>: {escape(text)}</li>" for name, text in ASSUMPTIONS)
    return f'<p class="note">{escape(means)}</p><ul class="assumptions">{rows}</ul>'


def tiles(material: Material) -> str:
    """The result in a few large numbers: the objective, each bounded rate, and the difference from the rival."""
    problem, part, chosen = material.problem, material.parts[0], material.contenders[0]
    judged = material.judge(chosen, part)
    value, ends = show_value(problem.objective, judged.objective), ""
    if problem.kind not in (CLASSES, LISTS, LABELS) and problem.over is None:
        value, ends = value_and_interval(problem.objective, judged, problem.pool(material.counts(chosen, part)))
    rows = f"on {len(material.labels[part]):,} {part_name(part)} rows"
    name = str(problem.objective) if problem.over is None else f"{problem.objective}, mean over {problem.over.rate}"
    name += ", per row" if name.startswith("cost(") else ""
    shown = [_tile(name, value, f"95% interval {ends}" if ends else rows, "")]
    shown += _tiles_of_bounds(material)
    found = material.against(part)
    if found is not None:
        unit = " points" if problem.objective.is_share else ""
        low, high = (show_points(problem.objective, end, signed=True) for end in (found.low, found.high))
        word = "beyond noise" if found.is_clear else "within noise"
        size = f"{show_points(problem.objective, found.value, signed=True)}{unit}"
        kind = ("better" if found.is_better else "worse") if found.is_clear else ""
        note = f"95% interval {low} to {high}: {word}{', both at bare cuts' if found.bare else ''}"
        shown.append(_tile(f"{name} against {material.contenders[-1].name}", size, note, kind))
    return f'<div class="tiles">{"".join(shown)}</div>'


def _tiles_of_bounds(material: Material) -> list[str]:
    """A tile for each bounded rate; for several labels one tile says how many bounds hold."""
    part, chosen = material.parts[0], material.contenders[0]
    if material.problem.kind == LABELS:
        held, bounds = bounds_held(material.judge(chosen, part))
        kind = "holds" if held == bounds else "broken"
        return [_tile("bounds held", f"{held} of {bounds}", f"on {part_name(part)} rows", kind)] if bounds else []
    counts, shown = material.counts(chosen, part), []
    rows = f"on {len(material.labels[part]):,} {part_name(part)} rows"
    for (c, held, value, ends), (kind, _) in zip(bounds_on_rows(material), verdicts(material)):
        noisy = ends and not held and not refuted(c, material.problem.pool(counts))
        word = {"<=": "at most", ">=": "at least", "==": "about"}[c.relation]
        note = f"95% interval {ends}{', which noise can explain' if noisy else ''}" if ends else rows
        name = f"{c.quantity}, asked: {word} {show_bound(c)}"
        shown.append(_tile(name, value, note, kind))
    return shown


def _tile(name: str, value: str, note: str, kind: str) -> str:
    return (
        f'<div class="tile {kind}"><span class="name">{escape(name)}</span><strong>{escape(value)}</strong>'
        f'<span class="note">{escape(note)}</span></div>'
    )


def cautions_list(material: Material) -> str:
    """The warnings, in a box."""
    told = [
        (c.code, c.sentence[:1].upper() + c.sentence[1:] + ("" if c.sentence.endswith("?") else "."))
        for c in material.cautions
    ]
    rows = "".join(f'<li data-code="{escape(code)}">{escape(sentence)}</li>' for code, sentence in told)
    return f'<aside class="cautions" aria-label="Warnings"><h2>Warnings</h2><ul>{rows}</ul></aside>' if rows else ""


def verdict(material: Material) -> list[str]:
    """The decision rule and the objective, beside that of the rival, with the interval of their difference."""
    rule, *beside = _told(material)
    return [f"As fitted: {rule[0].lower()}{rule[1:]}" if material.later else rule, *beside]


def _told(material: Material) -> list[str]:
    part, found = material.parts[0], material.against(material.parts[0])
    if found is None:
        return [answer(material)]
    both = material.contenders[0], material.contenders[-1]
    names, certified = (both[0].name, both[1].name), [one.bare is not None for one in both]
    points, shipped = ([material.judge(one, part) for one in pair] for pair in (material.on_equal_terms(), both))
    lines = against(found, names, points, compared_at(certified, names), part, shipped)
    rule = answer(material) if material.problem.over is not None else f"{both[0].thresholds.rule(GROUP)}."
    return [rule, " ".join(lines)]


def behind(material: Material) -> str:
    """A note behind the verdict: why cross-entropy is shipped, the best cuts of the rows, and the kind of interval."""
    part = material.parts[0]
    found, lines = material.against(part), shipped_instead(material.why_shipped)
    if found is not None:
        best = [material.best(one, part) for one in (material.contenders[0], material.contenders[-1])]
        if has_best_cut(material.problem) and all(point.feasible for point in best):
            lines.append(best_cuts(best[0], best[1], part))
        lines.append(f"Interval: {found.method}.")
    return f'<p class="note">{escape(" ".join(lines))}</p>' if lines else ""
