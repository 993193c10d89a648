"""What every benchmark needs: timing, rows that are not run twice, and figures written down with the machine."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import polars as pl
import torch

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
#: Where `--quick` writes, so that rough figures never stand beside real ones.
QUICK_RESULTS = Path(tempfile.gettempdir()) / "setpoint-quick"
#: The most lines of a summary, and the width below which a value is not spread over lines.
MOST_LINES, WIDTH = 110, 110


def seconds(work: Callable[[], object]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def spent(work: Callable[[], Any]) -> tuple[float, float]:
    """The seconds on the wall and of the processor."""
    wall, own = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - own


def ratio(work: Callable[[], object], yardstick: Callable[[], object], repeats: int = 11) -> float:
    """The time of `work` as a multiple of that of `yardstick`: the median over `repeats` neighbouring calls.

    The two take turns, so that whatever else the machine does falls on both alike. One call of each goes unused.
    """
    work(), yardstick()
    return statistics.median(seconds(work) / seconds(yardstick) for _ in range(repeats))


class Journal:
    """The finished rows of a study, by key: a row that is written down is not run again.

    `results/rows/NAME.parquet` has the rows of runs that have ended, every cell as JSON text. A new row is appended to
    `NAME.jsonl` beside it, which is not kept in git, as soon as it is made; `fold` moves all to the parquet file.
    """

    def __init__(self, name: str, quick: bool = False) -> None:
        self.folded = results_folder(quick) / "rows" / f"{name}.parquet"
        self.path = self.folded.with_suffix(".jsonl")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if quick:
            # Rows of another version may lie there, and new ones take no time.
            self.folded.unlink(missing_ok=True)
            self.path.unlink(missing_ok=True)
        self.rows = self._written()

    def _written(self) -> dict[str, dict[str, Any]]:
        """The rows on disk; a line that was cut off by a crash is not one."""
        rows = pl.read_parquet(self.folded).to_dicts() if self.folded.is_file() else []
        told = [{name: json.loads(text) for name, text in row.items() if text is not None} for row in rows]
        for line in self.path.read_text().splitlines() if self.path.is_file() else []:
            with contextlib.suppress(json.JSONDecodeError):
                told.append(json.loads(line))
        return {row["key"]: row for row in told}

    def __contains__(self, key: str) -> bool:
        return key in self.rows

    def __getitem__(self, key: str) -> dict[str, Any]:
        return self.rows[key]

    def add(self, key: str, row: dict[str, Any]) -> dict[str, Any]:
        """Write one row, whole, before going on."""
        self.rows[key] = {"key": key, **row, "torch": torch.__version__}
        with self.path.open("a") as file:
            file.write(json.dumps(_short(self.rows[key])) + "\n")
        return self.rows[key]

    def row(self, key: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The row of this key, made if it is not there yet."""
        return self.rows[key] if key in self.rows else self.add(key, make())

    def fold(self) -> None:
        """Move all rows to the parquet file, if there are new ones; other processes may have written some of them."""
        if self.path.is_file():
            rows = self._written().values()
            cells = {
                name: [json.dumps(row[name]) if name in row else None for row in rows]
                for name in dict.fromkeys(name for row in rows for name in row)
            }
            whole = pl.DataFrame(cells, schema=dict.fromkeys(cells, pl.String))
            whole.write_parquet(self.folded, compression="zstd", compression_level=19)
            self.path.unlink()


def results_folder(quick: bool) -> Path:
    return QUICK_RESULTS if quick else RESULTS


def result_path(name: str, quick: bool = False) -> Path:
    return results_folder(quick) / f"{name}.summary.json"


def load_result(name: str, quick: bool = False) -> dict[str, Any]:
    """What `write_result` wrote: `figures`, `command`, `versions`, `machine`."""
    found: dict[str, Any] = json.loads(result_path(name, quick).read_text())
    return found


def load_figures(name: str) -> dict[str, Any]:
    """The figures of a result; none if it is not there yet."""
    return load_result(name)["figures"] if result_path(name).is_file() else {}


def made_by(result: dict[str, Any]) -> str:
    """The line under a title: the command that makes these figures, and where it was run."""
    return f"`{result['command']}`, torch {result['versions']['torch']}, {result['machine']['cpu_count']} cores."


def without_folders(given: list[str]) -> list[str]:
    """The arguments of a command but for the folders of this machine."""
    told = iter(given)
    folders = ("--data", "--cache", "--fashion", "--before", "--packages", "--flaml", "--keep", "--caravan", "--python",
               "--mapie")  # fmt: skip
    return [one for one in told if one not in folders or not next(told, "")]


def _short(value: Any) -> Any:
    """Seven digits are enough for a rate."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items()}
    return [_short(one) for one in value] if isinstance(value, (list, tuple)) else value


def compact(value: Any, most: int = MOST_LINES) -> str:
    """JSON on at most so many lines: from the outside on, what is too long for a line is spread, an item a line.

    Rows of one table are spread or not spread all alike.
    """
    spread: set[int] = set()
    lines, groups = 1, deque([[value]])
    while groups:
        group = groups.popleft()
        long = [one for one in group if isinstance(one, (dict, list)) and len(json.dumps(one)) > WIDTH]
        more = sum(len(one) + 1 for one in long)
        if lines + more <= most:
            lines += more
            spread |= {id(one) for one in long}
            groups += [list(one.values()) if isinstance(one, dict) else one for one in long]

    def text(one: Any, indent: str) -> str:
        if id(one) not in spread:
            return json.dumps(one, ensure_ascii=False)
        if isinstance(one, dict):
            rows = [f"{json.dumps(name, ensure_ascii=False)}: {text(item, indent + ' ')}" for name, item in one.items()]
        else:
            rows = [text(item, indent + " ") for item in one]
        first, last = "{}" if isinstance(one, dict) else "[]"
        return f"{first}\n" + ",\n".join(f"{indent} {row}" for row in rows) + f"\n{indent}{last}"

    return text(value, "") + "\n"


def write_result(name: str, payload: dict[str, Any], quick: bool = False) -> Path:
    """Write `benchmarks/results/NAME.summary.json`: the figures, their command, versions and machine, a row a line."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    run = spec.name.removesuffix(".__main__") if spec else ""
    module = run if run.startswith("benchmarks.") else f"benchmarks.studies.{name}"
    result = {
        "command": " ".join(["python -m", module, *without_folders(sys.argv[1:])]),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": numpy.__version__,
        },
        "machine": {
            "platform": f"{platform.system()} {platform.machine()}",
            "cpu_count": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        },
        "figures": _short(payload),
    }
    path = result_path(name, quick)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(compact(result))
    return path
