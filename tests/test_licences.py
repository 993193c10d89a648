"""THIRD_PARTY.md names each package that pyproject.toml asks for, with a licence."""

from __future__ import annotations

from pathlib import Path

from licences import HEAD, licence_of, needed

PAGE = (Path(__file__).parents[1] / "THIRD_PARTY.md").read_text()


def test_each_package_has_a_line_with_its_licence():
    assert PAGE.startswith(HEAD)
    lines = {line.split(" | ")[0].strip("| "): line for line in PAGE.splitlines() if line.startswith("| ")}
    assert set(lines) - {"package"} == set(needed())
    assert "not stated" not in PAGE
    assert not [name for name, line in lines.items() if "agpl" in line.lower()]


def test_a_licence_is_read_from_the_metadata():
    assert licence_of("numpy").startswith("BSD-3-Clause")
