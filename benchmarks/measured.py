"""docs/measured.md and docs/measured_fits.md: times and memory, each with its command, from the results on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.common.harness import ROOT, load_result, made_by
from benchmarks.speed import page as speed
from benchmarks.speed import page_scale

DOCS = ROOT / "docs"
#: A function that tells the figures of a result, by the name of the result, with the title of its section.
Sections = dict[str, tuple[str, Callable[[dict[str, Any]], str]]]
STEPS: Sections = {
    "step_cost": ("What a step costs", speed.step_cost),
    "steps": ("A step of a small model", speed.steps),
    "kernels": ("Curves and pairs", speed.kernels),
    "augmented_cost": ("What the augmented Lagrangian costs", speed.augmented_cost),
    "beside_peers": ("Training beside TFCO, Cooper and humancompatible-train", speed.beside_peers),
    "lp_speed": ("Linear programs: speed and memory", speed.lp_speed),
}
FITS: Sections = {
    "scale": ("Large tables", page_scale.scale),
    "auto_time": ("The time of auto and of compare on tables", speed.auto_time),
    "refine_newton": ("Newton steps in the refinement of linear models", speed.refine_newton),
    "trees_predict": ("Scores of trees", speed.trees_predict),
    "before_after": ("Speed since version 0.1.0", speed.before_after),
    "spine_after": ("Where the time of a fit goes", speed.spine),
}


def pages() -> dict[Path, str]:
    """Both pages, from the summaries."""
    return {
        DOCS / "measured.md": page("Speed of steps", STEPS, "[Speed of fits](measured_fits.md) is about commands"),
        DOCS / "measured_fits.md": page("Speed of fits", FITS, "[Speed of steps](measured.md) is about single steps"),
    }


def page(title: str, sections: Sections, other: str) -> str:
    """One page."""
    parts = [
        f"# {title}\n\nWritten by `python -m benchmarks.evidence` from `benchmarks/results/`; nothing here is typed. "
        f"{other}; the studies of quality are in [evidence](evidence/index.md)."
    ]
    for name, (heading, render) in sections.items():
        result = load_result(name)
        parts.append(f"## {heading}\n\n{made_by(result)}\n\n{render(result['figures'])}")
    return "\n\n".join(parts) + "\n"
