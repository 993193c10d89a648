"""Check prose against a few rules: `python tools/prose.py`.

It reads README, CHANGELOG, CONTRIBUTING and SECURITY, the docs (the pages that studies write among them), docstrings,
and the sentences of the source that people see: messages, notes, help, words of the report. The rules ban what a tired
engineer has to decode: sentences that begin with "What ..." or "Of ...", "the one that", "a threshold each",
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
    (re.compile(r"\bthe ones? that\b", re.I), "repeat the noun"),
    (
        re.compile(r"\b(?:simply|obviously|of course|needless to say|it should be noted)\b", re.I),
        "leave it out",
    ),
    (
        re.compile(r"\b(?:leverage|utili[sz]e|seamless(?:ly)?|state-of-the-art|cutting-edge)\b", re.I),
        "be plain",
    ),
    (re.compile(r"\ban? [\w-]+(?: [\w-]+)? each(?=[,.;:)\n]|$)"), "write 'one ... per ...'"),
    (
        re.compile(
            r"\ban? [\w-]+ an? (?:row|group|point|candidate|step|epoch|label|class|list|cut|bound|batch|fold)\b"
        ),
        "write 'one ... per ...'",
    ),
    (re.compile(r"\bever after\b"), "write 'always' or 'from then on'"),
)
#: A text of fewer spaces is a name, and no sentence.
MOST_IN_A_NAME = 4
CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`|^<!-- from benchmarks.*?<!-- end -->|^ {4}[^\n]*$", re.M | re.S)


def prose_of(path: Path) -> str:
    """The words of a file, with code blanked out so that line numbers stay."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return docstrings(text)
    return CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def docstrings(text: str) -> str:
    """The docstrings of a module on their own lines, examples left out, and the sentences among its other texts."""
    lines, tree = [""] * (text.count("\n") + 2), ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.count(" ") >= MOST_IN_A_NAME:
            lines[node.lineno - 1] += " " + " ".join(node.value.split())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            first = node.body[0]
            for offset, line in enumerate(ast.get_source_segment(text, first, padded=True).splitlines()):  # type: ignore[union-attr]
                lines[first.lineno - 1 + offset] = "" if ">>>" in line or "..." in line else line
    return "\n".join(lines)


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
        *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "src").rglob("*.py")),
    ]
    told = [line for path in paths for line in faults(path)]
    print("\n".join(told) if told else f"prose: {len(paths)} files, no fault")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
