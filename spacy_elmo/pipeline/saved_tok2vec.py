"""`SavedTok2Vec`: the weights of a component "elmo" and their language, saved and loaded."""

from typing import Dict, Iterable, Optional

from spacy.pipeline.tok2vec import Tok2Vec
from spacy.vocab import Vocab
from thinc.api import Model

from ..checkpoints.loaders import BundledLoader
from ..layers.elmo_layers import get_embedder
from ..layers.saved_model import get_most_bytes, load_model
from .saved_pipe import SavedPipe
from .weights_language import (
    CFG_BYTES,
    CFG_FILE,
    find_language,
    read_cfg,
    warn_language,
    write_cfg,
)

_MODEL = "model"


class SavedTok2Vec(SavedPipe, Tok2Vec):
    """A tok2vec with files of spaCy's names: cfg, model, and vocab if it is not excluded. Those of
    version 0.1.0 are read, too.

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
            pending = get_embedder(self.model).pending_loader
            self.set_language(find_language(pending or BundledLoader()))
        return self.cfg["lang"]

    def set_language(self, lang: Optional[str]) -> None:
        """lang (Optional[str]): that the weights were trained on; None if nothing says it."""
        self.cfg = {"lang": lang}
        self._has_checked_language = False

    def _check_language(self, docs: str) -> None:
        if not self._has_checked_language:
            lang = self.lang
            self._has_checked_language = True
            how = f'`nlp.get_pipe("{self.name}").load(FOLDER)`'
            warn_language(self.name, how, lang, docs)

    def _get_files(self, exclude: Iterable[str]) -> Dict[str, bytes]:
        writers = {CFG_FILE: lambda: write_cfg(self.lang), _MODEL: self.model.to_bytes}
        return {name: write() for name, write in writers.items() if name not in exclude}

    def _get_limits(self, exclude: Iterable[str]) -> Dict[str, int]:
        limits = {CFG_FILE: CFG_BYTES, _MODEL: get_most_bytes(self.model)}
        return {name: most for name, most in limits.items() if name not in exclude}

    def _set_files(self, files: Dict[str, bytes], source: str) -> None:
        lang = read_cfg(files[CFG_FILE], source) if CFG_FILE in files else None
        if _MODEL in files:
            load_model(self.model, files[_MODEL], source)
            # Of these weights.
            self.set_language(lang)
