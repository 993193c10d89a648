"""The contest with cvxpylayers: the F-score, no bound; the same linear program solved by it, and in closed form by us.

Both start from plain cross-entropy, take 150 steps of Adam on the same batches of 256 rows, and have the same nine
settings: three rates, three margins of the program. `ImplicitThreshold` has as many steps and settings, ap-perf batches
of 32 for half a minute. The start is a candidate of each.
"""

from __future__ import annotations

import setpoint as sp
from benchmarks.peers.contest import Contest, Method
from benchmarks.peers.fnr_at_fpr import load
from benchmarks.peers.judging import judge_scores

CONTEST = Contest(
    name="F",
    problem=sp.maximize(sp.f_score(1)),
    sets=("letter", "adult"),
    seeds=range(805, 810),
    quick_set="letter",
    methods={
        "setpoint, default": Method("by_setpoint_f", more=("default",)),
        "setpoint, ImplicitThreshold": Method("by_setpoint_f", more=("implicit",)),
        "setpoint, the program in closed form": Method("by_setpoint_f", more=("closed form",)),
        "setpoint, closed form, all rows a step": Method("by_setpoint_f", more=("closed form of all rows",)),
        "cvxpylayers, the same program": Method("by_cvxpylayers", "cvxpylayers"),
        "ap-perf": Method("by_ap_perf", "ap_perf", ("f",)),
        "cross-entropy, tuned threshold": Method("by_setpoint_f", more=("cross-entropy",)),
    },
    ours="setpoint, the program in closed form",
    load=load,
    judge=judge_scores,
    averaged=("test", "at threshold"),
    compared=("test", "at threshold"),
    start=1.0,
    quick_methods=(
        "setpoint, the program in closed form", "cvxpylayers, the same program", "cross-entropy, tuned threshold",
    ),
    quick_budget={"steps": 25},
)  # fmt: skip
