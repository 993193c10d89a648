"""Which of two models is shipped where the library chose the method: the rule that held-out rows decide by."""

from __future__ import annotations

from dataclasses import replace

from setpoint.run.run import Run
from setpoint.train.default import BASELINE
from setpoint.train.trial import choose

#: Plain cross-entropy is shipped instead of the default if it is better by more than so many standard errors.
CAUTION = 2.0


def shipped(found: Run) -> Run:
    """The run to ship, the other beside it: the default, or plain cross-entropy if held-out rows clearly prefer it.

    The models before the retraining, which have not seen the held-out rows, are compared there, each at its best cut.
    Neither calibration rows nor test rows take part: the certificate of the shipped model and the judgement on the test
    rows are those of a model that these rows did not choose. Runs that were not retrained stay as they are.
    """
    plain = next((one for one in found.beside if one.name == BASELINE), None)
    if found.name != "default" or plain is None:
        return found
    ours, theirs = found.trained.held_out, plain.trained.held_out
    if ours is None or theirs is None:
        return found
    best, gains = choose(found.problem, [ours, theirs], CAUTION)
    if not best:
        return found
    others = tuple(one for one in found.beside if one is not plain)
    why = f"on the held-out rows plain cross-entropy was better than the default by {gains[1]}"
    return replace(plain, why_shipped=why, beside=(*others, replace(found, beside=())))
