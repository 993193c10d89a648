"""The command line, called in this process."""

from __future__ import annotations

import json

import pytest

from setpoint.cli import main

ASK = "minimize fnr where fpr <= 20%"
FIT = ["fit", "loans.csv", "--target", "default", "--ask", ASK, "--epochs", "1"]


def code_of(*arguments):
    """The exit code of a command."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code


def main_ok(*arguments):
    assert code_of(*arguments) == 0


def answer(capsys, *arguments):
    """The exit code of a command with `--json`, and what it told."""
    capsys.readouterr()
    code = code_of(*arguments, "--json")
    return code, json.loads(capsys.readouterr().out)
