"""Bytes for one reader, guided by the branches they reach; started by `benchmarks.faults.fuzz`, needs atheris.

python -m benchmarks.faults.fuzz_bytes ask -max_total_time=20
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

with atheris.instrument_imports(
    include=["setpoint.problem", "setpoint.data", "setpoint.run.artefact", "setpoint.measure.rate"]
):
    import setpoint as sp
    from setpoint.run import artefact  # noqa: F401

from fuzz.laws import LIMIT
from fuzz.of_files import reads, saved, scheme
from fuzz.of_problem import judged
from setpoint.serve.stored import ABOUT, MODEL


def ask(data: bytes) -> None:
    problem = sp.ask(data.decode("utf-8", "replace"))
    assert sp.ask(str(problem)) == problem


def point(data: bytes) -> None:
    judged(sp.OperatingPoint.from_dict(_json(data)))


def schema(data: bytes) -> None:
    scheme(_json(data))


def run(data: bytes) -> None:
    reads({**saved(), ABOUT: data})


def parameters(data: bytes) -> None:
    reads({**saved(), MODEL: data})


def _json(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise sp.SetpointError("not JSON") from None


def seeds() -> dict[str, list[bytes]]:
    """What each reader is written for: the bytes that the others are bred from."""
    about = json.loads(saved()[ABOUT])
    asks = [
        "minimize fnr where fpr <= 1%", "maximize precision over recall in [95%, 100%] with 5 points",
        'minimize error where recall.gap("the sex") <= 0.02 and fpr <= 0.5', "max f_score(2) where flagged == 2e-2",
    ]  # fmt: skip
    return {
        "ask": [text.encode() for text in asks],
        "point": [json.dumps(about["point"]).encode()],
        "schema": [json.dumps(about["schema"]).encode()],
        "run": [saved()[ABOUT]],
        "parameters": [saved()[MODEL]],
    }


READERS: dict[str, Callable[[bytes], None]] = {
    "ask": ask, "point": point, "schema": schema, "run": run, "parameters": parameters,
}  # fmt: skip


def main() -> None:
    name, *rest = sys.argv[1:]
    reader = READERS[name]

    def one(data: bytes) -> None:
        try:
            reader(data)
        except sp.SetpointError as refusal:
            if not str(refusal).strip():
                raise AssertionError("a refusal must say why") from refusal

    with tempfile.TemporaryDirectory() as place:
        for number, data in enumerate(seeds()[name]):
            (Path(place) / str(number)).write_bytes(data)
        options = [f"-timeout={LIMIT:g}", "-rss_limit_mb=4096", "-max_len=8192", "-print_final_stats=1"]
        atheris.Setup([sys.argv[0], *rest, *options, f"-artifact_prefix={place}/", place], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
