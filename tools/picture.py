"""The rooms and who imports whom, as an SVG drawn from the imports as they are: `python tools/house.py --picture`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

FILE = Path(__file__).parents[1] / "docs" / "images" / "rooms.svg"
COMMAND = "python tools/house.py --picture"
#: From top to bottom at the right edge; the file `cli.py` at the root belongs to the commands.
DOORS = ("estimator", "commands", "report", "export", "integrations")
BASE, NAMES = "base", "names"

Imports = Mapping[str, set[str]]

# Sizes, in units of which the page shows about one per pixel.
WIDTH, HEIGHT, GAP = 84, 46, 24
PITCH = HEIGHT + 18
MARGIN, BAR, BEND = 4, 34, 8
#: White text stands on these in both themes; arrows are a grey that white and black both show.
FILL = {"room": "#0b6485", "door": "#7b4a9c", "bar": "#56636f"}
LINE = "#7d8b99"


@dataclass(frozen=True)
class Box:
    """A room's place: its left upper corner and its size."""

    x: float
    y: float
    width: float = WIDTH
    height: float = HEIGHT

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


def modules_of(path: Path) -> list[list[str]]:
    """The parts of the names of our own modules that a file imports."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "setpoint":
            names += [f"setpoint.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
    return [name.split(".") for name in names if name.startswith("setpoint.")]


def rooms_of(source: Path) -> dict[str, list[Path]]:
    """The files of each room. Files at the root gather public names, or know no room and are the base."""
    rooms: dict[str, list[Path]] = {}
    folders = {path.parent.name for path in source.glob("*/*.py")}
    for path in sorted(source.rglob("*.py")):
        room = path.relative_to(source).parts[0]
        if path.parent == source:
            gathers = path.stem == "__init__" or any(parts[1] in folders for parts in modules_of(path))
            room = "commands" if path.stem in ("cli", "__main__") else NAMES if gathers else BASE
        rooms.setdefault(room, []).append(path)
    return rooms


def imports_of(rooms: Mapping[str, Iterable[Path]]) -> dict[str, set[str]]:
    """The rooms that each room imports, the base and the gathered names apart."""
    drawn = rooms.keys() - {BASE, NAMES}
    found = {room: {parts[1] for path in rooms[room] for parts in modules_of(path)} for room in drawn}
    return {room: others & drawn - {room} for room, others in sorted(found.items())}


def reduced(imports: Imports) -> dict[str, set[str]]:
    """The imports without those that others imply: a room that imports another has all to the left of that one.

    What a door imports implies nothing, so that each door shows what it stands on.
    """

    def reached(room: str) -> set[str]:
        return imports[room].union(*(reached(other) for other in imports[room]))

    return {
        room: {
            other for other in others if not any(other in reached(via) for via in others - {other} if via not in DOORS)
        }
        for room, others in imports.items()
    }


def columns_of(imports: Imports) -> dict[str, int]:
    """Each room's column: right of all that it imports, and as close to the first room that imports it as can be."""
    inner = [room for room in imports if room not in DOORS]

    def depth(room: str) -> int:
        return 1 + max((depth(other) for other in imports[room]), default=-1)

    earliest = {room: depth(room) for room in inner}
    latest: dict[str, int] = {}
    for room in sorted(inner, key=lambda room: -earliest[room]):
        importers = [latest[other] for other in inner if room in imports[other]]
        latest[room] = min(importers, default=max(earliest.values()) + 1) - 1
    return latest


def spine_of(imports: Imports) -> list[str]:
    """The longest chain of rooms, from left to right; where two are as long, the first by name."""
    inner = {room for room in imports if room not in DOORS}

    def chain(room: str) -> list[str]:
        chains = [chain(other) for other in sorted(imports[room] & inner)]
        return [*max(chains, key=len, default=[]), room]

    return max((chain(room) for room in sorted(inner)), key=len, default=[])


def lanes_of(imports: Imports, columns: Mapping[str, int]) -> dict[str, int]:
    """The spine in lane 0; each other room in the first lane below in which no box is in the way of it or its arrow."""
    lanes = dict.fromkeys(spine_of(imports), 0)
    edges = reduced(imports)
    for room in sorted(columns.keys() - lanes, key=lambda room: (columns[room], room)):
        right, left = columns[room], min([columns[room], *(columns[other] for other in edges[room])])
        lane = 1
        while any(lanes[other] == lane and left <= columns[other] <= right for other in lanes):
            lane += 1
        lanes[room] = lane
    return lanes


def boxes_of(imports: Imports) -> dict[str, Box]:
    """Where each room stands: the spine in a row, other rooms below it, doors in a column at the right."""
    columns = columns_of(imports)
    top = MARGIN + BAR + 20
    boxes = {
        room: Box(MARGIN + columns[room] * (WIDTH + GAP), top + PITCH + lane * (PITCH + 6))
        for room, lane in lanes_of(imports, columns).items()
    }
    at = MARGIN + (max(columns.values(), default=-1) + 1) * (WIDTH + GAP) + GAP
    for place, door in enumerate(door for door in DOORS if door in imports):
        boxes[door] = Box(at, top + place * PITCH, WIDTH + 36)
    return boxes


def route(importer: Box, imported: Box) -> str:
    """An arrow's way from a room to one that it imports, around the boxes between them."""
    x, y, end = importer.x, importer.middle, imported.right
    if x == imported.x:
        middle = x + importer.width / 2
        start, end = (importer.y, imported.bottom) if imported.y < importer.y else (importer.bottom, imported.y)
        return f"M{middle:g} {start:g}V{end:g}"
    if x - end <= 2 * GAP:
        if y == imported.middle:
            return f"M{x:g} {y:g}H{end:g}"
        # Doors fan out from the last room, rooms below the spine from the middle of their own edge.
        down = HEIGHT / 4 if y < imported.middle else -HEIGHT / 4
        fan = importer.width != imported.width
        start, aim = (y, imported.middle - down) if fan else (y + down, imported.middle)
        half = (x + end) / 2
        return f"M{x:g} {start:g}C{half:g} {start:g} {half:g} {aim:g} {end:g} {aim:g}"
    if imported.middle > y:
        start = x + importer.width / 4
        return f"M{start:g} {importer.bottom:g}V{imported.middle - BEND:g}q0 {BEND} -{BEND} {BEND}H{end:g}"
    aim = imported.x + imported.width * 3 / 4
    if imported.middle < y:
        return f"M{x:g} {y:g}H{aim + BEND:g}q-{BEND} 0 -{BEND} -{BEND}V{imported.bottom:g}"
    start, over = x + importer.width / 4, importer.y - 12
    return f"M{start:g} {importer.y:g}V{over:g}H{aim:g}V{imported.y:g}"


def draw(source: Path) -> str:
    """The picture as the text of an SVG."""
    rooms = rooms_of(source)
    imports = imports_of(rooms)
    boxes, edges = boxes_of(imports), reduced(imports)
    width = max(box.right for box in boxes.values()) + MARGIN
    floor = max(box.bottom for box in boxes.values()) + 16
    told = "; ".join(f"{room} imports {', '.join(sorted(others))}" for room, others in edges.items() if others)
    ways = [route(boxes[room], boxes[other]) for room, others in edges.items() for other in sorted(others)]
    shown = [_room(room, box, len(rooms[room])) for room, box in boxes.items()]
    stems = [path.stem for path in rooms.get(NAMES, ())]
    public = ["setpoint" if stem == "__init__" else f"setpoint.{stem}" for stem in stems]
    base = [path.stem for path in rooms.get(BASE, ())]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {floor + BAR + MARGIN:g}" role="img" '
            'font-family="system-ui, sans-serif" font-size="13" text-anchor="middle">',
            "<title>The rooms of the source and their imports</title>",
            f"<desc>{escape(told)}. Made by: {COMMAND}</desc>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" '
            f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" fill="{LINE}"/></marker></defs>',
            _bar(MARGIN, width, "public names", public),
            f'<g fill="none" stroke="{LINE}" stroke-width="1.6">',
            *(f'<path marker-end="url(#head)" d="{way}"/>' for way in ways),
            "</g>",
            *shown,
            _bar(floor, width, "base", base),
            "</svg>\n",
        ]
    )


def _room(name: str, box: Box, files: int) -> str:
    middle = box.x + box.width / 2
    return (
        f'<rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" rx="6" '
        f'fill="{FILL["door" if name in DOORS else "room"]}"/>'
        f'<text x="{middle:g}" y="{box.y + 20:g}" fill="#fff" font-size="15" font-weight="600">{escape(name)}</text>'
        f'<text x="{middle:g}" y="{box.y + 37:g}" fill="#fff">{_counted(files)}</text>'
    )


def _bar(y: float, width: float, name: str, files: list[str]) -> str:
    return (
        f'<rect x="{MARGIN}" y="{y:g}" width="{width - 2 * MARGIN:g}" height="{BAR}" rx="6" fill="{FILL["bar"]}"/>'
        f'<text x="{width / 2:g}" y="{y + 22:g}" fill="#fff"><tspan font-size="15" font-weight="600">{name}</tspan>'
        f'<tspan dx="8">{_counted(len(files))}: {escape(", ".join(files))}</tspan></text>'
    )


def _counted(number: int) -> str:
    return f"{number} file" if number == 1 else f"{number} files"
