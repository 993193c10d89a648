"""The settings of a run, as the command line gives them."""

from __future__ import annotations

from typing import Any

from setpoint.errors import BadSetting
from setpoint.run.settings import Settings


def read_settings(*, shares: str, solver: str, tune: int = 0, **rest: Any) -> Settings:
    """Settings from options; the four shares come as one text, and to tune is to choose `auto`."""
    try:
        train, held_out, calibration, test = (float(share) for share in shares.split(","))
    except ValueError as cause:
        raise BadSetting(f"shares must be four numbers such as 0.5,0.15,0.15,0.2, got {shares!r}") from cause
    solver = "auto" if tune and solver == "default" else solver
    return Settings(shares=(train, held_out, calibration, test), solver=solver, tune=tune, **rest)
