"""Scores and decisions of a CSV file by an exported model: python predict.py MODEL.onnx ROWS.csv > ANSWERS.csv

Needs numpy and onnxruntime alone. The first line of the file names the columns; - reads standard input."""

import csv
import itertools
import json
import math
import re
import sys

import numpy as np
import onnxruntime

MISSING, AT_ONCE = ("", "?", "na", "n/a", "nan", "null"), 10_000


def number(text: str) -> float:
    if "_" in text or not text.isascii():
        raise ValueError(f"{text!r} is no number as training had them")
    return math.nan if text.lower() in MISSING else float(text)


def column(texts: tuple[str, ...], kind: str, width: int, spelling: tuple[tuple[str, str], ...] = ()) -> np.ndarray:
    read = {"number": number, "duration": number, "boolean": lambda text: {"true": True, "false": False}[text.lower()]}
    bare = [text if kind == "words" else text.strip() for text in texts]
    for pattern, instead in spelling:  # From 1.234,5 or 31.12.2024 to what the model takes.
        bare = [re.sub(pattern, instead, text) for text in bare]
    if kind == "list of numbers":
        return np.array([json.loads(t) if t.lower() not in MISSING else [math.nan] * width for t in bare], dtype=float)
    return np.array([[read.get(kind, str)(text)] for text in bare], dtype=None if kind in read else object)


def main(model: str, rows: str) -> None:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    about = session.get_modelmeta().custom_metadata_map
    inputs, outputs, written = (json.loads(about[f"setpoint.{each}"]) for each in ("inputs", "outputs", "written"))
    source = sys.stdin if rows == "-" else open(rows, newline="", encoding="utf-8-sig")  # noqa: SIM115
    first, answers, done = source.readline(), csv.writer(sys.stdout, lineterminator="\n"), 0
    mark = max(",;\t|", key=first.count)
    names = [name.strip() for name in next(csv.reader([first], delimiter=mark), ())]
    if odd := [each["column"] for each in inputs if names.count(each["column"]) != 1]:
        sys.exit(f"{rows} lacks column {odd[0]!r}, which the model takes, or has it twice")
    answers.writerow([name for names in outputs.values() for name in names])
    try:
        table = (row for row in csv.reader(source, delimiter=mark, strict=True) if row)
        while some := list(itertools.islice(table, None if "rank" in outputs else AT_ONCE)):  # Ranks need whole lists.
            texts = dict(zip(names, zip(*some, strict=True), strict=True))
            feeds = {e.pop("name"): column(texts[e.pop("column")], **e) for e in map(dict, inputs)}
            for *numbers, decided in zip(*(part.reshape(len(some), -1) for part in session.run(list(outputs), feeds))):
                words = (written.get(str(each), each) for each in decided.tolist())
                answers.writerow([*(str(each) for part in numbers for each in part), *words])
            done += len(some)
    except Exception as cause:
        sys.exit(f"{rows}, row {done + 1} or later: a value cannot be read or decided: {cause!r}")


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) == 3 else sys.exit(__doc__)
