"""`SavedTok2Vec`: the weights of a component "elmo" and their language, saved and loaded."""

from pathlib import Path
from typing import Dict, Iterable, Optional, TypeVar, Union

from spacy.pipeline.tok2vec import Tok2Vec
from spacy.util import SimpleFrozenList
from spacy.vocab import Vocab
from thinc.api import Model

from ..checkpoints.loaders import BundledLoader
from ..layers.saved_model import get_most_bytes, load_model
from ..util.saving import ANY_SIZE, join_files, read_files, split_files, write_files
from .weights_language import CFG_BYTES, find_language, read_cfg, warn_language, write_cfg

_CFG, _MODEL, _VOCAB = "cfg", "model", "vocab"
SelfT = TypeVar("SelfT", bound="SavedTok2Vec")


class SavedTok2Vec(Tok2Vec):
    """A tok2vec whose files are written atomically, with digests, and read with care. They have
    spaCy's names: cfg, model, and vocab if it is not excluded.

    vocab (Vocab): the shared vocabulary.
    model (Model): spacy-elmo.Elmo.v2.
    name (str): name in the pipeline.
    """

    def __init__(self, vocab: Vocab, model: Model, name: str) -> None:
        super().__init__(vocab, model, name)
        self._has_checked_language = False

    @property
    def lang(self) -> Optional[str]:
        """RETURNS (Optional[str]): Language that the weights were trained on, such as "en"; None
        if nothing says it."""
        if "lang" not in self.cfg:
            # Nobody has set other weights than those that the first use loads.
            self._set_language(find_language(BundledLoader()))
        return self.cfg["lang"]

    def _set_language(self, lang: Optional[str]) -> None:
        self.cfg = {"lang": lang}
        self._has_checked_language = False

    def _check_language(self, docs: str) -> None:
        if not self._has_checked_language:
            lang = self.lang
            self._has_checked_language = True
            warn_language(self.name, lang, docs)

    def to_disk(
        self, path: Union[str, Path], *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> None:
        """Save weights and mix, each file atomically and with its digest.

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
        """Load what `to_disk` saved, or version 0.1.0.

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
        """bytes_data (bytes): from `to_bytes`, of version 0.1.0 too. exclude (Iterable[str]): as
        in `to_disk`. RETURNS (SelfT): itself. RAISES (ValueError): EL116 if the bytes cannot be
        read or are not what was written, EL020 to EL022 if they are of another shape."""
        source = f"the component '{self.name}'"
        limits = {**self._get_limits(()), _VOCAB: ANY_SIZE}
        optional = {_VOCAB, *exclude}
        files = split_files(bytes_data, limits, source, optional=optional)
        self._set_files({k: v for k, v in files.items() if k not in exclude}, source)
        if _VOCAB in files and _VOCAB not in exclude:
            self.vocab.from_bytes(files[_VOCAB], exclude=exclude)
        return self

    def _get_files(self, exclude: Iterable[str]) -> Dict[str, bytes]:
        writers = {_CFG: lambda: write_cfg(self.lang), _MODEL: self.model.to_bytes}
        return {name: write() for name, write in writers.items() if name not in exclude}

    def _get_limits(self, exclude: Iterable[str]) -> Dict[str, int]:
        limits = {_CFG: CFG_BYTES, _MODEL: get_most_bytes(self.model)}
        return {name: most for name, most in limits.items() if name not in exclude}

    def _set_files(self, files: Dict[str, bytes], source: str) -> None:
        lang = read_cfg(files[_CFG], source) if _CFG in files else None
        if _MODEL in files:
            load_model(self.model, files[_MODEL], source)
        self._set_language(lang)
