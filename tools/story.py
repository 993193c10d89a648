"""Run the blocks of the tutorial and write what they print into its page: `python tools/story.py`.

A block of `text` below a block of code shows some lines of its output; `...` stands for any text. The page keeps the
lines and gets the numbers of this run; `tests/test_docs.py` lets other machines have other numbers. Then run
`python tools/notebook.py`.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(python|sh|text)\n(.*?)^```$", re.M | re.S)
_VARIES = re.compile(r"\.\.\.|[-+]?\d+(?:[.,]\d+)*")


def pattern_of(text: str) -> str:
    """A pattern for the same text with other numbers, a group for each of them."""
    found, place = "", 0
    for one in _VARIES.finditer(text):
        found += re.escape(text[place : one.start()]) + (".*" if one[0] == "..." else r"([-+]?[\d.,e-]*\d)")
        place = one.end()
    return found + re.escape(text[place:])


def with_numbers(shown: str, printed: str) -> str:
    """The lines that are shown, with the numbers that were printed; a line that was not printed is an error."""
    lines, told, place = printed.splitlines(), [], 0
    for line in shown.splitlines():
        if not line.strip("."):
            told.append(line)
            continue
        found = [
            (k, own) for k in range(place, len(lines)) if (own := re.fullmatch(pattern_of(line), lines[k].rstrip()))
        ]
        if not found:
            sys.exit(f"not printed: {line!r} in\n{printed}")
        place, numbers = found[0][0] + 1, iter(found[0][1].groups())
        told.append(_VARIES.sub(lambda one, numbers=numbers: one[0] if one[0] == "..." else next(numbers), line))
    return "\n".join(told) + "\n"


def main() -> None:
    text, pieces, place, printed = PAGE.read_text(), [], 0, ""
    names: dict[str, object] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("setpoint").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m setpoint "$@"\n')
        Path("setpoint").chmod(0o755)
        paths = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
        for block in BLOCK.finditer(text):
            kind, code = block.groups()
            if kind == "python":
                heard = io.StringIO()
                with contextlib.redirect_stdout(heard):
                    exec(compile(code, PAGE.name, "exec"), names)
                printed = heard.getvalue()
            elif kind == "sh":
                shell = [shutil.which("sh") or "sh", "-c", code]
                printed = subprocess.run(shell, env=paths, capture_output=True, text=True, check=True).stdout
            else:
                pieces += [text[place : block.start(2)], with_numbers(code, printed)]
                place = block.end(2)
    PAGE.write_text("".join(pieces) + text[place:])
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    main()
