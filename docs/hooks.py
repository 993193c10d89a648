"""What the site needs beyond MkDocs: formulas without a network, and pages for files that the docs link to.

A hook of mkdocs.yml. Formulas are written as on GitHub, `$...$` in a line and a fenced `math` block on lines of their
own, and become MathML, which browsers draw by themselves.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from griffe import Extension as Reader
from griffe import Object
from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.preprocessors import Preprocessor
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^( *)```math\n(.*?)^ *```$", re.M | re.S)
#: A dollar sign, a formula that neither begins nor ends with a blank, a dollar sign.
IN_A_LINE = r"(?<![\\$\w])\$(?!\s)([^$\n]+?)(?<!\s)\$(?!\w)"
#: Links out of docs/ to files that have a place on the site.
OUTSIDE = re.compile(r"\]\((?:\.\./)+((?:examples|benchmarks/results)/[\w./]+)\)")
LOADED = re.compile(r"""<(?:script|link|img|iframe)[^>]*(?:src|href)=["']?(?:https?:)?//[^>]*>""")


class Blocks(Preprocessor):
    """Fenced `math` blocks."""

    def run(self, lines: list[str]) -> list[str]:
        def store(found: re.Match[str]) -> str:
            formula = convert(" ".join(found[2].split()), display="block")
            return f"\n{found[1]}{self.md.htmlStash.store(formula)}\n"

        return FENCE.sub(store, "\n".join(lines)).split("\n")


class Inline(InlineProcessor):
    """`$...$`, not in code."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str | Element, int, int]:
        return self.md.htmlStash.store(convert(m[1])), m.start(0), m.end(0)


class Formulas(Extension):
    def extendMarkdown(self, md: Markdown) -> None:
        # Before fences of code (25); after code in a line (190), before the escapes that formulas are full of (180).
        md.preprocessors.register(Blocks(md), "formula_blocks", 26)
        md.inlinePatterns.register(Inline(IN_A_LINE, md), "formulas", 185)


class Examples(Reader):
    """An `Example:` of a docstring is drawn as code: the reader knows `Examples:` alone."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.M)


def on_config(config: Any) -> None:
    config.markdown_extensions.append(Formulas())


def on_files(files: Files, config: Any) -> None:
    """What pages link to outside of docs/: an example becomes a page, a result is copied."""
    text = "\n".join(path.read_text() for path in Path(config.docs_dir).rglob("*.md"))
    for name in sorted(set(OUTSIDE.findall(text))):
        content = (ROOT / name).read_text()
        if name.endswith(".py"):
            content = f"# {Path(name).name}\n\n```python\n{content}```\n"
        files.append(File.generated(config, _on_site(name), content=content))


def _on_site(name: str) -> str:
    return re.sub(r"\.py$", ".md", name)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    up = "../" * page.file.src_uri.count("/")
    return OUTSIDE.sub(lambda found: f"]({up}{_on_site(found[1])})", markdown)


def on_post_build(config: Any) -> None:
    """The site loads nothing from elsewhere."""
    for path in Path(config.site_dir).rglob("*.html"):
        found = LOADED.search(path.read_text())
        if found and 'rel="canonical"' not in found[0]:
            raise PluginError(f"{path.name} loads from the network: {found[0]}")
