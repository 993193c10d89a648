"""The tables of the page on scale are what the results on disk say."""

from benchmarks import scale


def test_the_page_on_scale_is_up_to_date():
    assert scale.PAGE.read_text() == scale.page(), "run: python -m benchmarks.scale"
