"""The ways an input can be wrong. Each message names what came, what was expected and what to do."""


class SetpointError(ValueError):
    """Base of every error this library raises on purpose."""


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
    """A rate was asked of data that lacks the class it is a share of."""


class BadProblem(SetpointError):
    """A question that contradicts itself or that nobody could answer."""


class BadAsk(BadProblem):
    """A text that is not a question in the language of asks."""


class BadProgram(SetpointError):
    """A linear program whose parts do not fit together."""


class BadTable(SetpointError):
    """A table that cannot be trained on or predicted from."""


class BadFile(SetpointError):
    """A saved file that is missing, damaged, or not ours."""


class BadSetting(SetpointError):
    """A setting outside its range."""


class MissingPackage(SetpointError, ImportError):
    """A package that this part of the library stands on is not installed."""


def missing(package: str, extra: str, cause: ImportError) -> ImportError:
    """The one sentence that names the package and how to get it; an import that failed otherwise speaks for itself."""
    if not isinstance(cause, ModuleNotFoundError) or str(cause.name).split(".")[0] != package:
        return cause
    refusal = MissingPackage(f"this needs the package {package}; install it with: pip install 'setpoint[{extra}]'")
    refusal.name = package
    return refusal


class TooFewSamples(SetpointError):
    """Too few samples for the promise that was asked for."""


class CannotPool(ShapeMismatch):
    """Training and held-out rows cannot be put together."""


class NotEnoughMemory(SetpointError):
    """Work that would not fit into the memory there is, refused before it starts."""


class DivergedPrices(SetpointError):
    """A price that grew beyond all measure: its bound is out of reach, or the prices climb too fast."""


class BadIndex(SetpointError):
    """An index that does not number the training samples."""


class NotCertified(UserWarning):
    """A model was trained, but the promise asked of its threshold cannot be made; the threshold is a plain one."""


class SharedData(UserWarning):
    """A threshold was set on the data that chose the model, where its rates look better than they are."""
