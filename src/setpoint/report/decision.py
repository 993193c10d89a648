"""The kinds of decisions on a page: the handles of the slider, the rates that are shown beside it, and the words."""

from __future__ import annotations

from dataclasses import dataclass, replace

from setpoint.measure.band import BAND, review
from setpoint.measure.classes import CLASSES
from setpoint.measure.constraint import CUT, Quantity
from setpoint.measure.in_first import LISTS
from setpoint.measure.labels import LABELS
from setpoint.measure.rate import accuracy, error, flagged, fnr, fpr, npv, precision, recall, tnr
from setpoint.measure.worth import WORTH
from setpoint.problem.point import OperatingPoint


@dataclass(frozen=True)
class Handle:
    """A handle of the slider.

    Attributes:
        key: The id of its element.
        name: Its label.
        cut: The cut that it moves, in words.
        empty: What is true where no score lies above it.
    """

    key: str
    name: str
    cut: str
    empty: str


@dataclass(frozen=True)
class Decision:
    """One kind of decision as a page shows it.

    Attributes:
        handles: The handles of the slider, from the lowest to the highest.
        rates: The rates that people usually look at.
        by_group: The rates that are always shown per group.
        cells: The columns of the table of counts, with the ids of the cells of positives and of negatives.
        title: The headline above the slider.
        own: The thresholds of the run.
        here: A button that is pressed: the slider stands at the run's own thresholds.
        help: How rows are decided and how the slider is moved.
        set_here: A warning beside the rows that the thresholds were set on, and beside all other rows.
        zones: The colours of the histogram.
        bare: A decision without a certificate, as the subject of a sentence on the calibration rows.
        at_bare: The same decision, as the place of a comparison, and a pronoun for it.
    """

    handles: tuple[Handle, ...]
    rates: tuple[Quantity, ...]
    by_group: tuple[Quantity, ...]
    cells: tuple[tuple[str, str, str], ...]
    title: str
    own: str
    here: str
    help: str
    set_here: tuple[str, str]
    zones: str
    bare: str
    at_bare: tuple[str, str]

    @property
    def words(self) -> dict[str, str]:
        """The sentences that the script of the page needs."""
        return {
            "own": self.own, "here": self.here, "zones": self.zones, "set": self.set_here[0], "judged": self.set_here[1]
        }  # fmt: skip


_KEYS = "page keys by a tenth, Home and End to the ends."
_ONE = Decision(
    handles=(Handle("threshold", "Threshold", "threshold", "nothing is flagged"),),
    rates=(fpr, fnr, recall, tnr, precision, flagged, accuracy),
    by_group=(recall, fpr, precision, flagged),
    cells=(("flagged", "tp", "fp"), ("not flagged", "fn", "tn")),
    title="Move the threshold",
    own="own threshold",
    here="This is the run's own threshold",
    help=(
        "A row is flagged when its score is strictly above the threshold. Arrow keys move the slider by one cut, "
        f"{_KEYS}"
    ),
    set_here=(
        "The threshold was set on these rows, so they flatter it.",
        "A threshold that is picked by looking at these rows is no longer judged by them.",
    ),
    zones="solid is flagged, pale is not",
    bare="the threshold is the bare cut",
    at_bare=("the bare cut", "that cut"),
)
_MARGINS = replace(_ONE, handles=(replace(_ONE.handles[0], name="All thresholds moved by"),))
_BAND = Decision(
    handles=(
        Handle("low", "Review above", "lower cut", "no row is flagged or reviewed"),
        Handle("high", "Flag above", "upper cut", "nothing is flagged"),
    ),
    rates=tuple(map(review.adopt, (review, precision, npv, recall, fpr, fnr, tnr, flagged, error))),
    by_group=tuple(map(review.adopt, (review, precision, npv, recall))),
    cells=(("flagged", "tp", "fp"), ("review", "rp", "rn"), ("not flagged", "fn", "tn")),
    title="Move the two cuts",
    own="own cuts",
    here="These are the run's own cuts",
    help=(
        "A row is flagged when its score is strictly above the upper cut, and reviewed when its score is strictly "
        "above the lower cut alone. The two handles cannot cross; where they meet, no row is reviewed. Arrow keys "
        f"move a handle by one cut, {_KEYS}"
    ),
    set_here=(
        "The cuts were set on these rows, so they flatter them.",
        "Cuts that are picked by looking at these rows are no longer judged by them.",
    ),
    zones="solid is flagged, pale is not, rows in the shaded band are reviewed",
    bare="the cuts are the bare cuts",
    at_bare=("the bare cuts", "those cuts"),
)
#: No page moves the shifts of classes yet; these are the words of the terminal.
_SHIFTS = replace(_ONE, handles=(), bare="the shifts are the bare shifts", at_bare=("the bare shifts", "those shifts"))
#: Nothing can be moved in lists either: the ask says how many rows are flagged.
_FIRST = replace(_SHIFTS, bare="the first rows of each list", at_bare=("the first rows", "them"))
_LABELS = replace(_ONE, handles=(), bare="the thresholds are the bare cuts", at_bare=("the bare cuts", "those cuts"))
_BY_KIND = {CUT: _ONE, WORTH: _ONE, BAND: _BAND, CLASSES: _SHIFTS, LISTS: _FIRST, LABELS: _LABELS}


def decision_of(point: OperatingPoint) -> Decision:
    """How a page shows the decisions of an operating point."""
    return _MARGINS if point.thresholds.by_group else _BY_KIND[point.problem.kind]
