"""The examples run as they stand, in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

import setpoint
from marks import slow

EXAMPLES = Path(__file__).parents[1] / "examples"


@slow
def test_heat_maps(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(setpoint.__file__).parents[1]), "MPLBACKEND": "Agg"}
    command = [sys.executable, str(EXAMPLES / "heat_maps.py"), "maps.png"]
    run = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "maps.png").stat().st_size > 5000
