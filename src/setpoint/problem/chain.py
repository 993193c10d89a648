"""A record that is only added to: each entry carries a hash of itself and of the entry before it.

An entry that was changed, removed or moved later no longer fits its hash, or that of the next one. The hash of the last
entry stands for the whole record.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from setpoint.errors import BadFile

Entry = dict[str, Any]


def linked(before: str, content: Mapping[str, Any]) -> Entry:
    """The content as an entry that follows the entry with hash `before`."""
    text = json.dumps({**content, "before": before}, sort_keys=True, allow_nan=False)
    return {**content, "hash": hashlib.sha256(text.encode()).hexdigest()}


def check_links(start: str, entries: Iterable[Entry]) -> None:
    """Refuse entries of which one does not fit its hash.

    Raises:
        BadFile: an entry was changed, removed or moved; the message says which.
    """
    for place, entry in enumerate(entries):
        content = {name: value for name, value in entry.items() if name != "hash"}
        if linked(start, content)["hash"] != entry.get("hash"):
            raise BadFile(f"entry {place + 1} of the watch was changed after it was written: it differs from its hash")
        start = entry["hash"]
