"""Real processes, killed at random moments, in the middle of writes and on full disks."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import stat
import subprocess
import sys
import time
import traceback
from pathlib import Path

import pytest
import torch
from torch import nn

import setpoint as sp
from marks import slow
from setpoint.cli import main
from setpoint.errors import BadFile
from setpoint.run.artefact import check_place, load_run, save_run
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table
from setpoint.train.checkpoint import STATE, Checkpoint, read_state
from tables import loans

ASK = "minimize fnr where fpr <= 20%"
KILLED = -signal.SIGKILL
pytestmark = slow
WHOLE = ["history.jsonl", "model.safetensors", "scores.safetensors", "setpoint.json"]


def fork(work):
    """A process of its own that does the work; its id."""
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def end_of(child):
    """How it ended: 0, 1 or minus the signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def data(size=120, seed=0):
    draw = torch.Generator().manual_seed(seed)
    labels = (torch.rand(size, generator=draw) < 0.4).float()
    return torch.randn(size, 3, generator=draw) + labels.unsqueeze(-1), labels


def net():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.2), nn.ReLU(), nn.Linear(8, 1))


JOBS = {
    "implicit": lambda: {"solver": sp.ImplicitThreshold(sp.ask(ASK))},
    "lagrangian": lambda: {"solver": sp.Lagrangian(sp.ask(ASK), climb=sp.losses.Climb(control=sp.losses.NuPI()))},
    "augmented": lambda: {"solver": sp.AugmentedLagrangian(sp.CrossEntropy(), n_samples=120, mu=0.1)},
    "ensemble": lambda: {"solver": sp.CrossEntropy("balanced"), "ensemble": 3, "epochs": 2},
}


def train(name, path=None, pause=0.0, **changes):
    model = net()
    settings = {
        "train": sp.Batches(*data(), batch_size=30, shuffle=True), "held_out": sp.Batches(*data(seed=1)), "epochs": 6,
        **JOBS[name](), **changes,
    }  # fmt: skip
    kept = None if path is None else Checkpoint(path, seconds=0)
    return sp.fit(model, ASK, **settings, checkpoint=kept, on_epoch=lambda row: time.sleep(pause))


def parameters(model):
    return torch.cat([value.flatten() for value in model.state_dict().values()])


@pytest.mark.parametrize("name", JOBS)
def test_killed_again_and_again_it_ends_in_the_same_parameters(tmp_path, name):
    draw = random.Random(name)
    whole = parameters(train(name).model)

    def work():
        torch.save(parameters(train(name, tmp_path / "kept", pause=0.05).model), tmp_path / "made")
        os.replace(tmp_path / "made", tmp_path / "result")

    kills = 0
    while not (tmp_path / "result").exists():
        child = fork(work)
        if kills < 4:
            time.sleep(draw.uniform(0.02, 0.2))
            os.kill(child, signal.SIGKILL)
        ended = end_of(child)
        assert ended in (0, KILLED)
        kills += ended == KILLED
    assert kills >= 1
    assert torch.equal(torch.load(tmp_path / "result"), whole)
    assert not (tmp_path / "kept").exists()


def die_at(place):
    """Kill this process before its n-th call that changes the disk; a flush finds half of the file written."""
    left = [place]

    def deadly(call, halve=False):
        def instead(*arguments, **named):
            left[0] -= 1
            if left[0] < 0:
                if halve and stat.S_ISREG(os.fstat(arguments[0]).st_mode):
                    os.ftruncate(arguments[0], os.fstat(arguments[0]).st_size // 2)
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **named)

        return instead

    for name in ("mkdir", "rmdir", "unlink", "rename", "replace"):
        setattr(os, name, deadly(getattr(os, name)))
    os.fsync = deadly(os.fsync, halve=True)


def until_it_lives(work):
    """Kill the work at its first change of the disk, at its second, and so on, until it gets through."""
    for place in range(1000):
        child = fork(lambda place=place: (die_at(place), work()))
        ended = end_of(child)
        assert ended in (0, KILLED)
        yield place
        if ended == 0:
            return


def test_killed_within_every_write_of_a_checkpoint(tmp_path):
    whole = parameters(train("implicit", epochs=2).model)

    def work():
        made = parameters(train("implicit", tmp_path / "kept", epochs=2).model)
        assert torch.equal(made, whole)

    # Each try goes on from what the one before it left, so that every one of them gets a little further.
    *killed, _ = until_it_lives(work)
    assert len(killed) > 5
    assert not (tmp_path / "kept").exists()


@pytest.fixture(scope="module")
def runs():
    return [fit_table(loans(), "default", sp.ask(ASK), Settings(epochs=2, solver="weighted", seed=s)) for s in (0, 1)]


def readable(place):
    """The point of a run, or the sentence that says why there is none."""
    try:
        return load_run(place).point
    except BadFile as cause:
        return str(cause)


def test_killed_within_every_write_of_a_run(tmp_path, runs):
    place = tmp_path / "run"
    for _ in until_it_lives(lambda: save_run(place, runs[0], force=True)):
        found = readable(place)
        assert found == runs[0].chosen.point or found.startswith("no run at")
        check_place(place, force=True)
    assert load_run(place).point == runs[0].chosen.point
    assert sorted(p.name for p in place.iterdir()) == WHOLE


def test_an_earlier_run_can_be_read_until_the_new_one_is_whole(tmp_path, runs):
    place = tmp_path / "run"
    points = [run.chosen.point for run in runs]
    save_run(place, runs[0])
    found = []
    for _ in until_it_lives(lambda: save_run(place, runs[1], force=True)):
        found.append(points.index(load_run(place).point))
        save_run(place, runs[0], force=True)
    # The old one up to some moment, the new one from there on.
    assert found == sorted(found)
    assert set(found) == {0, 1}


def test_a_full_disk_leaves_the_checkpoint_before_it(tmp_path):
    def work():
        kept = Checkpoint(tmp_path / "kept")
        kept.open({})
        kept.save({"first": 1})
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
        with pytest.raises(OSError, match="File too large") as caught:
            kept.save({"second": torch.zeros(10_000)})
        assert caught.value.filename == str(tmp_path / "kept" / STATE)

    assert end_of(fork(work)) == 0
    assert Checkpoint(tmp_path / "kept").open({}) == {"first": 1}
    assert [p.name for p in (tmp_path / "kept").iterdir()] == [STATE]


def test_a_full_disk_leaves_the_run_before_it(tmp_path, runs):
    place = save_run(tmp_path / "run", runs[0])

    def work(limit):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        with pytest.raises(OSError, match="File too large"):
            save_run(place, runs[1], force=True)

    for limit in (10, 1000):
        assert end_of(fork(lambda limit=limit: work(limit))) == 0
        assert load_run(place).point == runs[0].chosen.point
        assert [p.name for p in tmp_path.iterdir()] == ["run"]
        assert sorted(p.name for p in place.iterdir()) == WHOLE


FIT = [
    "fit", "loans.csv", "--target", "default", "--ask", ASK, "--model", "mlp", "--solver", "implicit",
    "--epochs", "15", "--batch-size", "64", "--checkpoint-seconds", "0.1",
]  # fmt: skip
LINEAR = [*FIT[:6], "--solver", "weighted"]
#: The command line with epochs that take their time, so that a kill finds it at work.
SLOW = """
import resource, signal, sys, time
from setpoint import cli
from setpoint.run import unfinished
# A shell that starts tests in the background has them ignore interruptions.
signal.signal(signal.SIGINT, signal.default_int_handler)
from setpoint.train import by_epochs
unfinished.GAP, score = 0.0, by_epochs.score
by_epochs.score = lambda *arguments: (time.sleep(0.1), score(*arguments))[1]
limit = int(sys.argv[1]) or resource.RLIM_INFINITY
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
cli.main(sys.argv[2:])
"""


@pytest.fixture
def table(tmp_path, monkeypatch):
    loans().write_csv(tmp_path / "loans.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def slowly(*arguments, limit=0):
    # Whoever measures coverage writes a file of its own, which must not be the one that does not fit.
    known = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    environment = {**known, "PYTHONPATH": str(Path(sp.__file__).parents[1])}
    return subprocess.Popen(
        [sys.executable, "-c", SLOW, str(limit), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until_it_trains(process, states=3):
    """Until so many states of the solver have been written since now."""
    file = Path("run/unfinished/implicit") / STATE
    seen = set()
    while len(seen) < states and process.poll() is None:
        if file.exists():
            seen.add(file.stat().st_mtime_ns)
        time.sleep(0.01)
    assert process.poll() is None, process.stderr.read()


def command(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return ended.value.code


def test_a_run_that_was_killed_and_interrupted_is_resumed_to_the_same_bytes(table, capsys):
    assert command(*FIT, "--out", "whole") == 0
    victim = slowly(*FIT)
    wait_until_it_trains(victim)
    victim.kill()
    victim.communicate()
    assert sorted(p.name for p in Path("run").iterdir()) == [".lock", "unfinished"]
    with pytest.raises(BadFile, match="is unfinished; finish it with: setpoint fit --resume run"):
        load_run("run")
    capsys.readouterr()
    assert command(*FIT) == 2
    assert "holds an unfinished run; finish it with: setpoint fit --resume run" in capsys.readouterr().err

    again = slowly("fit", "--resume", "run")
    wait_until_it_trains(again)
    again.send_signal(signal.SIGINT)
    out, err = again.communicate(timeout=60)
    assert (again.returncode, out) == (130, "")
    assert err == "setpoint: interrupted; go on with: setpoint fit --resume run\n"

    before = Path("loans.csv").read_text()
    Path("loans.csv").write_text(before.replace("nurse", "clerk", 1))
    assert command("fit", "--resume", "run") == 2
    assert f"{table / 'loans.csv'} has changed since the run at run began" in capsys.readouterr().err
    Path("loans.csv").unlink()
    assert command("fit", "--resume", "run") == 2
    assert "is no longer there; put it back" in capsys.readouterr().err
    Path("loans.csv").write_text(before)
    assert command(*FIT, "--force", "--target", "nothing") == 2
    assert Path("run/unfinished", STATE).exists()

    capsys.readouterr()
    spent = read_state(Path("run/unfinished/implicit"))["spent"]
    assert command("fit", "--resume", "run", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert sorted(p.name for p in Path("run").iterdir()) == WHOLE
    for name in ("model.safetensors", "history.jsonl"):
        assert Path("run", name).read_bytes() == Path("whole", name).read_bytes()
    assert load_run("run").point == load_run("whole").point
    # What was spent before the kill and the interruption counts.
    assert answer["results"]["implicit"]["seconds"] > round(spent, 3) > 0
    assert command("fit", "--resume", "run") == 2
    assert "no unfinished run at run, so there is nothing to resume" in capsys.readouterr().err


def test_a_full_disk_ends_in_one_sentence_and_the_run_can_be_resumed(table):
    assert command(*LINEAR) == 0
    earlier = load_run("run").point
    full = slowly(*FIT, "--force", limit=30_000)
    out, err = full.communicate(timeout=100)
    assert (full.returncode, out) == (2, "")
    assert err.startswith("setpoint: run/unfinished/implicit/state.pt cannot be written or read: File too large; ")
    assert err.endswith("go on with: setpoint fit --resume run\n")
    assert err.count("\n") == 1
    assert load_run("run").point == earlier
    assert command("fit", "--resume", "run") == 0
    assert command(*FIT, "--out", "whole") == 0
    assert Path("run/model.safetensors").read_bytes() == Path("whole/model.safetensors").read_bytes()


def test_a_damaged_checkpoint_ends_in_one_sentence(table, capsys):
    Path("run/unfinished").mkdir(parents=True)
    Path("run/unfinished", STATE).write_bytes(b"nonsense")
    for arguments, says in ((("fit", "--resume", "run"), "is damaged"), (FIT, "holds an unfinished run")):
        capsys.readouterr()
        assert command(*arguments) == 2
        heard = capsys.readouterr().err
        assert says in heard
        assert heard.count("\n") == 1
    assert command(*LINEAR, "--force") == 0
    assert load_run("run").about["model"]["kind"] == "linear"


def test_a_mistake_that_shows_in_training_leaves_nothing(table, capsys, monkeypatch):
    def diverge(*_, **__):
        raise sp.errors.DivergedPrices("the price has diverged")

    monkeypatch.setattr("setpoint.train.by_epochs._train_epoch", diverge)
    assert command(*FIT, "--out", "deep/run") == 2
    assert "diverged" in capsys.readouterr().err
    assert [p.name for p in table.iterdir()] == ["loans.csv"]


def kinds_killed(model, seed, states):
    """How often a run was killed, each time when it had so many states, and the files of it and of a whole run."""
    asked = ["fit", "loans.csv", "--target", "default", "--ask", ASK, "--model", model, "--seed", str(seed), "--quiet"]
    command = [sys.executable, "-m", "setpoint", *asked]
    environment = {**os.environ, "PYTHONPATH": str(Path(sp.__file__).parents[1])}
    subprocess.run([*command, "--out", "whole"], env=environment, check=True, capture_output=True)
    again, kills = [*command, "--out", "run"], 0
    for wanted in states:
        process = subprocess.Popen(again, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and len(list(Path("run/unfinished").rglob(STATE))) < wanted:
            time.sleep(0.002)
        process.kill()
        kills += process.wait() == KILLED
        again = [sys.executable, "-m", "setpoint", "fit", "--resume", "run", "--quiet"]
    if not Path("run", "setpoint.json").exists():
        subprocess.run(again, env=environment, check=True, capture_output=True)
    return kills, [[Path(place, name).read_bytes() for place in ("run", "whole")] for name in WHOLE[:3]]


@pytest.mark.parametrize(("model", "seed", "states"), [("trees", 0, (1, 3, 5)), ("auto", 1, (1, 4, 8, 12))])
def test_trees_and_the_choice_of_a_kind_are_resumed_to_the_same_bytes(table, model, seed, states):
    kills, files = kinds_killed(model, seed, states)
    assert kills >= 2
    for ours, whole in files:
        assert ours == whole
