"""One process at a time writes to a directory: who is refused, what is said, and what is left."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from marks import slow
from setpoint.cli import main
from setpoint.errors import BadFile
from setpoint.lock import LOCK, locked
from setpoint.run.artefact import check_place, load_run
from tables import loans

ASK = "minimize fnr where fpr <= 20%"


def command(*arguments):
    """The exit code of the command line."""
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return end.value.code


def hold(place):
    """Try to hold a directory that somebody holds."""
    with locked(place):
        pass


def test_the_second_is_told_who_holds_the_directory_and_since_when(tmp_path, monkeypatch):
    place = tmp_path / "deep" / "run"
    with locked(place):
        said = json.loads((place / LOCK).read_text())
        assert said["process"] == os.getpid()
        with pytest.raises(BadFile) as refused:
            hold(place)
        assert str(refused.value) == (
            f"{place} is being written to by process {os.getpid()} on this machine since {said['since']}; wait for it "
            "to end, or choose another place"
        )
        monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
        with pytest.raises(BadFile, match=f"on the machine '{said['machine']}' since"):
            hold(place)
        (place / LOCK).write_text('{"process": []}')
        with pytest.raises(BadFile, match="is being written to by another process; wait"):
            hold(place)
    assert os.listdir(tmp_path) == []


def test_a_directory_that_was_filled_stays_without_its_lock(tmp_path):
    with locked(tmp_path / "run"):
        (tmp_path / "run" / "file").touch()
    assert os.listdir(tmp_path / "run") == ["file"]


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path):
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        with locked(tmp_path / "run"):
            os.write(tell, b".")
            signal.pause()
    os.read(told, 1)
    with pytest.raises(BadFile, match=f"process {child} on this machine"):
        hold(tmp_path / "run")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert os.listdir(tmp_path / "run") == [LOCK]
    assert check_place(tmp_path / "run") == tmp_path / "run"
    with locked(tmp_path / "run"):
        assert json.loads((tmp_path / "run" / LOCK).read_text())["process"] == os.getpid()


def test_a_lock_on_a_file_that_is_no_longer_in_its_place_does_not_count(tmp_path, monkeypatch):
    """Between opening the file and locking it, its holder may have removed it and a third taken a new one."""
    lock, calls = fcntl.flock, []

    def removed_meanwhile(handle, how):
        calls.append(handle)
        if len(calls) == 1:
            (tmp_path / LOCK).unlink()
        lock(handle, how)

    monkeypatch.setattr(fcntl, "flock", removed_meanwhile)
    with locked(tmp_path):
        assert len(calls) == 2
        monkeypatch.undo()
        with pytest.raises(BadFile):
            hold(tmp_path)


def test_without_locks_in_the_file_system_a_warning_says_so(tmp_path, monkeypatch):
    def unsupported(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with pytest.warns(UserWarning, match="has no locks; write one run at a time"):
        hold(tmp_path / "run")
    assert os.listdir(tmp_path) == []


@slow
def test_commands_that_write_into_a_run_are_refused_while_it_is_held(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    loans().write_csv("loans.csv")
    fit = ["fit", "loans.csv", "--target", "default", "--ask", ASK, "--solver", "weighted", "--quiet"]
    assert command(*fit) == 0
    before = (tmp_path / "run" / "setpoint.json").read_bytes()
    capsys.readouterr()
    with locked(tmp_path / "run"):
        for refused in (fit, [*fit, "--force"], ["report", "run"]):
            assert command(*refused) == 2
            assert capsys.readouterr().err.startswith(f"setpoint: run is being written to by process {os.getpid()} on")
        assert command("report", "run", "--out", "page.html") == 0
        assert command("predict", "run", "loans.csv", "--out", "answer.csv") == 0
    assert (tmp_path / "run" / "setpoint.json").read_bytes() == before
    assert command("report", "run") == 0
    assert command(*fit, "--force") == 0
    assert sorted(os.listdir("run")) == ["history.jsonl", "model.safetensors", "scores.safetensors", "setpoint.json"]
    assert load_run("run").point.problem


@slow
def test_races_have_one_winner():
    """Three of the races of `benchmarks.faults.races`, in processes of their own."""
    study = [sys.executable, "-m", "benchmarks.faults.races", "--races", "1", "--quick"]
    ended = subprocess.run(study, capture_output=True, text=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count('"wrong": 0') == 3
