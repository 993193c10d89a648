"""docs/measured.md: times and memory, each with the command that makes it, from the results on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.common.harness import ROOT, load_result, made_by
from benchmarks.speed import page as speed
from benchmarks.speed import page_scale

PAGE = ROOT / "docs" / "measured.md"
#: By the name of the result, in the order of the page.
SECTIONS: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "step_cost": ("What a step costs", speed.step_cost),
    "steps": ("A step of a small model", speed.steps),
    "kernels": ("Curves and pairs", speed.kernels),
    "augmented_cost": ("What the augmented Lagrangian costs", speed.augmented_cost),
    "beside_peers": ("Training beside TFCO, Cooper and humancompatible-train", speed.beside_peers),
    "lp_speed": ("Linear programs: speed and memory", speed.lp_speed),
    "scale": ("Large tables", page_scale.scale),
    "auto_time": ("The time of auto and of compare on tables", speed.auto_time),
    "refine_newton": ("Newton steps in the refinement of linear models", speed.refine_newton),
    "trees_predict": ("Scores of trees", speed.trees_predict),
    "before_after": ("Speed since version 0.1.0", speed.before_after),
    "spine_after": ("Where the time of a fit goes", speed.spine),
}


def page() -> str:
    """The whole page, from the summaries."""
    parts = [
        "# Speed\n\nWritten by `python -m benchmarks.evidence` from `benchmarks/results/`; nothing here is typed. The "
        "studies of quality are in [evidence](evidence/index.md)."
    ]
    for name, (title, render) in SECTIONS.items():
        result = load_result(name)
        parts.append(f"## {title}\n\n{made_by(result)}\n\n{render(result['figures'])}")
    return "\n\n".join(parts) + "\n"
