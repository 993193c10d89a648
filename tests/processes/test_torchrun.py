"""`torchrun ... setpoint fit`: one artefact, that of one process; a worker that is killed costs nothing but time."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from setpoint.cli import main
from setpoint.errors import BadFile
from setpoint.run.artefact import UNFINISHED, load_run
from setpoint.train.checkpoint import STATE, read_state

ASKED = ["--target", "label", "--ask", "minimize fnr where fpr <= 10%", "--model", "mlp", "--solver", "implicit"]
ASKED += ["--epochs", "20", "--batch-size", "64", "--checkpoint-seconds", "0.2", "--quiet"]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "made.csv"
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1600, 4))
    label = x[:, 0] + x[:, 1] ** 2 / 2 + rng.normal(size=len(x)) > 1.2
    np.savetxt(path, np.column_stack([x, label]), delimiter=",", header="a,b,c,d,label", comments="", fmt="%.6f")
    return path


def start(table, out, *options):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [*TORCHRUN, *options, "-m", "setpoint.cli", "fit", str(table), *ASKED, "--out", str(out)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(process):
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said


@pytest.fixture(scope="module")
def undisturbed(table, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "undisturbed"
    finish(start(table, out))
    return out


def test_the_run_is_that_of_one_process(table, undisturbed, tmp_path):
    with pytest.raises(SystemExit) as end:
        main(["fit", str(table), *ASKED, "--out", str(tmp_path / "one")])
    assert end.value.code == 0
    together, alone = load_run(undisturbed), load_run(tmp_path / "one")
    assert {p.name for p in undisturbed.iterdir()} == {p.name for p in (tmp_path / "one").iterdir()}
    # Sums of float32 in another order: a last digit a step.
    assert together.point.threshold == pytest.approx(alone.point.threshold, abs=1e-3)
    for name, value in together.model.state_dict().items():
        torch.testing.assert_close(value, alone.model.state_dict()[name], rtol=1e-3, atol=1e-3)


def epoch_of(kept: Path) -> int:
    try:
        return int(read_state(kept)["state"]["epoch"])
    except (BadFile, KeyError, OSError):
        return -1


def newest(out: Path) -> int:
    """When the last state was written, or the run was done."""
    try:
        return max((path.stat().st_mtime_ns for path in (out / UNFINISHED).rglob(STATE)), default=sys.maxsize)
    except OSError:
        return 0


def wait_for(condition, process, seconds=240):
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError(f"it did not happen; the run said: {process.communicate()[0]}")


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc to find a worker")
def test_a_worker_that_is_killed_costs_nothing_but_time(table, undisturbed, tmp_path):
    out = tmp_path / "killed"
    process = start(table, out, "--max-restarts", "1")
    kept = out / UNFINISHED / "implicit"
    wait_for(lambda: epoch_of(kept) >= 3, process)
    workers = [int(pid) for children in Path(f"/proc/{process.pid}/task").glob("*/children")
               for pid in children.read_text().split()]  # fmt: skip
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in workers}
    victim = max(pid for pid, command in commands.items() if b"setpoint.cli" in command)
    os.kill(victim, signal.SIGKILL)
    before = epoch_of(kept)
    assert before >= 3
    wait_for(lambda: not Path(f"/proc/{victim}").exists(), process)
    written = newest(out)
    wait_for(lambda: newest(out) > written, process)
    # It went on: begun anew, it would stand at the first epoch.
    assert epoch_of(kept) >= before or not kept.exists()
    finish(process)
    assert not (out / UNFINISHED).exists()
    first, second = load_run(undisturbed), load_run(out)
    assert second.point == first.point
    for name, value in first.model.state_dict().items():
        assert torch.equal(second.model.state_dict()[name], value)
