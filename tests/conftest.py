"""Settings of the whole suite: one thread a process, and hypothesis without a clock (machines are noisy).

In CI the cases that hypothesis makes are the same every time: what lands must not depend on luck. Elsewhere they are
new with every run, which is how the rare ones are found.
"""

import os

# Before torch is loaded, and for the processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from hypothesis import HealthCheck, settings

torch.set_num_threads(1)
settings.register_profile(
    "house",
    deadline=None,
    max_examples=150,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")
