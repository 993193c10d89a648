"""Golden runs: what every door answers on made data, bit by bit, so that a rebuild can be held against what was there.

    python -m benchmarks.faults.goldens --write      store what the doors answer now
    python -m benchmarks.faults.goldens              compare; exits with 1 and names every case that differs

Only public doors are used (the command line, `sp.fit`, the scikit-learn estimators), on one thread. Last digits depend
on the processor, so the file names the one it was written on, and a comparison elsewhere is refused.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import hashlib
import io
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn

import setpoint as sp
from setpoint.cli import main as command_line

PLACE = Path(__file__).with_name("goldens.json")
FNR, PRECISION = "minimize fnr where fpr <= 5%", "maximize precision where recall >= 80%"
AREA, GAP = "maximize recall over fpr in [0%, 10%]", "minimize error where recall.gap(region) <= 20%"


def table(path: Path, rows: int = 1200) -> Path:
    """A table with amounts, words, booleans and missing values."""
    draw = np.random.default_rng(7)
    bad = draw.random(rows) < 0.3
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["amount", "age", "job", "region", "member", "label"])
        for y in bad:
            amount = "" if draw.random() < 0.05 else f"{draw.normal(10 + 2 * y, 2):.4f}"
            job = draw.choice(["none", "clerk"] if y else ["clerk", "nurse", "cook"])
            member = draw.choice(["true", "false"])
            writer.writerow([amount, draw.integers(18, 90), job, draw.choice(["n", "s"]), member, int(y)])
    return path


def arrays(rows: int = 900) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(11)
    y = (draw.random(rows) < 0.3).astype(np.int64)
    return draw.normal(size=(rows, 6)) + y[:, None] * np.array([1.2, 0.8, 0.4, 0.0, 0.0, 0.0]), y


def digest(tensors: dict[str, Any]) -> str:
    found = hashlib.sha256()
    for name in sorted(tensors):
        found.update(name.encode())
        found.update(np.ascontiguousarray(torch.as_tensor(tensors[name]).detach().cpu().numpy()).tobytes())
    return found.hexdigest()[:16]


def of_point(point: sp.OperatingPoint) -> dict[str, Any]:
    return {"threshold": repr(point.threshold), "objective": repr(point.objective), "feasible": point.feasible}


def commanded(*options: str, ask: str = FNR, command: str = "fit") -> Callable[[], dict[str, Any]]:
    """A run by the command line: its thresholds, parameters, and scores of the table itself."""

    def case() -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            data, out = table(Path(folder) / "t.csv"), Path(folder) / "run"
            given = [command, str(data), "--target", "label", "--ask", ask, "--json", "--quiet", *options]
            told = json.loads(spoken([*given, *(["--out", str(out)] if command == "fit" else [])]))
            if command != "fit":
                return {"solvers": [{k: repr(v) for k, v in row.items() if k != "seconds"} for row in told["solvers"]]}
            scores = spoken(["predict", str(out), str(data), "--quiet"])
            results = {
                name: {key: value for key, value in result.items() if key not in {"seconds", "comparison"}}
                for name, result in told["results"].items()
            }
            return {
                "point": told["point"]["threshold"],
                "parameters": digest(load_file(out / "model.safetensors")),
                "scores": hashlib.sha256(scores.encode()).hexdigest()[:16],
                "results": hashlib.sha256(json.dumps(results, sort_keys=True).encode()).hexdigest()[:16],
                "methods": {name: result["method"] for name, result in told["results"].items()},
            }

    return case


def spoken(arguments: list[str]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            command_line(arguments)
        except SystemExit as ended:
            if ended.code:
                raise RuntimeError(f"{arguments} ended with {ended.code}") from ended
    return out.getvalue()


def fitted(
    make: Callable[[], nn.Module], solver: Callable[[sp.Problem], Any] | None = None, ask: str = FNR, **how: Any
) -> Callable[[], dict[str, Any]]:
    """A run by `sp.fit`."""

    def case() -> dict[str, Any]:
        x, y = arrays()
        features, labels = torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
        torch.manual_seed(0)
        problem = sp.ask(ask)
        parts = [sp.Batches(features[i::3], labels[i::3], batch_size=64 if i == 0 else 300) for i in range(3)]
        result = sp.fit(
            make(), problem, parts[0], parts[1], solver(problem) if solver else None, calibration=parts[2],
            epochs=8, seed=1, **how,
        )  # fmt: skip
        objectives = [repr(row["held_out"]) for row in result.history if "held_out" in row]
        return {
            **of_point(result.point),
            "parameters": digest(result.model.state_dict()),
            "history": hashlib.sha256(" ".join(objectives).encode()).hexdigest()[:16],
            "best": result.best_epoch,
        }

    return case


def estimated(make: Callable[[], Any]) -> Callable[[], dict[str, Any]]:
    """A run by a scikit-learn estimator."""

    def case() -> dict[str, Any]:
        x, y = arrays()
        model = make().fit(x[:600], y[:600])
        return {**of_point(model.operating_point_), "scores": digest({"scores": model.decision_function(x[600:])})}

    return case


def linear() -> nn.Module:
    return nn.Linear(6, 1)


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))


def logistic() -> Any:
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415, a door that is an extra

    return sp.Tuned(LogisticRegression(), ask=FNR)


SHORT = ("--epochs", "4")
CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "command: default": commanded(),
    "command: certified": commanded("--confidence", "0.9", ask="minimize fnr where fpr <= 10%"),
    "command: not refitted": commanded("--no-refit"),
    "command: precision": commanded(ask=PRECISION),
    "command: area": commanded(ask=AREA),
    "command: gap": commanded(ask=GAP),
    "command: auto": commanded("--solver", "auto"),
    "command: implicit": commanded("--solver", "implicit", *SHORT),
    "command: weighted": commanded("--solver", "weighted"),
    "command: network": commanded("--model", "mlp", *SHORT),
    "command: network, not refitted": commanded("--model", "mlp", "--no-refit", *SHORT),
    "command: network, auto": commanded("--model", "mlp", "--solver", "auto", *SHORT),
    "command: network, lagrangian": commanded("--model", "mlp", "--solver", "lagrangian", *SHORT),
    "command: network, augmented": commanded("--model", "mlp", "--solver", "augmented", *SHORT),
    "command: ensemble": commanded("--model", "mlp", "--ensemble", "2", *SHORT),
    "command: trees": commanded("--model", "trees"),
    "command: all kinds": commanded("--model", "auto"),
    "command: stream": commanded("--stream", *SHORT),
    "command: stream, network": commanded("--stream", "--model", "mlp", *SHORT),
    "command: compare": commanded("--trials", "2", "--solvers", "weighted,default", command="compare"),
    "fit: linear": fitted(linear),
    "fit: linear, certified": fitted(linear, confidence=0.9, ask="minimize fnr where fpr <= 10%"),
    "fit: linear, auto": fitted(linear, lambda problem: sp.Auto()),
    "fit: network": fitted(network),
    "fit: network, not refitted": fitted(network, refit=False),
    "fit: network, implicit": fitted(network, sp.ImplicitThreshold),
    "fit: network, auto": fitted(network, lambda problem: sp.Auto()),
    "fit: ensemble": fitted(network, lambda problem: sp.CrossEntropy(), ensemble=2, refit=False),
    "estimator: default": estimated(lambda: sp.SetpointClassifier(FNR, solver="default")),
    "estimator: auto": estimated(lambda: sp.SetpointClassifier(FNR)),
    "estimator: network": estimated(lambda: sp.SetpointClassifier(FNR, module="mlp", solver="default", epochs=4)),
    "estimator: tuned": estimated(logistic),
}


def answers() -> dict[str, Any]:
    """What every case answers now."""
    torch.set_num_threads(1)
    found = {}
    for name, case in CASES.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found[name] = json.loads(json.dumps(case()))
            except Exception as cause:
                found[name] = {"error": f"{type(cause).__name__}: {cause}"}
        print(name, file=sys.stderr)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="store what the doors answer now")
    options = parser.parse_args()
    here = {"processor": torch.backends.cpu.get_cpu_capability(), "torch": torch.__version__}
    if options.write:
        PLACE.write_text(json.dumps({**here, "cases": answers()}, indent=1) + "\n")
        return 0
    kept = json.loads(PLACE.read_text())
    if {name: kept[name] for name in here} != here:
        print(f"the goldens are of {kept['processor']} and torch {kept['torch']}, this is {here}; write them anew")
        return 2
    now, differ = answers(), []
    for name, then in kept["cases"].items():
        if now.get(name) != then:
            differ.append(name)
            print(f"{name}:\n  was {then}\n  now {now.get(name)}")
    print(f"{len(kept['cases']) - len(differ)} of {len(kept['cases'])} golden runs equal bit by bit")
    return 1 if differ else 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
