"""Components and pipelines: saved, loaded, and the language of their weights."""

import json
import warnings
from pathlib import Path
from typing import Any, Dict, Iterable, Optional, TypeVar, Union

import spacy
import srsly
from spacy.language import Language
from spacy.util import SimpleFrozenList
from spacy.vocab import Vocab

from ..checkpoints.formats import CheckpointFiles
from ..checkpoints.native import META_FILE
from ..checkpoints.saved_pipeline import find_component, matches_pipeline
from ..errors import Errors, Warnings
from ..files import (
    ANY_SIZE,
    find_folder,
    join_files,
    read_file,
    read_files,
    read_json_object,
    split_files,
    write_files,
)
from ..utils import show_names, show_reason

_VOCAB = "vocab"
SelfT = TypeVar("SelfT", bound="SavedPipe")


class SavedPipe:
    """The four methods of a component that saves files, and vocab if it is not excluded. What
    inherits has `vocab` and `name`, and says what the files are."""

    vocab: Vocab
    name: str

    def to_disk(
        self, path: Union[str, Path], *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> None:
        """Save the component, each file atomically and with its digest.

        path (Union[str, Path]): folder; other files in it are kept.
        exclude (Iterable[str]): "vocab", "cfg" or "model".
        RAISES (OSError): if a file cannot be written; it is as it was then.
        """
        write_files(Path(path), self._get_files(exclude))
        if "vocab" not in exclude:
            self.vocab.to_disk(Path(path) / _VOCAB, exclude=exclude)

    def from_disk(
        self: SelfT, path: Union[str, Path], *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> SelfT:
        """Load what `to_disk` saved.

        path (Union[str, Path]): folder.
        exclude (Iterable[str]): as in `to_disk`.
        RETURNS (SelfT): itself.
        RAISES (ValueError): EL104 if a file is not what was written, EL100 to EL103 and
            EL116 if it cannot be read, EL020 to EL022 if it is of another shape.
        """
        self._set_files(read_files(Path(path), self._get_limits(exclude)), f"'{path}'")
        if "vocab" not in exclude and (Path(path) / _VOCAB).exists():
            self.vocab.from_disk(Path(path) / _VOCAB, exclude=exclude)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = SimpleFrozenList()) -> bytes:
        """exclude (Iterable[str]): as in `to_disk`. RETURNS (bytes): the files of `to_disk`."""
        files = self._get_files(exclude)
        if "vocab" not in exclude:
            files[_VOCAB] = self.vocab.to_bytes(exclude=exclude)
        return join_files(files)

    def from_bytes(
        self: SelfT, bytes_data: bytes, *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> SelfT:
        """bytes_data (bytes): from `to_bytes`. exclude (Iterable[str]): as in `to_disk`. RETURNS
        (SelfT): itself. RAISES (ValueError): EL116 if the bytes cannot be read or are not what
        was written, EL020 to EL022 if they are of another shape."""
        source = f"the component '{self.name}'"
        limits = {**self._get_limits(()), _VOCAB: ANY_SIZE}
        optional = {_VOCAB, *exclude}
        files = split_files(bytes_data, limits, source, optional=optional)
        self._set_files({k: v for k, v in files.items() if k not in exclude}, source)
        if _VOCAB in files and _VOCAB not in exclude:
            self.vocab.from_bytes(files[_VOCAB], exclude=exclude)
        return self

    def _get_files(self, exclude: Iterable[str]) -> Dict[str, bytes]:
        """RETURNS (Dict[str, bytes]): Name -> content of the files that are not excluded."""
        raise NotImplementedError

    def _get_limits(self, exclude: Iterable[str]) -> Dict[str, int]:
        """RETURNS (Dict[str, int]): Name -> bytes that a file can have, those not excluded."""
        raise NotImplementedError

    def _set_files(self, files: Dict[str, bytes], source: str) -> None:
        """files (Dict[str, bytes]): some of `_get_files`. source (str): for errors."""
        raise NotImplementedError


class ExtensionOwner:
    """Registers the attributes in each process that has the component: its `__init__` calls
    `register_extensions`, and what is unpickled was not made by it. To be inherited before spaCy's
    `Pipe`."""

    @staticmethod
    def register_extensions() -> None:
        """Register the attributes. Harmless when done before."""
        raise NotImplementedError

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        self.register_extensions()


# spaCy's code for no language in particular.
_ANY = "xx"
# Of a component, in its folder.
CFG_FILE = "cfg"
# Bytes that a component's cfg can have.
CFG_BYTES = 10_000


def read_language(files: CheckpointFiles) -> Optional[str]:
    """Read the language that weights were trained on.

    files (CheckpointFiles): a checkpoint.
    RETURNS (Optional[str]): its code, such as "en"; None if nothing says it.
    """
    if files.weights_path is not None:
        return None
    try:
        if matches_pipeline(files):
            # A pipeline may be of another language than the weights in it.
            path = find_component(files.folder) / CFG_FILE
            return read_cfg(read_file(path, CFG_BYTES), str(path))
        lang = read_json_object(find_folder(files.path) / META_FILE).get("lang")
    except ValueError:
        return None
    return lang if isinstance(lang, str) else None


def find_language(loader: Any) -> Optional[str]:
    """loader (Any): what filled a biLM. RETURNS (Optional[str]): as `read_language`."""
    try:
        files = loader.files
    except (ValueError, AttributeError):
        return None
    return read_language(files) if isinstance(files, CheckpointFiles) else None


def warn_language(name: str, how: str, weights: Optional[str], docs: str) -> None:
    """Say that weights are of another language than the docs.

    name (str): the component.
    how (str): how other weights are loaded, in code.
    weights (Optional[str]): language of the weights; None if it is not known.
    docs (str): language of the docs; "" if they have none.
    """
    if weights and docs and weights not in (docs, _ANY):
        text = Warnings.WL018.format(name=name, how=how, weights=weights, docs=docs)
        warnings.warn(text, stacklevel=2)


def write_cfg(lang: Optional[str]) -> bytes:
    """lang (Optional[str]): language of the weights. RETURNS (bytes): a component's cfg."""
    return srsly.json_dumps({"lang": lang}).encode("utf-8")


def read_cfg(content: bytes, source: str) -> Optional[str]:
    """Read what `write_cfg` wrote, or the empty one of version 0.1.0.

    content (bytes): the file.
    source (str): where it comes from, for errors.
    RETURNS (Optional[str]): language of the weights, None if it is not known.
    RAISES (ValueError): EL116 if it is something else.
    """
    try:
        lang = dict(json.loads(content)).get("lang")
    except (ValueError, TypeError, RecursionError) as err:
        raise ValueError(Errors.EL116.format(source=source, error=f"cfg: {err}")) from err
    if lang is not None and not isinstance(lang, str):
        error = f"cfg: lang is {lang!r:.50}, expected a string or null"
        raise ValueError(Errors.EL116.format(source=source, error=error))
    return lang


def load_pipeline(path: Union[str, Path]) -> Language:
    """path (Union[str, Path]): folder or package of a pipeline. RETURNS (Language): it. RAISES
    (ValueError): EL171 if it cannot be loaded."""
    try:
        return spacy.load(path)
    # What is wrong with it can show anywhere in its components.
    except Exception as err:
        raise ValueError(Errors.EL171.format(path=path, error=show_reason(err))) from err


def make_blank(lang: str, tokenizer: Dict[str, Any]) -> Language:
    """lang (str), tokenizer (Dict[str, Any]): from `find_tokenizer`. RETURNS (Language): a pipeline
    without components that cuts text as the weights have learned."""
    return spacy.blank(lang, config={"nlp": {"tokenizer": tokenizer}} if tokenizer else {})


def turn_off_retokenizers(nlp: Language, first: int) -> None:
    """Keep what is computed of tokens theirs: it belongs to no others.

    nlp (Language): a pipeline; WL066 says what is turned off. first (int): position of the first
        component that reads tokens.
    """
    names = [n for n in nlp.pipe_names[first:] if nlp.get_pipe_meta(n).retokenizes]
    for name in names:
        nlp.disable_pipe(name)
    if names:
        warnings.warn(Warnings.WL066.format(names=show_names(names)), stacklevel=3)
