"""Settings of a job, and the pipeline that computes its vectors."""

import os
from dataclasses import dataclass, replace
from typing import Any, Dict, List, NamedTuple, Tuple

from spacy.language import Language
from spacy.pipeline import Sentencizer
from spacy.util import is_package

from ..checkpoints.formats import BUNDLED_NAME
from ..checkpoints.loaders import pipe_config
from ..errors import Errors
from ..files import digest
from ..language_model.evaluation import find_tokenizer
from ..layers.elmo_layers import get_embedder
from ..pipeline.elmo import Elmo
from ..pipeline.saving import load_pipeline, make_blank, turn_off_retokenizers
from ..text.languages import make_tokenizer
from ..utils import require_known, require_least

UNITS = ("tokens", "sentences", "documents")
DTYPES = ("float16", "float32")
# Formats of shards, and the endings of their names.
FORMATS = {"parquet": ".parquet", "arrow": ".arrow", "spacy": ".spacy"}
MIX = "mix"
_SENTENCES = {"doc.sents", "token.is_sent_start"}


@dataclass(frozen=True)
class EmbedSettings:
    """What decides the content of the shards.

    pipeline (str): folder or package of a pipeline with an "elmo"; "" for a new one.
    weights (str): folder or name of a biLM, for a new one; "" for the bundled one.
    lang (str): of a new one; "" for that of the weights.
    component (str): name of the "elmo" in the pipeline; "" if there is only one.
    unit (str): one of `UNITS`: what gets a row.
    layers (Tuple[str, ...]): "mix" and numbers of layers, 0 for the word layer.
    dtype (str): one of `DTYPES`.
    format (str): key of `FORMATS`.
    text_key (str), id_key (str): fields of JSON, columns of Parquet.
    has_text (bool): whether texts are written, too.
    shard_chars (int): characters of text for a shard, at least.
    batch_chars (int): characters of text that are embedded at a time, at least.
    """

    pipeline: str = ""
    weights: str = ""
    lang: str = ""
    component: str = ""
    unit: str = "sentences"
    layers: Tuple[str, ...] = (MIX,)
    dtype: str = "float16"
    format: str = "parquet"
    text_key: str = "text"
    id_key: str = "id"
    has_text: bool = True
    shard_chars: int = 1_000_000
    batch_chars: int = 50_000

    def check(self) -> None:
        """RAISES (ValueError): EL012 for impossible values, EL161
        and EL089 for a language without a pipeline; as `find_tokenizer`."""
        require_known("--unit", self.unit, UNITS)
        require_known("--dtype", self.dtype, DTYPES)
        require_known("--format", self.format, tuple(FORMATS))
        require_least("shard_chars", self.shard_chars, 1)
        require_least("batch_chars", self.batch_chars, 1)
        if not self.pipeline:
            make_tokenizer(*self.find_tokenizer())

    def find_tokenizer(self) -> Tuple[str, Dict[str, Any]]:
        """RETURNS (Tuple[str, Dict[str, Any]]): The language of a new pipeline, and the block of
        the tokenizer that the weights were trained with. RAISES (ValueError): as
        `read_settings`."""
        return find_tokenizer(self.weights, self.lang)

    def resolve(self) -> "EmbedSettings":
        """RETURNS (EmbedSettings): The same, with the language, and the absolute paths of folders:
        other processes have another working directory. RAISES (ValueError): as
        `read_settings`."""
        lang = self.lang if self.pipeline else self.find_tokenizer()[0]
        pipeline = self.pipeline if is_package(self.pipeline) else _resolve(self.pipeline)
        return replace(self, lang=lang, pipeline=pipeline, weights=_resolve(self.weights))


def _resolve(name: str) -> str:
    return os.path.realpath(name) if name and os.path.exists(name) else name


def name_column(layer: str) -> str:
    """layer (str): "mix" or a number. RETURNS (str): its column."""
    return layer if layer == MIX else f"layer_{layer}"


class EmbedPipeline(NamedTuple):
    """nlp (Language): with only the needed components enabled. elmo (Elmo): its component.
    settings (EmbedSettings): of the job."""

    nlp: Language
    elmo: Elmo
    settings: EmbedSettings

    @property
    def widths(self) -> Dict[str, int]:
        """RETURNS (Dict[str, int]): Column of vectors -> its width."""
        elmo = self.elmo
        return {
            name_column(layer): elmo.width if layer == MIX else elmo.layer_width
            for layer in self.settings.layers
        }

    def describe(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): What decides the vectors, in JSON's types: hash of the biLM's
        weights, names of components, and a digest of config, mix, tokenizer, components and static
        vectors."""
        contents = [self.nlp.config.to_str().encode("utf-8", "surrogatepass")]
        contents.append(self.elmo.model.layers[1].to_bytes())
        for _, pipe in [("tokenizer", self.nlp.tokenizer), *self.nlp.pipeline]:
            if isinstance(pipe, Sentencizer):
                # It saves a set, whose order is another one in each process.
                contents.append(f"{sorted(pipe.punct_chars)} {pipe.overwrite}".encode())
            elif pipe is not self.elmo and hasattr(pipe, "to_bytes"):
                contents.append(pipe.to_bytes(exclude=["vocab"]))
        if self.nlp.vocab.vectors.size:
            contents.append(self.nlp.vocab.vectors.to_bytes())
        return {
            "biLM": get_embedder(self.elmo.model).hash_weights().hex(),
            "components": list(self.nlp.pipe_names),
            "digest": digest(b"\0".join(contents)),
            "widths": self.widths,
        }


def load_embed_pipeline(settings: EmbedSettings) -> EmbedPipeline:
    """Load what computes the vectors of a job.

    settings (EmbedSettings): of the job.
    RETURNS (EmbedPipeline): with weights. Components behind "elmo" that change tokens are turned
        off (WL066).
    RAISES (ValueError): EL171 if the pipeline cannot be loaded, EL242 if it has no "elmo" or
        several, EL249 for a layer that it has not; else as `load_embedder`.
    """
    if settings.pipeline:
        nlp = load_pipeline(settings.pipeline)
    else:
        source = settings.weights or BUNDLED_NAME
        # The tokenizer of the weights, since the biLM was trained on its tokens.
        nlp = make_blank(*settings.find_tokenizer())
        new: Any = nlp.add_pipe("elmo", config=pipe_config(source))
        new.load(source)
    elmo = _find_elmo(nlp, settings)
    get_embedder(elmo.model).ensure_ready()
    known = [MIX, *map(str, range(elmo.n_layers))]
    if not settings.layers or sorted({*settings.layers} & {*known}) != sorted(settings.layers):
        value = ",".join(settings.layers)
        raise ValueError(Errors.EL249.format(value=value, top=elmo.n_layers - 1))
    elmo.store_layers = settings.layers != (MIX,)
    last = i = nlp.pipe_names.index(elmo.name)
    if settings.unit != "documents":
        setters = [n for n in nlp.pipe_names if _SENTENCES & {*nlp.get_pipe_meta(n).assigns}]
        last = max(i, *(nlp.pipe_names.index(name) for name in setters[:1]), i)
    nlp.select_pipes(enable=nlp.pipe_names[: last + 1])
    turn_off_retokenizers(nlp, i)
    return EmbedPipeline(nlp, elmo, settings)


def _find_elmo(nlp: Language, settings: EmbedSettings) -> Any:
    names: List[str] = [n for n in nlp.pipe_names if nlp.get_pipe_meta(n).factory == "elmo"]
    chosen = [name for name in names if settings.component in ("", name)]
    if len(chosen) != 1:
        known = ", ".join(names) or "none"
        raise ValueError(Errors.EL242.format(pipeline=settings.pipeline, known=known))
    return nlp.get_pipe(chosen[0])
