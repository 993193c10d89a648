"""`setpoint explain`: an ask in words, the samples that its certificate needs, and the solver it would get."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from setpoint.commands.show import bound_text, console, grid, say, write_json
from setpoint.decide.calibrate import calibrate
from setpoint.errors import BadProblem, SetpointError
from setpoint.measure.constraint import Constraint, Quantity, percent
from setpoint.measure.rate import Four, Gap, Rate
from setpoint.problem.language import read_problem
from setpoint.problem.problem import Problem
from setpoint.train.lean import lean_weight

CONFIDENCES = (0.9, 0.95, 0.99)
MEANING = {
    "fpr": "of all negatives, the share that is flagged by mistake: fp / (fp + tn)",
    "fnr": "of all positives, the share that is missed: fn / (tp + fn)",
    "recall": "of all positives, the share that is found: tp / (tp + fn)",
    "tnr": "of all negatives, the share that is rightly left alone: tn / (fp + tn)",
    "precision": "of all that is flagged, the share that is positive: tp / (tp + fp)",
    "flagged": "of all samples, the share that is flagged: (tp + fp) / all",
    "accuracy": "of all samples, the share that is decided rightly: (tp + tn) / all",
    "error": "of all samples, the share that is decided wrongly: (fp + fn) / all",
    "jaccard": "the overlap of flagged and positive: tp / (tp + fp + fn)",
    "g_mean": "the geometric mean of recall and tnr",
    "mcc": "the correlation of decision and label, from -1 to 1",
    "kappa": "agreement of decision and label beyond chance, 1 at best",
}
#: What a rate is a share of, by its weights on (tp, fp, fn, tn).
WHOLES: dict[Four, str] = {
    (0, 1, 0, 1): "negatives",
    (1, 0, 1, 0): "positives",
    (1, 1, 1, 1): "samples",
    (1, 1, 0, 0): "flagged",
}
#: Up to this share of mistakes a bound is extreme: FPR 1 % or less, recall 95 % or more.
EXTREME = {"negatives": 0.01, "positives": 0.05}


@dataclass(frozen=True)
class Need:
    """The fewest calibration samples of a kind with which a bound can be certified, a confidence each."""

    bound: str
    of: str
    samples: dict[float, int]


def main(*, ask: str, as_json: bool) -> None:
    problem = read_problem(ask)
    refusal, needs = certificate(problem)
    if as_json:
        write_json(
            {
                "ask": str(problem),
                "meaning": meaning(problem),
                "rates": rates(problem),
                "certificate": {
                    "possible": refusal is None,
                    "why_not": refusal,
                    "needs": [
                        {"bound": n.bound, "of": n.of, "samples": {str(c): k for c, k in n.samples.items()}}
                        for n in needs
                    ],
                },
                "solvers": solvers(problem),
            }
        )
        return
    screen = console()
    say(screen, meaning(problem), "")
    say(screen, *(f"  {name}: {text}" for name, text in rates(problem).items()), "")
    if needs and refusal is None:
        head = ["bound", *(f"at {percent(c)}" for c in CONFIDENCES), "of the"]
        rows = [[n.bound, *(f"{n.samples[c]:,}" for c in CONFIDENCES), n.of] for n in needs]
        say(screen, "A certificate needs at least so many calibration samples:")
        screen.print(grid(head, rows))
    say(screen, *advice(problem, refusal, needs), "")
    for model, (name, why) in solvers(problem).items():
        say(screen, f"--model {model} gets {name}: {why}")


def meaning(problem: Problem) -> str:
    """The ask as a sentence."""
    verb = "high" if problem.maximize else "low"
    text = f"Make {problem.objective} as {verb} as it can be"
    if problem.over is not None:
        over = problem.over
        return (
            f"{text}, on average over all thresholds at which {over.rate} lies between {percent(over.low)} and "
            f"{percent(over.high)}; training looks at {over.points} of them."
        )
    if not problem.constraints:
        return f"{text}; the threshold is free, and the best one is part of the answer."
    return f"{text}, at a threshold where {' and '.join(map(_bound, problem.constraints))}."


def _bound(constraint: Constraint) -> str:
    words = {"<=": "is at most", ">=": "is at least", "==": "is as near as can be to"}[constraint.relation]
    if isinstance(constraint.quantity, Gap) and constraint.relation == "==":
        words = "is, within one sample of the smallest group,"
    return f"{constraint.quantity} {words} {bound_text(constraint)}"


def rates(problem: Problem) -> dict[str, str]:
    """What each rate in the ask means."""
    over = () if problem.over is None else (problem.over.rate,)
    gaps = [c.quantity.rate for c in problem.constraints if isinstance(c.quantity, Gap)]
    quantities = dict.fromkeys([problem.objective, *over, *(c.quantity for c in problem.constraints), *gaps])
    return {str(quantity): _meaning(quantity) for quantity in quantities}


def _meaning(quantity: Quantity) -> str:
    if isinstance(quantity, Gap):
        return f"the largest difference of {quantity.rate} between any two groups of the column {quantity.group!r}"
    if isinstance(quantity, Rate) and quantity.name.startswith("f_score"):
        times = quantity.whole[2] ** 0.5
        return "the harmonic mean of precision and recall" + ("" if times == 1 else f", recall counting {times:g}-fold")
    return MEANING.get(quantity.name, "a metric of your own")


def certificate(problem: Problem) -> tuple[str | None, list[Need]]:
    """Why there can be no certificate, if so; and the fewest samples for every bound that is a share of samples."""
    if not problem.constraints:
        return "there is no bound to certify; the objective itself is only estimated", []
    groups = None if problem.group is None else ["a", "b"]
    try:
        calibrate(problem, torch.zeros(2), torch.tensor([0.0, 1.0]), confidence=0.95, groups=groups)
    except BadProblem as cause:
        return str(cause), []
    except SetpointError:
        # Two samples are too few for anything: that is all this tells.
        pass
    found = []
    for constraint in problem.constraints:
        of, allowed = _whole(constraint), _allowed(constraint)
        if of and 0 < allowed < 1:
            found.append(Need(str(constraint), of, {c: fewest(allowed, c) for c in CONFIDENCES}))
    return None, found


def fewest(allowed: float, confidence: float) -> int:
    """The smallest n with (1 - allowed)^n <= 1 - confidence: none of n on the wrong side is then evidence enough."""
    return math.ceil(math.log(1 - confidence) / math.log1p(-allowed))


def _whole(constraint: Constraint) -> str:
    """What the bounded rate is a share of; empty where that is no plain count of samples."""
    rate = constraint.quantity
    return WHOLES.get(rate.whole, "") if isinstance(rate, Rate) else ""


def _allowed(constraint: Constraint) -> float:
    """The share that may fall on the wrong side: 5 % for `recall >= 95%`."""
    return constraint.bound if constraint.relation == "<=" else 1 - constraint.bound


def advice(problem: Problem, refusal: str | None, needs: list[Need]) -> list[str]:
    """What the numbers mean for one's data."""
    if refusal is not None:
        reason = refusal if refusal.startswith("no certificate") else f"no certificate: {refusal}"
        return [f"{reason[0].upper()}{reason[1:]}."]
    lines = []
    if needs:
        lines.append("These are the fewest, at which none of them may fall on the wrong side; more allow a bolder cut.")
        most = max(needs, key=lambda need: need.samples[0.95])
        share = 0.15
        if most.of != "flagged":
            total = -(-most.samples[0.95] // share)
            lines.append(
                f"setpoint fit sets 15% of the rows aside for it: for 95% the table should hold some {total:,.0f} "
                f"{most.of}."
            )
    if any(need.of == "flagged" for need in needs):
        lines.append(
            "How much data flags that many depends on the model and on how rare positives are, and not all that is "
            "flagged will be right: count on several times the number."
        )
    if problem.group is not None:
        lines.append("For a gap it depends on the data: the smaller of the compared groups decides.")
    elif len(problem.constraints) > len(needs):
        lines.append("For the other bounds it depends on the data.")
    return lines


def solvers(problem: Problem) -> dict[str, tuple[str, str]]:
    """For each model of the command line, what `--solver default` is and why."""
    patient = "cross-entropy with early stopping"
    if problem.group is not None:
        why = "groups are evened out by a threshold a group, set after training; --solver implicit trains for it."
        return {"linear": ("cross-entropy", why), "mlp": (patient, why)}
    start = "it starts from a class weight matched to the ask and refines it"
    return {
        "linear": ("the anchored recipe", f"{start}; {_expected(problem)}"),
        "mlp": (
            patient,
            "for a well-trained network that is hard to beat with a tuned threshold; "
            f"{'' if lean_weight(problem) is None else 'positives weigh half, since few negatives may pass, and '}"
            "it is trained once more on held-out rows too, once they have told for how long.",
        ),
    }


def _expected(problem: Problem) -> str:
    """What has been measured of the linear default for such an ask."""
    if problem.over is not None:
        return "for areas at high recall it was far above plain cross-entropy, level with the best of 21 class weights."
    if any(_allowed(c) <= EXTREME.get(_whole(c), 0.0) + 1e-9 for c in problem.constraints):
        return (
            "for bounds as tight as this it was several points better than the best of 21 class weights where a linear "
            "model is too simple for the data, and about as good elsewhere."
        )
    return "for so mild an ask expect little over cross-entropy, which is trained and shown beside it."
