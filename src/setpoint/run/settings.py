"""Settings of a run: sizes that fit the table, the shares of its parts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from setpoint.errors import BadSetting
from setpoint.train.default import check_solver
from setpoint.train.models import kind_of

#: What each part is for: learn, choose the epoch, set the threshold, judge.
PARTS = ("train", "held_out", "calibration", "test")
#: Training tables up to this many rows are one batch.
SMALL = 4096
#: From here on batches are larger: as good (benchmarks.studies.batch_size), and most of a small step is not arithmetic.
LARGE = 200_000


@dataclass(frozen=True)
class Settings:
    """How to train. `None` for epochs or batch size chooses by the number of training rows.

    With `refit` the solver, and plain cross-entropy beside it, are trained again on held-out rows too, once these have
    chosen; None is yes for the default and for `auto` with a linear model, and no for a solver that is named.
    With `over_splits` each member of the `ensemble` has another random split into training and held-out rows, and
    there is no refit.
    """

    model: str = "linear"
    solver: str = "default"
    epochs: int | None = None
    batch_size: int | None = None
    seed: int = 0
    confidence: float | None = None
    shares: tuple[float, float, float, float] = (0.5, 0.15, 0.15, 0.2)
    ensemble: int = 1
    tune: int = 0
    refit: bool | None = None
    over_splits: bool = False

    def __post_init__(self) -> None:
        check_solver(self.solver)
        kind_of(self.model)
        if self.over_splits and (self.ensemble < 2 or self.refit):
            why = "no refit, which trains all on all rows" if self.refit else "an ensemble of 2 or more, such as 10"
            raise BadSetting(f"over_splits gives each member rows of its own: choose {why}")
        if self.tune < 0:
            raise BadSetting(f"tune must be a number of trials from 0 up, got {self.tune}")
        if self.tune and self.solver != "auto":
            raise BadSetting(f"tune={self.tune} adds trials to solver 'auto', not to {self.solver!r}; choose that")
        for kind, number in (("epochs", self.epochs), ("batch size", self.batch_size), ("ensemble", self.ensemble)):
            if number is not None and number < 1:
                raise BadSetting(f"{kind} must be at least 1, got {number}")
        if not 0 <= self.seed < 2**63:
            raise BadSetting(f"seed must be a whole number from 0 up, got {self.seed}")
        if self.confidence is not None and not 0 < self.confidence < 1:
            raise BadSetting(f"confidence must lie between 0 and 1, such as 0.95, got {self.confidence}")
        positive = len(self.shares) == len(PARTS) and all(share > 0 for share in self.shares)
        if not positive or not abs(sum(self.shares) - 1) <= 1e-9:
            raise BadSetting(f"shares must be four numbers above 0 that add up to 1, got {self.shares}")

    def settled(self, rows: int) -> Settings:
        """The same with nothing left open: small tables whole, else batches of 512, of 4,096 for large ones, and about
        2,000 steps, of ten epochs at least."""
        usual = rows if rows <= SMALL else 512 if rows <= LARGE else 4096
        batch_size = min(self.batch_size or usual, rows)
        steps = -(-rows // batch_size)
        return replace(self, batch_size=batch_size, epochs=self.epochs or min(max(2000 // steps, 10), 400))
