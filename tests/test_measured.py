"""The page of figures is what the results on disk say, and nothing else."""

import pytest
from benchmarks import passages, quality
from benchmarks.tables import PAGE, page


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == page(), "run: python -m benchmarks.tables"


def test_the_page_on_testing_is_up_to_date():
    assert quality.PAGE.read_text() == quality.page(), "run: python -m benchmarks.quality"


@pytest.mark.parametrize("path", passages.pages(), ids=lambda path: path.name)
def test_tables_within_pages_are_up_to_date(path):
    assert path.read_text() == passages.filled(path.read_text()), "run: python -m benchmarks.tables"


def test_the_decision_table_is_filled():
    choosing = passages.DOCS / "choosing.md"
    assert choosing in passages.pages()
    assert "best of 21 class weights in" in choosing.read_text()
