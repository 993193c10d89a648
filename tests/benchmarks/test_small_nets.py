"""The study of small networks: what could be wrong without showing."""

from __future__ import annotations

import copy
import gzip

import numpy as np
import pytest
import torch
from benchmarks.common.data import Parts
from benchmarks.common.harness import load_figures
from benchmarks.studies.paper_images.sets import Folders
from benchmarks.studies.small_nets import page, page_figure
from benchmarks.studies.small_nets import study as small_nets
from benchmarks.studies.small_nets.training import Run
from benchmarks.studies.small_nets.worlds import IMAGES, PIXELS, SHIRT, load

import setpoint as sp
from benchmarks import not_claimed, passages


class Rows(dict):
    """Finished rows, as a journal has them."""

    @property
    def rows(self):
        return self


def write_idx(path, values):
    shape = b"".join(int(size).to_bytes(4, "big") for size in values.shape)
    path.write_bytes(gzip.compress(bytes([0, 0, 8, values.ndim]) + shape + values.tobytes()))


@pytest.fixture
def folders(tmp_path):
    draw = np.random.default_rng(0)
    for part, size in (("train", 60), ("t10k", 20)):
        classes = np.arange(size, dtype=np.uint8) % 10
        write_idx(tmp_path / f"{part}-images-idx3-ubyte.gz", draw.integers(256, size=(size, 28, 28), dtype=np.uint8))
        write_idx(tmp_path / f"{part}-labels-idx1-ubyte.gz", classes)
    return Folders("nowhere", str(tmp_path))


def table_parts(rows=600):
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(rows, 3, generator=draw)
    part = x, (x[:, 0] + torch.randn(rows, generator=draw) > 1).float()
    return Parts(part, part, part, part)


def test_pixels_and_images_are_the_same_rows_without_a_rim(folders):
    images, pixels = (load(name, 3, 35, folders) for name in (IMAGES, PIXELS))
    assert images.train[0].shape[1:] == (1, 28, 28)
    for part in ("train", "held_out", "calibration", "test"):
        (x, labels), (flat, same) = getattr(images, part), getattr(pixels, part)
        assert torch.equal(x.flatten(1), flat)
        assert torch.equal(labels, same)
    assert images.test[1].sum() == pytest.approx(len(images.test[1]) / 10, abs=1), f"class {SHIRT} is one of ten"
    assert images.train[0].abs().max() <= 2


def test_a_fork_goes_on_exactly_as_the_run_itself_would():
    run = Run(table_parts(), (4,), 40, seed=1).go(sp.CrossEntropy(), 10)
    fork = run.fork()
    run.go(sp.CrossEntropy(), 40), fork.go(sp.CrossEntropy(), 40)
    assert torch.equal(run.scores()[1], fork.scores()[1])
    assert fork.parts is run.parts


def test_scores_are_kept_until_the_training_goes_on():
    run = Run(table_parts(), (4,), 40, seed=1).go(sp.CrossEntropy(), 20)
    before = run.scores()
    assert run.scores() is before
    assert not torch.equal(run.go(sp.CrossEntropy(), 40).scores()[1], before[1])


def asked(**tests):
    found = {name: {"test": value, "seconds": 1} for name, value in tests.items()}
    return {"asks": dict.fromkeys(small_nets.ASKS, found)}


def test_rivals_that_a_cell_does_not_have_are_left_out_of_its_row():
    cell = small_nets.Cell("ijcnn1", (4, 4), 500, 70)
    rivals = {"best of 7 weights": 0.5, "longer": 0.25, "same weight": 0.5}
    rows = Rows({f"{cell.name} | {seed}": asked(implicit=0.4 + 0.01 * seed, **rivals) for seed in (10, 11)})
    row = small_nets.summary(rows, [cell], range(10, 12))[0]
    assert set(row["gain"]) == set(rivals)
    assert row["gain"]["longer"]["mean"] == pytest.approx(0.25 - 0.505)


def test_lengths_are_compared_on_seeds_that_have_all_of_them():
    flat = small_nets.UNTIL_FLAT[0]
    cells = [cell for cell in small_nets.CELLS if cell.set == flat.set]
    rows = Rows({f"{cell.name} | {seed}": asked(implicit=0.1 * seed, **{"longer": 0.5, "equal time": 0.4})
                 for cell in cells for seed in (10, 11)})  # fmt: skip
    assert small_nets.by_steps(rows, range(10, 12)) == []
    rows[f"{flat.name} | 11"] = asked(**{"until flat": 0.2})
    row = small_nets.by_steps(rows, range(10, 12))[0]
    assert row["seeds"] == 1
    assert row["implicit"] == {str(cell.steps): pytest.approx(1.1) for cell in cells}
    assert row["cross-entropy"] == {"1167": 0.5, "2000": 0.4, "4667": 0.5, "8000": 0.4, "20000": 0.2}


def test_the_figure_has_a_panel_per_rival_and_bound_with_every_network_in_it():
    figures = load_figures("small_nets")
    panels = page.figure(figures).axes
    assert [panel.get_title(loc="left").split(":")[0] for panel in panels] == ["FPR 0.1 %", "FPR 1 %"] * 2
    for panel, (rival, ask) in zip(panels, [(rival, ask) for rival in page.SHOWN for ask in small_nets.ASKS]):
        means = [100 * row["gain"][rival]["mean"] for row in page.of_ask(figures, ask, rival)]
        shown = [
            float(line.get_ydata()[0])
            for line in panel.lines
            if line.get_marker() in "os^D" and line.get_markersize() == 6
        ]
        assert sorted(shown) == pytest.approx(sorted(means))
        low, high = panel.get_ylim()
        assert low < min(means) <= max(means) < high
    few = [line for line in panels[0].lines if line.get_markerfacecolor() == "white"]
    assert len(few) == 2, "ijcnn1 with 5,000 rows and the mixture with 20,000"


def test_points_of_nearly_the_same_steps_stand_side_by_side_and_others_at_their_steps():
    rows = [{"set": name, "steps": steps} for name, steps in (("mixture", 500), (IMAGES, 400), ("ijcnn1", 500),
                                                              (PIXELS, 2000))]  # fmt: skip
    points = page_figure.placed(rows)
    assert [point.row["set"] for point in points] == ["ijcnn1", "mixture", IMAGES, PIXELS]
    assert points[1].place / points[0].place == pytest.approx(page_figure.APART)
    assert points[-1].place == pytest.approx(2000)


def gained(**means):
    gain = {rival: {"mean": mean, "standard_error": 0.01, "corrected_standard_error": 0.01}
            for rival, mean in zip((page.TUNED, page.LONGER), means.values())}  # fmt: skip
    told = {"set": "ijcnn1", "widths": [4], "rows": 70, "seeds": 4, "gain": gain, "time": {page.LONGER: 1.5}}
    return {"rows": [{**told, "ask": ask, "steps": steps} for ask in small_nets.ASKS for steps in (500, 2000)]}


@pytest.mark.parametrize(("tuned", "longer", "words"), [
    (0.1, -0.1, ("gain 10.0 points", "lose 10.0 points", "the stronger rival", "train cross-entropy longer first")),
    (0.1, 0.2, ("gain 10.0 points", "gain 20.0 points", "no stronger rival", "worth their time")),
    (-0.1, -0.2, ("lose 10.0 points", "lose 20.0 points", "the stronger rival", "no rule")),
])  # fmt: skip
def test_the_answer_follows_the_signs(tuned, longer, words):
    told = page.answer(gained(tuned=tuned, longer=longer))
    assert all(one in told for one in words)
    assert "within two standard errors" not in told
    assert page.answer({"rows": []}) == ""
    assert page.figure({"rows": []}) is None


def test_a_mean_that_two_sources_disagree_on_is_within_noise_however_many_cells_they_have():
    figures = gained(tuned=0.1, longer=-0.1)
    more = [{**row, "set": "mixture", "gain": {**row["gain"], page.TUNED: {**row["gain"][page.TUNED], "mean": 0.01}}}
            for row in figures["rows"]]  # fmt: skip
    told = page.answer({"rows": [*figures["rows"], *more] * 3})
    assert "gain 5.5 points of FNR at an FPR of 0.1 % (within two standard errors; better in 6 of 12" in told
    assert "lose 10.0 points of FNR at an FPR of 0.1 % (better in 0 of 12" in told
    assert "class weights are the alternative, not beyond noise." in told


def test_on_images_a_mean_within_noise_is_called_level():
    figures = copy.deepcopy(load_figures("small_nets"))
    onto = "On images, against 7/3 as many steps, implicit thresholds"
    shown = page.section(figures)
    assert f"{onto} are level (+0.0 ± 0.4) at 0.1 %" in shown
    assert shown.index("| the same networks, all rows |") < shown.index(onto) < shown.index("Every network")
    assert onto not in page.answer(figures)
    for row in figures["rows"]:
        if page.of_images(row):
            row["gain"][page.LONGER]["mean"] += 0.1
    assert f"{onto} gain 10.0 points at 0.1 %" in page.section(figures)


def test_networks_that_were_trained_longest_stand_below_the_first_table():
    figures = copy.deepcopy(load_figures("small_nets"))
    told = "falls from +12.9 (500 steps) to +4.0 at 0.1 % and from +9.0 (500 steps) to +0.6 at 1 %."
    assert told in page.section(figures)
    assert "8,000 steps" not in page.answer(figures)
    for row in figures["rows"]:
        row["gain"][page.TUNED]["mean"] *= -1
    assert "rises from -12.9 (500 steps) to -4.0" in page.section(figures)
    assert page.with_steps({"rows": []}) == []


def test_pages_that_show_the_same_means_show_them_with_the_same_errors():
    claims = [claim for claim in page.claims(load_figures("small_nets")) if claim.says.startswith("small networks")]
    assert len(claims) == 4
    for claim in claims:
        shown = claim.effect.removesuffix(" (corrected)")
        assert shown in passages.by_steps("0.1 %" if "0.1 %" in claim.says else "1 %")
        assert shown in not_claimed.small_networks() or claim.against != page.PLAINLY[page.LONGER]
