"""I have embeddings: a linear head for the operating point, on top of features that a large model made.

Embeddings of texts or images are a table of numbers. A linear head on them trains in seconds, and the default recipe is
made for it: cross-entropy first, then refined for the ask.
"""

import torch

import setpoint as sp

draw = torch.Generator().manual_seed(0)
toxic = (torch.rand(9000, generator=draw) < 0.1).float()
direction = torch.randn(64, generator=draw)
embeddings = torch.randn(9000, 64, generator=draw) + 0.3 * toxic[:, None] * direction  # put your own here

parts = [sp.Batches(embeddings[rows], toxic[rows]) for rows in torch.arange(9000).split(3000)]
result = sp.fit(
    torch.nn.Linear(64, 1), "maximize recall where precision >= 80%", parts[0], parts[1], calibration=parts[2],
    confidence=0.95,
)  # fmt: skip

print(f"threshold {result.point.threshold:.3f}, recall {result.point.rates['recall']:.1%}")
print(result.point.certificate)
with torch.no_grad():
    print("flagged among the first ten rows:", result.point.predict(result.model(embeddings[:10]).squeeze(-1)).tolist())
