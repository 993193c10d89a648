"""Check the prose of README, docs and docstrings against a few rules: `python tools/prose.py`.

The rules ban what a tired engineer has to decode: sentences that begin with "What ..." or "Of ...", "the one that",
and fillers. Blocks of code, tables written by commands and headings are left alone.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: A pattern, and what to write instead.
RULES = (
    (
        re.compile(r"(?<=[.!?:] )What (?!is\b|are\b|does\b|do\b|if\b|you\b)\w+ [^.?!]*\."),
        "name the subject of the sentence",
    ),
    (re.compile(r"(?<=[.!?] )Of (?:these|those|them|which)\b[^.?!]*\."), "name the subject of the sentence"),
    (re.compile(r"\bthe ones? that\b(?! says yes| was written| works)", re.I), "repeat the noun"),
    (
        re.compile(r"\b(?:simply|obviously|of course|needless to say|it should be noted)\b", re.I),
        "leave it out",
    ),
    (
        re.compile(r"\b(?:leverage|utili[sz]e|seamless(?:ly)?|state-of-the-art|cutting-edge)\b", re.I),
        "be plain",
    ),
    (re.compile(r"\ba (?:row|group) each\b"), "write 'per row' or 'each group'"),
)
CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`|^<!-- from benchmarks.*?<!-- end -->|^ {4}[^\n]*$", re.M | re.S)


def prose_of(path: Path) -> str:
    """The words of a file, with code blanked out so that line numbers stay."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return docstrings(text)
    return CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def docstrings(text: str) -> str:
    """The docstrings of a module on their own lines, examples left out."""
    lines = [""] * (text.count("\n") + 2)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            first = node.body[0]
            for offset, line in enumerate(ast.get_source_segment(text, first, padded=True).splitlines()):  # type: ignore[union-attr]
                lines[first.lineno - 1 + offset] = "" if ">>>" in line or "..." in line else line
    return "\n".join(lines)


def written_by_study(page: Path) -> bool:
    """Whether the figures of studies write the page."""
    return "evidence" in page.parts or page.name in ("peers.md", "quality.md")


def faults(path: Path) -> list[str]:
    """One line per place that breaks a rule."""
    text = prose_of(path)
    found = []
    for pattern, advice in RULES:
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            said = " ".join(match[0].split())[:60]
            found.append(f"{path.relative_to(ROOT)}:{line}: {said!r}: {advice}")
    return found


def main() -> int:
    paths = [
        ROOT / "README.md",
        *(page for page in sorted((ROOT / "docs").rglob("*.md")) if not written_by_study(page)),
        *sorted((ROOT / "src").rglob("*.py")),
    ]
    told = [line for path in paths for line in faults(path)]
    print("\n".join(told) if told else f"prose: {len(paths)} files, no fault")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
