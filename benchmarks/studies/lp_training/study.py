"""A network trained through the LP solver, as papers 001 / 002 train theirs, beside the closed form and cross-entropy.

    python -m benchmarks.peers.environments cvxpylayers ap_perf
    python -m benchmarks.studies.lp_training [--data DIR] [--quick] [--so-far] [--seeds N] [--cache DIR]

Fixed before the first result:

- Two columns of the paper on halves of CIFAR-10: AUC at 91 % positive (Tables 1, 2), F-score at 50 % (Table 4), drawn
  and judged as in `paper_programs`: a net of five convolutions, epochs chosen on 1,000 held-out images, all test ones.
- 1,500 images in the largest class and 8 epochs, four tenths of the steps of that study, so that the budget of this
  machine allows three seeds; a quarter of its learning rate, which held-out images chose there in 48 of
  63 cases; the same rate for every method. Seeds 720 to 722, in no other study.
- Every method of a seed sees the same images in the same order from the same weights: cross-entropy; closed form of
  the program; our engine with the active-set gradient; the bare exterior penalty with full Newton steps, prices and
  active-set gradient at the three epsilons of Table 2; the same after a burn-in of unrolled steps; equation (3) at
  margin 0.01; the F-score program solved by SCS under cvxpylayers and ap-perf's F-score, each in its own environment;
  the penalty in 16 directions of sliced inverse regression.
- A training through our engine *equals* the closed form if the mean figures are within one point. A reduction *keeps
  the gradient* if the mean cosine to the exact gradient is at least 0.99. A program *raises* a figure if the gain over
  cross-entropy is beyond two standard errors.
- Mangasarian's rule, 20 batches of the first net and of the net that cross-entropy trained, seed 720: of the epsilons
  1, 0.1, ... 1e-6 the first whose prices have the same norm, to a millionth, as those of the next smaller one.
- Times, memory and reductions: `costs` and `reduction`, on made scores.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import setpoint as sp
from benchmarks.common.data import arguments, paired
from benchmarks.common.harness import ROOT, Journal, write_result
from benchmarks.common.image_nets import five_convolutions
from benchmarks.common.sets import CACHE
from benchmarks.common.small_images import Images, Plan, scores_of, train
from benchmarks.peers.environments import python_of
from benchmarks.studies.lp_training import costs, losses, reduction
from benchmarks.studies.lp_training.rule import by_rule
from benchmarks.studies.paper_programs.study import Task

PLAN, MOST, SEEDS, TEST_IMAGES = Plan(epochs=8, rate=1.5e-3), 1500, range(720, 723), 10_000
PLAIN, CLOSED, ENGINE = "cross-entropy", "closed form", "our engine"
#: The environment and the module of each method that needs one.
PEERS = {"cvxpylayers, SCS": ("cvxpylayers", "by_scs"), "ap-perf": ("ap_perf", "by_ap_perf")}
Make = Callable[[], Any]
AREA: dict[str, Make] = {
    PLAIN: sp.CrossEntropy,
    CLOSED: lambda: sp.losses.AUCLoss(1.0),
    ENGINE: lambda: losses.engine("area", 1.0),
    **{f"penalty, epsilon {e:g}": lambda e=e: losses.penalty("area", 1.0, e) for e in losses.EPSILONS},
    "penalty after a burn-in": lambda: losses.with_burn_in("area", 1.0),
    "equation (3), margin and epsilon 0.01": lambda: losses.penalty("area", 0.01, 0.01, ramp=True),
}
SHARES: dict[str, Make] = {
    PLAIN: sp.CrossEntropy,
    CLOSED: lambda: sp.losses.FScoreLoss(margin=0.0),
    "closed form, margin 0.4": sp.losses.FScoreLoss,
    ENGINE: lambda: losses.engine("f-score", 0.0),
    **{f"penalty, epsilon {e:g}": lambda e=e: losses.penalty("f-score", 0.0, e) for e in losses.EPSILONS},
    "penalty after a burn-in": lambda: losses.with_burn_in("f-score", 0.0),
    "penalty in 16 directions": lambda: losses.Reduced(0.01),
}
#: By the table of `paper_programs` and the figure that counts.
TASKS = {"AUC": (Task("halves", 91, {}), AREA), "F at zero": (Task("f-score", 50, {}), SHARES)}


def trained(figure: str, make: Make, seed: int, plan: Plan, most: int, data: str) -> tuple[nn.Module, dict[str, Any]]:
    """One training: the net, its figures, seconds of the processor, and what the loss has kept of its solves."""
    task, _ = TASKS[figure]
    images, held_out, test = task.parts(data, seed, most)
    loss = make()
    start = time.process_time()
    torch.manual_seed(seed)
    net = five_convolutions(plan.width, 1)
    best = train(net, images, held_out.x, loss, task.judge(held_out.labels), plan, seed)
    spent = time.process_time() - start
    found = task.figures(*((scores_of(net, part.x), part.labels) for part in (held_out, test)))
    steps = plan.epochs * -(-len(images.labels) // plan.batch)
    told: dict[str, Any] = {"validation": best, **found, "seconds": spent, "steps": steps, "images": len(images.labels)}
    if getattr(loss, "outcomes", None):
        told["solved"] = loss.outcomes["SOLVED"] / loss.outcomes.total()
    if getattr(loss, "cosines", None):
        told["cosine"] = sum(loss.cosines) / len(loss.cosines)
    return net, told


def by_peer(method: str, seed: int, plan: Plan, most: int, data: str, cache: str) -> dict[str, Any] | None:
    """The same training in the environment of a peer; None where there is none."""
    home, module = PEERS[method]
    if not python_of(home, cache).is_file():
        print(f"{method} not run: python -m benchmarks.peers.environments {home}", flush=True)
        return None
    asked = json.dumps({"seed": seed, "plan": vars(plan), "most": most, "data": data})
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "OMP_NUM_THREADS": "1"}
    command = [str(python_of(home, cache)), "-W", "ignore", "-m", f"benchmarks.studies.lp_training.{module}", asked]
    done = subprocess.run(command, env=environment, cwd=ROOT, text=True, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def answer(make: Make) -> None:
    """In the environment of a peer: one training with its loss, the task as JSON on the command line, the row out."""
    asked = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    _, told = trained("F at zero", make, asked["seed"], Plan(**asked["plan"]), asked["most"], asked["data"])
    print(json.dumps(told))


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row per figure and method, over the seeds that it shares with cross-entropy, and with the closed form."""
    found = []
    for figure in TASKS:
        of_figure = [row for row in rows if row["figure"] == figure]
        by_seed = {(row["method"], row["seed"]): row for row in of_figure}
        for method in dict.fromkeys(row["method"] for row in of_figure):
            own = [row for row in of_figure if row["method"] == method and (PLAIN, row["seed"]) in by_seed]
            line: dict[str, Any] = {"figure": figure, "method": method, "seeds": [row["seed"] for row in own]}
            columns = [name for name in own[0] if name.startswith(("AUC", "F at"))]
            share = (TEST_IMAGES, own[0]["images"])
            for column in columns:
                line[column] = paired([100 * row[column] for row in own], *share)
            for rival in (PLAIN, CLOSED):
                gaps = [100 * (row[figure] - by_seed[rival, row["seed"]][figure]) for row in own]
                line[f"minus {rival}"] = paired(gaps, *share)
            line["milliseconds per step"] = 1e3 * sum(row["seconds"] for row in own) / sum(row["steps"] for row in own)
            for name in ("solved", "cosine"):
                told = [row[name] for row in own if name in row]
                line[name] = sum(told) / len(told) if told else None
            found.append(line)
    return found


def main() -> None:
    parser = arguments(str(__doc__).splitlines()[0], len(SEEDS))
    parser.add_argument("--cache", default=str(CACHE), help="where the environments of the peers are")
    options = parser.parse_args()
    torch.set_num_threads(1)
    plan, most, seeds = (Plan(1, 4, rate=1.5e-3), 320, SEEDS[:1]) if options.quick else (PLAN, MOST, SEEDS)
    journal = Journal("lp_training", options.quick)
    for seed in () if options.so_far else seeds[: options.seeds]:
        for figure, (task, methods) in TASKS.items():
            peers = () if figure == "AUC" else PEERS
            for method in list(methods)[: costs.QUICK] if options.quick else (*methods, *peers):
                key = f"{figure} | {method} | {seed}"
                if key in journal:
                    continue
                if method in PEERS:
                    row = by_peer(method, seed, plan, most, options.data, options.cache)
                else:
                    net, row = trained(figure, methods[method], seed, plan, most, options.data)
                    if method == PLAIN and seed == seeds[0]:
                        images = task.parts(options.data, seed, most)[0]
                        row |= {"rule": rules(figure, net, images, seed, plan, 1 if options.quick else 20)}
                if row is not None:
                    journal.add(key, {"figure": figure, "method": method, "seed": seed, **row})
                    print(f"{key}: {row[figure]:.4f}, {row['seconds']:.1f} s", flush=True)
    rows = [row for row in journal.rows.values() if "figure" in row]
    found: dict[str, Any] = {"plan": str(plan), "largest class": most, "seeds": list(seeds), "rows": summary(rows)}
    found["rule"] = [line for row in rows for line in row.get("rule", [])]
    if not options.so_far:
        for row in reduction.study(options.quick, list(journal.rows)):
            journal.add(row["key"], row)
        for row in costs.study(options.quick, options.cache, journal):
            journal.add(row["key"], row)
    journal.fold()
    for part in ("reduction", "costs"):
        found[part] = [
            {name: value for name, value in row.items() if name not in ("key", "torch", "part")}
            for row in journal.rows.values() if row.get("part") == part
        ]  # fmt: skip
    write_result("lp_training", found, options.quick)


def rules(figure: str, net: nn.Module, images: Images, seed: int, plan: Plan, batches: int) -> list[dict[str, Any]]:
    """Which epsilon Mangasarian's rule gives, for the net as it is drawn and as cross-entropy leaves it."""
    torch.manual_seed(seed)
    first = five_convolutions(plan.width, 1)
    draw = torch.Generator().manual_seed(seed)
    parts = [images.part(torch.randperm(len(images.labels), generator=draw)[: plan.batch]) for _ in range(batches)]
    form, margins = ("area", (1.0, 0.01)) if figure == "AUC" else ("f-score", (0.0, 0.4))
    return [
        {"figure": figure, "net": name, "margin": margin,
         "epsilons": [by_rule(form, scores_of(one, part.x), part.labels, margin) for part in parts]}
        for name, one in (("first", first), ("trained", net)) for margin in margins
    ]  # fmt: skip
