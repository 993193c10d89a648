"""docs/measured.md: every figure with the command that makes it, from the results on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.common.harness import ROOT, load_result, made_by
from benchmarks.speed import page as speed
from benchmarks.speed import page_scale
from benchmarks.studies.auto import page as auto
from benchmarks.studies.certificates import page as certificates
from benchmarks.studies.classes import page as classes
from benchmarks.studies.critical_class import page as critical_class
from benchmarks.studies.dependence import page as dependence
from benchmarks.studies.fixed_fpr import page as fixed_fpr
from benchmarks.studies.label_plan import page as label_plan
from benchmarks.studies.labels import page as labels
from benchmarks.studies.letter import page as letter
from benchmarks.studies.lists import page as lists
from benchmarks.studies.lp_gradients import page as lp_gradients
from benchmarks.studies.lp_programs import page as lp_programs
from benchmarks.studies.mq2008 import page as mq2008
from benchmarks.studies.precision_walk import page as precision_walk
from benchmarks.studies.promises import page as promises
from benchmarks.studies.promises_kinds import page as promises_kinds
from benchmarks.studies.promises_lists import page as promises_lists
from benchmarks.studies.promises_tables import page as promises_tables
from benchmarks.studies.regularised import page as regularised

PAGE = ROOT / "docs" / "measured.md"
#: By the name of the result, in the order of the page.
SECTIONS: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "fixed_fpr": (fixed_fpr.TITLE, fixed_fpr.section),
    "auto": (auto.TITLE, auto.section),
    "certificates": (certificates.TITLE, certificates.section),
    "promises": (promises.TITLE, promises.section),
    "precision_walk": (precision_walk.TITLE, precision_walk.section),
    "dependence": (dependence.TITLE, dependence.section),
    "label_plan": (label_plan.TITLE, label_plan.section),
    "promises_tables": (promises_tables.TITLE, promises_tables.section),
    "labels": (labels.TITLE, labels.section),
    "promises_lists": (promises_lists.TITLE, promises_lists.section),
    "promises_kinds": (promises_kinds.TITLE, promises_kinds.section),
    "classes": (classes.TITLE, classes.section),
    "regularised": (regularised.TITLE, regularised.section),
    "letter": (letter.TITLE, letter.section),
    "mq2008": (mq2008.TITLE, mq2008.section),
    "lists": (lists.TITLE, lists.section),
    "step_cost": ("What a step costs", speed.step_cost),
    "steps": ("A step of a small model", speed.steps),
    "kernels": ("Curves and pairs", speed.kernels),
    "augmented_cost": ("What the augmented Lagrangian costs", speed.augmented_cost),
    "critical_class": (critical_class.UNTUNED, critical_class.untuned),
    "lp_programs": (lp_programs.TITLE, lp_programs.section),
    "lp_gradients": (lp_gradients.TITLE, lp_gradients.section),
    "lp_speed": ("Linear programs: speed and memory", speed.lp_speed),
    "scale": ("Large tables", page_scale.scale),
    "trees_predict": ("Scores of trees", speed.trees_predict),
    "before_after": ("Speed since version 0.1.0", speed.before_after),
    "spine_after": ("Where the time of a fit goes", speed.spine),
}


def page() -> str:
    """The whole page, from the summaries."""
    parts = [
        "# Measured\n\nWritten by `python -m benchmarks.evidence` from `benchmarks/results/`; nothing here is typed."
    ]
    for name, (title, render) in SECTIONS.items():
        result = load_result(name)
        parts.append(f"## {title}\n\n{made_by(result)}\n\n{render(result['figures'])}")
    return "\n\n".join(parts) + "\n"
