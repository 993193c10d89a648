"""A sample of `benchmarks.faults.system_calls`: calls that change a file, made to fail one at a time."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from benchmarks.faults.system_calls import shim


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="what lets calls fail is compiled on the spot")
def test_a_failed_call_leaves_the_old_file_or_the_new_one_and_one_sentence(tmp_path):
    loaded = {**os.environ, "LD_PRELOAD": str(shim(tmp_path))}
    sample = [sys.executable, "-m", "benchmarks.faults.system_calls", "--every", "25", "--quick"]
    ended = subprocess.run(sample, capture_output=True, text=True, timeout=500, check=False, env=loaded)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    made, words = ended.stdout.splitlines()[-1].split(" ", 1)
    assert words == "calls made to fail, 0 wrong"
    assert int(made) > 9
