"""The page of a run about lists: its answer, the distribution over lists, and the worst lists of each part."""

from __future__ import annotations

from html import escape

import numpy as np
from torch import Tensor

from setpoint.measure.constraint import Quantity
from setpoint.measure.in_first import InFirst
from setpoint.measure.lists import number_lists
from setpoint.problem.shown_rates import shown_quantities
from setpoint.report.class_page import cells, whole_page
from setpoint.report.material import Material
from setpoint.report.words import part_name, show_share

#: The number of lists that are named: those with the worst value, and of these the ones that miss the most.
WORST = 10
#: The most lists that are named in the table of all lists.
NAMED = 1000
#: The steps of the distribution over lists.
STEPS = 5


def make_list_page(material: Material) -> str:
    """Make the report of a run about lists as one self-contained HTML file, without a script.

    Args:
        material: Everything that the report shows.

    Returns:
        The text of the file.

    Example:
        >>> import setpoint as sp, torch
        >>> from setpoint.report.list_page import make_list_page
        >>> from setpoint.report.material import Contender, Material
        >>> scores, labels, lists = torch.arange(12.0), torch.arange(12) % 3 == 0, torch.arange(12) // 4
        >>> point = sp.calibrate("maximize precision in the first 2", scores, labels, lists=lists)
        >>> mine = Contender("mine", point.thresholds, {"test": scores})
        >>> page = make_list_page(Material(point, [mine], {"test": labels}, lists={"test": lists}))
        >>> "<h2>Lists, test rows</h2>" in page
        True
    """
    return whole_page(material, [_part(material, part) for part in material.parts])


def _part(material: Material, part: str) -> str:
    """The values of each rate over the lists of a part, how they are spread, and the worst lists."""
    chosen, problem = material.contenders[0], material.problem
    counts = chosen.thresholds.count(material.read(chosen, part))[0]
    assert material.lists is not None
    names = number_lists(material.lists[part])[1]
    shown = dict.fromkeys([*problem.quantities, *shown_quantities(problem)])
    rows = "".join(cells(str(quantity), _spread(quantity, counts)) for quantity in shown)
    objective, title = problem.objective, f"{part_name(part)} rows"
    assert isinstance(objective, InFirst)
    values = objective.of_each(counts).numpy()
    heads = "".join(_head(name) for name in ("mean over lists", "lowest", "quarter", "median", "highest"))
    # Nothing can be found in a list without positives, whatever the model.
    some = np.flatnonzero((counts[0, :, 0] + counts[0, :, 2]).numpy() > 0)
    worse, missed = values if problem.maximize else -values, counts[-1, :, 2].numpy()
    order = some[np.lexsort((-missed[some], worse[some]))][:WORST]
    every = [cells(str(name), _list(counts[-1, q], float(values[q]))) for q, name in enumerate(names[:NAMED])]
    worst = "".join(cells(str(names[q]), _list(counts[-1, q], float(values[q]))) for q in order)
    named = f"All {len(names):,} lists" if len(names) <= NAMED else f"The first {NAMED:,} of {len(names):,} lists"
    columns = "".join(_head(name) for name in (str(objective), "rows", "positives", "positives found"))
    bins = np.bincount(np.ceil(np.round(STEPS * values, 9)).astype(int), minlength=STEPS + 1)
    bars = "".join(
        cells(f"{'up to ' if step else ''}{100 * step // STEPS}%", [f"{n:,}", show_share(n / len(values))])
        for step, n in enumerate(bins.tolist())
    )
    return (
        f"<section><h2>Lists, {title}</h2><p>{len(material.labels[part]):,} rows in {len(values):,} lists.</p>"
        + _table(f"Rates over lists, {title}", "rate", heads, rows)
        + f"<h3>How many lists have which {escape(str(objective))}</h3>"
        + _table(f"Distribution over lists, {title}", "value", _head("lists") + _head("share"), bars)
        + f"<h3>The {len(order)} worst of the {len(some):,} lists that have positives</h3>"
        + _table(f"Worst lists, {title}", "list", columns, worst)
        + f"<details><summary>{named}, in the order of the rows</summary>"
        + _table(f"Each list, {title}", "list", columns, "".join(every))
        + "</details></section>"
    )


def _spread(quantity: Quantity, counts: Tensor) -> list[str]:
    assert isinstance(quantity, InFirst)
    values = quantity.of_each(counts).numpy()
    quantiles = np.quantile(values, [0.0, 0.25, 0.5, 1.0]).tolist()
    return [show_share(float(value)) for value in (values.mean(), *quantiles)]


def _list(counts: Tensor, value: float) -> list[str]:
    tp, fp, fn, tn = (float(count) for count in counts[:4])
    return [show_share(value), f"{tp + fp + fn + tn:,.0f}", f"{tp + fn:,.0f}", f"{tp:,.4g}"]


def _head(name: str) -> str:
    return f'<th scope="col" class="n">{escape(name)}</th>'


def _table(label: str, first: str, heads: str, rows: str) -> str:
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(label)}"><table class="rates"><thead><tr>'
        f'<th scope="col">{first}</th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
    )
