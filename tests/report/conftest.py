"""A browser for the tests of pages, started once."""

from __future__ import annotations

import os
import shutil

import pytest
from selenium import webdriver

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")


@pytest.fixture(scope="session")
def browser():
    missing = [name for name, there in (("chromium", CHROMIUM), ("chromedriver", DRIVER)) if not there]
    if missing:
        sentence = f"{', '.join(missing)} not found; the report was not tried in a browser"
        if os.environ.get("CI"):
            pytest.fail(sentence)
        pytest.skip(sentence)
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1200,900",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()
