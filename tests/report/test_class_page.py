"""The page of several classes: its slider moves the shift of one class, and tables, rates and bounds follow exactly."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
import torch

import setpoint as sp
from marks import slow
from setpoint.measure.sample import Sample
from setpoint.problem.shifts import Shifts
from setpoint.report.class_page import make_class_page
from setpoint.report.class_positions import counts_of, find_class_positions
from setpoint.report.material import Contender, Material

NAMES = ("mole", "melanoma", "<b>other</b>")
ASK = "minimize error where recall of class melanoma >= 75% and precision of class melanoma >= 60%"


def rows(seed, size=300, digits=3):
    draw = torch.Generator().manual_seed(seed)
    labels = torch.randint(3, (size,), generator=draw)
    noise = torch.randn(size, 3, generator=draw, dtype=torch.float64)
    return (noise + 1.5 * torch.nn.functional.one_hot(labels, 3)).round(decimals=digits), labels


def material(size=300):
    scores, labels = {}, {}
    for seed, part in enumerate(("test", "calibration")):
        scores[part], labels[part] = rows(seed, size)
    point = sp.calibrate(ASK, scores["calibration"], labels["calibration"], classes=NAMES)
    return Material(point, [Contender("mine", point.thresholds, scores)], labels)


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page).group(1))


@pytest.mark.parametrize("digits", [1, 3])
@pytest.mark.parametrize("most", [10, 1000])
def test_every_step_of_the_slider_has_the_true_table(digits, most):
    scores, labels = rows(3, 200, digits)
    own = Shifts(NAMES, (0.1, -0.25, 0.37))
    for k in range(3):
        found = find_class_positions(Sample(scores, labels), own, k, most)
        assert found.shifts[found.own] == own.shifts[k]
        assert bool((found.shifts.diff() > 0).all())
        assert len(found.shifts) <= most + 1
        for shift, table in zip(found.shifts.tolist(), found.tables):
            moved = replace(own, shifts=(*own.shifts[:k], shift, *own.shifts[k + 1 :]))
            assert torch.equal(table.flatten().double(), moved.kinds(Sample(scores, labels)).double())
        assert torch.equal(counts_of(found.tables)[found.own], own.count(Sample(scores, labels))[0])


def test_the_page_holds_the_bounds_and_the_objective_of_each_step():
    told = material()
    data, sample = data_of(make_class_page(told)), told.read(told.contenders[0], "test")
    assert data["first"] == 1
    cut = data["parts"][0]["cuts"][1]
    for place in (0, cut["own"], len(cut["shifts"]) - 1):
        shifts = list(told.point.thresholds.values)
        shifts[1] = cut["shifts"][place]
        counts = Shifts(NAMES, tuple(shifts)).count(sample)
        assert cut["objective"][place] == pytest.approx(float(told.problem.objective(counts)[0]), abs=1e-6)
        for c, values, holds in zip(told.problem.constraints, cut["values"], cut["holds"]):
            assert values[place] == pytest.approx(float(c.quantity(counts)[0]), abs=1e-6)
            assert (holds[place] == "1") == bool(c.holds(counts)[0])


@slow
def test_the_slider_moves_the_table_in_a_browser(browser, tmp_path):
    told = material()
    page = make_class_page(told)
    cuts = data_of(page)["parts"][0]["cuts"][1]
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    browser.get((tmp_path / "page.html").as_uri())

    def cells(table):
        return [cell.text for cell in browser.find_elements("css selector", f"#{table} tbody td")]

    # The script shows at first what the file says without it.
    written = [re.sub(r"<.*?>", "", cell) for cell in re.findall(r'<td class="n">(.*?)</td>', page)]
    assert cells("classes") + cells("confusion") == written[: 3 * 6 + 9]
    move = "const s = document.getElementById('shift'); s.value = 7; s.dispatchEvent(new Event('input'))"
    browser.execute_script(move)
    shifts = list(told.point.thresholds.values)
    shifts[1] = cuts["shifts"][7]
    table = Shifts(NAMES, tuple(shifts)).kinds(told.read(told.contenders[0], "test"))
    assert [int(text) for text in cells("confusion")] == table.long().tolist()
    assert cells("confusion") != written[18:27]
    held = [
        span.get_attribute("data-holds") == "true" for span in browser.find_elements("css selector", "#bounds span")
    ]
    assert held == [holds[7] == "1" for holds in cuts["holds"]]
    browser.find_element("id", "back").click()
    assert cells("confusion") == written[18:27]
    browser.execute_script("document.querySelectorAll('#part input')[1].click()")
    assert browser.find_element("id", "rows").text == "calibration"
    assert cells("confusion") != written[18:27]
    assert browser.execute_script("return document.querySelectorAll('main b').length") == 0
    assert not browser.get_log("browser")
    for width in (360, 1200):
        metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
