"""The tables of the page on scale are what the results on disk say."""

from benchmarks import scale_page


def test_the_page_on_scale_is_up_to_date():
    assert scale_page.PAGE.read_text() == scale_page.page(), "run: python -m benchmarks.scale_page"
