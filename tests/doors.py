"""The command line, called in this process."""

from __future__ import annotations

import pytest

from setpoint.cli import main

ASK = "minimize fnr where fpr <= 20%"
FIT = ["fit", "loans.csv", "--target", "default", "--ask", ASK, "--epochs", "1"]


def main_ok(*arguments):
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert ended.value.code == 0
