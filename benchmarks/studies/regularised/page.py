"""The section of docs/measured.md on this study."""

from __future__ import annotations

from typing import Any

from benchmarks.common.forest import Line, Panel
from benchmarks.common.telling import Claim
from benchmarks.common.words import table

TITLE = "Linear models on a noisy and a wide table"

QUESTION = "Is the linear default as good as L1 and L2 logistic regression on a noisy and on a wide table?"
THREATS = ("Two tables, few splits, which overlap: a loss of several points may lie within two standard errors.",)


def against(figures: dict[str, Any]) -> list[tuple[str, dict[str, float]]]:
    return [(f"{name} table, {method}", own["gain of default"]) for name, found in figures.items()
            for method, own in found["methods"].items() if method.startswith("LogisticRegressionCV")]  # fmt: skip


def claims(figures: dict[str, Any]) -> list[Claim]:
    gains = [gain for _, gain in against(figures)]
    lost = sum(gain["mean"] < -2 * gain["standard_error"] for gain in gains)
    listed = ", ".join(f"{100 * gain['mean']:+.1f}" for gain in gains)
    effect = f"{listed}; {lost} lost by two standard errors"
    splits = ", ".join(f"{found['splits']} splits" for found in figures.values())
    return [Claim("linear default, noisy and wide: worse in no comparison by two standard errors", effect, not lost,
                  "L1 and L2 regression", f"{len(figures)} tables, {splits}")]  # fmt: skip


def forest(figures: dict[str, Any]) -> list[Panel]:
    return [Panel("The linear default against", "points", [Line.of(*one) for one in against(figures)])]


def design(figures: dict[str, Any]) -> str:
    return "Splits and settings stand in `benchmarks/studies/regularised/study.py`; the gain is paired over the splits."


def section(figures: dict[str, Any]) -> str:
    parts = []
    for name, found in figures.items():
        rows = [
            [method, *(f"{100 * own[figure]:.1f}" for figure in ("test", "train")), f"{own['seconds']:.1f}",
             f"{100 * own['gain of default']['mean']:+.1f} ± {100 * own['gain of default']['standard_error']:.1f}"]
            for method, own in found["methods"].items()
        ]  # fmt: skip
        head = ["method", "test, %", "train, %", "seconds", "gain of the default"]
        parts.append(f"The {name} table, `{found['ask']}`, {found['splits']} splits:\n\n{table(head, rows)}")
    return "\n\n".join(parts)
