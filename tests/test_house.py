"""The numbers and the picture of the house: counted right on made-up files, and the picture as the imports are."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import house
import picture
from frames import Trace
from test_architecture import DOORS

MADE = {
    "__init__.py": '"""Names."""\nfrom made.lazy import names\n__all__ = ["fit", "ask", "fnr"]\n',
    "lazy.py": "names = 1\n",
    "measure/rate.py": '"""A docstring\nof two lines."""\n\n# A comment.\nx = """text\nover lines"""  # beside code\n',
    "problem/ask.py": "from setpoint.measure.rate import x\nclass Point: ...\nclass _Own: ...\n",
    "run/run.py": (
        "import setpoint.problem.ask\nfrom setpoint.measure import rate\nclass Point: ...\nclass _Own: ...\n"
        "def run(a, b, /, c, *rows, d=1, **more): ...\n"
    ),
    "commands/fit.py": "from setpoint.run.run import run\nfrom setpoint.report import page\n"
    'class Door:\n    """What it is."""\n\n    def __init__(self, a, b, c): ...\n',
    "report/page.py": "import setpoint.run\n",
    "cli.py": "import setpoint.commands\n",
}


@pytest.fixture
def made(tmp_path):
    for name, text in MADE.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_lines_are_counted_with_and_without_docstrings_comments_and_blanks(made):
    assert [path.name for path in house.python_files(made / "measure")] == ["rate.py"]
    assert house.lines_of(made / "measure/rate.py") == 6
    assert house.code_lines_of(made / "measure/rate.py") == 2
    assert house.code_lines_of(made / "commands/fit.py") == 4


def test_the_longest_list_of_arguments_leaves_out_self_and_stars(made):
    assert house.most_arguments(house.python_files(made)) == (4, "run/run.py:run")
    assert house.most_arguments([made / "commands/fit.py"]) == (3, "commands/fit.py:__init__")
    assert house.most_arguments([]) == (0, "")


def test_public_class_names_in_two_files_are_found(made):
    assert house.shared_class_names(house.python_files(made)) == {"Point": ["problem/ask.py", "run/run.py"]}


def test_elements_of_lists_and_dictionaries_are_counted(made):
    assert house.elements_of(made / "__init__.py", "__all__") == 3
    assert house.elements_of(made / "__init__.py", "other") == 0
    (made / "lazy.py").write_text("DOORS = {'a': set(), 'b': {1}}\n")
    assert house.elements_of(made / "lazy.py", "DOORS") == 2


def test_lines_of_results_need_git(tmp_path):
    assert house.result_lines(tmp_path) is None


def test_frames_to_the_loss_are_our_own_on_the_shortest_way(tmp_path):
    def file(name: str, code: str, **names):
        exec(compile(code, str(tmp_path / name), "exec"), names)
        return names

    loss = file("solve/solver.py", "def judged(): return loss()\ndef loss(): return 1\n")
    other = file("elsewhere.py", "def loss(): return 2\n")["loss"]
    # Sorting in C and the function `outside` are no frames of ours; the longer way is not counted.
    code = """
def fit():
    outside()
    longer()
    return sorted([1], key=lambda _: judged())
def longer():
    longest()
def longest():
    judged()
"""

    def outside():
        return other()

    fit = file("run/fit.py", code, judged=loss["judged"], outside=outside)["fit"]
    trace = Trace(tmp_path).of(fit)
    assert trace.loss == 4
    assert {Path(name).name for name in trace.touched} == {"solver.py", "elsewhere.py", "fit.py"}
    assert Trace(tmp_path / "nowhere").of(fit).loss is None


def test_imports_that_others_imply_are_not_drawn_but_those_of_doors(made):
    rooms = picture.rooms_of(made)
    assert {room: len(files) for room, files in rooms.items()} == {
        "names": 1, "base": 1, "measure": 1, "problem": 1, "run": 1, "commands": 2, "report": 1,
    }  # fmt: skip
    imports = picture.imports_of(rooms)
    assert imports["run"] == {"problem", "measure"}
    assert picture.reduced(imports) == {
        "measure": set(), "problem": {"measure"}, "run": {"problem"}, "report": {"run"}, "commands": {"run", "report"},
    }  # fmt: skip
    assert picture.columns_of(imports) == {"measure": 0, "problem": 1, "run": 2}
    assert picture.spine_of(imports) == ["measure", "problem", "run"]


def test_a_room_beside_the_spine_stands_below_it_and_close_to_its_importer():
    imports = {
        "measure": set(),
        "problem": {"measure"},
        "data": set(),
        "train": {"problem", "data"},
        "report": {"train"},
    }
    assert picture.columns_of(imports)["data"] == 1
    boxes = picture.boxes_of(imports)
    assert boxes["data"].y > boxes["problem"].bottom
    assert boxes["report"].x > boxes["train"].right


def test_no_arrow_passes_through_a_room_beside_the_spine():
    imports = {"measure": set(), "problem": {"measure"}, "decide": {"problem"}, "solve": {"decide", "lp"}}
    imports |= {"lp": {"measure"}, "data": set(), "train": {"solve", "data"}}
    boxes = picture.boxes_of(imports)
    assert boxes["lp"].y == boxes["data"].y > boxes["solve"].bottom
    # An arrow from `data` to `measure` would pass through `lp`.
    boxes = picture.boxes_of(imports | {"data": {"measure"}})
    assert boxes["data"].y > boxes["lp"].bottom


def test_the_picture_has_a_box_per_room_and_an_arrow_per_import(made):
    drawn = ElementTree.fromstring(picture.draw(made))
    space = "{http://www.w3.org/2000/svg}"
    assert len(drawn.findall(f"{space}rect")) == 5 + 2
    assert len(drawn.findall(f"{space}g/{space}path")) == 5
    assert "commands imports report, run" in drawn.findtext(f"{space}desc", "")


def test_doors_are_those_of_the_architecture():
    assert {*picture.DOORS, "cli", "__main__"} == set(DOORS)


def test_the_picture_in_the_docs_shows_the_imports_as_they_are():
    up_to_date = picture.FILE.read_text() == picture.draw(house.SOURCE)
    assert up_to_date, f"rooms or their imports have changed: run `{picture.COMMAND}` and commit the picture"


def test_files_that_the_page_on_rooms_names_exist():
    page = (house.ROOT / "docs" / "rooms.md").read_text()
    named = set(re.findall(r"`([a-z_/]+\.(?:pyi?|js|html))`", page))
    assert len(named) > 30
    assert {name for name in named if not any((place / name).exists() for place in (house.ROOT, house.SOURCE))} == set()
