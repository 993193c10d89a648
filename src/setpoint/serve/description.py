"""Checks of `setpoint.json` before a run is read or reported: kinds, ranges, and that the entries agree.

Hashes find accidental changes. Someone who changes a file on purpose can compute the hashes again, so the meaning is
checked as well.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from setpoint.data.sketch import SIZE
from setpoint.errors import BadFile
from setpoint.plain import brief, listed, named, number, share, text, truth, whole_number
from setpoint.problem.caution import Caution
from setpoint.problem.certificate import AUTO
from setpoint.problem.point import OperatingPoint
from setpoint.problem.read_thresholds import read_thresholds
from setpoint.problem.shifts import Shifts
from setpoint.problem.thresholds import Thresholds

#: The parts of a table: to train on, to choose the epoch by, to set the threshold on, to judge the result on.
PARTS = ("train", "held_out", "calibration", "test")
#: The largest score in single precision, and so the largest threshold between two scores.
LARGEST_SCORE = 4e38


def check_description(
    about: Mapping[str, Any], point: OperatingPoint, width: int, kinds: Container[str]
) -> tuple[str, int]:
    """The kind of the model, one of `kinds`, and the number of its members, after a check of all entries.

    Raises:
        BadFile: If an entry is out of range or contradicts another.
        KeyError: If an entry is missing.
        TypeError: If an entry is of another kind.
    """
    kind, members = text(about["model"]["kind"]), whole_number(about["model"]["members"], 1, 1000)
    if kind not in kinds or about["model"]["width"] != width:
        raise BadFile(
            f"there is no model that fits {width} features: {brief(kind)} of {brief(about['model']['width'])}"
        )
    _agree("ask", text(about["ask"]), str(point.problem))
    settings = about["settings"]
    _agree("solver", text(about["solver"]), text(settings["solver"]))
    _agree("model", kind, text(settings["model"]))
    _agree("ensemble", members, whole_number(settings["ensemble"]))
    for name in ("epochs", "batch_size", "seed"):
        whole_number(settings[name], 0 if name == "seed" else 1, 2**63)
    if settings["confidence"] not in (None, AUTO):
        share(settings["confidence"])
    truth(settings.get("drop_missing_target", False))
    for name in ("lists", "cluster", "time"):
        if settings.get(name) is not None:
            text(settings[name])
    named(about["versions"], text, 100)
    text(about.get("date", ""))
    listed(about["data"].get("files", []), text)
    text(about["why_shipped"])
    if about["cost_of_certificate"] is not None:
        number(about["cost_of_certificate"])
    listed(about["warnings"], Caution.from_dict, 1000)
    listed(about["sketch"], lambda value: whole_number(value, 0, 2**64 - 1), SIZE)
    listed(about["notes"], text)
    for part in PARTS:
        size = about["rows"][part]
        rows = whole_number(size["rows"], 1)
        if point.labels:
            known = named(size["labels"], lambda own: whole_number(own["known"]))
            _agree("labels", tuple(known), point.labels)
            for name, most in known.items():
                whole_number(size["labels"][name]["positives"], 0, whole_number(most, 0, rows))
        elif point.classes:
            counts = named(size["classes"], whole_number)
            _agree("classes", tuple(counts), point.classes)
        else:
            whole_number(size["positives"], 0, rows)
    _agree("number of parts", len(named(about["rows"], dict)), len(PARTS))
    results = named(about["results"], lambda result: _result(result, point), 1000)
    if not results or next(iter(results.values())) != point.thresholds:
        raise BadFile("the first of its results has another threshold than the point")
    return kind, members


def _agree(name: str, one: object, other: object) -> None:
    if one != other:
        raise BadFile(f"it names two values of {name}: {brief(one)} and {brief(other)}")


def _result(result: Any, point: OperatingPoint) -> Thresholds:
    """The thresholds of a solver, after a check of its other results."""
    text(result["method"])
    whole_number(result["best_epoch"])
    number(result["seconds"], 0)
    if result["refusal"] is not None:
        text(result["refusal"])
    for part in ("train", "held_out", "test"):
        judged = result[part]
        number(judged["objective"])
        truth(judged["feasible"])
        rates = named(judged["rates"], number)
        for constraint in point.problem.constraints:
            rates[str(constraint.quantity)]
    thresholds = read_thresholds(result["threshold"], point.problem)
    if isinstance(thresholds, Shifts) and thresholds.names != point.classes:
        raise BadFile("its results have shifts of other classes than the point")
    if list(thresholds.by_group) != list(point.thresholds.by_group):
        raise BadFile("its results have thresholds of other groups than the point")
    for value in thresholds.values:
        number(value, -LARGEST_SCORE, LARGEST_SCORE)
    return thresholds
