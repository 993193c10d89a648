"""All targets, in one place."""

from __future__ import annotations

from fuzz import inputs, of_files, of_measure, of_problem, of_programs, of_solvers, of_train
from fuzz.laws import TARGETS

ROOMS = (inputs, of_measure, of_problem, of_solvers, of_train, of_programs, of_files)

__all__ = ["ROOMS", "TARGETS"]
