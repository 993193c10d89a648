"""The page of a run's life: its numbers, and what a reader sees in a browser."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest

import setpoint as sp
from marks import slow
from setpoint.report.life import make_life

ASK = "minimize fnr where fpr <= 10% and flagged <= 60%"


def watched(looks=6, name="July"):
    draw = np.random.default_rng(0)
    labels = draw.random(600) < 0.3
    point = sp.calibrate(ASK, labels + draw.normal(size=600), labels)
    watch = point.watch()
    for month in range(looks):
        labels = draw.random(200) < 0.3
        watch.update(labels + draw.normal(size=200) + (month > 3), labels, name=f"{name} {month}")
    return watch


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])


def test_the_numbers_are_those_of_the_watch_after_each_look():
    watch = watched()
    data = data_of(make_life(watch))
    assert [look["number"] for look in data["looks"]] == [1, 2, 3, 4, 5, 6]
    last = data["looks"][-1]["bounds"]
    assert [one["rate"] for one in last] == [bound.rate for bound in watch.bounds]
    assert [one["against"] for one in last] == pytest.approx([math.log10(b.against) for b in watch.bounds])
    assert data["bounds"][0]["limit"] == pytest.approx(math.log10(2 / 0.05))
    earlier = watched(3).bounds[0]
    assert data["looks"][2]["bounds"][0]["rate"] == earlier.rate


def test_many_looks_are_thinned_and_names_stay_text(monkeypatch):
    monkeypatch.setattr("setpoint.report.life.MOST", 3)
    page = make_life(watched(name="</script><b>"))
    assert [look["number"] for look in data_of(page)["looks"]] == [1, 3, 5, 6]
    assert "<b>" not in page


@slow
def test_the_page_draws_every_bound_and_fits_a_phone(browser, tmp_path):
    watch = watched()
    watch.restart(watch.stored)
    (tmp_path / "life.html").write_text(make_life(watch))
    browser.get((tmp_path / "life.html").as_uri())
    assert len(browser.find_elements("css selector", "#bounds svg[role=img]")) == 4
    assert len(browser.find_elements("css selector", "#drift svg[role=img]")) == 1
    assert len(browser.find_elements("css selector", "#bounds .own-rule")) == 4
    heights = [legend.size["height"] for legend in browser.find_elements("css selector", ".legend")]
    assert len(heights) == 3
    assert max(heights) < 60
    browser.set_window_size(500, 900)
    assert len(browser.find_elements("css selector", ".legend")) == 3
    assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    assert [row for row in browser.get_log("browser") if row["level"] == "SEVERE"] == []
