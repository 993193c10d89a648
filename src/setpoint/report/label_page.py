"""The page of a run of several labels: its answer and a table with one row per label for each part."""

from __future__ import annotations

from html import escape

from setpoint.measure.labels import kinds_of_rows
from setpoint.problem.evidence import interval
from setpoint.problem.labels import LabelProblem
from setpoint.problem.read_sample import read_sample
from setpoint.report.by_label import bounds_held, label_heads, label_rows
from setpoint.report.class_page import cells, table_of, whole_page
from setpoint.report.material import Contender, Material
from setpoint.report.page import SHOWN
from setpoint.report.words import part_name, show_share, show_value


def make_label_page(material: Material) -> str:
    """Make the report of a run of several labels as one self-contained HTML file, without a script.

    Args:
        material: Everything that the report shows.

    Returns:
        The text of the file.

    Example:
        >>> import setpoint as sp, torch
        >>> from setpoint.report.label_page import make_label_page
        >>> from setpoint.report.material import Contender, Material
        >>> labels = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).repeat(20, 1)
        >>> point = sp.calibrate("minimize fnr where fpr <= 10%", labels, labels, classes=["spam", "toxic"])
        >>> mine = Contender("mine", point.thresholds, {"test": labels})
        >>> "<h2>Each label, test rows</h2>" in make_label_page(Material(point, [mine], {"test": labels}))
        True
    """
    part, chosen = material.parts[0], material.contenders[0]
    sections = [_part(material, chosen, each) for each in material.parts]
    return whole_page(material, sections, _verdict(material, chosen, part), _solvers(material))


def _verdict(material: Material, chosen: Contender, part: str) -> str:
    held, bounds = bounds_held(material.judge(chosen, part))
    if not bounds:
        return ""
    said = f"All {bounds} bounds held on {part_name(part)}."
    if held < bounds:
        said = f"{bounds - held} of {bounds} bounds did not hold on {part_name(part)}, as the table marks."
    return f'<p class="verdict {"holds" if held == bounds else "broken"}">{escape(said)}</p>'


def _part(material: Material, chosen: Contender, part: str) -> str:
    """The objective and the bounded rates of each label on a part, beside the objective of the rival."""
    problem, judged = material.problem, material.judge(chosen, part)
    assert isinstance(problem, LabelProblem)
    objective, bounds = label_heads(problem)
    rivals = [label_rows(material.judge(other, part)) for other in material.contenders[-1:] if other is not chosen]
    sample = read_sample(problem, chosen.scores[part], material.labels[part])
    counts = kinds_of_rows(chosen.thresholds.passes(sample.scores), sample.labels).sum(0)
    heads = ["label", "rows that<br>have it", "rows that<br>lack it", escape(objective)]
    heads += [*(f"{escape(objective)}<br>{escape(material.contenders[-1].name)}" for _ in rivals)]
    heads += [*(escape(bound).replace("\n", "<br>") for bound in bounds), "recall,<br>95% interval", "threshold"]
    body = ""
    for place, row in enumerate(label_rows(judged)):
        tp, fp, fn, tn = counts[place].tolist()
        low, high = (show_share(float(end)) for end in interval(tp, tp + fn, 0.95))
        marked = [f"&#9888; {escape(text)}" if beyond else escape(text) for text, beyond in row.bounds]
        marked = marked if problem.is_uniform or not bounds else ["<br>".join(marked)]
        own = [f"{tp + fn:,}", f"{fp + tn:,}", escape(row.objective)]
        own += [escape(rival[place].objective) for rival in rivals] + marked
        body += cells(row.label, [*own, f"{low} to {high}", chosen.thresholds.shown(row.threshold)])
    title = f"Each label, {part_name(part)} rows"
    note = '<p class="note">&#9888; beyond the bound on these rows.</p>' if "&#9888;" in body else ""
    return f"<section><h2>{title}</h2>{table_of(title, 'rates', heads, body)}{note}</section>"


def _solvers(material: Material) -> str:
    """One row per contender: the mean objective on every part, and how many bounds held on the first."""
    objective, part = material.problem.objective, material.parts[0]
    heads = ["method", *(f"{escape(str(objective))}<br>{part_name(each)}" for each in SHOWN)]
    heads += [f"bounds held<br>{part_name(part)}", "seconds"]
    body = ""
    for one in material.contenders:
        values = [show_value(objective, one.judged[each]["objective"]) if each in one.judged else "" for each in SHOWN]
        held, bounds = bounds_held(material.judge(one, part))
        seconds = "" if one.seconds is None else f"{one.seconds:.1f}"
        body += cells(one.name, [*values, f"{held} of {bounds}" if bounds else "", seconds])
    return table_of("Methods side by side", "solvers", heads, body)
