"""`setpoint explain`: an ask in words, the samples that its certificate needs, and the solver it would get."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from setpoint.commands.asks import read_asks
from setpoint.commands.show import grid, write_json
from setpoint.commands.terminal import console, say
from setpoint.errors import BadAsk
from setpoint.measure.constraint import percent
from setpoint.problem.caution import cautions_of_ask
from setpoint.report.explained import CONFIDENCES, advice, certificate, meaning, rates
from setpoint.train.default import explain_default
from setpoint.train.kinds import kinds_for


def main(*, ask: str, as_json: bool) -> None:
    if Path(ask).is_dir():
        raise BadAsk(f"{ask!r} is a folder, and explain takes an ask; a saved run is shown by setpoint report {ask}")
    problem = read_asks(ask)
    refusal, needs = certificate(problem)
    cautions = cautions_of_ask(problem)
    solvers = {kind: explain_default(kind, problem) for kind in kinds_for(problem)}
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
                "solvers": solvers,
                "warnings": [caution.to_dict() for caution in cautions],
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
    if cautions:
        say(screen, *(f"warning: {caution.sentence}" for caution in cautions), "")
    for model, (name, why) in solvers.items():
        say(screen, f"--model {model} gets {name}: {why}")
