"""What is fuzzed: inputs to start from, and a function that must take every input."""

import re
import resource
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional

from spacy.vocab import Vocab

Run = Callable[[bytes], object]

# Our messages: [EL033], and spaCy's: [E130].
_CODE = re.compile(r"\[EL\d{3}\]")
_PAGE = resource.getpagesize()
# On top of what a process has when it starts to run inputs.
MOST_BYTES = 500_000_000
MOST_SECONDS = 20


class Job(NamedTuple):
    """seeds (List[bytes]): inputs that are right. run (Run): reads an input, and uses what
    came of it; raises what the reader raises."""

    seeds: List[bytes]
    run: Run


# Makes a job, which may write below the folder.
Target = Callable[[Path], Job]


class Finding(NamedTuple):
    """An input that broke the promise. name (str): the same for the same mistake. report (str):
    what happened."""

    name: str
    report: str


def is_documented(err: BaseException) -> bool:
    """Whether an error is one that every reader may raise."""
    if _comes_of_memory(err):
        return False
    return isinstance(err, OSError) or (
        isinstance(err, ValueError) and _CODE.search(str(err)) is not None
    )


def _comes_of_memory(err: Optional[BaseException]) -> bool:
    while err is not None:
        if isinstance(err, (MemoryError, TimeoutError)):
            return True
        err = err.__cause__ or err.__context__
    return False


class Attempt(NamedTuple):
    """outcome (str): the same for inputs that were treated alike. finding (Optional[Finding])."""

    outcome: str
    finding: Optional[Finding]


def attempt(run: Run, data: bytes) -> Attempt:
    """Run an input. Nothing but the end of the process comes out of this."""
    before = _get_peak()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = run(data)
    except Exception as err:
        place = _find_place(err)
        outcome = f"{type(err).__name__} {place}"
        if not is_documented(err):
            report = "".join(traceback.format_exception(err))
            return Attempt(outcome, Finding(_make_name(outcome), report))
        return Attempt(outcome, None)
    grown = _get_peak() - before
    if grown > MOST_BYTES:
        return Attempt("memory", Finding("memory", f"{grown} bytes were taken"))
    return Attempt(f"fine: {type(result).__name__}", None)


def _find_place(err: BaseException) -> str:
    """The last line of ours that an error went through, and the first cause of it."""
    frames = traceback.extract_tb(err.__traceback__)
    ours = [frame for frame in frames if "spacy_elmo" in frame.filename] or list(frames)
    code = _CODE.search(str(err))
    cause = type(err.__cause__).__name__ if err.__cause__ else ""
    return f"{Path(ours[-1].filename).stem} {ours[-1].lineno} {code[0] if code else ''} {cause}"


def _make_name(outcome: str) -> str:
    return "-".join(re.findall(r"\w+", outcome))


def _get_peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def limit_process() -> None:
    """Let this process take a few gigabytes more; beyond, there is a `MemoryError`."""
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE
    resource.setrlimit(resource.RLIMIT_AS, (taken + 4_000_000_000,) * 2)


def write_files(folder: Path, files: Dict[str, bytes]) -> None:
    """Make a folder hold these files and no other."""
    folder.mkdir(exist_ok=True)
    for old in list(folder.rglob("*")):
        if old.is_file():
            old.unlink()
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def read_folder(folder: Path, *, without: Iterable[str] = ()) -> Dict[str, bytes]:
    """The files of a folder, by their names below it."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in paths
        if path.name not in without
    }


def make_vocab() -> Vocab:
    return Vocab()


def say(text: Any) -> None:
    print(text, file=sys.stderr, flush=True)
