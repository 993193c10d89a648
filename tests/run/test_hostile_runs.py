"""Runs that somebody changed on purpose, hashes and all: read whole and reported, or refused in one sentence."""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import json
import random
import re
import tempfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import load, save

import setpoint as sp
from marks import slow
from setpoint.errors import BadFile
from setpoint.report.of_run import read_material
from setpoint.report.page import make_page
from setpoint.run.artefact import load_run, save_run, seal
from setpoint.run.settings import Settings
from setpoint.run.table import fit_table
from tables import loans

ASKS = {
    "one": ("minimize fnr where fpr <= 30%", 0.9),
    "area": ("maximize recall over fpr in [0%, 50%] with 3 points", None),
    "groups": ("maximize recall where flagged.gap(married) <= 60%", None),
}


@functools.cache
def saved(kind):
    """The files of a small run."""
    text, confidence = ASKS[kind]
    settings = Settings(solver="cross-entropy", epochs=2, confidence=confidence, shares=(0.4, 0.2, 0.2, 0.2))
    run = fit_table(loans(200), "default", sp.ask(text), settings)
    with tempfile.TemporaryDirectory() as place:
        path = save_run(Path(place) / "run", run)
        return {file.name: file.read_bytes() for file in path.iterdir()}


def outcome_of(place, about, files):
    """Read and report a run with these files, every hash made anew: "read", or the refusal."""
    for name, content in files.items():
        (place / name).write_bytes(content)
        about["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return outcome_of_text(place, about)


def outcome_of_text(place, about):
    with contextlib.suppress(ValueError, RecursionError, AttributeError):
        about["seal"] = seal(about)
    # Nested too deeply for `json` to write it.
    (place / "setpoint.json").write_text(json.dumps(about).replace('"nested deeply"', "[" * 100_000 + "]" * 100_000))
    return outcome(lambda: make_page(read_material(place)))


def outcome(read):
    try:
        read()
    except BadFile as cause:
        said = str(cause)
        assert "\n" not in said
        assert len(said) < 600
        return said
    return "read"


def described(kind):
    """What `setpoint.json` says, without its hashes."""
    about = json.loads(saved(kind)["setpoint.json"])
    about.pop("seal")
    return about, {name: content for name, content in saved(kind).items() if name != "setpoint.json"}


def nodes(value, path=()):
    """The path of everything inside a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inside:
        yield (*path, key)
        yield from nodes(part, (*path, key))


MISSING = object()
ODD = [None, True, "", "odd", "two\nlines", "nested deeply", "9" * 300, -1, 0, 10**30, 1e308, -1e308, float("nan"),
       float("inf"), [], [[]], {}, {"odd": 1}, MISSING]  # fmt: skip


def change(about, path, value):
    inside = functools.reduce(lambda whole, key: whole[key], path[:-1], about)
    if value is MISSING:
        inside.pop(path[-1])
    else:
        inside[path[-1]] = value


@slow
@pytest.mark.parametrize("kind", ASKS)
def test_every_field_of_a_run_with_odd_values_is_read_or_refused(tmp_path, kind):
    """Every field, with one or two of the odd values drawn for it; nothing but `BadFile` may come of it."""
    about, files = described(kind)
    assert outcome_of(tmp_path, about, files) == "read"
    draw, refused = random.Random(kind), 0
    for path in nodes(about):
        for value in draw.sample(ODD, 2 if kind == "one" else 1):
            odd = copy.deepcopy(about)
            change(odd, path, value)
            refused += outcome_of_text(tmp_path, odd) != "read"
    assert refused > 100


@pytest.mark.parametrize("kind", ASKS)
def test_every_field_of_a_point_with_odd_values_is_read_or_refused(tmp_path, kind):
    point, refused = described(kind)[0]["point"], 0
    for path in nodes(point):
        for value in ODD:
            odd = copy.deepcopy(point)
            change(odd, path, value)
            (tmp_path / "point.json").write_text(json.dumps(odd))
            refused += outcome(lambda: str(sp.OperatingPoint.load(tmp_path / "point.json"))) != "read"
    assert refused > 150


def certify(**changes):
    return lambda about: about["point"]["certificate"].update(changes)


@pytest.mark.parametrize(
    ("lie", "message"),
    [
        (lambda about: about.update(format="1"), "its format is '1'"),
        (lambda about: about.update(format="-5"), "its format is '-5'"),
        (
            lambda about: about.update(format="1.1"),
            "which an earlier version wrote; this version cannot read it",
        ),
        (lambda about: about.update(format=1.1), "expected a text .*, found 1.1"),
        (certify(confidence=2.0), "expected a number from .* to 1, found 2.0"),
        (certify(samples=-5), "expected a whole number from 1 .*, found -5"),
        (certify(samples=2.5), "expected a whole number from 1 .*, found 2.5"),
        (certify(statement="fpr <= 1%"), "its certificate says 'fpr <= 1%', which is not what was asked"),
        (lambda about: about.update(ask="minimize fnr where fpr <= 1%"), "two values of ask"),
        (lambda about: about["point"].update(ask="minimize fnr where fpr <= 1%"), "which is not what was asked"),
        (lambda about: about["point"].update(threshold=[0.5]), "expected a number, found a list of 1"),
        (lambda about: about["results"]["cross-entropy"].update(threshold=0.5), "another threshold than the point"),
        (lambda about: about["settings"].update(ensemble=7), "two values of ensemble: 1 and 7"),
        (lambda about: about["rows"]["test"].update(positives=1000), "expected a whole number from 0 to"),
        (lambda about: about["files"].pop("scores.safetensors"), "there is no 'scores.safetensors'"),
    ],
)
def test_lies_are_refused_by_name(tmp_path, lie, message):
    about, files = described("one")
    assert outcome_of(tmp_path, about, files) == "read"
    lie(about)
    assert re.search(message, outcome_of_text(tmp_path, about))


@slow
def test_thresholds_by_the_million_are_refused_before_they_are_read(tmp_path):
    about, files = described("one")
    assert outcome_of(tmp_path, about, files) == "read"
    about["point"]["threshold"] = {str(i): 0.0 for i in range(200_000)}
    assert "expected a dict of at most 100000, found a dict of 200000" in outcome_of_text(tmp_path, about)
    about, files = described("area")
    assert outcome_of(tmp_path, about, files) == "read"
    about["point"].update(ask=about["ask"].replace(" 3 ", " 3000000 "), threshold=[0.0] * 3)
    assert "expected 3000000 thresholds" in outcome_of_text(tmp_path, about)
    (tmp_path / "setpoint.json").write_bytes(b" " * (64 * 2**20 + 1))
    assert "holds more than 64 MB" in outcome(lambda: load_run(tmp_path))


SCORES = {
    "not a number": lambda s: s["scores/test/cross-entropy"].fill_(torch.nan),
    "double precision": lambda s: s.update({"scores/test/cross-entropy": s["scores/test/cross-entropy"].double()}),
    "one class": lambda s: s["labels/test"].fill_(1),
    "three classes": lambda s: s["labels/test"][:1].fill_(2),
    "a row less": lambda s: s.update({"labels/test": s["labels/test"][1:]}),
    "two dimensions": lambda s: [s.update({name: s[name][:, None]}) for name in s if "/test" in name],
    "no test rows": lambda s: [s.pop(name) for name in list(s) if "/test" in name],
    "an unknown kind": lambda s: s.update({"more/test": s["labels/test"].clone()}),
    "a group too many": lambda s: s["groups/test"].fill_(7),
    "a group below 0": lambda s: s["groups/test"].fill_(-1),
}


@pytest.mark.parametrize("what", SCORES)
def test_odd_scores_are_refused(tmp_path, what):
    about, files = described("groups")
    scores = load(files["scores.safetensors"])
    SCORES[what](scores)
    said = outcome_of(tmp_path, about, {**files, "scores.safetensors": save(scores)})
    assert "is damaged" in said


@pytest.mark.parametrize(
    "line", ["7", "{", "[" * 100_000, '{"soft": "x"}', '{"soft": NaN}', '{"trained": 5}', '{"member": -1}', "null"]
)
def test_an_odd_history_is_refused(tmp_path, line):
    about, files = described("one")
    said = outcome_of(tmp_path, about, {**files, "history.jsonl": files["history.jsonl"] + line.encode() + b"\n"})
    assert "history.jsonl is missing or damaged" in said
