"""Settings of the whole suite: one thread a process, and hypothesis without a clock (machines are noisy)."""

import torch
from hypothesis import HealthCheck, settings

torch.set_num_threads(1)
settings.register_profile("house", deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")
