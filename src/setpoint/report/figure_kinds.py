"""Two panels of the picture for runs of several classes, several labels, or lists; matplotlib hands over the axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from setpoint.measure.classes import CLASSES
from setpoint.measure.in_first import LISTS, InFirst
from setpoint.measure.labels import LABELS, OfLabel
from setpoint.measure.rate import precision, recall
from setpoint.problem.evidence import interval
from setpoint.problem.labels import LabelProblem
from setpoint.report.by_label import objective_of
from setpoint.report.material import Material

ACCENT, OTHER, BROKEN = "#0b6485", "#6b747c", "#b3261e"
#: The most classes whose counts are written into the cells of the table.
_WRITTEN = 12


def plain(name: str) -> str:
    """A name that matplotlib does not take for a formula."""
    return name.replace("$", r"\$")


def draw_classes(axes: Any, material: Material) -> None:
    """The confusion matrix, and the recall with its interval and the precision of each class."""
    chosen, part = material.contenders[0], material.parts[0]
    names, sample = [*map(plain, material.point.classes)], material.read(chosen, part)
    table = chosen.thresholds.kinds(sample).view(len(names), -1)
    share = table / table.sum(1, keepdim=True).clamp(min=1)
    axes[0].imshow(share.numpy(), cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for j, row in enumerate(table.long().tolist()) if len(names) <= _WRITTEN else ():
        for i, n in enumerate(row):
            axes[0].text(i, j, f"{n:,}", ha="center", va="center", color="white" if share[j, i] > 0.6 else "black")
    axes[0].set(xticks=range(len(names)), yticks=range(len(names)), yticklabels=names, xlabel="given", ylabel="true")
    axes[0].set_xticklabels(names, rotation=45 if len(names) > 4 else 0, ha="right" if len(names) > 4 else "center")
    axes[0].set_title("rows by true and given class")
    counts = chosen.thresholds.count(sample)[0]
    ends = [interval(round(float(own[0])), round(float(own[0] + own[2])), 0.95) for own in counts]
    _dots(axes[1], names, recall(counts).tolist(), [(float(low), float(high)) for low, high in ends], "recall")
    axes[1].plot(precision(counts).tolist(), range(len(names)), "s", color=OTHER, mfc="white", label="precision")
    axes[1].legend(frameon=False, fontsize="small")
    axes[1].set_title("each class, recall with its 95% interval")


def draw_labels(axes: Any, material: Material) -> None:
    """The objective of each label beside that of the rival, and each bounded rate beside its bound."""
    problem, part = material.problem, material.parts[0]
    assert isinstance(problem, LabelProblem)
    labels = [*map(plain, problem.labels)]
    for place, one in enumerate([*material.contenders[:1], *material.contenders[1:][-1:]]):
        judged = material.judge(one, part)
        values = [objective_of(judged, label) for label in range(len(labels))]
        _dots(axes[0], labels, values, None, plain(one.name), ACCENT if place == 0 else OTHER)
    axes[0].legend(frameon=False, fontsize="small")
    name = str(next(iter(problem.each.values())).objective) if problem.is_uniform else "objective"
    axes[0].set_title(f"{plain(name)} of each label")
    rates = material.judge(material.contenders[0], part).rates
    rows = [(c, rates[str(c.quantity)]) for c in problem.constraints if isinstance(c.quantity, OfLabel)]
    for row, (c, value) in enumerate(rows):
        kept = {"<=": value <= c.bound, ">=": value >= c.bound, "==": True}[c.relation]
        axes[1].plot([c.bound, value], [row, row], "-", color=ACCENT if kept else BROKEN, lw=1)
        axes[1].plot(c.bound, row, "|", color="black", ms=14)
        axes[1].plot(value, row, "o", color=ACCENT if kept else BROKEN)
    axes[1].set(yticks=range(len(rows)), yticklabels=[plain(str(c)) for c, _ in rows], ylim=(len(rows) - 0.5, -0.5))
    axes[1].set_title("bounded rates (dots) beside their bounds (lines)" if rows else "no bounds")


def draw_lists(axes: Any, material: Material) -> None:
    """How the objective is spread over lists, and the mean precision and recall in the first k rows."""
    chosen, part, objective = material.contenders[0], material.parts[0], material.problem.objective
    assert isinstance(objective, InFirst)
    counts = chosen.thresholds.count(material.read(chosen, part))[0]
    axes[0].hist(objective.of_each(counts).numpy(), bins=20, range=(0, 1), color=ACCENT)
    axes[0].axvline(float(objective(counts)), color="black", lw=1.2, label="mean over lists")
    axes[0].set(xlabel=plain(str(objective)), ylabel="lists", title="how many lists have which value")
    axes[0].legend(frameon=False, fontsize="small")
    depths = range(1, counts.shape[0] + 1)
    for rate, colour in ((precision, ACCENT), (recall, OTHER)):
        values = [float(InFirst(rate, k)(counts)) for k in depths]
        axes[1].plot(depths, values, "o-", ms=4, color=colour, label=str(rate))
    axes[1].xaxis.get_major_locator().set_params(integer=True)
    axes[1].set(xlabel="first k rows of each list", ylim=(0, 1), title="mean over lists in the first k rows")
    axes[1].legend(frameon=False, fontsize="small")


def _dots(
    axis: Any, names: list[str], values: list[float], ends: list[tuple[float, float]] | None, label: str,
    colour: str = ACCENT,
) -> None:  # fmt: skip
    """One dot per name, with an interval where there is one; the first name on top."""
    away = None if ends is None else [[v - low for v, (low, _) in zip(values, ends)],
                                      [high - v for v, (_, high) in zip(values, ends)]]  # fmt: skip
    axis.errorbar(values, range(len(names)), xerr=away, fmt="o", color=colour, label=label)
    axis.set(yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.5, -0.5), xlim=(-0.02, 1.02))


#: What is drawn for each kind of question that has more than one threshold or score per row.
PANELS: dict[str, Callable[[Any, Material], None]] = {
    CLASSES: draw_classes,
    LABELS: draw_labels,
    LISTS: draw_lists,
}
