"""The head of a page: the question, the result in three numbers and one sentence, the promise, and the warnings."""

from __future__ import annotations

from html import escape

from setpoint.measure.classes import CLASSES
from setpoint.measure.in_first import LISTS
from setpoint.measure.rate import Gap
from setpoint.report.material import Material
from setpoint.report.question import question
from setpoint.report.verdict import against, best_cuts, shipped_instead
from setpoint.report.words import (
    GROUP,
    answer,
    has_best_cut,
    holds_on,
    part_name,
    promise,
    refuted,
    show_bound,
    show_points,
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


def head(material: Material) -> str:
    """The head of the page of a run of one threshold or two, as HTML."""
    kept = material.point.certificate is not None
    promised = f"<p>{escape(promise(material))}</p>{assumptions() if kept else ''}"
    said = "\n".join(f'<p class="verdict {kind}">{escape(text)}</p>' for kind, text in verdicts(material))
    return f"""{title(material)}
{tiles(material)}
<p class="answer">{escape(verdict(material))}</p>
{said}
{behind(material)}
<div class="promise {"kept" if kept else "open"}">{promised}</div>
{cautions_list(material)}"""


def title(material: Material) -> str:
    """The question in words, the ask, and what the page is about in one line."""
    known = dict(material.facts)
    shown = [
        known[name] for name in ("Data", "Date", "Positive class", "Model", "Version", "Fingerprint") if name in known
    ]
    about = "".join(f"<li>{escape(text)}</li>" for text in shown)
    return f"""<p class="kicker">setpoint report</p>
<h1>{escape(question(material.problem))}</h1>
<p class="ask"><code>{escape(str(material.problem))}</code></p>
{f'<ul class="about">{about}</ul>' if about else ""}"""


def assumptions() -> str:
    """The conditions of a promise, as a list."""
    rows = "".join(f"<li><strong>{escape(name)}</strong>: {escape(text)}</li>" for name, text in ASSUMPTIONS)
    return f'<p class="note">The promise holds under three conditions.</p><ul class="assumptions">{rows}</ul>'


def tiles(material: Material) -> str:
    """The result in a few large numbers: the objective, each bounded rate, and the difference from the rival."""
    problem, part, chosen = material.problem, material.parts[0], material.contenders[0]
    if problem.kind in (CLASSES, LISTS) or problem.over is not None:
        return ""
    judged, counts = material.judge(chosen, part), material.counts(chosen, part)
    pooled = problem.pool(counts)
    value, ends = value_and_interval(problem.objective, judged, pooled)
    rows = f"{len(material.labels[part]):,} {part_name(part)} rows"
    shown = [_tile(str(problem.objective), value, f"95% interval {ends}" if ends else f"on {rows}", "")]
    for c in problem.constraints:
        value, ends = value_and_interval(c.quantity, judged, pooled)
        gap = isinstance(c.quantity, Gap)
        held = holds_on(c, counts if gap else pooled)
        noise = "" if held or gap or refuted(c, pooled) else ", which noise can explain"
        word = {"<=": "at most", ">=": "at least", "==": "about"}[c.relation]
        name = f"{c.quantity}, asked: {word} {show_bound(c)}"
        shown.append(_tile(name, value, f"95% interval {ends}{noise}" if ends else "", "holds" if held else "broken"))
    found = material.against(part)
    if found is not None:
        unit = " points" if problem.objective.is_share else ""
        low, high = (show_points(problem.objective, end, signed=True) for end in (found.low, found.high))
        word = "beyond noise" if found.is_clear else "within noise"
        size = f"{show_points(problem.objective, found.value, signed=True)}{unit}"
        kind = ("better" if found.is_better else "worse") if found.is_clear else ""
        note = f"95% interval {low} to {high}: {word}"
        shown.append(_tile(f"{problem.objective} against {material.contenders[-1].name}", size, note, kind))
    return f'<div class="tiles">{"".join(shown)}</div>'


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


def verdict(material: Material) -> str:
    """The decision rule and the objective, beside that of the rival, with the interval of their difference."""
    part, found = material.parts[0], material.against(material.parts[0])
    if found is None or material.problem.over is not None:
        return answer(material)
    both = material.contenders[0], material.contenders[-1]
    points = material.judge(both[0], part), material.judge(both[1], part)
    numbers, size = against(found, (both[0].name, both[1].name), points, part)
    return f"{both[0].thresholds.rule(GROUP)}. {numbers} {size}"


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


def rival_lines(material: Material) -> str:
    """The shipped model against its rival on the first part, and behind it the best cuts of that part."""
    part = material.parts[0]
    found = material.against(part)
    lines = shipped_instead(material.why_shipped)
    if found is None:
        return "".join(f"<p>{escape(line)}</p>" for line in lines)
    both = material.contenders[0], material.contenders[-1]
    points, best = [material.judge(one, part) for one in both], [material.best(one, part) for one in both]
    lines += [" ".join(against(found, (both[0].name, both[1].name), (points[0], points[1]), part))]
    shown = has_best_cut(material.problem) and all(point.feasible for point in best)
    behind = best_cuts(best[0], best[1], part) if shown else ""
    told = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return f'{told}<p class="note">{escape(behind)} Interval: {escape(found.method)}.</p>'
