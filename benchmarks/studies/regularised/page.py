"""The section of docs/measured.md on this study."""

from __future__ import annotations

from typing import Any

from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import table

TITLE = "Linear models on a noisy and a wide table"

QUESTION = "Are our models as good as L1 and L2 logistic regression on a noisy and on a wide table?"
THREATS = ("Two tables, few splits, which overlap: a loss of several points may lie within two standard errors.",)


#: Ours by their names in the figures, and as the page says them.
OURS = {"auto": "auto", "default": "linear default"}


def ours_of(figures: dict[str, Any]) -> dict[str, str]:
    """Ours as far as the study has run them."""
    ran = {method for found in figures.values() for method in found["methods"]}
    return {ours: said for ours, said in OURS.items() if ours in ran}


def against(figures: dict[str, Any], ours: str) -> list[tuple[str, dict[str, float]]]:
    return [(f"{name} table, {method}", own[f"gain of {ours}"]) for name, found in figures.items()
            for method, own in found["methods"].items() if method.startswith("LogisticRegressionCV")]  # fmt: skip


def claims(figures: dict[str, Any]) -> list[Claim]:
    found, splits = [], ", ".join(f"{own['splits']} splits" for own in figures.values())
    for ours, said in ours_of(figures).items():
        gains = [gain for _, gain in against(figures, ours)]
        lost = sum(gain["mean"] < -2 * gain["standard_error"] for gain in gains)
        listed = ", ".join(f"{100 * gain['mean']:+.1f}" for gain in gains)
        found.append(
            Claim(f"{said}, noisy and wide: worse in no comparison by two standard errors",
                  f"{listed}; {lost} lost by two standard errors", not lost,
                  "L1 and L2 regression", f"{len(figures)} tables, {splits}")
        )  # fmt: skip
    return found


def forest(figures: dict[str, Any]) -> list[Panel]:
    return [
        Panel(f"{said[0].upper()}{said[1:]} against", "points", [Line.of(*one) for one in against(figures, ours)])
        for ours, said in ours_of(figures).items()
    ]


def design(figures: dict[str, Any]) -> str:
    return "Splits and settings stand in `benchmarks/studies/regularised/study.py`; the gain is paired over the splits."


def section(figures: dict[str, Any]) -> str:
    parts, all_ours = [], ours_of(figures)
    for name, found in figures.items():
        rows = [
            [
                method, *(f"{100 * own[figure]:.1f}" for figure in ("test", "train")), f"{own['seconds']:.1f}",
                *(_gain(own[f"gain of {ours}"]) if method != ours else "" for ours in all_ours),
            ]
            for method, own in found["methods"].items()
        ]  # fmt: skip
        head = ["method", "test, %", "train, %", "seconds", *(f"gain of: {said}" for said in all_ours.values())]
        parts.append(f"The {name} table, `{found['ask']}`, {found['splits']} splits:\n\n{table(head, rows)}")
    return "\n\n".join(parts)


def _gain(gain: dict[str, float]) -> str:
    return f"{100 * gain['mean']:+.1f} ± {100 * gain['standard_error']:.1f}"
