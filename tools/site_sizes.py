"""The size of every page of the built site in a browser: `python tools/site_sizes.py [build/site]` (needs Chromium).

Prints, for a desktop screen and a phone, the height of each page, its width beyond the screen, its weight in KB and
its errors on the console; the exit code is 1 if a page is beyond a limit.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pictures_of_pages import browser

#: The highest page on a desktop screen, in pixels, and the heaviest with its pictures, in KB.
HIGHEST, HEAVIEST = 12_000, 1_500
DESKTOP, PHONE = 1280, 360
LOADED = "return performance.getEntriesByType('resource').map(entry => entry.name)"


@dataclass(frozen=True)
class Size:
    """A page at one width of the screen."""

    page: str
    width: int
    height: int
    over: int
    kilobytes: int
    errors: tuple[str, ...]

    @property
    def faults(self) -> list[str]:
        """The limits that the page breaks, in words."""
        found = [f"{self.over} px wider than the screen"] if self.over > 0 else []
        if self.width == DESKTOP and self.height > HIGHEST:
            found.append(f"{self.height} px high")
        if self.kilobytes > HEAVIEST:
            found.append(f"{self.kilobytes} KB")
        return [f"{self.page} at {self.width} px: {fault}" for fault in (*found, *self.errors)]


def sizes(browser: Any, site: Path) -> Iterator[Size]:
    """Every page of a site on disk, on a desktop screen and on a phone."""
    for width in (DESKTOP, PHONE):
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width == PHONE}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        # The page of missing pages has addresses of a server's root, which a site on disk has not.
        for path in sorted({*site.rglob("*.html")} - {site / "404.html"}):
            browser.get(path.as_uri())
            time.sleep(0.1)
            height, over = browser.execute_script(
                "return [document.body.scrollHeight, document.documentElement.scrollWidth - innerWidth]"
            )
            files = {path, *(Path(name.removeprefix("file://")) for name in browser.execute_script(LOADED))}
            weight = sum(file.stat().st_size for file in files if file.is_file()) // 1000
            errors = tuple(line["message"] for line in browser.get_log("browser") if line["level"] == "SEVERE")
            yield Size(path.relative_to(site).as_posix(), width, height, over, weight, errors)


def main() -> int:
    driver = browser()
    try:
        found = list(sizes(driver, Path(sys.argv[1] if len(sys.argv) > 1 else "build/site").absolute()))
    finally:
        driver.quit()
    for one in sorted(found, key=lambda size: -size.height):
        print(f"{one.width:5} {one.height:6} px {one.kilobytes:5} KB  {one.page}")
    faults = [fault for one in found for fault in one.faults]
    print(*faults, f"{len(found) // 2} pages; {len(faults)} faults", sep="\n")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
