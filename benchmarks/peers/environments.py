"""Makes a virtual environment for each peer, from PyPI, outside the repository.

    python -m benchmarks.peers.environments [--cache DIR] [NAME ...]

Peers that need torch see the one that is installed here, so that none of them pulls another. What did not install is
written down with the last line of its error, and reported as that.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import venv
from pathlib import Path

import torch

from benchmarks.common.sets import CACHE

#: What each peer installs; with `own torch` it is installed without dependencies beside the torch that is here.
PEERS: dict[str, dict[str, list[str]]] = {
    "tfco": {"packages": ["tensorflow-cpu==2.21.0", "tensorflow-constrained-optimization==0.2"]},
    "fairlearn": {"packages": ["fairlearn==0.15.0"]},
    "humancompatible": {"beside torch": ["humancompatible-train==0.4.2"]},
    "libauc": {"beside torch": ["libauc==2.0.1"]},
    "cvxpylayers": {
        "packages": ["cvxpy==1.9.3", "diffcp==1.1.9", "ecos==2.0.14"],
        "beside torch": ["cvxpylayers==1.2.0"],
    },
    "mapie": {"packages": ["mapie==1.6.0"]},
    "catboost": {"packages": ["catboost==1.2.10", "scikit-learn==1.9.1"]},
    "empulse": {"packages": ["empulse==0.13.1"]},
    # As they come these three fail: NannyML misses statsmodels, Evidently pandas 2, FairGBM scikit-learn before 1.6.
    "nannyml": {"packages": ["nannyml==0.13.1", "statsmodels==0.15.0"]},
    "evidently": {"packages": ["evidently==0.7.23", "pandas==2.3.3"]},
    "fairgbm": {"packages": ["fairgbm==0.9.14", "scikit-learn==1.5.2"]},
    "fairgbm_today": {"packages": ["fairgbm==0.9.14", "scikit-learn==1.9.1"]},
    "autogluon": {"packages": ["autogluon.tabular[lightgbm]==1.6.3"]},
    "skl2onnx": {"packages": ["skl2onnx==1.20.0", "onnxruntime==1.31.1", "scikit-learn==1.9.1"]},
    "onnxmltools": {"packages": ["onnxmltools==1.16.0", "skl2onnx==1.20.0", "onnxruntime==1.31.1", "lightgbm==4.6.0"]},
    "ap_perf": {"packages": ["numba==0.68.1", "setuptools==84.2.1"], "beside torch": ["ap-perf==0.1.1"]},
}


def python_of(name: str, cache: str | Path) -> Path:
    return Path(cache) / "peers" / name / "bin" / "python"


def install(name: str, cache: str | Path) -> str:
    """Make one environment; the empty text, or what went wrong."""
    home = Path(cache) / "peers" / name
    # One that was cut off half-made has a Python and no pip.
    if not list(home.glob("lib/python*/site-packages/pip")):
        venv.create(home, with_pip=True, clear=True)
    wanted = PEERS[name]
    if "beside torch" in wanted:
        site = next((home / "lib").glob("python*/site-packages"))
        (site / "torch_here.pth").write_text(str(Path(torch.__file__).parents[1]) + "\n")
    pip = [str(python_of(name, cache)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for packages, flags in ((wanted.get("packages"), []), (wanted.get("beside torch"), ["--no-deps"])):
        if packages:
            done = subprocess.run([*pip, *flags, *packages], capture_output=True, text=True, check=False)
            if done.returncode:
                return [line for line in done.stderr.splitlines() if line.strip()][-1]
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*PEERS, []], help="all unless given")
    parser.add_argument("--cache", default=str(CACHE))
    options = parser.parse_args()
    path = Path(options.cache) / "peers" / "installed.json"
    found = json.loads(path.read_text()) if path.is_file() else {}
    for name in options.names or PEERS:
        found[name] = install(name, options.cache)
        print(f"{name}: {found[name] or 'installed'}", flush=True)
        path.write_text(json.dumps(found, indent=2) + "\n")
    sys.exit(0)


if __name__ == "__main__":
    main()
