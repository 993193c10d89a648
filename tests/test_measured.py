"""The page of figures is what the results on disk say, and nothing else."""

from benchmarks import quality
from benchmarks.tables import PAGE, page


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == page(), "run: python -m benchmarks.tables"


def test_the_page_on_testing_is_up_to_date():
    assert quality.PAGE.read_text() == quality.page(), "run: python -m benchmarks.quality"
