"""The scikit-learn door: a classifier that is trained for an ask, and a threshold for any other classifier."""

try:
    from setpoint.estimator.classifier import SetpointClassifier
    from setpoint.estimator.tuned import Tuned
except ImportError as cause:
    if not (cause.name or "").startswith("sklearn"):
        raise
    raise ModuleNotFoundError(
        "SetpointClassifier and Tuned need scikit-learn 1.6 or later; install it with pip install 'setpoint[sklearn]'",
        name=cause.name,
    ) from cause

__all__ = ["SetpointClassifier", "Tuned"]
