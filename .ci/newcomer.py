"""Install a wheel or an sdist in a new environment and do what the README says, from the top.

    python .ci/newcomer.py dist/setpoint-0.2.0-py3-none-any.whl

Every Python block runs in a process of its own, then every line that begins with `setpoint`, on a made table. Prints
how long each took; ends with the first that fails.
"""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main(package: Path) -> None:
    readme = (ROOT / "README.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", readme, re.M | re.S)
    commands = [line.split("  #")[0].strip() for line in re.findall(r"^    (setpoint .*)$", readme, re.M)]
    assert blocks, "the README has no Python blocks"
    assert commands, "the README has no commands"
    with tempfile.TemporaryDirectory() as place:
        home, tools = Path(place) / "home", Path(place) / "venv" / "bin"
        home.mkdir()
        venv.create(tools.parent, with_pip=True)
        pip = [str(tools / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        do("install", [*pip, "-r", str(ROOT / "requirements.txt"), f"{package.resolve()}[all]"], home)
        for name, rows in (("data", 3000), ("new", 50), ("january", 1000)):
            (home / f"{name}.csv").write_text(table(rows, labelled=name != "new"))
        for number, block in enumerate(blocks):
            do(f"block {number + 1}", [str(tools / "python"), "-W", "ignore", "-c", block], home)
        for command in commands:
            if "--resume" in command or "|" in command:  # Nothing here was killed, and there is no shell.
                continue
            do(command, [str(tools / "setpoint"), *shlex.split(command)[1:]], home)
        saved = json.loads((home / "run" / "setpoint.json").read_text())
        assert saved["point"]["feasible"], saved["point"]
        assert (home / "run" / "report.html").stat().st_size > 10_000
        assert len((home / "decisions.csv").read_text().splitlines()) == 51


def do(name: str, command: list[str], home: Path) -> None:
    started = time.perf_counter()
    bare = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=home, env=bare, capture_output=True, text=True, check=False)
    print(f"{time.perf_counter() - started:6.1f} s  {name}", flush=True)
    if done.returncode:
        sys.exit(f"{name} ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")


def table(rows: int, labelled: bool) -> str:
    draw = random.Random(rows)
    lines = ["age,amount,job,label" if labelled else "age,amount,job"]
    for _ in range(rows):
        label = draw.random() < 0.4
        own = [f"{draw.gauss(40 + 10 * label, 9):.1f}", f"{draw.lognormvariate(1 + 2.5 * label, 0.6):.2f}"]
        own.append(draw.choice(["nurse", "clerk", "none" if label else "nurse"]))
        lines.append(",".join([*own, "yes" if label else "no"] if labelled else own))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
