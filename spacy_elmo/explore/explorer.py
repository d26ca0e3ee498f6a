"""`Explorer`: requests of the page to answers, without a server."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

from spacy.language import Language

from ..errors import Errors
from ..search.search_index import SearchIndex
from .corpus_contexts import list_contexts
from .drawn_docs import draw_docs
from .explore_limits import ExploreLimits
from .explored_pipeline import describe_pipeline, find_obstacles
from .likeness import choose_tokens, compare_tokens
from .text_reader import TextReader
from .token_surprise import describe_lines, list_substitutes


@dataclass
class Explorer:
    """Answers with plain data. Not for several threads at a time.

    nlp (Language): from `prepare_pipeline`.
    index (Optional[SearchIndex]): of a corpus.
    limits (ExploreLimits): what it reads.
    """

    nlp: Language
    index: Optional[SearchIndex] = None
    limits: ExploreLimits = field(default_factory=ExploreLimits)
    obstacles: Dict[str, Optional[str]] = field(init=False)

    def __post_init__(self) -> None:
        self.obstacles = find_obstacles(self.nlp, self.index)
        self._reader = TextReader(self.nlp, self.limits)

    def describe(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): see `describe_pipeline`; and the "limits"."""
        return {**describe_pipeline(self.nlp, self.index), "limits": vars(self.limits)}

    def read(self, text: str) -> Dict[str, Any]:
        """text (str): lines. RETURNS (Dict[str, Any]): "lines" (`describe_lines`), "chosen"
        (`choose_tokens`), "drawings" (`draw_docs`). RAISES (ValueError): as `TextReader.read`."""
        docs = self._reader.read(text)
        has_scores = self.obstacles["surprisal"] is None
        return {
            "lines": describe_lines(docs, has_scores=has_scores),
            "chosen": choose_tokens(docs, self.limits.max_chosen),
            "drawings": draw_docs(self.nlp, docs),
        }

    def compare(self, text: str, tokens: List[int]) -> Dict[str, Any]:
        """text (str): lines. tokens (List[int]): numbers. RETURNS (Dict[str, Any]): "layers", see
        `compare_tokens`. RAISES (ValueError): EL273 without layers, others as there."""
        self._require("likeness")
        docs = self._reader.read(text)
        return {"layers": compare_tokens(docs, tokens, self.limits.max_chosen)}

    def substitute(self, text: str, token: int) -> Dict[str, Any]:
        """text (str): lines. token (int): a number. RETURNS (Dict[str, Any]): "substitutes", see
        `list_substitutes`. RAISES (ValueError): EL274 without a model, others as there."""
        self._require("surprisal")
        return {"substitutes": list_substitutes(self._reader.read(text), token)}

    def search(self, text: str, token: int, layer: int) -> Dict[str, Any]:
        """text (str): lines. token (int): a number. layer (int): of the biLM. RETURNS (Dict[str,
        Any]): "contexts", see `list_contexts`. RAISES (ValueError): EL275 without an index,
        others as there."""
        if self.index is None:
            raise ValueError(Errors.EL275)
        docs = self._reader.read(text)
        return {"contexts": list_contexts(self.index, docs, token, layer)}

    def _require(self, what: str) -> None:
        if self.obstacles[what] is not None:
            raise ValueError(self.obstacles[what])
