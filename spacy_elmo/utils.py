"""Small helpers that several rooms use."""

import ctypes
import json
import multiprocessing
import os
import re
import signal
import sys
import threading
from contextlib import contextmanager
from importlib.resources import files as package_files
from multiprocessing.connection import Connection, wait
from pathlib import Path
from textwrap import fill
from typing import Any, Callable, Iterable, Iterator, List, Optional, Sequence, TypeVar

from confection import Config
from numpy.typing import NDArray
from srsly import msgpack
from thinc.api import get_array_module

from .errors import Errors

_MOST_SEED = 2**32 - 1


def require_least(key: str, value: float, least: float) -> None:
    """key (str): name of a setting. value (float): what it is. least (float): what it has to
    be at least. RAISES (ValueError): EL012 if it is less."""
    if value < least:
        raise ValueError(Errors.EL012.format(key=key, value=value, least=least))


def require_layer(layer: int, n_layers: int) -> None:
    """layer (int): from 0, the word layer; or counted from the top, -1. n_layers (int): of
    the biLM. RAISES (ValueError): EL017 if there is no such layer."""
    if not -n_layers <= layer < n_layers:
        known = ", ".join(str(i) for i in range(-1, n_layers))
        raise ValueError(Errors.EL017.format(key="layer", value=layer, known=known))


def require_known(key: str, value: str, known: Sequence[str]) -> None:
    """key (str): name of a setting. value (str): what it is. known (Sequence[str]): what it
    can be. RAISES (ValueError): EL017 if it is none of these."""
    if value not in known:
        raise ValueError(Errors.EL017.format(key=key, value=value, known=", ".join(known)))


def require_seed(seed: int) -> None:
    """seed (int): of random numbers. RAISES (ValueError): EL017 if NumPy cannot take it."""
    if not 0 <= seed <= _MOST_SEED:
        known = f"0 to {_MOST_SEED}"
        raise ValueError(Errors.EL017.format(key="seed", value=seed, known=known))


_N_CHARACTERS = 80
_N_NAMES = 8
_N_REASON = 400


def show_value(value: Any) -> str:
    """value (Any): what a file or config says. RETURNS (str): as JSON has it, cut short."""
    try:
        return _shorten(json.dumps(value))
    except (TypeError, ValueError, RecursionError):
        return f"({type(value).__name__})"


def show_name(name: str, most: int = _N_CHARACTERS) -> str:
    """name (str): any text. most (int): letters shown. RETURNS (str): the same, cut short;
    quoted and escaped if a terminal would not print it as it is."""
    return _shorten(name if name.isprintable() else json.dumps(name), most)


def show_names(names: Iterable[str]) -> str:
    """names (Iterable[str]): any. RETURNS (str): the first of them in their order, and how
    many there are besides; "none" for none."""
    ordered = sorted(names)
    shown = ", ".join(map(show_name, ordered[:_N_NAMES]))
    more = len(ordered) - _N_NAMES
    return f"{shown} and {more} more" if more > 0 else shown or "none"


def show_reason(error: BaseException) -> str:
    """error (BaseException): one of ours or a library's. RETURNS (str): its text as a part of
    another message: on one line, without the last full stop."""
    text = " ".join(str(error).split()) or type(error).__name__
    return show_name(text, _N_REASON).rstrip(".")


def show_error(error: BaseException) -> str:
    """error (BaseException): any of a stranger's code. RETURNS (str): as `show_reason`; with its
    class, unless the text begins with a code in brackets."""
    reason = show_reason(error)
    name = type(error).__name__
    return reason if reason.startswith("[") or reason == name else f"{name}: {reason}"


def _shorten(text: str, most: int = _N_CHARACTERS) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def show_path(path: Path) -> str:
    """path (Path): any: names of files need not be text. RETURNS (str): it as text in UTF-8."""
    return str(path).encode("utf-8", "backslashreplace").decode("utf-8")


def _bracket(word: str) -> str:
    return f"[{word}]"


def mark_word(
    words: Sequence[str],
    position: int,
    mark: Callable[[str], str] = _bracket,
    *,
    n_around: Optional[int] = None,
    ellipsis: str = "…",
) -> str:
    """Write a sentence with one word marked.

    words (Sequence[str]): of the sentence.
    position (int): of the word.
    mark (Callable[[str], str]): how it is marked; by default in square brackets.
    n_around (Optional[int]): words to show on each side; None for all.
    ellipsis (str): in place of the words that are not shown; "" for nothing.
    RETURNS (str): one line.
    """
    start = 0 if n_around is None else max(0, position - n_around)
    end = len(words) if n_around is None else position + n_around + 1
    shown = [mark(word) if i == position else word for i, word in enumerate(words)][start:end]
    prefix = [ellipsis] if ellipsis and start else []
    suffix = [ellipsis] if ellipsis and end < len(words) else []
    return " ".join([*prefix, *shown, *suffix])


def close_up(text: str) -> str:
    """text (str): tokens with a space between any two. RETURNS (str): the same without the space
    before a mark that ends a sentence or a part of it."""
    return re.sub(r" ([.,;:!?])(?= |$)", r"\1", text)


def wrap_evenly(text: str, most: int) -> str:
    """text (str): a sentence. most (int): letters in a line. RETURNS (str): the same in as few
    lines as `textwrap.fill` makes of it, but of about the same length."""
    wrapped = fill(text, most)
    n_breaks = wrapped.count("\n")
    for width in range(max(1, len(text) // (n_breaks + 1)), most):
        narrower = fill(text, width)
        if narrower.count("\n") == n_breaks:
            return narrower
    return wrapped


def count_things(n: int, singular: str, plural: str = "") -> str:
    """n (int): how many. singular (str): what one is called. plural (str): what several are
    called, if not that with an s. RETURNS (str): such as "1 file" and "2,000 files"."""
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


def format_seconds(seconds: float) -> str:
    """seconds (float): a duration. RETURNS (str): such as "3.2 s", "2 min 5 s", "1 h 2 min"."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60:,} h {minutes % 60} min"


Item = TypeVar("Item")


def group_by_length(
    lengths: Sequence[int], fits: Callable[[int, int], bool]
) -> Iterator[List[int]]:
    """Group sequences that are padded to the longest of their group.

    lengths (Sequence[int]): of the sequences.
    fits (Callable[[int, int], bool]): whether so many sequences, padded to such a length, are
        within bounds. A sequence that is too long is a group of its own.
    YIELDS (List[int]): indices of the sequences of one group, the shortest first.
    """
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
    """Divide items into batches, so that memory is bounded.

    items (Iterable[Item]): docs, clauses or the like.
    get_size (Callable[[Item], int]): tokens of one.
    most (int): tokens of a batch, unless it is a single item.
    YIELDS (List[Item]): in order.
    """
    batch: List[Item] = []
    n_tokens = 0
    for item in items:
        if batch and n_tokens + get_size(item) > most:
            yield batch
            batch, n_tokens = [], 0
        batch.append(item)
        n_tokens += get_size(item)
    if batch:
        yield batch


def normalise(X: NDArray) -> NDArray:
    """X (NDArray): vectors, shape (..., width). RETURNS (NDArray): the same of length 1;
    those of zeros stay zeros."""
    xp = get_array_module(X)
    norms = xp.linalg.norm(X, axis=-1, keepdims=True)
    return X / xp.where(norms == 0, 1.0, norms)


_FOLDER = Path(str(package_files("spacy_elmo"))) / "configs"


def read_template(name: str) -> Config:
    """name (str): of a file in `configs/`, without its ending. RETURNS (Config): its content,
    not interpolated."""
    return Config().from_disk(_FOLDER / f"{name}.cfg", interpolate=False)


try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


def read_peak_memory() -> int:
    """RETURNS (int): bytes of memory that the process has had at most; 0 if the system
    does not tell."""
    if resource is None:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def read_total_memory() -> int:
    """RETURNS (int): bytes of memory that the machine has; 0 if the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows has no such function
        return 0


def keep_memory() -> None:
    """Have the C library keep what it frees: asking the system for the same large blocks
    over and over costs a fifth of the time of pretraining. glibc only; harmless elsewhere."""
    m_trim_threshold, m_mmap_threshold = -1, -3
    _call_libc("mallopt", m_mmap_threshold, 1 << 30)
    _call_libc("mallopt", m_trim_threshold, (1 << 31) - 1)


def release_memory() -> None:
    """Have the C library give back what it keeps of what was freed: after many arrays of all
    sizes, that is most of a process's memory. glibc only; harmless elsewhere."""
    _call_libc("malloc_trim", 0)


def _call_libc(name: str, *args: int) -> None:
    """Call a function of the C library, if it has it."""
    if sys.platform == "linux":
        call: Callable[..., int] = getattr(ctypes.CDLL(None), name, lambda *args: 0)
        call(*args)


def is_out_of_memory(err: BaseException) -> bool:
    """err (BaseException): any. RETURNS (bool): Whether it says that there is not enough memory:
    torch has a class of its own for the memory of a GPU alone."""
    return isinstance(err, MemoryError) or (
        isinstance(err, RuntimeError) and bool(re.search("allocate|out of memory", str(err)))
    )


def end_with_parent(stop: Optional[Connection] = None) -> None:
    """End this child process at once when its parent ends, even if that is killed; or when the
    parent closes the other end of `stop`. Ctrl-C reaches the whole process group, and is left
    to the parent. Nothing is cleaned up: only for work that may be killed.

    stop (Optional[Connection]): the reading end of a pipe through which nothing is sent.
    """
    # Not an Event: setting one waits for all processes that wait for it, killed ones too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch, args=(stop,), daemon=True).start()


def _watch(stop: Optional[Connection]) -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel] if stop is None else [parent.sentinel, stop])
    os._exit(1)


_REGISTRIES = (msgpack.msgpack_encoders, msgpack.msgpack_decoders)
_LOOK_UP = "get_all"


@contextmanager
def kept_hooks() -> Iterator[None]:
    """Have srsly take the hooks that are there now, in all threads. Several may be open at a time:
    when the first is left, srsly looks again, and finds the same."""
    try:
        for registry in _REGISTRIES:
            found = registry.get_all()
            # Into the object, in front of its class's method.
            vars(registry)[_LOOK_UP] = lambda found=found: found
        yield
    finally:
        for registry in _REGISTRIES:
            vars(registry).pop(_LOOK_UP, None)
