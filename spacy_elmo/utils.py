"""Small helpers that several packages use."""

import ctypes
import inspect
import json
import multiprocessing
import os
import signal
import sys
import threading
from contextlib import contextmanager
from functools import wraps
from importlib.resources import files as package_files
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, List, Optional, Sequence, TypeVar, cast

from confection import Config
from numpy.typing import NDArray
from srsly import msgpack
from thinc.api import get_array_module

from .errors import Errors

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

Item = TypeVar("Item")

# Characters of a value, names in a list, and characters of a reason that messages show.
_MAX_VALUE, _MAX_NAMES, _MAX_REASON = 80, 8, 400
_CONFIGS = Path(str(package_files("spacy_elmo"))) / "configs"


def with_defaults(build: Callable, **defaults: Any) -> Callable:
    """Copy a registered function with other defaults, for another version of its name."""
    old = inspect.signature(build)
    parameters = old.parameters.values()
    new = old.replace(
        parameters=[p.replace(default=defaults.get(p.name, p.default)) for p in parameters]
    )

    @wraps(build)
    def call(*args: Any, **kwargs: Any) -> Any:
        bound = new.bind(*args, **kwargs)
        bound.apply_defaults()
        return build(*bound.args, **bound.kwargs)

    cast(Any, call).__signature__ = new
    return call


# Checks of settings


def require_valid(is_valid: bool, key: str, value: object, expected: str) -> None:
    """Check a setting. expected (str): a clause for the message. RAISES (ValueError): EL012."""
    if not is_valid:
        raise ValueError(Errors.EL012.format(key=key, value=value, expected=expected))


def require_least(key: str, value: float, least: float) -> None:
    """Check that the value of a setting is at least `least`."""
    require_valid(value >= least, key, value, f"at least {least}")


def require_layer(layer: int, n_layers: int) -> None:
    """Check that -n_layers <= layer < n_layers."""
    expected = f"one of: {', '.join(str(i) for i in range(-1, n_layers))}"
    require_valid(-n_layers <= layer < n_layers, "layer", layer, expected)


def require_known(key: str, value: str, known: Sequence[str]) -> None:
    """Check that the value of a setting is one of `known`."""
    require_valid(value in known, key, value, f"one of: {', '.join(known)}")


# Untrusted values and names in messages: short, on one line, printable


def show_value(value: Any) -> str:
    """Write a value from a file or config as JSON, cut short."""
    try:
        return _shorten(json.dumps(value))
    except (TypeError, ValueError, RecursionError):
        return f"({type(value).__name__})"


def show_name(name: str, most: int = _MAX_VALUE) -> str:
    """Cut a text short; quote and escape it if it is not printable."""
    return _shorten(name if name.isprintable() else json.dumps(name), most)


def show_names(names: Iterable[str]) -> str:
    """Write the first names in their order, and the number of the others; "none" if there are
    none."""
    ordered = sorted(names)
    shown = ", ".join(map(show_name, ordered[:_MAX_NAMES]))
    more = len(ordered) - _MAX_NAMES
    return f"{shown} and {more} more" if more > 0 else shown or "none"


def show_reason(error: BaseException) -> str:
    """Write an error as a part of another message: on one line, without the last full stop."""
    text = " ".join(str(error).split()) or type(error).__name__
    return show_name(text, _MAX_REASON).rstrip(".")


def _shorten(text: str, most: int = _MAX_VALUE) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def show_path(path: Path) -> str:
    """Write a path as text in UTF-8; names of files may be no text."""
    return str(path).encode("utf-8", "backslashreplace").decode("utf-8")


def mark_word(
    words: Sequence[str],
    position: int,
    mark: Callable[[str], str] = "[{}]".format,
    *,
    n_around: Optional[int] = None,
) -> str:
    """Write a sentence with one word marked; with `n_around`, only as many words on each side."""
    start = 0 if n_around is None else max(0, position - n_around)
    end = len(words) if n_around is None else position + n_around + 1
    shown = [mark(word) if i == position else word for i, word in enumerate(words)][start:end]
    return " ".join(["…"] * (start > 0) + shown + ["…"] * (end < len(words)))


def count_things(n: int, singular: str, plural: str = "") -> str:
    """Write a number of things, such as "1 file" and "2,000 files"."""
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


# Batches and vectors


def group_by_length(
    lengths: Sequence[int], fits: Callable[[int, int], bool]
) -> Iterator[List[int]]:
    """Group sequences that are padded to the longest of their group, the shortest first: indices of
    as many as `fits(number, length)` allows. A sequence that is too long is a group of one."""
    group: List[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if group and not fits(len(group) + 1, lengths[i]):
            yield group
            group = []
        group.append(i)
    if group:
        yield group


def split_by_size(
    items: Iterable[Item], get_size: Callable[[Item], int], most: int
) -> Iterator[List[Item]]:
    """Divide items, such as docs, in order into batches of at most `most` tokens, unless one is a
    single item."""
    batch: List[Item] = []
    n_tokens = 0
    for item in items:
        size = get_size(item)
        if batch and n_tokens + size > most:
            yield batch
            batch, n_tokens = [], 0
        batch.append(item)
        n_tokens += size
        if n_tokens >= most:
            # At once: the next item of a stream may take its time.
            yield batch
            batch, n_tokens = [], 0
    if batch:
        yield batch


def normalise(X: NDArray) -> NDArray:
    """Scale vectors, shape (..., width), to length 1; zeros stay zeros."""
    xp = get_array_module(X)
    norms = xp.linalg.norm(X, axis=-1, keepdims=True)
    return X / xp.where(norms == 0, 1.0, norms)


# The package, the process and the system


def read_template(name: str) -> Config:
    """Read a file in `configs/`, named without its ending, not interpolated."""
    return Config().from_disk(_CONFIGS / f"{name}.cfg", interpolate=False)


def read_peak_memory() -> int:
    """Read the most bytes of memory that the process has had; 0 if unknown."""
    if resource is None:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def keep_memory() -> None:
    """Have the C library keep freed memory: asking the system for the same large blocks
    over and over costs a fifth of the time of pretraining. glibc only; harmless elsewhere."""
    m_trim_threshold, m_mmap_threshold = -1, -3
    _call_libc("mallopt", m_mmap_threshold, 1 << 30)
    _call_libc("mallopt", m_trim_threshold, (1 << 31) - 1)


def release_memory() -> None:
    """Have the C library return freed memory to the system: after many arrays of all
    sizes, that is most of a process's memory. glibc only; harmless elsewhere."""
    _call_libc("malloc_trim", 0)


def _call_libc(name: str, *args: int) -> None:
    if sys.platform == "linux":
        call: Callable[..., int] = getattr(ctypes.CDLL(None), name, lambda *args: 0)
        call(*args)


def end_with_parent(stop: Optional[Connection] = None) -> None:
    """End this child process at once when its parent ends, even if that is killed; or when the
    parent closes the other end of `stop`, a pipe through which nothing is sent. Ctrl-C reaches the
    whole process group, and is left to the parent. Nothing is cleaned up."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    # Not an Event: to set one waits for all processes that wait for it, killed ones too.
    ends: List[Any] = [parent.sentinel] if stop is None else [parent.sentinel, stop]

    def watch() -> None:
        wait(ends)
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def kept_hooks() -> Iterator[None]:
    """Have srsly look up the msgpack hooks of other packages once, in all threads. It looks through
    all entry points for each message, which took 23 of 24 seconds of reading 12,500 docs with
    span groups. Several may be open at a time: when the first is left, srsly looks again."""
    registries = (msgpack.msgpack_encoders, msgpack.msgpack_decoders)
    try:
        for registry in registries:
            found = registry.get_all()
            # On the object, which hides its class's method.
            vars(registry)["get_all"] = lambda found=found: found
        yield
    finally:
        for registry in registries:
            vars(registry).pop("get_all", None)
