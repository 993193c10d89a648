"""Pictures of the report for README and docs, made from the demo: `python tools/pictures_of_pages.py` (needs Chromium).

Trains the demo, opens its report in a headless browser and writes docs/images/report.png and report_dark.png.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from io import BytesIO
from pathlib import Path

from PIL import Image
from selenium import webdriver

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT, SHOWN = 1120, 1000, 900


def browser() -> webdriver.Chrome:
    """A headless Chromium."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


def picture(driver: webdriver.Chrome, url: str, path: Path, *, dark: bool = False) -> None:
    """Save the head of a page, scaled down and with few colours."""
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
    size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(url)
    time.sleep(0.5)
    shot = Image.open(BytesIO(driver.get_screenshot_as_png())).convert("RGB")
    ends = int(driver.execute_script("return document.querySelector('header').getBoundingClientRect().bottom")) + 30
    shot = shot.crop((0, 0, WIDTH, ends)).resize((SHOWN, ends * SHOWN // WIDTH), Image.Resampling.LANCZOS)
    shot.quantize(64).save(path, optimize=True)
    print(f"wrote {path.relative_to(ROOT)}")


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        run = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(place) / "run"
        if len(sys.argv) < 2:
            subprocess.run([sys.executable, ROOT / "examples" / "rare_events.py", run], check=True)
        driver = browser()
        try:
            url = (run / "report.html").absolute().as_uri()
            picture(driver, url, IMAGES / "report.png")
            picture(driver, url, IMAGES / "report_dark.png", dark=True)
        finally:
            driver.quit()


if __name__ == "__main__":
    main()
