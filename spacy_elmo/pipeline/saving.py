"""Save and load components and pipelines, and find the language of weights."""

import warnings
from pathlib import Path
from typing import Any, Dict, Iterable, Optional, Tuple, TypeVar, Union

import spacy
from spacy.language import Language
from spacy.util import SimpleFrozenList
from spacy.vocab import Vocab
from srsly import msgpack_dumps

from ..checkpoints.formats import CheckpointFiles
from ..checkpoints.loaders import pipe_config
from ..checkpoints.native import META_FILE
from ..checkpoints.saved_pipeline import find_component, matches_pipeline
from ..errors import Errors, Warnings
from ..files import read_json_object, unpack, write_file
from ..utils import show_names, show_reason

_VOCAB = "vocab"
# spaCy's code for no language in particular.
_ANY_LANGUAGE = "xx"
SelfT = TypeVar("SelfT", bound="SavedPipe")


class SavedPipe:
    """The four methods of a component that saves files, each written atomically, and the vocab.
    Subclasses have `vocab` and `name`, and define `_get_files` and `_set_files`."""

    vocab: Vocab
    name: str
    saved_files: Tuple[str, ...] = ("cfg", "model")

    def to_disk(
        self, path: Union[str, Path], *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> None:
        """Save the component.

        path (Union[str, Path]): folder; other files in it are kept.
        exclude (Iterable[str]): "vocab", or one of `saved_files`.
        RAISES (OSError): if a file cannot be written; its old content is kept.
        """
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self._get_files(exclude).items():
            write_file(folder / name, content)
        if _VOCAB not in exclude:
            self.vocab.to_disk(folder / _VOCAB, exclude=exclude)

    def from_disk(
        self: SelfT, path: Union[str, Path], *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> SelfT:
        """Load what `to_disk` saved.

        path (Union[str, Path]): folder.
        exclude (Iterable[str]): as in `to_disk`.
        RETURNS (SelfT): itself.
        RAISES (OSError): if a file is missing.
        RAISES (ValueError): EL116 if a file cannot be read, EL020 and EL021 if the weights have
            another shape.
        """
        folder = Path(path)
        names = [name for name in self.saved_files if name not in exclude]
        self._set_files({name: (folder / name).read_bytes() for name in names}, f"'{path}'")
        if _VOCAB not in exclude and (folder / _VOCAB).exists():
            self.vocab.from_disk(folder / _VOCAB, exclude=exclude)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = SimpleFrozenList()) -> bytes:
        """exclude (Iterable[str]): as in `to_disk`. RETURNS (bytes): the files of `to_disk`."""
        files = self._get_files(exclude)
        if _VOCAB not in exclude:
            files[_VOCAB] = self.vocab.to_bytes(exclude=exclude)
        return msgpack_dumps(files)

    def from_bytes(
        self: SelfT, bytes_data: bytes, *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> SelfT:
        """bytes_data (bytes): from `to_bytes`. exclude (Iterable[str]): as in `to_disk`. RETURNS
        (SelfT): itself. RAISES (ValueError): EL116 if the bytes cannot be read, EL020 and EL021 if
        the weights have another shape."""
        source = f"the component '{self.name}'"
        message = unpack(bytes_data, source)
        names = [name for name in self.saved_files if name not in exclude]
        missing = [
            name
            for name in names
            if not isinstance(message, dict) or not isinstance(message.get(name), bytes)
        ]
        if missing:
            error = f"they have no file {', '.join(missing)}"
            raise ValueError(Errors.EL116.format(source=source, error=error))
        self._set_files({name: message[name] for name in names}, source)
        if _VOCAB in message and _VOCAB not in exclude:
            self.vocab.from_bytes(message[_VOCAB], exclude=exclude)
        return self

    def _get_files(self, exclude: Iterable[str]) -> Dict[str, bytes]:
        """RETURNS (Dict[str, bytes]): name -> content of `saved_files`, without those excluded."""
        raise NotImplementedError

    def _set_files(self, files: Dict[str, bytes], source: str) -> None:
        """files (Dict[str, bytes]): as `_get_files` returns them. source (str): for errors."""
        raise NotImplementedError


class ExtensionOwner:
    """A component that registers custom attributes when it is made, and when it is unpickled, maybe
    in another process. Not on import: spaCy imports all factories, and names such as
    `token._.sense` should be free for other packages. To be inherited before spaCy's `Pipe`."""

    @staticmethod
    def register_extensions() -> None:
        """Register the attributes. Harmless when done before."""
        raise NotImplementedError

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        self.register_extensions()


def find_language(loader: Any) -> Optional[str]:
    """Find the language that weights were trained on.

    loader (Any): fills a biLM.
    RETURNS (Optional[str]): a code such as "en"; None if it is not known.
    """
    files = getattr(loader, "files", None)
    return read_language(files) if isinstance(files, CheckpointFiles) else None


def read_language(files: CheckpointFiles) -> Optional[str]:
    """files (CheckpointFiles): a checkpoint. RETURNS (Optional[str]): as `find_language`."""
    if files.weights_path is not None:
        return None
    try:
        if matches_pipeline(files):
            # A pipeline may be of another language than the weights in it.
            content = read_json_object(find_component(files.folder) / "cfg")
        else:
            content = read_json_object(files.folder / META_FILE)
    except ValueError:
        return None
    lang = content.get("lang")
    return lang if isinstance(lang, str) else None


def warn_language(name: str, how: str, weights: Optional[str], docs: str) -> None:
    """Warn with WL018 if weights are of another language than the docs.

    name (str): the component.
    how (str): how other weights are loaded, in code.
    weights (Optional[str]): language of the weights; None if it is not known.
    docs (str): language of the docs; "" if they have none.
    """
    if weights and docs and weights not in (docs, _ANY_LANGUAGE):
        text = Warnings.WL018.format(name=name, how=how, weights=weights, docs=docs)
        warnings.warn(text, stacklevel=2)


def load_pipeline(path: Union[str, Path]) -> Language:
    """path (Union[str, Path]): folder or package of a pipeline. RETURNS (Language): the pipeline.
    RAISES (ValueError): EL171 if it cannot be loaded."""
    try:
        return spacy.load(path)
    # Any error of its components.
    except Exception as err:
        raise ValueError(Errors.EL171.format(path=path, error=show_reason(err))) from err


def make_elmo_pipeline(
    weights: str, lang: str, tokenizer: Dict[str, Any], *, store_layers: bool = False
) -> Language:
    """Make a pipeline of an "elmo" with weights ("" for the bundled ones) and the tokenizer that
    they were trained with, see `find_tokenizer`."""
    nlp = spacy.blank(lang, config={"nlp": {"tokenizer": tokenizer}} if tokenizer else {})
    shape = pipe_config(weights) if weights else {}
    elmo: Any = nlp.add_pipe("elmo", config={**shape, "store_layers": store_layers})
    if weights:
        elmo.load(weights)
    return nlp


def turn_off_retokenizers(nlp: Language, first: int) -> None:
    """Disable components that merge or split tokens, such as `merge_entities`, behind one that has
    read them: what was computed would not belong to the new tokens.

    nlp (Language): a pipeline; WL066 says what is disabled. first (int): position of the first
        component that reads tokens.
    """
    names = [n for n in nlp.pipe_names[first:] if nlp.get_pipe_meta(n).retokenizes]
    for name in names:
        nlp.disable_pipe(name)
    if names:
        warnings.warn(Warnings.WL066.format(names=show_names(names)), stacklevel=3)
