"""The section on why two levels of Table 5 differ from the published ones."""

from __future__ import annotations

from collections import Counter
from typing import Any

from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import gain, table, wide

TITLE = "Table 5 of the implicit-thresholds paper: why two levels differ"
QUESTION = "Why do two levels of cross-entropy in Table 5 differ from the published ones?"
THREATS = (
    "Many pairs of a training and an area were tried; that some fit all sets shows that the paper leaves enough open, "
    "not which of them its authors used.",
)
Row = dict[str, Any]


def name_of(row: Row) -> str:
    return row["variant"] if row["changed"] == "several" else f"{row['changed']}: {row['variant']}"


def shown(level: dict[str, Any]) -> str:
    """Mean and error; bold where it agrees, empty where nothing was changed."""
    if not level["changed"]:
        return ""
    mean = f"{level['area']['mean']:.2f}"
    return f"{f'**{mean}**' if level['agrees'] else mean} ± {level['area']['standard_error']:.2f}"


def off(row: Row) -> list[str]:
    return [name for name, level in row["levels"].items() if not level["agrees"]]


def told(names: list[str]) -> str:
    return "; ".join(names) if names else "none"


def agreement(row: Row) -> str:
    missed = off(row)
    return f"{len(row['levels']) - len(missed)}{', not ' + ', '.join(missed) if missed else ''}"


def finding(name: str, figures: dict[str, Any]) -> str:
    """What brings a level that is off to the published one."""
    rows, exact = figures["rows"], figures["exact"]
    usual, (mean, error) = rows[0]["levels"][name], figures["published"][name]
    own = [row for row in rows if row["levels"][name]["changed"] and row["area"] == exact]
    single = [row for row in own if row["changed"] not in ("nothing", "several")]
    trained = [f"{name_of(row)}, {gain(row['levels'][name]['change'], 1)}" for row in single
               if row["levels"][name]["agrees"]]  # fmt: skip
    stopped = [row["levels"][name]["area"]["mean"] for row in own if "Adam" in name_of(row)]
    read = [row["area"] for row in rows if row["changed"] == "nothing" and row["levels"][name]["agrees"]]
    weight, tried = figures["weight of the published level"][name], figures["weights tried"]
    needed = f"about {weight:.2g}" if weight else f"none from {tried[0]:g} to {tried[-1]:g}"
    return (
        f"**{name}**, {usual['area']['mean'] - mean:+.2f} from the published {mean:.2f} ± {error:.2f}. Single changes "
        f"of training that agree: {told(trained)}. By Adam from {min(stopped):.2f} to {max(stopped):.2f}, by when it "
        f"stops and what else is changed. Areas of the same scores that agree: {told(read)}. Class weight that would "
        f"give the published level: {needed}."
    )


def together(figures: dict[str, Any]) -> str:
    """What fits all sets at once."""
    rows = figures["rows"]
    fitting, tried = (Counter(map(name_of, some)) for some in ([row for row in rows if not off(row)], rows))
    counted = [f"{name} (areas: {number} of {tried[name]})" for name, number in fitting.items()]
    alone = fitting[name_of(rows[0])] or "none"
    return (
        f"**All {len(rows[0]['levels'])} sets at once**: {fitting.total()} of {len(rows)} pairs of a training and an "
        f"area agree on every set: {told(counted)}. With the training of the table above {alone} of the areas does."
    )


def claims(figures: dict[str, Any]) -> list[Claim]:
    rows = figures["rows"]
    if not figures["splits"]:
        return []
    missed, fitting = off(rows[0]), sum(not off(row) for row in rows)
    distance = [f"{name} {rows[0]['levels'][name]['area']['mean'] - figures['published'][name][0]:+.2f} ± "
                f"{rows[0]['levels'][name]['area']['standard_error']:.2f}" for name in missed]  # fmt: skip
    return [
        Claim("Table 5: what the paper leaves open can explain every level that is off",
              f"off: {told(distance)}; {fitting} of {len(rows)} pairs of a training and an area fit all sets",
              fitting > 0, "published levels", f"{len(rows[0]['levels'])} sets")
    ]  # fmt: skip


def forest(figures: dict[str, Any]) -> list[Panel]:
    """Our level less the published one, by what is changed, for the sets that are off."""
    rows = [row for row in figures["rows"] if row["area"] == figures["exact"]] if figures["splits"] else []
    return [
        Panel(f"{name}: our cross-entropy less the published level", "points of partial area",
              [Line(name_of(row), row["levels"][name]["area"]["mean"] - figures["published"][name][0],
                    row["levels"][name]["area"]["standard_error"]) for row in rows if row["levels"][name]["changed"]])
        for name in (off(rows[0]) if rows else [])
    ]  # fmt: skip


def design(figures: dict[str, Any]) -> str:
    seeds, splits = figures["seeds"], ", ".join(f"{name} {number}" for name, number in figures["splits"].items())
    return (
        f"Cross-entropy of a linear model, seeds {seeds[0]} to {seeds[-1]}, splits done: {splits or 'none'}. One "
        "change at a time from what [Table 5](paper_tabular.md) does; then several together. Area in percent, "
        f"{figures['exact']} unless it says otherwise; bold: within two of both errors of the published level. TFCO "
        "columns: adult and Communities as the notebooks of the authors' library encode them, which gives as many "
        "columns as the paper's Table 1 has (of Communities all but one). Adam: the paper's four learning rates, the "
        "best on validation rows; the paper does not say when it stops."
    )


def section(figures: dict[str, Any]) -> str:
    rows, exact = figures["rows"], figures["exact"]
    if not figures["splits"]:
        return "No set has two splits yet."
    sets = list(figures["splits"])
    published = ["published", *(f"{mean:.2f} ± {error:.2f}" for mean, error in figures["published"].values())]
    levels = [[name_of(row), *map(shown, row["levels"].values())] for row in rows if row["area"] == exact]
    read = [[row["area"], *map(shown, row["levels"].values())] for row in rows if row["changed"] == "nothing"]
    combined = [row for row in rows if row["changed"] == "several"]
    names = list(dict.fromkeys(row["variant"] for row in combined))
    cells = {(row["area"], row["variant"]): agreement(row) for row in combined}
    areas = list(dict.fromkeys(row["area"] for row in combined))
    grid = [[area, *(cells[area, name] for name in names)] for area in areas]
    return "\n\n".join(
        [
            *(finding(name, figures) for name in off(rows[0])),
            together(figures),
            wide("changes", table(["change", *sets], [published, *levels])),
            table(["area, trained as above", *sets], [published, *read]),
            f"How many sets agree with {names[0]}, and with more changed:",
            wide(
                "agreement",
                table(["area", names[0], *(name.removeprefix(f"{names[0]}, ") for name in names[1:])], grid),
            ),
        ]
    )
