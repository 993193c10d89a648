"""A sample of `benchmarks.faults`: calls that change a file, made to fail one at a time."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest


@pytest.mark.skipif(shutil.which("gcc") is None, reason="what lets calls fail is compiled on the spot")
def test_a_failed_call_leaves_the_old_file_or_the_new_one_and_one_sentence():
    sample = [sys.executable, "-m", "benchmarks.faults", "--every", "11", "--quick"]
    ended = subprocess.run(sample, capture_output=True, text=True, timeout=500, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    made, words = ended.stdout.splitlines()[-1].split(" ", 1)
    assert words == "calls made to fail, 0 wrong"
    assert int(made) > 15
