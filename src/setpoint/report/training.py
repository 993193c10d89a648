"""The section of a page on training: the methods that were tried, or the rates of each epoch."""

from __future__ import annotations

from html import escape

from setpoint.report.material import Contender, Material
from setpoint.report.names import in_words, method_words
from setpoint.report.words import show_value

#: Histories of more rows than this are drawn; shorter ones are tables.
MOST_IN_TABLE = 5
_LEGEND = (
    '<p class="legend" id="history-legend">'
    '<span><svg width="26" height="12" aria-hidden="true"><path class="curve soft" d="M1 6H26"/></svg>soft</span>'
    '<span><svg width="26" height="12" aria-hidden="true"><path class="curve" d="M0 6H26"/></svg>train</span>'
    '<span><svg width="26" height="12" aria-hidden="true"><path class="curve ours" d="M0 6H26"/></svg>held-out</span>'
    "</p>"
)


def training_section(material: Material, *, drawn: bool = False) -> str:
    """The section as HTML, or an empty text where nothing was chosen and no epochs were counted.

    Args:
        material: Everything that the report shows.
        drawn: Whether the page has the script that draws epochs.
    """
    tried = [_tried(material, one) for one in material.contenders if len(one.tried) > 1]
    epochs = [(place, one) for place, one in enumerate(material.contenders) if not one.tried and len(one.history) > 1]
    drawings = "".join(
        f"<figure><figcaption>{escape(one.name)}</figcaption>"
        f'<div class="chart" data-contender="{place}"></div></figure>'
        for place, one in epochs
        if len(one.history) > MOST_IN_TABLE and drawn
    )
    tables = "".join(_epochs(material, one) for _, one in epochs if len(one.history) <= MOST_IN_TABLE)
    body = "".join(tried)
    if drawings or tables:
        objective, noun = escape(str(material.problem.objective)), material.point.thresholds.noun
        body += (
            f'<p class="note">By epoch: {objective} as the gradient sees it (soft, through the smooth step), and its '
            f"true value on the train and held-out rows, each at the best {noun} there. The epoch that was kept is "
            f'marked.</p>{_LEGEND if drawings else ""}<div class="pair" id="history">{drawings}{tables}</div>'
        )
    if not body:
        return ""
    return f'<section aria-labelledby="history-title"><h2 id="history-title">Training</h2>{body}</section>'


def _tried(material: Material, contender: Contender) -> str:
    """One row per candidate: the objective on rows that it was not trained on, and why it was or was not kept."""
    objective = material.problem.objective
    rows = "".join(
        f'<tr{" class=kept" if one.chosen else ""}><th scope="row">{escape(method_words(one.name))}'
        f"{' (kept)' if one.chosen else ''}</th>"
        f'<td class="n">{"" if one.objective is None else show_value(objective, one.objective)}</td>'
        f'<td class="n">{one.seconds:.1f}</td><td>{escape(in_words(one.note))}</td></tr>'
        for one in contender.tried
    )
    note = "Methods that were tried. Each is judged on rows that it was not trained on, at the best cut there."
    return (
        f'<p class="note">{note}</p><div class="wide" tabindex="0" role="region" aria-label="Methods that were tried">'
        f'<table class="tried"><thead><tr><th scope="col">method</th><th scope="col" class="n">{escape(str(objective))}'
        f'</th><th scope="col" class="n">seconds</th><th scope="col">note</th></tr></thead><tbody>{rows}</tbody>'
        "</table></div>"
    )


def _epochs(material: Material, contender: Contender) -> str:
    """A short history as a table: one row per training."""
    objective, keys = material.problem.objective, ("soft", "train", "held_out")
    rows = ""
    for place, row in enumerate(contender.history):
        kept = " (kept)" if place == contender.best_epoch else ""
        values = "".join(
            f'<td class="n">{"" if row.get(key) is None else show_value(objective, row[key])}</td>' for key in keys
        )
        name = method_words(str(row.get("solver", ""))) or f"epoch {place + 1}"
        rows += f'<tr><th scope="row">{escape(name)}{kept}</th>{values}</tr>'
    heads = "".join(f'<th scope="col" class="n">{name}</th>' for name in ("soft", "train", "held-out"))
    return (
        f"<figure><figcaption>{escape(contender.name)}</figcaption><table><thead><tr>"
        f'<th scope="col">epoch</th>{heads}</tr></thead><tbody>{rows}</tbody></table></figure>'
    )
