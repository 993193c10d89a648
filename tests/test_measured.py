"""The page of figures is what the results on disk say, and nothing else."""

from benchmarks.tables import PAGE, page


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == page(), "run: python -m benchmarks.tables"
