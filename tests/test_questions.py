"""docs/questions.md, cell by cell: every kind of question is tried at every door."""

import pytest

from marks import slow
from questions import DOORS, LONG, QUESTIONS, cells_of_the_page, outcome

CELLS = [
    pytest.param(name, door, marks=slow if door in LONG else (), id=f"{name}: {door}")
    for name in QUESTIONS
    for door in DOORS
]


def test_the_page_has_a_cell_for_every_question_at_every_door():
    page = cells_of_the_page()
    for name in QUESTIONS:
        for door in DOORS:
            assert page.get((name, door)), f"no cell for {name} at {door}; run python tests/questions.py"


@pytest.mark.parametrize(("name", "door"), CELLS)
def test_the_cell_is_as_the_page_says(name, door):
    assert outcome(DOORS[door], QUESTIONS[name]) == cells_of_the_page()[name, door]
