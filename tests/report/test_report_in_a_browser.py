"""The page in a real browser: what moves, what it shows then, and that it fits a phone, a printer and the dark.

Needs Chromium with its driver. Where they are missing the tests are skipped, but in CI they fail.
"""

from __future__ import annotations

import pytest
import torch
from scipy.stats import binomtest
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.common.actions.pointer_input import PointerInput
from selenium.webdriver.common.keys import Keys

from marks import slow
from materials import BAND, material
from reference import BAND_RATES, band_counts, band_rate
from setpoint.measure.count import count
from setpoint.measure.rate import CATALOGUE, fpr, recall
from setpoint.report.data import page_data
from setpoint.report.page import make_page

pytestmark = slow


class Page:
    """A page in the browser, and what stands on it."""

    def __init__(self, browser, path, told):
        self.browser, self.told, self.data = browser, told, page_data(told)
        path.write_text(make_page(told), encoding="utf-8")
        self.size(1200)
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
        browser.get(path.as_uri())
        self.sliders = [browser.find_element("id", handle["key"]) for handle in self.data["handles"]]
        self.slider = self.sliders[-1]

    def run(self, script, *arguments):
        return self.browser.execute_script(f"return {script}", *arguments)

    def size(self, width):
        metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def media(self, media="", scheme="light"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})

    def move(self, place, handle=-1):
        self.run(
            "(arguments[0].value = arguments[1], arguments[0].dispatchEvent(new Event('input')))",
            self.sliders[handle],
            place,
        )

    @property
    def place(self):
        return int(self.slider.get_property("value"))

    @property
    def places(self):
        return [int(slider.get_property("value")) for slider in self.sliders]

    def value(self, name):
        return float(self.run("document.getElementById(arguments[0]).dataset.value", name))

    def rates(self):
        script = """Object.fromEntries([...document.querySelectorAll('#rates tbody tr')].map((row) => [
            row.dataset.name, [row.querySelector('.value').dataset.value, row.querySelector('.interval')?.dataset.low,
            row.querySelector('.interval')?.dataset.high].map((v) => v === undefined ? null : Number(v))]))"""
        return self.run(script)

    def mark(self, chart):
        script = (
            "['data-x', 'data-y', 'visibility'].map((name) => document.querySelector(arguments[0]).getAttribute(name))"
        )
        return self.run(script, f"#{chart} .here")

    def marks(self, chart):
        script = "[...document.querySelectorAll(arguments[0])].map((m) => [m.dataset.x, m.dataset.y].map(Number))"
        return self.run(script, f"#{chart} .here")

    def errors(self):
        return [entry["message"] for entry in self.browser.get_log("browser")]

    def is_true(self, contender=0, part="test"):
        """Whether everything that is shown is what setpoint and scipy make of this threshold."""
        chosen = self.told.contenders[contender]
        threshold = self.value("threshold-value")
        scores, labels = chosen.scores[part].double(), self.told.labels[part].double()
        counts = count(scores, labels, threshold)
        assert [self.value(name) for name in ("tp", "fp", "fn", "tn")] == counts.tolist()
        for name, (value, low, high) in self.rates().items():
            rate = CATALOGUE.get(name, self.told.problem.objective)
            assert value == pytest.approx(float(rate(counts)), abs=1e-12), name
            if low is not None:
                n = round(float(rate.size(counts)))
                exact = binomtest(round(value * n), n).proportion_ci(0.95, "exact") if n else None
                assert (low, high) == pytest.approx((exact.low, exact.high) if n else (0, 1), abs=1e-6), name
        assert self.held() == [bool(c.holds(counts)) for c in self.told.problem.constraints]
        return True

    def held(self):
        return self.run("[...document.querySelectorAll('#bounds span')].map((s) => s.dataset.holds === 'true')")

    def is_true_of_a_band(self, contender=0, part="test"):
        """Whether everything that is shown is what a plain loop and scipy make of these two cuts."""
        chosen, labels = self.told.contenders[contender], self.told.labels[part].tolist()
        low, high = self.value("low-value"), self.value("high-value")
        assert low <= high
        counts = band_counts(chosen.scores[part].double().tolist(), labels, [1] * len(labels), low, high)
        assert [self.value(name) for name in ("tp", "fp", "fn", "tn", "rp", "rn")] == counts
        assert [self.value(name) for name in ("tp-fp", "rp-rn", "fn-tn")] == [
            counts[0] + counts[1], counts[4] + counts[5], counts[2] + counts[3],
        ]  # fmt: skip
        for name, (value, lowest, highest) in self.rates().items():
            part_of, whole = map(int, BAND_RATES[name](*counts))
            assert value == pytest.approx(band_rate(name, counts), abs=1e-12), name
            exact = binomtest(part_of, whole).proportion_ci(0.95, "exact") if whole else None
            assert (lowest, highest) == pytest.approx((exact.low, exact.high) if whole else (0, 1), abs=1e-6), name
        bounds = [(c.relation, c.bound, band_rate(str(c.quantity), counts)) for c in self.told.problem.constraints]
        assert self.held() == [v <= b + 1e-9 if relation == "<=" else v >= b - 1e-9 for relation, b, v in bounds]
        return True


@pytest.fixture
def page(browser, tmp_path):
    return Page(
        browser, tmp_path / "report.html", material("maximize recall where fpr <= 5% and precision >= 50%", rows=300)
    )


def test_the_page_starts_at_the_own_threshold_and_tells_the_truth(page):
    assert page.value("threshold-value") == page.told.point.threshold
    assert page.is_true()
    assert page.browser.find_element("css selector", "#own button").get_property("disabled")
    assert page.errors() == []


def test_the_keys_move_the_slider_and_every_number(page):
    last = int(page.slider.get_property("max"))
    start = page.place
    for key, expected in (
        (Keys.ARROW_RIGHT, start + 1), (Keys.ARROW_UP, start + 2), (Keys.ARROW_LEFT, start + 1),
        (Keys.HOME, 0), (Keys.END, last),
    ):  # fmt: skip
        page.slider.send_keys(key)
        assert page.place == expected
        assert page.is_true()
    page.slider.send_keys(Keys.PAGE_DOWN)
    assert 0.05 * last < last - page.place < 0.2 * last
    down = page.place
    assert page.is_true()
    page.slider.send_keys(Keys.PAGE_UP)
    assert page.place > down
    assert page.errors() == []


def test_every_position_tells_the_truth(page):
    positions = len(page.data["contenders"][0]["parts"]["test"]["threshold"])
    assert int(page.slider.get_property("max")) == positions - 1
    for place in {0, 1, 2, positions // 3, positions // 2, positions - 3, positions - 2, positions - 1}:
        page.move(place)
        assert page.is_true()


def test_marks_and_line_move_and_the_button_leads_back(page):
    own, before, line = (
        page.place,
        page.mark("roc"),
        page.run("document.querySelector('#histogram .rule').getAttribute('x1')"),
    )
    page.move(own + 9)
    assert page.mark("roc") != before
    assert page.mark("pr")[2] == "visible"
    assert page.run("document.querySelector('#histogram .rule').getAttribute('x1')") != line
    told = page.browser.find_element("css selector", "#own button").text
    assert float(told.rpartition(" ")[2]) == pytest.approx(page.told.point.threshold, rel=1e-3)
    spoken = page.slider.get_attribute("aria-valuetext").partition(",")[0]
    assert float(spoken) == pytest.approx(page.value("threshold-value"), rel=1e-3)
    page.browser.find_element("css selector", "#own button").click()
    assert (page.place, page.mark("roc")) == (own, before)
    assert page.is_true()


def test_the_mark_stands_on_the_curve(page):
    page.run("document.querySelector('#zoom input[value=all]').click()")
    own = "['cx', 'cy'].map((name) => [...document.querySelectorAll('#roc .own.ours')].at(-1).getAttribute(name))"
    assert page.run(own) == page.mark("roc")[:2]
    left, right = (page.run(f"document.querySelector('#roc .axis').getAttribute('{x}')") for x in ("x1", "x2"))
    floor = float(page.run("document.querySelector('#roc .axis').getAttribute('y1')"))
    top = float(page.run("document.querySelector('#roc clipPath rect').getAttribute('y')"))
    for place in (page.place, page.place - 30):
        page.move(place)
        threshold = page.value("threshold-value")
        counts = count(page.told.contenders[0].scores["test"].double(), page.told.labels["test"].double(), threshold)
        x, y, shown = page.mark("roc")
        assert shown == "visible"
        assert (float(x) - float(left)) / (float(right) - float(left)) == pytest.approx(float(fpr(counts)), abs=1e-6)
        assert (floor - float(y)) / (floor - top) == pytest.approx(float(recall(counts)), abs=1e-6)


def test_the_view_can_be_widened_and_says_when_the_threshold_lies_outside(page):
    page.move(0)
    assert page.mark("roc")[2] == "hidden"
    assert "outside this view" in page.browser.find_element("id", "roc").text
    page.run("document.querySelector('#zoom input[value=all]').click()")
    assert page.mark("roc")[2] == "visible"
    assert "100%" in page.browser.find_element("id", "roc").text


def test_the_other_solver_and_the_other_rows(page):
    page.run("document.querySelectorAll('#contender input')[1].click()")
    assert page.value("threshold-value") == page.told.contenders[1].thresholds.single
    assert page.is_true(1)
    page.run("document.querySelectorAll('#part input')[1].click()")
    page.move(40)
    assert page.is_true(1, "calibration")
    assert "flatter" in page.browser.find_element("id", "part-note").text
    assert page.errors() == []


def test_a_click_on_a_curve_takes_its_threshold(page):
    page.run("document.querySelector('#zoom input[value=all]').click()")
    page.run("document.getElementById('roc').scrollIntoView({block: 'center'})")
    box = page.run(
        "(() => { const b = document.querySelector('#roc svg').getBoundingClientRect(); return [b.left, b.top]; })()"
    )
    own, (x, y, _) = page.place, page.mark("roc")
    page.move(0)
    where = "{clientX: arguments[0], clientY: arguments[1]}"
    page.run(
        f"document.querySelector('#roc svg').dispatchEvent(new MouseEvent('click', {where}))",
        box[0] + float(x),
        box[1] + float(y),
    )
    assert abs(page.place - own) <= 2
    assert page.is_true()


def test_a_large_run_is_exact_at_every_position_and_says_that_it_is_thinned(browser, tmp_path):
    page = Page(browser, tmp_path / "report.html", material("minimize fnr where fpr <= 1%", rows=20_000))
    assert "different cuts the slider and the curves hold" in browser.find_element("id", "thinned").text
    last = int(page.slider.get_property("max"))
    assert last < 2000
    for place in (0, 1, last // 2, page.place, last):
        page.move(place)
        assert page.is_true()
    assert page.errors() == []


def test_groups_stand_side_by_side(browser, tmp_path):
    told = material("minimize error where recall.gap(sex) <= 5%", rows=500, groups=["f", "m"])
    page = Page(browser, tmp_path / "report.html", told)
    for moved in (0, 12):
        page.move(page.place + moved)
        shift = page.value("threshold-value")
        values = []
        for name, own in told.point.threshold.items():
            inside = torch.from_numpy(told.groups["test"] == name)
            counts = count(
                told.contenders[0].scores["test"][inside].double(), told.labels["test"][inside].double(), own + shift
            )
            cell = browser.find_element("css selector", f"#groups [data-group='{name}'] [data-rate='recall']")
            values.append(float(recall(counts)))
            assert float(cell.get_attribute("data-value")) == pytest.approx(values[-1])
            n = round(float(recall.size(counts)))
            exact = binomtest(round(values[-1] * n), n).proportion_ci(0.95, "exact")
            shown = float(cell.get_attribute("data-low")), float(cell.get_attribute("data-high"))
            assert shown == pytest.approx((exact.low, exact.high), abs=1e-6)
        gap = browser.find_element("css selector", "#groups [data-gaps] [data-rate='recall']")
        assert float(gap.get_attribute("data-value")) == pytest.approx(max(values) - min(values))
        assert page.rates()["recall.gap(sex)"][0] == pytest.approx(max(values) - min(values))
    assert page.errors() == []


def test_an_area_has_a_button_for_each_of_its_thresholds(browser, tmp_path):
    told = material("maximize recall over fpr in [0%, 20%] with 4 points")
    page = Page(browser, tmp_path / "report.html", told)
    buttons = browser.find_elements("css selector", "#own button")
    assert [button.text for button in buttons] == ["2.5%", "7.5%", "12.5%", "17.5%"]
    for button, threshold in zip(buttons, told.point.threshold):
        button.click()
        assert page.value("threshold-value") == threshold
        assert button.get_attribute("aria-pressed") == "true"
        assert page.is_true()


@pytest.fixture
def band(browser, tmp_path):
    return Page(browser, tmp_path / "report.html", material(BAND, rows=300))


def test_a_band_starts_at_its_own_cuts_and_tells_the_truth(band):
    own = band.told.point.threshold
    assert (band.value("low-value"), band.value("high-value")) == (own["low"], own["high"])
    assert band.is_true_of_a_band()
    button = band.browser.find_element("css selector", "#own button")
    assert (button.text, button.get_property("disabled")) == ("These are the run's own cuts", True)
    assert band.errors() == []


def test_the_keys_move_each_handle_of_a_band_and_they_cannot_cross(band):
    low, high = band.places
    last = int(band.slider.get_property("max"))
    for handle, key, expected in (
        (0, Keys.ARROW_LEFT, [low - 1, high]), (1, Keys.ARROW_RIGHT, [low - 1, high + 1]),
        (0, Keys.END, [high + 1, high + 1]), (0, Keys.ARROW_RIGHT, [high + 1, high + 1]),
        (1, Keys.ARROW_LEFT, [high + 1, high + 1]), (1, Keys.END, [high + 1, last]),
        (0, Keys.HOME, [0, last]), (1, Keys.HOME, [0, 0]), (1, Keys.ARROW_UP, [0, 1]),
    ):  # fmt: skip
        band.sliders[handle].send_keys(key)
        assert band.places == expected
        assert band.is_true_of_a_band()
    assert band.errors() == []


def test_a_bound_of_two_cuts_that_is_just_met_holds_and_is_broken_one_row_further(browser, tmp_path):
    page = Page(
        browser, tmp_path / "report.html", material("minimize error where review <= 10% and npv >= 50%", rows=300)
    )
    rows = page.data["contenders"][0]["parts"]["test"]
    passed = [tp + fp for tp, fp in zip(rows["tp"], rows["fp"])]
    page.move(len(passed) - 30)
    for reviewed, held in ((29, True), (30, True), (31, False)):
        page.move(passed.index(passed[page.places[1]] + reviewed), handle=0)
        assert page.value("rp-rn") == reviewed
        assert page.held()[0] is held
        assert page.is_true_of_a_band()


def test_each_handle_of_a_band_can_be_reached_and_has_a_name(band):
    band.run("document.querySelector('#part input:checked').focus()")
    reached = []
    for _ in range(2):
        band.browser.switch_to.active_element.send_keys(Keys.TAB)
        reached.append(band.run("document.activeElement.id"))
    assert reached == ["low", "high"]
    names = [band.run("arguments[0].labels[0].textContent", slider) for slider in band.sliders]
    assert names[0].startswith("Review above")
    assert names[1].startswith("Flag above")
    for slider in band.sliders:
        shown = band.value(f"{slider.get_property('id')}-value")
        spoken, _, rest = slider.get_attribute("aria-valuetext").partition(", ")
        assert float(spoken) == pytest.approx(shown, rel=1e-3)
        assert rest.startswith("review ")


def test_the_mouse_takes_the_handle_that_it_is_on_even_where_both_meet(band):
    place = band.places[0]
    band.move(place, handle=1)
    assert band.places == [place, place]
    band.browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", band.slider)
    low, high = (
        band.run("(() => { const b = arguments[0].getBoundingClientRect(); return [b.left, b.width]; })()", slider)
        for slider in band.sliders
    )
    share, thumb = place / int(band.slider.get_property("max")), high[0] - low[0]
    seam = high[0] + share * (high[1] - thumb)
    for handle, side, away in ((0, -1, -60), (1, 1, 60)):
        before = band.places
        box = band.run("(() => { const b = arguments[0].getBoundingClientRect(); return b.top + b.height / 2; })()",
                       band.slider)  # fmt: skip
        pointer = ActionBuilder(band.browser, mouse=PointerInput("mouse", "mouse"), duration=20)
        pointer.pointer_action.move_to_location(round(seam + side * thumb / 2), round(box)).pointer_down()
        pointer.pointer_action.move_to_location(round(seam + side * thumb / 2) + away, round(box)).pointer_up()
        pointer.perform()
        assert band.places[1 - handle] == before[1 - handle]
        assert (band.places[handle] - before[handle]) * side > 5
        assert band.is_true_of_a_band()
    assert band.errors() == []


def test_a_click_on_the_track_or_the_histogram_takes_the_nearest_handle(band):
    low, high = band.places
    box = band.run("(() => { const b = document.getElementById('track').getBoundingClientRect(); "
                   "return [b.left, b.width, b.top + b.height / 2]; })()")  # fmt: skip
    click = (
        "document.querySelector(arguments[0]).dispatchEvent(new MouseEvent('click', "
        "{clientX: arguments[1], clientY: arguments[2], bubbles: true}))"
    )
    last = int(band.slider.get_property("max"))
    for share, handle in ((0.05, 0), (0.98, 1)):
        band.run(click, "#track", box[0] + share * box[1], box[2])
        assert abs(band.places[handle] - share * last) <= 1
        assert band.run("document.activeElement.id") == ("low", "high")[handle]
        assert band.is_true_of_a_band()
    band.run("document.querySelector('#own button').click()")
    assert band.places == [low, high]
    band.run("document.getElementById('histogram').scrollIntoView({block: 'center'})")
    box = band.run(
        "(() => { const b = document.querySelector('#histogram .band').getBoundingClientRect(); "
        "return [b.left, b.right, b.top + 9]; })()"
    )
    band.run(click, "#histogram svg", box[0] - 20, box[2])
    assert (band.places[0] < low, band.places[1]) == (True, high)
    band.run(click, "#histogram svg", box[1] + 20, box[2])
    assert band.places[1] > high
    assert band.is_true_of_a_band()


def test_a_band_is_shaded_between_its_cuts_and_marked_twice_on_each_curve(band):
    shade = (
        "(() => { const r = document.querySelector('#histogram .band'), x = Number(r.getAttribute('x')); "
        "return [x, x + Number(r.getAttribute('width'))]; })()"
    )
    rules = "[...document.querySelectorAll('#histogram .rule')].map((r) => Number(r.getAttribute('x1')))"
    band.run("document.querySelector('#zoom input[value=all]').click()")
    axis = [float(band.run(f"document.querySelector('#roc .axis').getAttribute('{end}')")) for end in ("x1", "x2")]
    for _ in range(2):
        assert band.run(shade) == pytest.approx(band.run(rules))
        curve = band.data["contenders"][0]["parts"]["test"]
        expected = [curve["fp"][place] / curve["negatives"] for place in band.places]
        shown = [(x - axis[0]) / (axis[1] - axis[0]) for x, _ in band.marks("roc")]
        assert shown == pytest.approx(expected, abs=1e-6)
        assert len(band.marks("pr")) == 2
        band.move(band.places[0] - 25, handle=0)
        band.move(band.places[1] + 12, handle=1)
    band.move(int(band.slider.get_property("max")))
    assert "nothing is flagged" in band.browser.find_element("id", "pr").text


def test_the_other_solver_and_the_other_rows_of_a_band(band):
    band.run("document.querySelectorAll('#contender input')[1].click()")
    assert band.value("high-value") == band.told.contenders[1].thresholds.high
    assert band.is_true_of_a_band(1)
    band.run("document.querySelectorAll('#part input')[1].click()")
    assert band.is_true_of_a_band(1, "calibration")
    assert "flatter them" in band.browser.find_element("id", "part-note").text


WIDE = {
    "bounds": lambda: material(
        "maximize recall where fpr <= 5% and precision >= 50%", names=("Anchored(0.25)", "cross-entropy", "x" * 80),
    ),
    "groups": lambda: material(rows=200, groups=["a", "b" * 60, "c d"], notes=["y" * 300], facts=[("Rows", "z" * 200)]),
    "gap": lambda: material("minimize error where recall.gap(sex) <= 5%", groups=["f", "m", "not stated"]),
    "band": lambda: material(
        "minimize review where precision >= 80% and npv >= 90% and fnr <= 20%", names=("default: Cross", "x" * 80),
    ),
    "area": lambda: material("maximize precision over recall in [50%, 90%] with 10 points", rows=40),
}  # fmt: skip


@pytest.mark.parametrize("kind", WIDE)
def test_nothing_hangs_over_the_edge_of_a_phone_or_of_paper(browser, tmp_path, kind):
    page = Page(browser, tmp_path / "report.html", WIDE[kind]())
    for media, width in (("", 360), ("print", 690), ("", 690), ("", 1200)):
        page.media(media)
        page.size(width)
        page.browser.refresh()
        assert page.run("document.documentElement.scrollWidth") <= width, (media, width)
        assert page.run("document.querySelector('#roc svg').getBoundingClientRect().right") <= width
    assert page.errors() == []


def test_paper_has_no_slider_and_is_white_in_the_dark(page):
    page.media("print", "dark")
    assert not page.slider.is_displayed()
    assert page.browser.find_element("id", "threshold-value").is_displayed()
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_paper_shows_the_cuts_of_a_band_without_their_handles(band):
    band.media("print")
    assert not any(slider.is_displayed() for slider in band.sliders)
    assert not band.browser.find_element("id", "track").is_displayed()
    assert band.browser.find_element("id", "high-value").is_displayed()


def luminance(colour):
    channels = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_text_can_be_read_in_the_light_and_in_the_dark(page, scheme, dark):
    page.media("", scheme)
    ground = luminance(page.run("getComputedStyle(document.body).backgroundColor"))
    assert (ground < 0.05) == dark
    for where in ("h1", ".answer", ".promise", ".note", ".verdict", "#rates th small", "#own button", "#roc text"):
        name = "fill" if where == "#roc text" else "color"
        ink = luminance(page.run(f"getComputedStyle(document.querySelector(arguments[0])).{name}", where))
        contrast = (max(ink, ground) + 0.05) / (min(ink, ground) + 0.05)
        assert contrast >= 4.5, where
    assert page.errors() == []


def test_everything_has_a_name_for_those_who_cannot_see_it(page):
    assert page.run(
        "[...document.querySelectorAll('.chart svg')].every((s) => s.getAttribute('aria-label').length > 10)"
    )
    assert page.run("[...document.querySelectorAll('input')].every((i) => i.labels.length === 1)")
    assert page.run("document.querySelectorAll('.chart svg').length") >= 5
