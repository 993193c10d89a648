"""The site from disk, in a real browser: search answers, nothing fails, nothing hangs over the edge of a phone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from marks import slow

ROOT = Path(__file__).parents[2]
PAGES = ("index", "answers", "tutorial", "evidence/index", "how_to/index", "how_to/table", "concepts/certificate")
#: No page is higher on a desktop screen.
HIGHEST = 12_000


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "--quiet", "build", "--strict", "-d", str(place)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[-2000:]
    return place


def see(browser, path, width):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(path.as_uri())
    time.sleep(0.3)


@slow
def test_search_works_from_disk(browser, site):
    see(browser, site / "index.html", 1280)
    box = browser.find_element("css selector", ".md-search__input")
    browser.execute_script("arguments[0].focus()", box)
    box.send_keys("certificate")
    for _ in range(50):
        if found := browser.find_elements("css selector", ".md-search-result__item"):
            break
        time.sleep(0.2)
    assert len(found) > 3


@slow
def test_pages_fit_a_phone_and_are_not_endless(browser, site):
    for name in PAGES:
        see(browser, site / f"{name}.html", 360)
        wide = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1], f"{name} is {wide[0]} px wide"
        errors = [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]
        assert errors == [], name
    high = {}
    for path in sorted(site.rglob("*.html")):
        see(browser, path, 1280)
        high[path.relative_to(site).as_posix()] = browser.execute_script("return document.body.scrollHeight")
    assert {name: height for name, height in high.items() if height > HIGHEST} == {}
