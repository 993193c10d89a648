"""Search settings by optuna. Only this file imports optuna, and only when trials are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec

from setpoint.errors import BadSetting

#: The lowest and highest value of each setting by name; values are drawn on a logarithmic scale.
Space = Mapping[str, tuple[float, float]]


def check_optuna() -> None:
    """Refuse a missing optuna before anything is trained."""
    if find_spec("optuna") is None:
        raise BadSetting("Auto(tune=N) needs optuna; install it with: pip install 'setpoint[tune]', or leave tune at 0")


def search(objective: Callable[[dict[str, float]], float], space: Space, trials: int, seed: int) -> dict[str, float]:
    """The settings with the largest objective among this many trials; the same seed tries the same settings."""
    import optuna  # noqa: PLC0415

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))

    def one(trial: optuna.Trial) -> float:
        return objective({name: trial.suggest_float(name, *ends, log=True) for name, ends in space.items()})

    study.optimize(one, n_trials=trials)
    return {name: float(study.best_params[name]) for name in space}
