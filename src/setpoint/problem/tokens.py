"""The words, numbers and symbols of a text, taken from left to right."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Sequence

from setpoint.errors import BadAsk

_TOKEN = re.compile(
    r"\s*(?:(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*%?)|(?P<word>[^\W\d]\w*(?:-[^\W\d]\w*)*)"
    r'|(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<symbol><=|>=|==|=<|=>|[=≤≥<>(),.@:;\[\]]))'
)


class Tokens:
    """The tokens of one ask: (kind, text) each, with kind one of number, word, quoted and symbol."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str]] = []
        self.place = 0
        end = 0
        stripped = text.rstrip()
        while end < len(stripped):
            match = _TOKEN.match(stripped, end)
            if match is None:
                raise self.error(f"cannot read {stripped[end:].strip()[:20]!r}")
            self.tokens.append((str(match.lastgroup), match.group(str(match.lastgroup)).strip()))
            end = match.end()

    def error(self, what: str) -> BadAsk:
        return BadAsk(f"{what} in the ask {self.text!r}; an ask reads like 'minimize fnr where fpr <= 1%'")

    def kind(self, ahead: int = 0) -> str:
        """The kind of the next token, or of one further ahead; empty at the end."""
        return self.tokens[self.place + ahead][0] if self.place + ahead < len(self.tokens) else ""

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[self.place + ahead][1] if self.place + ahead < len(self.tokens) else ""

    def words(self, most: int) -> list[str]:
        """The words that come next, in lower case and with underscores for hyphens, `most` of them at the most."""
        found: list[str] = []
        while len(found) < most and self.kind(len(found)) == "word":
            found.append(self.peek(len(found)).lower().replace("-", "_"))
        return found

    def take(self, kind: str, expected: str) -> str:
        if not self.kind():
            raise self.error(f"expected {expected} at the end")
        if self.kind() != kind:
            raise self.error(f"expected {expected} but found {self.peek()!r}")
        self.place += 1
        return self.tokens[self.place - 1][1]

    def accept(self, *phrases: str) -> bool:
        """Step over the first of the phrases that comes next; whether one of them does."""
        for phrase in phrases:
            if self.ahead(phrase):
                self.place += len(phrase.split())
                return True
        return False

    def ahead(self, phrase: str) -> bool:
        """Whether these words come next."""
        return all(self.peek(ahead).lower() == part for ahead, part in enumerate(phrase.split()))

    def need(self, *phrases: str) -> None:
        if not self.accept(*phrases):
            found = repr(self.peek()) if self.peek() else "the end"
            raise self.error(f"expected {phrases[0]!r} but found {found}")

    def name(self, expected: str, kind: str) -> str:
        """A name in plain words or quoted, such as that of a column."""
        if self.kind() not in ("word", "quoted"):
            raise self.error(
                f"expected {expected} but found {self.peek()!r}" if self.peek() else f"expected {expected} at the end"
            )
        self.place += 1
        found, text = self.tokens[self.place - 1]
        if found == "word":
            return text
        try:
            return str(json.loads(text))
        except ValueError as cause:
            raise self.error(f"cannot read the {kind} {text}") from cause

    def unknown(self, said: Sequence[str], names: Iterable[str], otherwise: str, cutoff: float = 0.6) -> str:
        """The sentence on words that are none of the names: the next word, or that word and those after it."""
        names = list(names)
        known = {"where", *names}
        near = [
            (_likeness(words.lower(), name), words, name)
            for words in said
            for name in names
            if known.isdisjoint(words.lower().split()) and f" {name} " not in f" {words.lower()} "
        ]
        likeness, words, name = max(near, key=lambda found: found[0], default=(0.0, "", ""))
        if likeness < cutoff:
            return otherwise
        return f"unknown word{'s' * (' ' in words)} {words!r}, did you mean {name!r}?"

    def next_words(self, most: int = 3) -> list[str]:
        """The next word as it is written, and with the words after it, separated by spaces."""
        found: list[str] = []
        while len(found) < most and self.kind(len(found)) == "word":
            found.append(" ".join([*found[-1:], self.peek(len(found))]))
        return found


def _likeness(words: str, name: str) -> float:
    """How alike two texts are, from 0 to 1; the start of a word is like the word, as in "acc" for accuracy."""
    starts = len(words) > 2 and " " not in name and name.startswith(words)
    return max(difflib.SequenceMatcher(None, words, name).ratio(), 0.7 * starts)
