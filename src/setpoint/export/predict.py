"""Scores and decisions of a CSV file by an exported model: python predict.py MODEL.onnx ROWS.csv > ANSWERS.csv

Needs numpy and onnxruntime alone. The first line of the file names the columns; - reads standard input."""

import csv
import datetime
import itertools
import json
import math
import re
import signal
import sys
from typing import Any

import numpy as np
import onnxruntime

MISSING, AT_ONCE = ("", "?", "na", "n/a", "nan", "null"), 10_000
NUMBERS = ("number", "duration", "list of numbers")


class OddRow(Exception):
    """The place of a row that cannot be read or decided, and why."""


def number(text: str) -> float:
    if "_" in text or not text.isascii():
        raise ValueError
    return float(text)


def values(text: str, kind: str, width: int, shape: str) -> list[Any]:
    """One text as the model takes it; a ValueError for text that spells nothing of the kind."""
    if kind == "boolean":
        return [("false", "true").index(text.lower()) == 1]
    if kind != "words" and text.lower() in MISSING:
        return [math.nan] * width if kind in NUMBERS else [text]
    if kind == "list of numbers":
        parts = text[1:-1].split(",")
        if text[0] + text[-1] != "[]" or len(parts) != width:
            raise ValueError
        return [number(part.strip()) for part in parts]
    if shape and not re.fullmatch(shape, text, re.ASCII):
        raise ValueError
    if kind in ("time", "time with a zone"):
        datetime.date.fromisoformat(text[:10])
    return [number(text) if kind in NUMBERS else text]


def column(
    texts: tuple[str, ...], kind: str, width: int, spelling: list[list[str]], shape: str, odd: str
) -> np.ndarray:
    found = []
    for row, text in enumerate(texts):
        bare = text if kind == "words" else text.strip()
        for pattern, instead in spelling:  # From 1.234,5 or 31.12.2024 to what the model takes.
            bare = re.sub(pattern, instead, bare)
        try:
            found.append(values(bare, kind, width, shape))
        except ValueError:
            raise OddRow(row, odd.replace("\0", repr(text))) from None
    kept = float if kind in NUMBERS else bool if kind == "boolean" else object
    return np.array(found, dtype=kept).reshape(len(texts), width)


def run(session: onnxruntime.InferenceSession, outputs: list[str], feeds: dict[str, np.ndarray], rows: range) -> Any:
    try:
        return session.run(outputs, {name: each[rows.start : rows.stop] for name, each in feeds.items()})
    except Exception:
        for row in rows if len(rows) > 1 else ():
            run(session, outputs, feeds, range(row, row + 1))
        raise OddRow(rows.start, "the model has no decision for its group or its list") from None


def main(model: str, rows: str) -> None:
    onnxruntime.set_default_logger_severity(4)  # What the model refuses is said below.
    done = 0
    try:
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        about = session.get_modelmeta().custom_metadata_map
        inputs, outputs, written = (json.loads(about[f"setpoint.{each}"]) for each in ("inputs", "outputs", "written"))
    except Exception as cause:
        sys.exit(f"{model} is no model that setpoint export wrote: {cause}")
    try:
        source = sys.stdin if rows == "-" else open(rows, newline="", encoding="utf-8-sig")  # noqa: SIM115
        first, answers = source.readline().removeprefix("\ufeff"), csv.writer(sys.stdout, lineterminator="\n")
        mark = max(",;\t|", key=first.count)
        names = [name.strip() for name in next(csv.reader([first], delimiter=mark), ())]
        if odd := [each["column"] for each in inputs if names.count(each["column"]) != 1]:
            sys.exit(f"{rows} lacks column {odd[0]!r}, which the model takes, or has it twice")
        answers.writerow([name for names in outputs.values() for name in names])
        table = (row for row in csv.reader(source, delimiter=mark, strict=True) if row)
        while some := list(itertools.islice(table, None if "rank" in outputs else AT_ONCE)):  # Ranks need whole lists.
            for place, row in enumerate(some):
                if len(row) != len(names):
                    raise OddRow(place, f"it holds {len(row)} value{'s'[: len(row) != 1]} for {len(names)} columns")
            texts = dict(zip(names, zip(*some)))
            feeds = {e.pop("name"): column(texts[e.pop("column")], **e) for e in map(dict, inputs)}
            parts = run(session, list(outputs), feeds, range(len(some)))
            for *numbers, decided in zip(*(part.reshape(len(some), -1) for part in parts)):
                words = (written.get(str(each), each) for each in decided.tolist())
                answers.writerow([*(str(each) for part in numbers for each in part), *words])
            done += len(some)
    except OddRow as refusal:
        sys.exit(f"{rows}, row {done + 1 + refusal.args[0]}: {refusal.args[1]}")
    except OSError as cause:
        sys.exit(f"{rows} cannot be read: {cause.strerror}")
    except (UnicodeError, csv.Error) as cause:
        sys.exit(f"{rows}, row {done + 1} or later: it cannot be read as UTF-8 text with values in columns: {cause}")


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):  # A reader that has enough ends the script without a word.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    main(*sys.argv[1:]) if len(sys.argv) == 3 else sys.exit(__doc__)
