"""Files that are whole or not there: links, pipes, permissions, and what is told when the disk is full."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from marks import slow
from setpoint.cli import main
from setpoint.files import PENDING, whole, write_whole
from tables import loans

ASK = "minimize fnr where fpr <= 20%"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    place = tmp_path_factory.mktemp("run")
    loans().write_csv(place / "loans.csv")
    fit = ["fit", str(place / "loans.csv"), "--target", "default", "--ask", ASK, "--solver", "weighted"]
    with pytest.raises(SystemExit) as end:
        main([*fit, "--out", str(place / "run"), "--quiet"])
    assert end.value.code == 0
    return place / "run"


def command(*arguments):
    """The exit code of the command line."""
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    return end.value.code


@contextlib.contextmanager
def full():
    """No file may grow beyond 200 bytes: a write fails as on a full disk (pytest's own output, outside, does not)."""
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


def test_a_file_is_replaced_whole_and_directories_are_made(tmp_path):
    path = tmp_path / "a" / "b" / "file"
    write_whole(path, b"one")
    write_whole(path, b"two")
    assert path.read_bytes() == b"two"
    assert os.listdir(path.parent) == ["file"]
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


def test_who_may_read_a_file_stays_when_it_is_replaced(tmp_path):
    path = tmp_path / "secret"
    write_whole(path, b"one")
    path.chmod(0o600)
    write_whole(path, b"two")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_error_in_the_block_leaves_what_was_there(tmp_path):
    path = tmp_path / "file"
    write_whole(path, b"old")

    def break_off(place):
        with whole(place) as file:
            file.write(b"new")
            raise KeyError

    for place in (path, tmp_path / "new" / "deep" / "file"):
        with pytest.raises(KeyError):
            break_off(place)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_crash_in_the_middle_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_whole(path, b"old")
    assert path.read_bytes() == b"old"

    def crash(*_):
        raise OSError("no space left")

    for call in ("replace", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, crash)
            with pytest.raises(OSError, match="no space"):
                write_whole(path, b"new")
        assert path.read_bytes() == b"old"
        assert os.listdir(tmp_path) == ["file"]


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "far").mkdir()
    link, target = tmp_path / "link.csv", tmp_path / "far" / "target.csv"
    link.symlink_to(target)
    for text in (b"made", b"replaced"):
        write_whole(link, text)
        assert link.is_symlink()
        assert target.read_bytes() == text
    assert os.listdir(target.parent) == ["target.csv"]


def test_a_pipe_is_written_straight(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_whole(pipe, b"through")
    reader.join(timeout=10)
    assert read == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_errors_name_the_file_that_was_asked_for(tmp_path):
    with full(), pytest.raises(OSError, match="File too large") as caught:
        write_whole(tmp_path / "file", bytes(1000))
    assert caught.value.filename == str(tmp_path / "file")
    with pytest.raises(IsADirectoryError) as caught:
        write_whole(tmp_path, b"")
    assert caught.value.filename == str(tmp_path)
    with pytest.raises(OSError, match="No space left") as caught:
        write_whole("/dev/full", b"x")
    assert caught.value.filename == "/dev/full"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_no_name_that_can_be_guessed_is_written_through(run, tmp_path, stream):
    """A link that somebody planted under the name of a temporary file must not be followed."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    out = tmp_path / "out.csv"
    for name in (".out.csv.new", f".out.csv.{os.getpid()}", f"{PENDING}out.csv", f"{PENDING}out.csv.{os.getpid()}"):
        (tmp_path / name).symlink_to(victim)
    planted = sorted(os.listdir(tmp_path))
    assert command("predict", run, run.parent / "loans.csv", "--out", out, *stream) == 0
    assert victim.read_text() == "precious"
    assert out.read_text().startswith("score,decision\n")
    assert sorted(os.listdir(tmp_path)) == sorted([*planted, "out.csv"])


@pytest.mark.parametrize("stream", [[], ["--stream"]])
@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_full_disk_is_told_in_one_sentence(run, tmp_path, monkeypatch, capsys, name, stream):
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("old")
    with full():
        assert command("predict", run, run.parent / "loans.csv", "--out", name, *stream) == 2
    assert capsys.readouterr().err == f"setpoint: {name} cannot be written or read: File too large\n"
    assert os.listdir() == [name]
    assert Path(name).read_text() == "old"


def test_a_report_on_a_full_disk_leaves_no_part_of_a_picture(run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with full():
        assert command("report", run, "--out", "page.html", "--png") == 2
    assert capsys.readouterr().err == "setpoint: page.png cannot be written or read: File too large\n"
    assert os.listdir() == []


@slow
def test_a_full_disk_behind_standard_output_is_told_in_one_sentence(run):
    command = [sys.executable, "-m", "setpoint", "predict", str(run), str(run.parent / "loans.csv"), "--quiet"]
    with open("/dev/full", "w") as device:
        ended = subprocess.run(command, stdout=device, stderr=subprocess.PIPE, text=True, timeout=100, check=False)
    assert ended.returncode == 2
    assert ended.stderr == "setpoint: standard output cannot be written or read: No space left on device\n"
