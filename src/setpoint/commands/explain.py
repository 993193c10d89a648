"""`setpoint explain`: an ask in words, the samples that its certificate needs, and the solver it would get."""

from __future__ import annotations

from dataclasses import asdict

from setpoint.commands.show import console, grid, say, write_json
from setpoint.decide.samples_needed import allowed_share as _allowed
from setpoint.decide.samples_needed import whole_of as _whole
from setpoint.measure.constraint import percent
from setpoint.problem.language import read_problem
from setpoint.problem.problem import Problem
from setpoint.report.explained import CONFIDENCES, advice, certificate, meaning, rates
from setpoint.train.lean import lean_weight

#: Up to this share of mistakes a bound is extreme: FPR 1 % or less, recall 95 % or more.
EXTREME = {"negatives": 0.01, "positives": 0.05}


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
                    "needs": [asdict(need) for need in needs],
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
