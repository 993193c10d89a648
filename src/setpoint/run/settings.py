"""Settings of a run on a table, and the defaults that depend on the size of the table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from setpoint.data.frame import named_columns, nearest
from setpoint.decide.settle import Confidence, read_confidence
from setpoint.errors import BadSetting, BadTable
from setpoint.measure.in_first import LISTS
from setpoint.problem.certificate import AUTO
from setpoint.problem.problem import Problem
from setpoint.serve.description import PARTS
from setpoint.train.default import check_solver
from setpoint.train.kinds import kind_of

#: Training tables up to this many rows are one batch.
SMALL = 4096
#: Tables of more rows have larger batches, which are as good (benchmarks.studies.batch_size) and faster.
LARGE = 200_000

#: Why a column is left out on the user's word.
_DROPPED, _OTHERS = "--drop names it", "--columns does not name it"
#: Options that name a column which says how rows belong together; it is not learned from.
_BELONGS = {"lists": "--lists names it", "cluster": "--cluster names it", "time": "--time names it"}
CHOSEN = (_DROPPED, _OTHERS, *_BELONGS.values())


@dataclass(frozen=True)
class Settings:
    """How to train on a table: the options of `setpoint fit`.

    Args:
        model: The kind of model: "auto" (the best of all kinds), "linear", "trees", "mlp", or a kind that
            `sp.methods.register` made known.
        solver: The name of a solver, as `setpoint fit --solver` takes it.
        epochs: The largest number of passes over the training rows. None chooses by the number of rows.
        batch_size: The number of rows per batch. None chooses by the number of rows.
        seed: The seed of the split and of the training.
        confidence: The probability with which the bounds are to hold on new data. "auto" is 0.95 where the calibration
            rows suffice; None asks for no certificate.
        shares: The shares of the rows for training, held-out, calibration and test.
        ensemble: The number of models to train and average.
        tune: The number of trials that `auto` adds by optuna.
        refit: Whether to retrain on training and held-out rows together, plain cross-entropy too. None retrains for
            "default", and for "auto" with a linear model.
        minutes: The time that `--model auto` may take; None tries all of its candidates.
        monotone: For `--model trees`, the columns with which scores may only rise (1) or only fall (-1).
        over_splits: Whether each member of the ensemble has another random split into training and held-out rows;
            then nothing is retrained.
        kinds: The kind that a column is taken as, by its name: "categorical", "numeric", "hash", "text" or
            "target-encode".
        drop: Columns to leave out; each text is a name, or several names with commas between.
        columns: The columns to learn from, written as in `drop`; all other columns are left out. None given: all.
        drop_missing_target: Whether to leave out rows without a label, in later evaluations too.
        lists: The column that names the list of each row, for asks about lists. It is not learned from.
        relevant: The grade from which on a row of a list is positive, where the target holds grades.
        cluster: The column whose rows of one value, such as a patient, stay in one part; the certificate is over these
            clusters.
        time: The column of dates or numbers by which rows are split: the first rows train, the last ones test.

    Raises:
        BadSetting: If a setting is unknown or out of range, or two settings exclude each other.

    Example:
        >>> from setpoint.run.settings import Settings
        >>> Settings(epochs=5).settled(10_000).batch_size
        512
    """

    model: str = "linear"
    solver: str = "default"
    epochs: int | None = None
    batch_size: int | None = None
    seed: int = 0
    confidence: Confidence = AUTO
    shares: tuple[float, float, float, float] = (0.5, 0.15, 0.15, 0.2)
    ensemble: int = 1
    tune: int = 0
    refit: bool | None = None
    over_splits: bool = False
    minutes: float | None = None
    monotone: dict[str, int] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    drop_missing_target: bool = False
    lists: str | None = None
    relevant: float | None = None
    cluster: str | None = None
    time: str | None = None

    def __post_init__(self) -> None:
        check_solver(self.solver)
        kind_of(self.model)
        if self.over_splits and (self.ensemble < 2 or self.refit):
            why = "no refit, which trains all on all rows" if self.refit else "an ensemble of 2 or more, such as 10"
            raise BadSetting(f"over_splits gives each member rows of its own: choose {why}")
        split_by = [f"--{option}" for option in _BELONGS if getattr(self, option) is not None]
        if len(split_by) > 1:
            raise BadSetting(f"{split_by[0]} and {split_by[1]} each split the rows; give one of them")
        if self.over_splits and (self.cluster or self.time):
            raise BadSetting("over_splits draws training rows at random, but --cluster and --time do not; leave it out")
        if self.tune < 0:
            raise BadSetting(f"tune must be a number of trials from 0 up, got {self.tune}")
        if self.tune and self.solver != "auto":
            raise BadSetting(f"tune={self.tune} adds trials to solver 'auto', not to {self.solver!r}; choose 'auto'")
        for kind, number in (("epochs", self.epochs), ("batch size", self.batch_size), ("ensemble", self.ensemble)):
            if number is not None and number < 1:
                raise BadSetting(f"{kind} must be at least 1, got {number}")
        own = kind_of(self.model).method
        if own is None and self.of_the_method:
            raise BadSetting(f"--{next(iter(self.of_the_method))} does not go with --model {self.model}; leave it out")
        if any(sign not in (-1, 1) for sign in self.monotone.values()):
            raise BadSetting(f"monotone gives each column 1 (rises) or -1 (falls), got {self.monotone}")
        if self.relevant is not None and (self.lists is None or not math.isfinite(self.relevant)):
            raise BadSetting(f"relevant={self.relevant:g} cuts the grades of rows in lists, so it goes with --lists")
        if not 0 <= self.seed < 2**63:
            raise BadSetting(f"seed must be a whole number from 0 up, got {self.seed}")
        read_confidence(self.confidence)
        positive = len(self.shares) == len(PARTS) and all(share > 0 for share in self.shares)
        if not positive or not abs(sum(self.shares) - 1) <= 1e-9:
            raise BadSetting(f"shares must be four numbers above 0 that add up to 1, got {self.shares}")

    @property
    def of_the_method(self) -> dict[str, Any]:
        """Settings for the own method of a kind of model, as far as they are given."""
        given = {"minutes": self.minutes, "monotone": self.monotone}
        return {name: value for name, value in given.items() if value}

    def left_out(self, names: Sequence[str], targets: Sequence[str]) -> dict[str, str]:
        """Why each column is left out that the user does not want to learn from; unknown names are refused."""
        drop, only = (
            named_columns(texts, names, option) for texts, option in ((self.drop, "drop"), (self.columns, "columns"))
        )
        for target in targets:
            if target in drop:
                raise BadSetting(f"{target!r} is the column to predict; leave it out of --drop")
        kept, dropped = set(only or names), set(drop)
        own = {getattr(self, option): why for option, why in _BELONGS.items() if getattr(self, option) is not None}
        for name, why in own.items():
            if name not in names or name in targets:
                says = "when each row was made" if name == self.time else "which rows belong together"
                odd = f"is the column to predict; name the column that says {says}"
                odd = odd if name in targets else f"is no column; {nearest(name, names)}"
                raise BadTable(f"{why.split()[0]} {name!r} {odd}")
        return own | {
            n: _DROPPED if n in dropped else _OTHERS
            for n in names
            if n not in targets and n not in own and (n in dropped or n not in kept)
        }

    def refuse_other_lists(self, problem: Problem) -> None:
        """Refuse an ask about lists without the column of the lists, and such a column for any other ask."""
        if problem.kind == LISTS and self.lists is None:
            raise BadSetting(
                f"'{problem}' is about lists; name the column that says which list a row is in with --lists"
            )
        if problem.kind != LISTS and self.lists is not None:
            raise BadSetting(
                f"--lists goes with asks such as 'maximize precision in the first 5', but '{problem}' is not about "
                "lists; leave it out"
            )

    def settled(self, rows: int) -> Settings:
        """The same settings with epochs and batch size chosen for this number of training rows.

        Small tables are one batch; others have batches of 512 rows, and large ones of 4,096. The epochs make about
        2,000 steps, and are at least 10.
        """
        usual = rows if rows <= SMALL else 512 if rows <= LARGE else 4096
        batch_size = min(self.batch_size or usual, rows)
        steps = -(-rows // batch_size)
        return replace(self, batch_size=batch_size, epochs=self.epochs or min(max(2000 // steps, 10), 400))
