"""Several solvers on several random splits of one table: which differences from cross-entropy are more than noise."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import scipy

from setpoint.data.frame import Frame
from setpoint.errors import BadSetting, SetpointError
from setpoint.problem.problem import Problem
from setpoint.run.run import Run
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table
from setpoint.train.default import BASELINE, SOLVERS, TUNED, Case, make_solver

#: Compared when nobody says otherwise, as far as they exist and know the ask. A weight is tuned for linear models
#: only: for networks it costs many trainings and has brought nothing.
USUAL = (BASELINE, "weighted", TUNED, "default", "implicit", "lagrangian", "auto")
#: The chance of calling any of the compared solvers different when none is.
LEVEL = 0.05


@dataclass(frozen=True)
class Standing:
    """How one solver did, split by split: at the best cut of the test rows, and at the threshold it would be run at.

    `best` is None in a split where no threshold met the bounds on test. `differences` are those of `best` from plain
    cross-entropy on the same split; `margin` is the half-width of their interval, None below two splits.
    """

    solver: str
    best: tuple[float | None, ...]
    at_threshold: tuple[float, ...]
    held: tuple[bool, ...]
    seconds: tuple[float, ...]
    differences: tuple[float, ...] = ()
    standard_error: float | None = None
    margin: float | None = None

    @property
    def mean_best(self) -> float | None:
        known = [value for value in self.best if value is not None]
        return statistics.fmean(known) if known else None

    @property
    def difference(self) -> float | None:
        return statistics.fmean(self.differences) if self.differences else None

    @property
    def is_clear(self) -> bool:
        """Whether the difference is more than the splits' own noise can explain."""
        return self.margin is not None and self.difference is not None and abs(self.difference) > self.margin

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "solver": self.solver,
            "best_on_test": list(self.best),
            "mean_best_on_test": self.mean_best,
            "at_threshold": list(self.at_threshold),
            "mean_at_threshold": statistics.fmean(self.at_threshold),
            "held": list(self.held),
            "share_held": sum(self.held) / len(self.held),
            "seconds": [round(value, 3) for value in self.seconds],
            "differences": list(self.differences),
            "difference": self.difference,
            "standard_error": self.standard_error,
            "margin": self.margin,
            "clear": self.is_clear,
        }


@dataclass(frozen=True)
class Comparison:
    """What was compared on which splits; plain cross-entropy stands first."""

    problem: Problem
    settings: Settings
    seeds: tuple[int, ...]
    rows: dict[str, int]
    standings: tuple[Standing, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "ask": str(self.problem),
            "model": self.settings.model,
            "confidence": self.settings.confidence,
            "seeds": list(self.seeds),
            "rows": self.rows,
            "level": LEVEL,
            "solvers": [standing.to_dict() for standing in self.standings],
        }


def usual_solvers(problem: Problem, model: str) -> list[str]:
    """The solvers worth comparing on a problem: those that do not refuse it."""
    linear = model == "linear" and problem.group is None
    case = Case(problem, linear, whole=True, n_groups=None if problem.group is None else 2)
    return [name for name in USUAL if (linear if name == TUNED else _takes(name, case))]


def _takes(name: str, case: Case) -> bool:
    try:
        make_solver(name, case)
    except SetpointError:
        return False
    return True


def compare_table(
    frame: Frame,
    target: str,
    problem: Problem,
    settings: Settings,
    solvers: Sequence[str],
    trials: int,
    *,
    positive: str | None = None,
    on_split: Callable[[str, int, int], None] | None = None,
) -> Comparison:
    """Train every solver on the splits of `trials` seeds; `on_split(solver, done, all)` is told of the progress."""
    if trials < 1:
        raise BadSetting(f"trials must be at least 1, got {trials}")
    unknown = [name for name in solvers if name not in (*SOLVERS, TUNED)]
    if unknown:
        raise BadSetting(f"solver {unknown[0]!r} is none of {', '.join([*SOLVERS, TUNED])}")
    names = [name for name in dict.fromkeys(solvers) if name != BASELINE]
    runs: dict[str, list[Run]] = {name: [] for name in [BASELINE, *names]}
    seeds = tuple(range(settings.seed, settings.seed + trials))
    notes: dict[str, None] = {}
    for done, seed in enumerate(seeds):

        def on_row(solver: str, row: int, rows: int, done: int = done) -> None:
            if on_split is not None:
                on_split(solver, done * rows + row, trials * rows)

        # Nothing is trained again on held-out rows: those that one solver alone has would pass for its merit.
        once = replace(settings, seed=seed, solver=BASELINE, refit=False)
        found = fit_table(frame, target, problem, once, positive=positive, solvers=names, on_row=on_row)
        notes.update(dict.fromkeys(found.notes))
        for one in found.runs:
            runs[one.name].append(one)
    rows = {part: size["rows"] for part, size in found.sizes.items()}
    plain = _standing(BASELINE, runs[BASELINE])
    others = [_held_against(_standing(name, runs[name]), plain, rows, len(names)) for name in names]
    return Comparison(problem, settings, seeds, rows, (plain, *others), tuple(notes))


def _standing(name: str, runs: Sequence[Run]) -> Standing:
    best, judged = [run.best("test") for run in runs], [run.judged("test") for run in runs]
    return Standing(
        name,
        tuple(point.objective if point.feasible else None for point in best),
        tuple(point.objective for point in judged),
        tuple(point.feasible for point in judged),
        tuple(run.seconds for run in runs),
    )


def _held_against(standing: Standing, plain: Standing, rows: dict[str, int], compared: int) -> Standing:
    pairs = zip(standing.best, plain.best)
    differences = [ours - theirs for ours, theirs in pairs if ours is not None and theirs is not None]
    error = corrected_error(differences, rows["test"], sum(rows.values()) - rows["test"])
    margin = None
    if error is not None:
        # The level is shared by all that are compared, so that one of many does not win by luck.
        margin = error * float(scipy.special.stdtrit(len(differences) - 1, 1 - LEVEL / compared / 2))
    return replace(standing, differences=tuple(differences), standard_error=error, margin=margin)


def corrected_error(differences: Sequence[float], test: int, rest: int) -> float | None:
    """The standard error of a mean over random splits that share rows: s sqrt(1 / J + test / rest).

    The second term (Nadeau and Bengio, 2003) is for the overlap: splits of one table agree more than tables would.
    """
    if len(differences) < 2:
        return None
    return statistics.stdev(differences) * math.sqrt(1 / len(differences) + test / rest)
