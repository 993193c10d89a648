"""The meaning of each rate and quantity in words."""

from __future__ import annotations

from setpoint.measure.band import BandRate
from setpoint.measure.classes import ClassQuantity, Macro, Micro, OfClass
from setpoint.measure.constraint import Quantity
from setpoint.measure.in_first import InFirst, hit
from setpoint.measure.labels import OverLabels
from setpoint.measure.over_classes import ClassGap, Proportional
from setpoint.measure.rate import Gap, Rate
from setpoint.measure.worth import Cost, Weighted

#: Each rate in a few words, and in a sentence.
MEANS = {
    "fpr": "negatives flagged",
    "fnr": "positives missed",
    "recall": "positives found",
    "tnr": "negatives passed over",
    "precision": "flagged rows that are positive",
    "npv": "rows not flagged that are negative",
    "fdr": "flagged rows that are negative",
    "for": "rows not flagged that are positive",
    "flagged": "rows flagged",
    "accuracy": "rows decided rightly",
    "error": "rows decided wrongly",
    "jaccard": "found, among flagged or positive",
    "review": "rows between the two cuts",
}
MEANING = {
    "fpr": "of all negatives, the share that is flagged by mistake: fp / (fp + tn)",
    "fnr": "of all positives, the share that is missed: fn / (tp + fn)",
    "recall": "of all positives, the share that is found: tp / (tp + fn)",
    "tnr": "of all negatives, the share that is rightly left alone: tn / (fp + tn)",
    "precision": "of all that is flagged, the share that is positive: tp / (tp + fp)",
    "npv": "of all that is not flagged, the share that is negative: tn / (fn + tn)",
    "fdr": "of all that is flagged, the share that is negative: fp / (tp + fp)",
    "for": "of all that is not flagged, the share that is positive: fn / (fn + tn)",
    "flagged": "of all samples, the share that is flagged: (tp + fp) / all",
    "accuracy": "of all samples, the share that is decided rightly: (tp + tn) / all",
    "error": "of all samples, the share that is decided wrongly: (fp + fn) / all",
    "jaccard": "the overlap of flagged and positive: tp / (tp + fp + fn)",
    "g_mean": "the geometric mean of recall and tnr",
    "mcc": "the correlation of decision and label, from -1 to 1",
    "kappa": "agreement of decision and label beyond chance, 1 at best",
    "balanced accuracy": "the mean of recall and tnr, from 0 to 1",
    "lift": "precision divided by the share of positives: 1 if flagged rows are no more often positive than others",
    "review": "of all samples, the share between the two cuts, which people review",
}
#: The rows of a class, as a formula of two decisions writes them, and with the reviewed rows among them.
_ALL_OF_CLASS = {"(tp + fn)": "all positives", "(fp + tn)": "all negatives"}
#: Rates over all classes, before the meaning of the rate of one class.
_OVER_CLASSES = {
    Macro: "the mean over all classes, each counting alike",
    Micro: "all classes counted together",
    Proportional: "the mean over all classes, each weighted by its number of rows",
    ClassGap: "the highest value less the lowest over all classes that have rows",
}
_HIT = "1 for a list with a positive that is flagged, 0 for any other"
_OF_ALL = {
    "error": "of all rows, the share that is predicted as a wrong class",
    "accuracy": "of all rows, the share that is predicted as its own class",
}


def meaning_of(quantity: Quantity) -> str:
    """The meaning of a quantity, in a sentence without a subject."""
    if isinstance(quantity, Gap):
        return f"the largest difference of {quantity.rate} between any two groups of the column {quantity.group!r}"
    if isinstance(quantity, Rate) and quantity.name.startswith("f_score"):
        times = quantity.whole[2] ** 0.5
        return "the harmonic mean of precision and recall" + ("" if times == 1 else f", recall counting {times:g}-fold")
    if isinstance(quantity, Rate) and quantity.name.startswith("cost("):
        return _of_cost(quantity.part[2], quantity.part[1])
    if isinstance(quantity, Cost):
        return _of_cost(quantity.miss, quantity.alarm)
    if isinstance(quantity, Weighted):
        valued = f", where every row counts as much as its {quantity.column!r}" if quantity.column is not None else ""
        return f"{meaning_of(quantity.rate)}{valued}"
    if isinstance(quantity, OverLabels):
        what = "the value of a rate to minimise, 1 less the value of a rate to maximise" if quantity.is_mixed else ""
        return f"the mean over all labels{': ' if what else ''}{what}, each label counting alike"
    if isinstance(quantity, ClassQuantity):
        return _of_classes(quantity)
    if isinstance(quantity, InFirst):
        first = f"flagged means among the first {quantity.k} of its list; the mean over lists"
        return f"{_HIT if quantity.rate == hit else meaning_of(quantity.rate)}; {first}"
    said = MEANING.get(quantity.name, "a metric of your own")
    return _beside_review(said) if isinstance(quantity, BandRate) else said


def _beside_review(said: str) -> str:
    """The meaning of a rate where some rows are reviewed: those count among the rows of their class."""
    for decided, all_of_class in _ALL_OF_CLASS.items():
        said = said.replace(decided, f"{all_of_class}, reviewed ones among them")
    return said


def _of_cost(*costs: float | str) -> str:
    miss, alarm = (f"the value of {cost!r}" if isinstance(cost, str) else f"{cost:g}" for cost in costs)
    return f"the mean cost per row: {miss} for each miss, {alarm} for each false alarm"


def _of_classes(quantity: ClassQuantity) -> str:
    of_one = meaning_of(quantity.rate)
    if isinstance(quantity, OfClass):
        return f"{of_one}; positive means of class {quantity.label!r}, flagged means predicted as that class"
    if quantity.name in _OF_ALL:
        return _OF_ALL[quantity.name]
    return f"{_OVER_CLASSES[type(quantity)]}: {of_one}"
