"""The pages of the evidence in a real browser: the index on one screen, no page too tall, nothing clipped."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from benchmarks import evidence

#: No page is taller, in pixels.
TALLEST = 12_000


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The pages of the evidence alone, with the theme and the style of the whole site."""
    home = tmp_path_factory.mktemp("site")
    docs = evidence.FOLDER.parent
    for folder in ("evidence", "images"):
        shutil.copytree(docs / folder, home / "docs" / folder)
    for page in ("style.css", "measured.md", "measured_fits.md", "peers.md", "quality.md"):
        shutil.copy(docs / page, home / "docs" / page)
    lines = (docs.parent / "mkdocs.yml").read_text().splitlines()
    theme = lines[lines.index("theme:") : lines.index("extra_css: [style.css]") + 1]
    more = ["site_name: setpoint", "use_directory_urls: false", "site_dir: built", "plugins: []", *theme,
            "markdown_extensions: [attr_list, tables]"]  # fmt: skip
    (home / "mkdocs.yml").write_text("\n".join(more) + "\n")
    subprocess.run([sys.executable, "-m", "mkdocs", "--quiet", "build"], cwd=home, check=True, capture_output=True)
    return home / "built"


def test_the_index_fits_a_screen_of_1280_by_800(browser, site):
    browser.set_window_size(1280, 800)
    browser.get((site / "evidence" / "index.html").as_uri())
    bottom, wide = browser.execute_script(
        "const own = document.querySelector('table').getBoundingClientRect(), page = document.documentElement;"
        "return [own.bottom, page.scrollWidth]"
    )
    assert len(browser.find_elements("css selector", "tbody tr")) <= 25
    assert bottom <= 800
    assert wide <= 1280


def test_no_page_is_too_tall_or_wider_than_the_screen_and_no_table_has_to_be_scrolled(browser, site):
    browser.set_window_size(1280, 800)
    for path in sorted((site / "evidence").glob("*.html")):
        browser.get(path.as_uri())
        height, wide, hidden = browser.execute_script(
            "const page = document.documentElement;"
            "const hidden = box => box.scrollWidth - box.clientWidth;"
            "const boxes = [...document.querySelectorAll('.md-typeset__scrollwrap, .md-typeset table')];"
            "return [page.scrollHeight, page.scrollWidth, Math.max(0, ...boxes.map(hidden))]"
        )
        assert height <= TALLEST, path.name
        assert wide <= 1280, path.name
        assert hidden <= 0, path.name
