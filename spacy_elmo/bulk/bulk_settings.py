"""`BulkSettings`: what a job computes, and of which text."""

import os
import re
from dataclasses import dataclass, replace
from typing import Any, Dict, Tuple

from spacy.util import is_package

from ..checkpoints.formats import BUNDLED_NAME
from ..errors import Errors
from ..language_model.evaluation import find_tokenizer
from ..text.corpus import make_tokenizer
from ..utils import require_known, require_least

UNITS = ("tokens", "sentences", "documents")
DTYPES = ("float16", "float32")
# Formats of shards, and the endings of their names.
FORMATS = {"parquet": ".parquet", "arrow": ".arrow", "spacy": ".spacy"}
MIX = "mix"
# Also below 0, which no layer has: what there is to choose is known with the biLM.
_NUMBER = re.compile("0|-?[1-9][0-9]*")


@dataclass(frozen=True)
class BulkSettings:
    """What decides the content of the shards.

    pipeline (str): folder or package of a pipeline with an "elmo"; "" for a new one.
    weights (str): folder or name of a biLM, for a new one; "" for the bundled one.
    lang (str): of a new one; "" for that of the weights.
    component (str): name of the "elmo" in the pipeline; "" if there is one alone.
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
        """RAISES (ValueError): EL012 for a number that is too small, EL017 for other values,
        EL249 for layers that are no names, or named twice, EL161 and EL089 for a language without
        a pipeline; as `find_tokenizer`."""
        require_known("unit", self.unit, UNITS)
        require_known("dtype", self.dtype, DTYPES)
        require_known("format", self.format, tuple(FORMATS))
        require_least("shard_chars", self.shard_chars, 1)
        require_least("batch_chars", self.batch_chars, 1)
        are_names = all(name == MIX or _NUMBER.fullmatch(name) for name in self.layers)
        if not self.layers or not are_names or len({*self.layers}) < len(self.layers):
            raise self._refuse_layers("that of the top LSTM layer")
        if not self.pipeline:
            make_tokenizer(*self.find_tokenizer())

    def find_tokenizer(self) -> Tuple[str, Dict[str, Any]]:
        """RETURNS (Tuple[str, Dict[str, Any]]): The language of a new pipeline, and the block of
        the tokenizer that the weights have learned. RAISES (ValueError): as `read_settings`."""
        return find_tokenizer(self.weights, self.lang)

    @property
    def source(self) -> str:
        """RETURNS (str): The weights, by path or name."""
        return self.weights or BUNDLED_NAME

    def require_layers(self, n_layers: int) -> None:
        """n_layers (int): of the biLM. RAISES (ValueError): EL249 for a layer that it lacks."""
        if not all(0 <= number < n_layers for number in self.numbers):
            raise self._refuse_layers(str(n_layers - 1))

    def _refuse_layers(self, top: str) -> ValueError:
        return ValueError(Errors.EL249.format(value=",".join(self.layers), top=top))

    def resolve(self) -> "BulkSettings":
        """RETURNS (BulkSettings): The same, with the language, and the absolute paths of folders:
        processes elsewhere have another working directory. Names of packages stay, as they are
        looked up. RAISES (ValueError): as `read_settings`."""
        # Of a pipeline, it says nothing; jobs of earlier versions have it all the same.
        lang = self.lang or "en" if self.pipeline else self.find_tokenizer()[0]
        pipeline = self.pipeline if is_package(self.pipeline) else _resolve(self.pipeline)
        return replace(self, lang=lang, pipeline=pipeline, weights=_resolve(self.weights))

    @property
    def numbers(self) -> Tuple[int, ...]:
        """RETURNS (Tuple[int, ...]): Layers by number, the mix left out."""
        return tuple(int(name) for name in self.layers if name != MIX)

    def name_shard(self, number: int) -> str:
        """number (int): of a task. RETURNS (str): its file's name."""
        return f"part-{number:06}{FORMATS[self.format]}"


def _resolve(name: str) -> str:
    return os.path.realpath(name) if name and os.path.exists(name) else name


def name_column(layer: str) -> str:
    """layer (str): "mix" or a number. RETURNS (str): its column."""
    return layer if layer == MIX else f"layer_{layer}"
