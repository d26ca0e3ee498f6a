"""Save and load components and pipelines, and find the language of weights."""

import warnings
from pathlib import Path
from typing import Any, Dict, Iterable, Optional, Tuple, TypeVar

import spacy
from spacy.language import Language
from spacy.util import SimpleFrozenList
from spacy.vocab import Vocab
from srsly import msgpack_dumps

from ..checkpoints.formats import CheckpointFiles, PathLike
from ..checkpoints.loaders import pipe_config
from ..checkpoints.native import META_FILE
from ..checkpoints.saved_pipeline import find_component, matches_pipeline
from ..errors import Errors, Warnings
from ..files import read_json_object, unpack, write_file, write_json
from ..utils import show_names, show_reason

_VOCAB = "vocab"
# What meta.json of weights says about their sources.
_SOURCE_KEYS = ("description", "text", "teachers")
SelfT = TypeVar("SelfT", bound="SavedPipe")


class SavedPipe:
    """The four methods of a component that saves files, each written atomically, and the vocab.
    Subclasses have `vocab` and `name`, and define `_get_files` and `_set_files`."""

    vocab: Vocab
    name: str
    saved_files: Tuple[str, ...] = ("cfg", "model")

    def to_disk(self, path: PathLike, *, exclude: Iterable[str] = SimpleFrozenList()) -> None:
        """Save the component in a folder, without what `exclude` names: "vocab", or one of
        `saved_files`. A file that cannot be written keeps its old content."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self._get_files(exclude).items():
            write_file(folder / name, content)
        if _VOCAB not in exclude:
            self.vocab.to_disk(folder / _VOCAB, exclude=exclude)

    def from_disk(
        self: SelfT, path: PathLike, *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> SelfT:
        """Load what `to_disk` saved, and return itself. RAISES (ValueError): EL116 if a file cannot
        be read, EL020 and EL021 if the weights have another shape."""
        folder = Path(path)
        names = [name for name in self.saved_files if name not in exclude]
        self._set_files({name: (folder / name).read_bytes() for name in names}, f"'{path}'")
        if _VOCAB not in exclude and (folder / _VOCAB).exists():
            self.vocab.from_disk(folder / _VOCAB, exclude=exclude)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = SimpleFrozenList()) -> bytes:
        """The files of `to_disk`, as bytes."""
        files = self._get_files(exclude)
        if _VOCAB not in exclude:
            files[_VOCAB] = self.vocab.to_bytes(exclude=exclude)
        return msgpack_dumps(files)

    def from_bytes(
        self: SelfT, bytes_data: bytes, *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> SelfT:
        """Load what `to_bytes` returned. RAISES (ValueError): as `from_disk`."""
        source = f"the component '{self.name}'"
        message = unpack(bytes_data, source)
        names = [name for name in self.saved_files if name not in exclude]
        files = message if isinstance(message, dict) else {}
        missing = [name for name in names if not isinstance(files.get(name), bytes)]
        if missing:
            error = f"they have no file {', '.join(missing)}"
            raise ValueError(Errors.EL116.format(source=source, error=error))
        self._set_files({name: files[name] for name in names}, source)
        if _VOCAB in files and _VOCAB not in exclude:
            self.vocab.from_bytes(files[_VOCAB], exclude=exclude)
        return self

    def _get_files(self, exclude: Iterable[str]) -> Dict[str, bytes]:
        """Content of `saved_files` by name, without those excluded."""
        raise NotImplementedError

    def _set_files(self, files: Dict[str, bytes], source: str) -> None:
        """Load what `_get_files` returned; `source` is for errors."""
        raise NotImplementedError


class ExtensionOwner:
    """A component that registers custom attributes when it is made or unpickled. Not on import:
    spaCy imports all factories, and names such as `token._.sense` should be free for other
    packages. To be inherited before spaCy's `Pipe`."""

    @staticmethod
    def register_extensions() -> None:
        raise NotImplementedError

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        self.register_extensions()


def find_weights_meta(files: Any) -> Dict[str, str]:
    """Find what a checkpoint says about its weights: "lang", "licence", "description", "text" and
    "teachers", as far as they are known."""
    if not isinstance(files, CheckpointFiles) or files.weights_path is not None:
        return {}
    try:
        if matches_pipeline(files):
            # A pipeline may be of another language than the weights in it.
            content = read_json_object(find_component(files.folder) / "cfg")
        else:
            content = read_json_object(files.folder / META_FILE)
    except ValueError:
        return {}
    known = ("lang", "licence", *_SOURCE_KEYS)
    return {key: content[key] for key in known if isinstance(content.get(key), str)}


def fill_pipeline_meta(folder: PathLike, weights_meta: Dict[str, str]) -> None:
    """Fill "license" and "sources" of a pipeline's meta.json where they are empty, when a component
    was saved in a folder. spaCy writes that file first, when weights may not be loaded yet."""
    pipeline = Path(folder).parent
    if matches_pipeline(CheckpointFiles(pipeline)):
        meta = read_json_object(pipeline / META_FILE)
        sources = [weights_meta[key] for key in _SOURCE_KEYS if key in weights_meta]
        meta["license"] = meta.get("license") or weights_meta.get("licence", "")
        meta["sources"] = meta.get("sources") or sources
        write_json(pipeline / META_FILE, meta)


def warn_language(name: str, how: str, weights: Optional[str], docs: str) -> None:
    """Warn with WL018 if weights are of another language than the docs; `how` is code that loads
    other weights into the component `name`."""
    if weights and docs and weights not in (docs, "xx"):  # "xx": of no language in particular
        text = Warnings.WL018.format(name=name, how=how, weights=weights, docs=docs)
        warnings.warn(text, stacklevel=2)


def load_pipeline(path: PathLike) -> Language:
    """Load a folder or package of a pipeline. EL171 for any error of its components."""
    try:
        return spacy.load(path)
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
    """Disable components that merge or split tokens, such as `merge_entities`, from position
    `first` on, and warn with WL066: what was computed before would not belong to the new tokens."""
    names = [n for n in nlp.pipe_names[first:] if nlp.get_pipe_meta(n).retokenizes]
    for name in names:
        nlp.disable_pipe(name)
    if names:
        warnings.warn(Warnings.WL066.format(names=show_names(names)), stacklevel=3)
