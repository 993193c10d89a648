"""How figures are written on a page: tables, verdicts, and paired differences with their errors."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Iterable
from typing import Any

Row = dict[str, Any]
#: A marked table: its name and its lines.
WIDE = re.compile(r"<!-- ([\w-]+)\.csv -->\n((?:\|.*\n)*\|.*)")
ERRORS = {"standard_error": "plain", "corrected_standard_error": "corrected"}


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def wide(name: str, text: str) -> str:
    """A table that is too large for a page: `benchmarks.evidence` writes it as CSV and leaves a link."""
    return f"<!-- {name}.csv -->\n{text}"


def slug(words: str) -> str:
    """The words as an address of a heading or the name of a file has them."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def verdict(met: bool | None) -> str:
    return "" if met is None else "yes" if met else "no"


def share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def gain(found: dict[str, float], scale: float = 100) -> str:
    """Mean, plain error and, in brackets, the one corrected for overlapping splits."""
    errors = [scale * found[error] for error in ERRORS]
    return f"{scale * found['mean']:+.2f} ± {errors[0]:.2f} ({errors[1]:.2f})"


def gain_or_loss(mean: float, unit: str = " points") -> str:
    """'gain 2.1 points' or 'lose 2.1 points', by the sign of a mean gain in points."""
    return f"{'gain' if mean > 0 else 'lose'} {abs(mean):.1f}{unit}"


def mean_and_error(gains: list[Row], scale: float = 100) -> tuple[float, float]:
    """The mean over cells, and the standard error of this mean.

    Cells of one data set, which `of` names, share rows and models: the error then counts data sets, not cells.
    """
    means = [scale * found["mean"] for found in gains]
    mean = statistics.mean(means)
    away: dict[Any, float] = {}
    for place, (found, value) in enumerate(zip(gains, means)):
        own = found.get("of", place)
        away[own] = away.get(own, 0.0) + value - mean
    if len(away) == 1:
        return mean, statistics.stdev(means) / len(means) ** 0.5 if len(means) > 1 else scale * gains[0][
            "standard_error"
        ]
    return mean, (sum(one**2 for one in away.values()) * len(away) / (len(away) - 1)) ** 0.5 / len(means)


def source(name: str) -> str:
    """The data behind a set: "letter, 100 ReLU features" is letter, and both "CIFAR-10 head, ..." are CIFAR-10."""
    return name.split(",", maxsplit=1)[0].removesuffix(" head")


def by_source(rows: Iterable[Row], gain_of: Callable[[Row], Row]) -> list[Row]:
    """The gain of every row with the data behind its set, by which `mean_and_error` counts."""
    return [{**gain_of(row), "of": source(row["set"])} for row in rows]


def of_sources(number: int, what: str, names: Iterable[str]) -> str:
    """'10 sets of 7 data sources', or '6 sets' where each has data of its own."""
    sources = len({source(name) for name in names})
    if sources == number:
        return f"{number} {what}"
    return f"{number} {what} of {'one data source' if sources == 1 else f'{sources} data sources'}"


def counted(gains: list[dict[str, float]], better: int, worse: int, scale: float = 100) -> str:
    """The mean gain, and in how many cells there is one and in how many a loss."""
    mean, error = mean_and_error(gains, scale)
    return f"{mean:+.2f} ± {error:.2f}; {better} better, {worse} worse of {len(gains)}"


def short(ask: str) -> str:
    """An ask as a label has it."""
    return re.sub(r" with \d+ points$", "", ask.removeprefix("minimize ").removeprefix("maximize "))


def share_error(value: float, repeats: int) -> tuple[float, float]:
    """A share of so many repeats and its standard error, in percent."""
    return 100 * value, 100 * (value * (1 - value) / repeats) ** 0.5


def changed(mean: float, change: dict[str, float] | None) -> str:
    """A mean in percent and, after it, its paired change in points."""
    if change is None:
        return f"{mean:.1f}"
    if math.isnan(change["standard_error"]):
        return f"{mean:.1f}, {change['mean']:+.1f}"
    errors = [change[error] for error in ERRORS]
    return f"{mean:.1f}, {change['mean']:+.1f} ± {errors[0]:.1f} ({errors[1]:.1f})"


def repeated(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of more than one seed: of the others nothing can be said."""
    return [row for row in rows if len(row["seeds"]) > 1]


def beyond(rows: list[dict[str, Any]], column: str, side: int, error: str = "standard_error") -> int:
    """In how many rows a column has changed to one side by more than two standard errors."""
    changes = [row[column]["minus alone"] for row in rows]
    return sum(side * change["mean"] > 2 * change[error] for change in changes)


def turned(rows: list[dict[str, Any]], column: str, side: int) -> list[dict[str, float]]:
    """The changes of a column as gains: positive where the change is to the better side, 1 for higher, -1 for lower."""
    return [{**row[column]["minus alone"], "mean": side * row[column]["minus alone"]["mean"]} for row in rows]


def ratios(header: list[str], rows: list[tuple[list[str], Row, Row]], columns: tuple[str, ...]) -> str:
    """A table of labels, and of each row's figures as ratios to those of cross-entropy, ours and published."""
    kinds = [(column, kind) for kind in ("mean", "published") for column in columns]
    lines = [
        [*labels, *(f"{row[c][kind] / plain[c][kind]:.3f}" if kind in row[c] else "" for c, kind in kinds)]
        for labels, row, plain in rows
    ]
    told = "Ratios to cross-entropy alone, in the same run and as published:"
    return f"{told}\n\n{wide('ratios', table([*header, *columns, *(f'{c}, published' for c in columns)], lines))}"
