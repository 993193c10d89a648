"""The README as PyPI shows it, where no picture and no file of this repository can be linked: a hook of hatchling."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

try:
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ModuleNotFoundError:  # The tests read the text without building anything.
    MetadataHookInterface = object

_ELSEWHERE = r"(?!https?://)[^)]*"
_BADGE = re.compile(rf"\[(!\[[^]]*\]\(https?://[^)]*\))\]\({_ELSEWHERE}\)")
_PICTURE = re.compile(rf"^!\[[^]]*\]\({_ELSEWHERE}\)\n\n?", re.M)
_LINK = re.compile(rf"(?<!!)\[([^]]*)\]\({_ELSEWHERE}\)")
_COMMENT = re.compile(r"^<!--.*?-->\n\n?", re.M | re.S)
#: The end of the README on PyPI.
_END = "\nThe pages and files that are named above are in the source distribution, in `docs` and at its top.\n"


def for_pypi(text: str) -> str:
    """The text without pictures of the repository, and with the words of its links in their place."""
    for pattern, instead in ((_COMMENT, ""), (_BADGE, r"\1"), (_PICTURE, ""), (_LINK, r"\1")):
        text = pattern.sub(instead, text)
    return text.rstrip() + "\n" + _END


class Readme(MetadataHookInterface):
    """Puts the text into the metadata of the wheel and of the source distribution."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = for_pypi((Path(self.root) / "README.md").read_text(encoding="utf-8"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
