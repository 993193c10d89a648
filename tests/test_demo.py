"""What `make demo` runs, and the breast-cancer example, each from its data to a run on disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import setpoint
from marks import slow
from setpoint.run.artefact import load_run

EXAMPLE = Path(__file__).parents[1] / "examples" / "breast_cancer.py"


@slow
def test_the_demo_prints_the_answer_and_writes_the_run(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(setpoint.__file__).parents[1])}
    command = [sys.executable, str(EXAMPLE), "--out", "run"]
    demo = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert demo.returncode == 0, demo.stderr
    assert demo.stderr == ""
    for word in ("maximize tnr where recall >= 95%", "tried", "cross-entropy", "held-out", "threshold"):
        assert word in demo.stdout
    assert "Positive is 'malignant' in 'diagnosis'" in demo.stdout
    saved = load_run(tmp_path / "run")
    certificate = saved.point.certificate
    assert certificate is not None
    assert (certificate.statement, certificate.confidence) == ("recall >= 95%", 0.95)
    assert certificate.samples >= 59
    assert f"from {certificate.samples} calibration samples" in demo.stdout
    results = saved.about["results"]
    assert set(results) == {"default", "cross-entropy"}
    assert results["default"]["test"]["rates"]["recall"] >= 0.9
    assert results["default"]["test"]["objective"] >= 0.6
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    assert "Certified: recall &gt;= 95%" in (tmp_path / "run" / "report.html").read_text()


@slow
def test_make_demo_shows_what_asking_is_worth(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(setpoint.__file__).parents[1])}
    command = [sys.executable, str(EXAMPLE.with_name("rare_events.py")), "run", ".venv/bin/setpoint"]
    demo = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert (demo.returncode, demo.stderr) == (0, "")
    rows = {line[:24].strip(): line[24:].split() for line in demo.stdout.splitlines() if "%" in line[24:]}
    found = {name: float(rows[name][0].rstrip("%")) for name in ("setpoint", "cross-entropy, linear")}
    assert found["setpoint"] > found["cross-entropy, linear"] + 20
    assert (rows["setpoint"][-1], rows["LightGBM at 0.5"][-1]) == ("yes", "NO")
    assert "Certified: fpr <= 0.1% with confidence 95%" in demo.stdout
    assert ".venv/bin/setpoint fit yours.csv --target COLUMN" in demo.stdout
    assert "What drives the score" in (tmp_path / "run" / "report.html").read_text()
