"""Settings of a job, and the pipeline that computes its vectors."""

import os
from dataclasses import dataclass, replace
from typing import Any, Dict, List, NamedTuple, Tuple

from spacy.language import Language
from spacy.pipeline import Sentencizer
from spacy.util import is_package

from ..errors import Errors
from ..files import digest
from ..language_model.evaluation import find_tokenizer
from ..layers.elmo_layers import get_embedder
from ..pipeline.elmo import Elmo
from ..pipeline.saving import load_pipeline, make_elmo_pipeline, turn_off_retokenizers
from ..text.languages import make_tokenizer
from ..utils import require_known

UNITS = ("tokens", "sentences", "documents")
DTYPES = ("float16", "float32")
# Formats of shards, and the endings of their names.
FORMATS = {"parquet": ".parquet", "arrow": ".arrow", "spacy": ".spacy"}
MIX = "mix"
_SENTENCES = {"doc.sents", "token.is_sent_start"}


@dataclass(frozen=True)
class EmbedSettings:
    """What decides the content of the shards: see the options of the command `embed`."""

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

    def resolve(self) -> "EmbedSettings":
        """Check the values, and fill in the language and the absolute paths of folders: other
        processes have another working directory."""
        require_known("--unit", self.unit, UNITS)
        require_known("--dtype", self.dtype, DTYPES)
        require_known("--format", self.format, tuple(FORMATS))
        lang = self.lang
        if not self.pipeline:
            lang, tokenizer = find_tokenizer(self.weights, lang)
            make_tokenizer(lang, tokenizer)
        pipeline = self.pipeline if is_package(self.pipeline) else _resolve(self.pipeline)
        return replace(self, lang=lang, pipeline=pipeline, weights=_resolve(self.weights))


def _resolve(name: str) -> str:
    return os.path.realpath(name) if name and os.path.exists(name) else name


def name_column(layer: str) -> str:
    """The column of a layer."""
    return layer if layer == MIX else f"layer_{layer}"


class EmbedPipeline(NamedTuple):
    """A pipeline with only the needed components enabled, and its "elmo"."""

    nlp: Language
    elmo: Elmo
    settings: EmbedSettings

    @property
    def widths(self) -> Dict[str, int]:
        """Column of vectors -> its width."""
        elmo = self.elmo
        return {
            name_column(layer): elmo.width if layer == MIX else elmo.layer_width
            for layer in self.settings.layers
        }

    def describe(self) -> Dict[str, Any]:
        """What decides the vectors, in JSON's types: hash of the biLM's weights, names of
        components, and a digest of config, mix, tokenizer, components and static vectors."""
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
    """Load what computes the vectors of a job. Components behind "elmo" that change tokens are
    turned off (WL066)."""
    if settings.pipeline:
        nlp = load_pipeline(settings.pipeline)
    else:
        tokenizer = find_tokenizer(settings.weights, settings.lang)
        nlp = make_elmo_pipeline(settings.weights, *tokenizer)
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
