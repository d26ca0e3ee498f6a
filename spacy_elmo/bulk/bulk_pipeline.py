"""The pipeline of a job: loaded, with nothing in it but what its vectors need."""

from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from spacy.language import Language
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc

from ..checkpoints.loaders import pipe_config
from ..errors import Errors
from ..files import digest
from ..layers.elmo_layers import get_embedder
from ..pipeline.elmo import Elmo
from ..pipeline.saving import load_pipeline, make_blank, turn_off_retokenizers
from ..text.long_texts import make_doc
from .bulk_settings import MIX, BulkSettings, name_column
from .records import Record

_SENTENCES = {"doc.sents", "token.is_sent_start"}


class BulkPipeline(NamedTuple):
    """nlp (Language): with only the needed components enabled. elmo (Elmo): its component.
    settings (BulkSettings): of the job."""

    nlp: Language
    elmo: Elmo
    settings: BulkSettings

    @property
    def widths(self) -> Dict[str, int]:
        """RETURNS (Dict[str, int]): Column of vectors -> its width."""
        elmo = self.elmo
        return {
            name_column(layer): elmo.width if layer == MIX else elmo.layer_width
            for layer in self.settings.layers
        }

    def describe(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): What makes the vectors, in JSON's types: hash of the biLM's
        weights, digests of the mix, the config, the tokenizer, other components and static
        vectors."""
        model = self.elmo.model
        return {
            "biLM": get_embedder(model).hash_weights().hex(),
            "mix": digest(model.layers[1].to_bytes()),
            "config": digest(self.nlp.config.to_str().encode("utf-8", "surrogatepass")),
            "components": list(self.nlp.pipe_names),
            "parts": {name: digest(content) for name, content in self._list_parts()},
            "widths": self.widths,
        }

    def _list_parts(self) -> Iterator[Tuple[str, bytes]]:
        """YIELDS (Tuple[str, bytes]): Name and saved content of what is not in the config."""
        for name, pipe in [("tokenizer", self.nlp.tokenizer), *self.nlp.pipeline]:
            if isinstance(pipe, Sentencizer):
                # It saves a set, whose order is another one in each process.
                yield name, f"{sorted(pipe.punct_chars)} {pipe.overwrite}".encode()
            elif pipe is not self.elmo and hasattr(pipe, "to_bytes"):
                yield name, pipe.to_bytes(exclude=["vocab"])
        if self.nlp.vocab.vectors.size:
            yield "vectors", self.nlp.vocab.vectors.to_bytes()

    def make_docs(self, records: List[Record]) -> List[Doc]:
        """records (List[Record]): without problems. RETURNS (List[Doc]): tokenized. RAISES: what
        the tokenizer does."""
        return [
            make_doc(self.nlp.make_doc, record.text)
            if record.doc is None
            else Doc(self.nlp.vocab).from_bytes(record.doc)
            for record in records
        ]

    def embed(self, docs: List[Doc]) -> List[Doc]:
        """docs (List[Doc]): tokenized. RETURNS (List[Doc]): with vectors, see `layers.doc_data`.
        RAISES: what the components do."""
        return list(self.nlp.pipe(docs))


def load_bulk_pipeline(settings: BulkSettings) -> BulkPipeline:
    """Load what computes the vectors of a job.

    settings (BulkSettings): of the job.
    RETURNS (BulkPipeline): with weights. What would change the tokens that they were computed of is
        turned off (WL066).
    RAISES (ValueError): EL171 if the pipeline cannot be loaded, EL242 if it has no "elmo" or
        several, EL249 for a layer that it has not; else as `load_embedder`.
    """
    nlp = load_pipeline(settings.pipeline) if settings.pipeline else _make(settings)
    elmo = _find_elmo(nlp, settings)
    get_embedder(elmo.model).ensure_ready()
    settings.require_layers(elmo.n_layers)
    elmo.store_layers = bool(settings.numbers)
    i = nlp.pipe_names.index(elmo.name)
    n_pipes = 1 + max(i, _find_sentence_pipe(nlp, settings))
    nlp.select_pipes(enable=nlp.pipe_names[:n_pipes])
    turn_off_retokenizers(nlp, i)
    return BulkPipeline(nlp, elmo, settings)


def _make(settings: BulkSettings) -> Language:
    # Else words would be cut otherwise than those that the biLM has learned.
    nlp = make_blank(*settings.find_tokenizer())
    elmo: Any = nlp.add_pipe("elmo", config=pipe_config(settings.source))
    elmo.load(settings.source)
    return nlp


def _find_elmo(nlp: Language, settings: BulkSettings) -> Any:
    names = [name for name in nlp.pipe_names if nlp.get_pipe_meta(name).factory == "elmo"]
    chosen = [name for name in names if settings.component in ("", name)]
    if len(chosen) != 1:
        asked = f"'{settings.component}' is none" if settings.component else "there is none"
        asked = "there are several" if chosen else asked
        shown = {"asked": asked, "known": ", ".join(names) or "none"}
        raise ValueError(Errors.EL242.format(pipeline=settings.pipeline, **shown))
    return nlp.get_pipe(chosen[0])


def _find_sentence_pipe(nlp: Language, settings: BulkSettings) -> int:
    """RETURNS (int): Position of the first component that sets sentences; -1 for none."""
    for i, name in enumerate(nlp.pipe_names):
        if settings.unit != "documents" and _SENTENCES & {*nlp.get_pipe_meta(name).assigns}:
            return i
    return -1
