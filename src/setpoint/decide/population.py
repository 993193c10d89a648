"""Independent samples of the population that a promise is about, from rows that are weighted or come in clusters.

Exact tests count samples that are drawn independently and stand for one each. Rows are left out at random until that is
true of the rest: one row of each cluster is kept, and each row with a probability in proportion to its weight. Every
test then holds as it is, for every kind of question.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from setpoint.errors import BadWeights, ShapeMismatch, TooFewSamples
from setpoint.measure.sample import Sample, name_groups
from setpoint.problem.certificate import Certificate


@dataclass(frozen=True)
class Independent:
    """Samples that a certificate may count, and the words that its promise and its method gain by it."""

    sample: Sample
    promise: str = ""
    method: str = ""

    def said_of(self, certificate: Certificate) -> Certificate:
        """The certificate with the population that its promise is about."""
        told = f"{certificate.method}{self.method}"
        return replace(certificate, statement=f"{certificate.statement}{self.promise}", method=told)

    def said_of_refusal(self, cause: TooFewSamples) -> TooFewSamples:
        """The refusal, with the number of samples that are left."""
        return TooFewSamples(f"{cause}{self.method}") if self.method else cause


def independent(sample: Sample, clusters: Any = None, most: float | None = None) -> Independent:
    """The samples that stand for one each of the population; the same samples in the same order give the same ones."""
    kept, rows = torch.arange(len(sample.scores)), len(sample.scores)
    promise = method = ""
    draw = torch.Generator().manual_seed(0)
    if clusters is not None:
        kept = _one_of_each(cluster_codes(clusters, rows), draw)
        promise, method = ", for a random row of a random cluster", f"; of {rows} rows, one of each cluster"
    if most is not None:
        assert sample.weights is not None
        heaviest = float(sample.weights.max()) if rows else 0.0
        if heaviest > most:
            raise BadWeights(f"a weight of {heaviest:g} is above most={most:g}; give the largest weight that can occur")
        weights = sample.weights[kept].cpu()
        kept = kept[torch.rand(len(kept), generator=draw, dtype=torch.float64) * most < weights]
        promise = f"{promise}, for rows as their weights count them"
        method = f"{method or f'; of {rows} rows'}, each kept with probability weight / {most:g}"
    if not method:
        return Independent(sample)
    if len(kept) == 0:
        raise TooFewSamples(f"no row is left of {rows}{method[1:]}; bring more rows")
    return Independent(replace(sample.take(kept.to(sample.scores.device)), weights=None), promise, method)


def cluster_codes(clusters: Any, rows: int) -> Tensor:
    """The number of the cluster of each row, from any values; refused unless there is one per row."""
    codes = name_groups(clusters)[0]
    if codes.shape != (rows,):
        raise ShapeMismatch(f"clusters have shape {tuple(codes.shape)} for {rows} rows; give one cluster per row")
    return codes


def _one_of_each(codes: Tensor, draw: torch.Generator) -> Tensor:
    """The number of one random row of each cluster, in ascending order."""
    order = torch.randperm(len(codes), generator=draw)
    first = torch.full((int(codes.max()) + 1 if len(codes) else 0,), len(codes), dtype=torch.int64)
    first.scatter_reduce_(0, codes[order], torch.arange(len(codes)), "amin")
    return order[first].sort().values
