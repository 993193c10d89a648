"""The errors and warnings of setpoint. Each message says what came, what was expected and what to do."""


class SetpointError(ValueError):
    """The base of every error that setpoint raises on purpose; a `ValueError`.

    Example:
        >>> import setpoint as sp
        >>> try:
        ...     sp.ask("minimize fnr where fpr 1%")
        ... except sp.SetpointError as refusal:
        ...     print(type(refusal).__name__, refusal)
        BadAsk expected <=, >= or == after fpr but found '1%' in the ask ...
    """


class ShapeMismatch(SetpointError):
    """Tensors that belong together differ in shape."""


class BadScores(SetpointError):
    """Scores that are not finite real numbers."""


class BadLabels(SetpointError):
    """Labels other than 0 and 1."""


class BadWeights(SetpointError):
    """Weights that are negative, not finite, or all zero."""


class BadGroups(SetpointError):
    """Groups that are missing, or not whole numbers from 0 up."""


class BadFeatures(SetpointError):
    """Features that are not finite numbers, or not as many as the model takes."""


class MissingClass(SetpointError):
    """A rate was asked for on data without the class that it is a share of."""


class BadProblem(SetpointError):
    """A problem that contradicts itself or has no answer."""


class BadAsk(BadProblem):
    """A text that is not an ask such as `minimize fnr where fpr <= 1%`."""


class BadProgram(SetpointError):
    """A linear program whose parts do not fit together."""


class BadTable(SetpointError):
    """A table that cannot be trained on or predicted from."""


class BadFile(SetpointError):
    """A saved file that is missing, damaged, or not written by setpoint."""


class BadSetting(SetpointError):
    """A setting outside its range."""


class MissingPackage(SetpointError, ImportError):
    """An optional package that is needed here is not installed."""


def missing(package: str, extra: str, cause: ImportError) -> ImportError:
    """The error that names a missing package and how to install it; any other failed import is returned as it is."""
    if not isinstance(cause, ModuleNotFoundError) or str(cause.name).split(".")[0] != package:
        return cause
    refusal = MissingPackage(f"this needs the package {package}; install it with: pip install 'setpoint[{extra}]'")
    refusal.name = package
    return refusal


class TooFewSamples(SetpointError):
    """Too few samples for the certificate that was asked for; the message says how many are needed."""


class CannotExport(SetpointError):
    """A run or a model that no ONNX file can hold, or whose file would decide some row in another way."""


class CannotPool(ShapeMismatch):
    """Training and held-out rows cannot be put together."""


class NotEnoughMemory(SetpointError):
    """Work that needs more memory than there is, refused before it starts."""


class DivergedPrices(SetpointError):
    """A price that grew without end: its bound cannot be met, or prices are raised too fast."""


class BadIndex(SetpointError):
    """An index that does not number the training samples."""


class NotCertified(UserWarning):
    """A model was trained, but its threshold could not be certified; the threshold is set without a certificate."""


class SharedData(UserWarning):
    """A threshold was set on the data that chose the model, so its rates look better than they are."""


class DoubtfulAsk(UserWarning):
    """An ask that can be read, but hardly says what was meant: its bound cannot bind, or it needs no model."""
