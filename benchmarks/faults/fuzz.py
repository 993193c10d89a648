"""Fuzz every public entrance for a while, with new seeds: no crash, no hang, no silent NaN; and count the cases.

python -m benchmarks.faults.fuzz --seconds 600

Each target of `tests/fuzz` runs in a process of its own, two at a time, so that even a crash of the interpreter is
caught and named. The language and the readers are fuzzed by their bytes too, guided by coverage, where atheris is
installed (`pip install '.[fuzz]'`).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import random
import re
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

import torch
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from benchmarks.common.harness import ROOT, write_result

sys.path.insert(0, str(ROOT / "tests"))

from fuzz.laws import LIMIT, Target, run_case
from fuzz.targets import TARGETS

#: The share of the time that goes to coverage-guided bytes, and the readers that take them.
BYTES_SHARE, BYTES = 0.15, ("ask", "point", "schema", "run", "parameters")
Result = dict[str, Any]


def fuzz(target: Target, until: float, first_seed: int) -> Result:
    """Cases of one target until the clock says stop, or until one fails."""
    draw = random.Random(f"{target.name} {first_seed}")
    found: Result = {"cases": 0, "answered": 0, "slowest": 0.0, "failure": None}

    def case(data: st.DataObject) -> None:
        start = time.process_time()
        answered = run_case(target, data.draw)
        found["slowest"] = round(max(found["slowest"], time.process_time() - start), 3)
        found["cases"] += 1
        found["answered"] += answered

    while time.monotonic() < until:
        number = draw.randrange(2**32)
        some = settings(
            max_examples=50, database=None, deadline=None, print_blob=False, suppress_health_check=list(HealthCheck),
            phases=(Phase.generate,),
        )  # fmt: skip
        try:
            some(seed(number)(given(st.data())(case)))()
        except Exception as error:
            notes = "\n".join(note[:400] for note in getattr(error, "__notes__", []))
            trace = traceback.format_exc(limit=-3).partition(notes[:40] or "\0")[0].replace(f"{ROOT}{os.sep}", "")
            found["failure"] = f"{trace[-1500:]}\n{notes}\nseed {number}"
            break
    return found


def in_a_process(work: Callable[[], Result]) -> Result:
    """The result of work in a forked process; if that dies, how."""
    ours, theirs = multiprocessing.Pipe(duplex=False)

    def run(pipe: Connection) -> None:
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)  # Ours, for whoever calibrates on too little.
        pipe.send(work())
        pipe.close()
        # What the parent's threads have registered to happen at the end is not this process's to do.
        os._exit(0)

    process = multiprocessing.get_context("fork").Process(target=run, args=(theirs,))
    process.start()
    theirs.close()
    try:
        result: Result = ours.recv()
    except EOFError:
        result = {"cases": 0, "answered": 0, "slowest": 0.0, "failure": "the process died"}
    process.join()
    if process.exitcode:
        result["failure"] = result["failure"] or f"the process ended with {process.exitcode}"
    return result


def fuzz_bytes(reader: str, seconds: int, first_seed: int) -> Result:
    """Coverage-guided bytes for one reader, by atheris in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.faults.fuzz_bytes",
        reader,
        f"-max_total_time={seconds}",
        f"-seed={first_seed}",
    ]
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, check=False, env={**os.environ, "PYTHONPATH": paths}
    )
    runs = re.findall(r"^#(\d+)|Done (\d+) runs|number_of_executed_units: (\d+)", done.stderr, re.M)
    cases = max((int(a or b or c) for a, b, c in runs), default=0)
    failure = None if done.returncode == 0 and cases else (done.stderr + done.stdout)[-3000:] or "no case was run"
    return {"cases": cases, "failure": failure}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--seed", type=int, default=None, help="where the seeds start; a new place unless given")
    parser.add_argument("--only", nargs="*", help="names of targets; no result is written then")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    first_seed = random.SystemRandom().randrange(2**31) if asked.seed is None else asked.seed
    has_atheris = importlib.util.find_spec("atheris") is not None and not asked.only
    chosen = [TARGETS[name] for name in asked.only or TARGETS]
    workers = min(2, os.cpu_count() or 1)
    start = time.monotonic()
    each = asked.seconds * (1 - BYTES_SHARE * has_atheris) * workers / len(chosen)
    with ThreadPoolExecutor(workers) as pool:

        def one(target: Target) -> Result:
            return in_a_process(lambda: fuzz(target, time.monotonic() + each, first_seed))

        found = {}
        for target, result in zip(chosen, pool.map(one, chosen)):
            found[target.name] = result
            print(f"{target.name:28} {result['cases']:7} cases, {result['answered']:7} answered, slowest "
                  f"{result['slowest']:.2f} s", "FAILED" if result["failure"] else "", flush=True)  # fmt: skip
        guided = {}
        if has_atheris:
            seconds = max(1, int(asked.seconds * BYTES_SHARE * workers / len(BYTES)))
            for reader, result in zip(BYTES, pool.map(lambda reader: fuzz_bytes(reader, seconds, first_seed), BYTES)):
                guided[reader] = result
                print(
                    f"bytes: {reader:21} {result['cases']:7} cases", "FAILED" if result["failure"] else "", flush=True
                )
    failures = {name: r["failure"] for name, r in {**found, **guided}.items() if r["failure"]}
    total = sum(r["cases"] for r in (*found.values(), *guided.values()))
    spent = round(time.monotonic() - start)
    print(f"{total} cases of {len(found)} targets and {len(guided)} readers in {spent} s: {len(failures)} failed")
    for name, failure in failures.items():
        print(f"\n=== {name}\n{failure}")
    if not asked.only:
        write_result(
            "fuzz",
            {
                "seed": first_seed, "seconds": spent, "cases": total, "failures": failures, "seconds_a_case": LIMIT,
                "slowest": max(r["slowest"] for r in found.values()), "targets": found, "bytes": guided,
                "guided_by_coverage": has_atheris,
            },
        )  # fmt: skip
    if failures:
        sys.exit(json.dumps({"failed": sorted(failures)}))


if __name__ == "__main__":
    main()
