"""The page on asks: every example is read, every near miss and refusal is as it says, and the tables are complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import setpoint as sp
from setpoint.errors import BadProblem
from setpoint.measure.rate import NAMED
from setpoint.problem import language
from setpoint.problem.phrases import AREAS, SYNONYMS

PAGE = (Path(__file__).parents[2] / "docs" / "asks.md").read_text()
EXAMPLES = [line for block in re.findall(r"^```text\n(.*?)^```$", PAGE, re.M | re.S) for line in block.splitlines()]


def rows(heading: str) -> list[list[str]]:
    """The cells of the table under a heading."""
    table = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in table.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_is_read_and_reads_back(text):
    problem = sp.ask(text)
    assert sp.ask(str(problem)) == problem


def test_there_is_an_example_of_every_kind():
    assert {sp.ask(text).kind for text in EXAMPLES} == {"cut", "band", "worth", "classes", "labels", "lists"}


@pytest.mark.parametrize(("written", "meant"), rows("Near misses"))
def test_near_misses_are_answered_as_the_page_says(written, meant):
    with pytest.raises(BadProblem) as refusal:
        sp.ask(written.strip("`"))
    assert f"did you mean '{meant.strip('`')}'" in str(refusal.value)


@pytest.mark.parametrize("row", rows("What cannot be asked"), ids=lambda row: row[0])
def test_what_cannot_be_asked_is_refused(row):
    with pytest.raises(BadProblem):
        sp.ask(row[0].strip("`"))


def test_the_grammar_is_that_of_the_module():
    block = PAGE.partition("## Grammar\n\n")[2].partition("\n\nUpper")[0]
    assert "\n".join(line[4:] for line in block.splitlines()) == language.__doc__.partition("\n\n")[2].rstrip()


def test_every_rate_and_every_synonym_is_in_the_table():
    names = [re.split(r"\(", row[0].strip("`"))[0] for row in rows("Rates")]
    areas = [name.replace("_", " ") for name in AREAS]
    assert names == [*NAMED, "review", "f_score", "cost", *areas]
    for name, _, synonyms in rows("Rates"):
        plain = name.strip("`").replace(" ", "_")
        expected = [word for word, known in SYNONYMS.items() if known == plain]
        found = re.findall(r"`([^`]+)`", synonyms)
        assert sorted(found) == sorted(expected) or plain == "f_score(b)"


@pytest.mark.parametrize("name", ["f1", "f2", "f1_score"])
def test_f_scores_are_read_as_the_table_says(name):
    assert sp.ask(f"maximize {name}").objective == sp.f_score(int(name[1]))
