"""Scores and decisions of a CSV file by an exported model: python predict.py MODEL.onnx ROWS.csv > ANSWERS.csv

Needs numpy and onnxruntime alone. The CSV file has column names in its first line; - reads standard input.
"""

import csv
import itertools
import json
import math
import sys

import numpy as np
import onnxruntime

MISSING, AT_ONCE = ("", "?", "na", "n/a", "nan", "null"), 10_000


def number(text: str) -> float:
    if "_" in text:
        raise ValueError(f"could not convert string to float: {text!r}")
    return math.nan if text.strip().lower() in MISSING else float(text)


def column(texts: list[str], kind: str, width: int) -> np.ndarray:
    if kind == "list of numbers":
        absent = [math.nan] * width
        return np.array([absent if t.strip().lower() in MISSING else json.loads(t) for t in texts], dtype=np.float64)
    if kind == "boolean":
        return np.array([{"true": True, "false": False}[t.strip().lower()] for t in texts]).reshape(-1, 1)
    values = list(map(number, texts)) if kind in ("number", "duration") else np.array(texts, dtype=object)
    return np.array(values).reshape(-1, 1)


def main(model: str, rows: str) -> None:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    about = session.get_modelmeta().custom_metadata_map
    inputs, outputs, written = (json.loads(about[f"setpoint.{each}"]) for each in ("inputs", "outputs", "written"))
    reader = csv.DictReader(sys.stdin if rows == "-" else open(rows, newline="", encoding="utf-8-sig"))  # noqa: SIM115
    for name in (each["column"] for each in inputs):
        if name not in (reader.fieldnames or ()):
            sys.exit(f"{rows} lacks column {name!r}, which the model takes")
    answers, done = csv.writer(sys.stdout, lineterminator="\n"), 0
    answers.writerow([name for names in outputs.values() for name in names])
    # Ranks are those within whole lists, so all rows are read at once.
    while some := list(itertools.islice(reader, None if "rank" in outputs else AT_ONCE)):
        try:
            feeds = {e["name"]: column([r[e["column"]] or "" for r in some], e["kind"], e["width"]) for e in inputs}
            found = dict(zip(outputs, session.run(list(outputs), feeds)))
        except Exception as cause:
            sys.exit(f"{rows}, rows {done + 1} to {done + len(some)}: a value cannot be read or decided: {cause!r}")
        for *numbers, decided in zip(*(part.reshape(len(some), -1) for part in found.values())):
            texts = (written.get(str(each), each) for each in decided.tolist())
            answers.writerow([*(str(each) for part in numbers for each in part), *texts])
        done += len(some)


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) == 3 else sys.exit(__doc__)
