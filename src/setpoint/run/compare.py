"""Several solvers on several random splits of one table, and which differ from cross-entropy by more than noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from setpoint.data.frame import Frame
from setpoint.errors import BadSetting, SetpointError
from setpoint.problem.caution import cautions_of_ask
from setpoint.problem.problem import Problem
from setpoint.run.run import Run
from setpoint.run.settings import Settings
from setpoint.run.side_by_side import MODEL
from setpoint.run.standing import LEVEL, Noise, Standing, held_against, standing_of
from setpoint.run.table import fit_table
from setpoint.train.default import BASELINE, SOLVERS, TUNED, Case, kind_instead, make_solver
from setpoint.train.kinds import kind_of
from setpoint.train.work import Work

#: The solvers to compare by default, if they can solve the problem. A class weight is tuned for linear models only:
#: for networks it costs many trainings and has gained nothing.
USUAL = (BASELINE, "weighted", TUNED, "default", "implicit", "lagrangian", "auto")


@dataclass(frozen=True)
class Trials:
    """The solvers to compare, and the random splits to compare them on.

    Args:
        solvers: The names of the solvers; "model trees" names a kind of model by its default.
        number: The number of splits.
        stop_early: Whether a solver is stopped as soon as the splits that are left cannot change the verdict on it.

    Example:
        >>> from setpoint.run.compare import Trials
        >>> Trials(["weighted", "model trees"]).number
        5
    """

    solvers: Sequence[str]
    number: int = 5
    stop_early: bool = True

    def __post_init__(self) -> None:
        if self.number < 1:
            raise BadSetting(f"trials must be at least 1, got {self.number}")
        for name in self.solvers:
            if name.startswith(MODEL):
                kind_of(name.removeprefix(MODEL))
            elif name not in (*SOLVERS, TUNED):
                known = ", ".join([*SOLVERS, TUNED])
                raise BadSetting(f"solver {name!r} is none of {known}{kind_instead(name, '--models')}")

    @property
    def names(self) -> list[str]:
        """The solvers beside plain cross-entropy, each once."""
        return [name for name in dict.fromkeys(self.solvers) if name != BASELINE]


@dataclass(frozen=True)
class News:
    """The state of a comparison while it runs.

    Attributes:
        split: The number of the split, from 1.
        solver: The solver that is trained.
        share: How much of its training is done, from 0 to 1.
        standings: The results so far of every solver that has any.
        ended: Whether the training of the solver has just ended.

    Example:
        >>> from setpoint.run.compare import News
        >>> News(1, "weighted", 0.5, ()).ended
        False
    """

    split: int
    solver: str
    share: float
    standings: tuple[Standing, ...]
    ended: bool = False


@dataclass(frozen=True)
class Comparison:
    """The comparison of several solvers on random splits of one table.

    Attributes:
        problem: The problem to solve.
        settings: How every solver was trained.
        seeds: The seeds of the splits.
        rows: The number of rows of each part.
        standings: The results of each solver; plain cross-entropy is the first.
        notes: Sentences about columns, values and choices that a user should know of.
        refusal: The first reason why a model has no certificate, where one was wanted.

    Example:
        >>> import polars as pl, setpoint as sp
        >>> from setpoint.run.compare import Trials, compare_table
        >>> from setpoint.run.settings import Settings
        >>> frame = pl.DataFrame({"x": list(range(200)), "y": [row // 100 for row in range(200)]})
        >>> problem = sp.ask("minimize fnr where fpr <= 10%")
        >>> found = compare_table(frame, "y", problem, Settings(), Trials(["default"], 2))
        >>> found.seeds, found.rows["test"], found.standings[1].differences
        ((0, 1), 40, (0.0, 0.0))
    """

    problem: Problem
    settings: Settings
    seeds: tuple[int, ...]
    rows: dict[str, int]
    standings: tuple[Standing, ...]
    notes: tuple[str, ...]
    refusal: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "ask": str(self.problem),
            "model": self.settings.model,
            "confidence": self.settings.confidence,
            "seeds": list(self.seeds),
            "rows": self.rows,
            "level": LEVEL,
            "refusal": self.refusal,
            "warnings": [caution.to_dict() for caution in cautions_of_ask(self.problem)],
            "solvers": [standing.to_dict() for standing in self.standings],
        }


def usual_solvers(problem: Problem, model: str) -> list[str]:
    """The default solvers to compare on a problem: those that do not refuse it."""
    if kind_of(model).method is not None:
        return ["default"]
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
    target: str | Sequence[str],
    problem: Problem,
    settings: Settings,
    trials: Trials,
    *,
    positive: str | None = None,
    on_news: Callable[[News], None] | None = None,
) -> Comparison:
    """Train several solvers on several random splits of a table, each beside plain cross-entropy.

    Args:
        frame: The table.
        target: The name of the column to predict.
        problem: The problem to solve.
        settings: How to train; nothing is retrained on held-out rows. The seeds of the splits are `settings.seed`,
            `settings.seed + 1`, ...
        trials: The solvers, and the number of splits. A solver that is stopped early has the results of its splits
            that ran, which are those of the full comparison, and the same verdict.
        positive: The positive class. None finds it, see `Target`.
        on_news: A function that is called with the state of the comparison as it goes on.

    Returns:
        The results of each solver on each split.

    Raises:
        BadSetting: If a solver is unknown, or there is no trial.

    Example:
        >>> import polars as pl, setpoint as sp
        >>> from setpoint.run.compare import Trials, compare_table
        >>> from setpoint.run.settings import Settings
        >>> frame = pl.DataFrame({"x": list(range(200)), "y": [row // 100 for row in range(200)]})
        >>> problem = sp.ask("minimize fnr where fpr <= 10%")
        >>> found = compare_table(frame, "y", problem, Settings(), Trials(["weighted"], 1))
        >>> [standing.solver for standing in found.standings]
        ['cross-entropy', 'weighted']
    """
    if settings.time is not None and trials.number > 1:
        several = f"{trials.number} trials are the same; give --trials 1"
        raise BadSetting(f"--time splits the rows in one way only, so {several}")
    so_far, notes = _SoFar(trials, on_news), dict[str, None]()
    seeds = tuple(range(settings.seed, settings.seed + trials.number))
    for seed in seeds:
        # Nothing is retrained on held-out rows: rows that only one solver gets would look like its merit.
        once, work = replace(settings, seed=seed, solver=BASELINE, refit=False), Work(tell=so_far.on_run)
        found = fit_table(
            frame, target, problem, once, positive=positive, solvers=so_far.left, on_row=so_far.on_row, work=work
        )
        notes.update(dict.fromkeys(found.notes))
        so_far.end_split({part: size["rows"] for part, size in found.sizes.items()})
        if trials.names and not so_far.left:
            break
    refusal = next((one.refusal for own in so_far.runs.values() for one in own if one.refusal is not None), None)
    return Comparison(found.problem, settings, seeds, so_far.rows, so_far.standings(), tuple(notes), refusal)


class _SoFar:
    """The runs of a comparison so far, the solvers that are still trained, and the listener to both."""

    def __init__(self, trials: Trials, on_news: Callable[[News], None] | None) -> None:
        self.runs: dict[str, list[Run]] = {name: [] for name in [BASELINE, *trials.names]}
        self.rows: dict[str, int] = {}
        self.left, self.split = trials.names, 1
        self._trials, self._on_news = trials, on_news
        self._shown: tuple[Standing, ...] = ()

    def on_row(self, solver: str, row: int, rows: int, *_: str) -> None:
        if self._on_news is not None:
            self._on_news(News(self.split, solver, row / max(rows, 1), self._shown))

    def on_run(self, told: dict[str, Any]) -> None:
        run: Run = told["run"]
        self.runs[run.name].append(run)
        if self._on_news is not None:
            self._shown = self.standings()
            self._on_news(News(self.split, run.name, 1.0, self._shown, ended=True))

    def end_split(self, rows: dict[str, int]) -> None:
        """Take note of the sizes of the parts, and of the solvers that are done."""
        # Splits that keep clusters whole differ in size; the first one is the measure of all.
        self.rows = self.rows or rows
        if self._trials.stop_early:
            settled = {one.solver for one in self.standings()[1:] if self.noise.is_settled(one.differences)}
            self.left = [name for name in self.left if name not in settled]
        self.split += 1

    @property
    def noise(self) -> Noise:
        rest = sum(self.rows.values()) - self.rows["test"]
        return Noise(self._trials.number, len(self._trials.names), self.rows["test"] / rest)

    def standings(self) -> tuple[Standing, ...]:
        """The results of every solver that has any; plain cross-entropy is the first once it has."""
        found = [standing_of(name, runs) for name, runs in self.runs.items() if runs]
        if not self.rows:
            return tuple(found)
        plain, *others = found
        stopped = {*self.runs} - {*self.left}
        return plain, *(replace(held_against(one, plain, self.noise), stopped=one.solver in stopped) for one in others)
