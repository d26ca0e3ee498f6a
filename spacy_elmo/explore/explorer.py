"""`Explorer`: answers the requests of the page with plain data, without a server."""

import math
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Dict, List, Optional, Sequence, Tuple

from spacy.language import Language
from spacy.tokens import Doc, Token
from thinc.api import get_array_module
from thinc.util import to_numpy

from ..errors import Errors
from ..experiments.contexts import find_contexts, name_layers
from ..inference.embedder import Embedder
from ..layers.elmo_layers import get_embedder
from ..pipeline.elmo import Elmo
from ..pipeline.elmo_lm import ElmoLM, get_entry
from ..pipeline.saving import turn_off_retokenizers
from ..pipeline.weights_logger import collect_weights
from ..search.search_index import Hit, SearchIndex
from ..text.cutting import make_doc
from ..utils import normalise, require_layer, require_least, show_names
from .sections import describe_doc, find_all

ELMO, LANGUAGE_MODEL = "elmo", "elmo_lm"
# Texts whose docs are kept: the page asks several times about the same one.
_N_KEPT = 8
# Tokens that are compared at first, if no more of them occur twice.
_N_CHOSEN = 8
# Substitutes, and contexts, that are shown.
_N_SUBSTITUTES, _N_CONTEXTS = 10, 8
# Different sentences of the index in which contexts are searched, and hits to find them.
_N_SENTENCES, _MOST_HITS = 50, 1000


@dataclass(frozen=True)
class ExploreLimits:
    """Limits of the page, each at least 1.

    max_chars (int): characters of a text.
    max_lines (int): lines of a text that are not blank; each is read as a separate doc.
    max_tokens (int): tokens of a text, in all lines.
    max_chosen (int): tokens that are compared with each other.
    seconds (float): to wait while the pipeline reads other texts.
    """

    max_chars: int = 2_000
    max_lines: int = 20
    max_tokens: int = 500
    max_chosen: int = 16
    seconds: float = 20.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            require_least(name, value, 1)


def prepare_pipeline(nlp: Language, path: str, language_model: str = "") -> None:
    """Have a pipeline keep layers and hidden states, and load its weights. Components that merge or
    split tokens are disabled (WL066). language_model (str): biLM with a softmax for an elmo_lm, if
    the pipeline has none. RAISES (ValueError): EL270 if it has no component of ELMo."""
    if language_model and LANGUAGE_MODEL not in list_factories(nlp):
        nlp.add_pipe(LANGUAGE_MODEL, config={"path": language_model})
    factories = list_factories(nlp)
    first = next((i for i, name in enumerate(factories) if name.startswith(ELMO)), len(factories))
    if first == len(factories) and not _list_mixes(nlp)[0]:
        raise ValueError(Errors.EL270.format(path=path, known=show_names(nlp.pipe_names)))
    turn_off_retokenizers(nlp, first)
    find_all(nlp)
    for _, pipe in nlp.pipeline:
        if isinstance(pipe, Elmo):
            pipe.store_layers = True
        if isinstance(pipe, ElmoLM):
            pipe.keeps_hidden = True
    # Weights load at the first use.
    nlp("Warm up.")


def list_factories(nlp: Language) -> List[str]:
    """nlp (Language): a pipeline. RETURNS (List[str]): of its components, in their order."""
    return [nlp.get_pipe_meta(name).factory for name in nlp.pipe_names]


def find_embedder(nlp: Language) -> Optional[Embedder]:
    """nlp (Language): a pipeline. RETURNS (Optional[Embedder]): of its last component elmo, if it
    has one."""
    pipes = [pipe for _, pipe in nlp.pipeline if isinstance(pipe, Elmo)]
    return get_embedder(pipes[-1].model) if pipes else None


@dataclass
class Explorer:
    """Answers requests, one at a time. Tokens have numbers, from 0 over all lines. `nlp` comes from
    `prepare_pipeline`."""

    nlp: Language
    index: Optional[SearchIndex] = None
    limits: ExploreLimits = field(default_factory=ExploreLimits)

    def __post_init__(self) -> None:
        self._kept: OrderedDict[str, List[Doc]] = OrderedDict()
        self._mixes, no_mixes = _list_mixes(self.nlp)
        factories, known = list_factories(self.nlp), show_names(self.nlp.pipe_names)
        # Section of the page -> why it cannot be shown.
        self.obstacles: Dict[str, Optional[str]] = {
            "likeness": f"The pipeline has no component elmo, but {known}.",
            "surprisal": (
                f"The pipeline has no component elmo_lm, but {known}. Start `elmo explore` with "
                "`--language-model en_small`, or with the folder of a biLM that has its softmax."
            ),
            "contexts": (
                "There is no corpus to search. Index one with `python -m spacy elmo index TEXT "
                "FOLDER`, and start `elmo explore` with `--index FOLDER`."
            ),
            "mixes": no_mixes,
        }
        for name, is_possible in (
            ("likeness", ELMO in factories),
            ("surprisal", LANGUAGE_MODEL in factories),
            ("contexts", self.index is not None),
        ):
            if is_possible:
                self.obstacles[name] = None

    def describe(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): "name", "lang", "components", "obstacles", "mixes" (fields of
        `LayerWeights`, and names of the layers), "index" (its size and layers, or None) and
        "limits"."""
        index = None
        if self.index is not None:
            n_layers = self.index.encoder.embedder.bilm.config.n_layers
            n_sentences = self.index.meta.n_sentences
            index = {"n_sentences": n_sentences, "layers": name_layers(n_layers)}
        return {
            "name": f"{self.nlp.meta['lang']}_{self.nlp.meta['name']}",
            "lang": self.nlp.lang,
            "components": self.nlp.pipe_names,
            "obstacles": self.obstacles,
            "mixes": self._mixes,
            "index": index,
            "limits": vars(self.limits),
        }

    def read(self, text: str) -> Dict[str, Any]:
        """Read a text.

        text (str): lines.
        RETURNS (Dict[str, Any]): "lines", each with its "perplexity" (or None) and "tokens":
            "text", "is_space", "bits" given the words before (None for whitespace, or without
            elmo_lm), and "is_known" to the language model; "chosen", numbers of tokens to compare
            at first; "drawings", for each component its "title" and "lines", each with "items" and
            "html" (by displaCy; "" if there is nothing to draw).
        RAISES (ValueError): EL272 for an empty or too long text.
        """
        docs = self._read(text)
        has_scores = self.obstacles["surprisal"] is None
        sections = zip(*(describe_doc(doc, self.nlp) for doc in docs))
        return {
            "lines": [
                {
                    "perplexity": doc._.elmo_perplexity if has_scores else None,
                    "tokens": [_describe_token(token, has_scores) for token in doc],
                }
                for doc in docs
            ],
            "chosen": _choose_tokens([t for doc in docs for t in doc], self.limits.max_chosen),
            "drawings": [
                {"title": of[0].title, "lines": [{"items": s.lines, "html": s.html} for s in of]}
                for of in sections
            ],
        }

    def compare(self, text: str, tokens: Sequence[int]) -> Dict[str, Any]:
        """Compute the cosines of tokens with each other: "layers", each with its "name" and
        "cosines", shape (n_tokens, n_tokens), the word layer first."""
        self._require("likeness")
        docs = self._read(text)
        if not 1 <= len(tokens) <= self.limits.max_chosen:
            most = self.limits.max_chosen
            raise ValueError(f"{len(tokens)} tokens were chosen. Choose 1 to {most}.")
        layers = [_get_token(docs, i)._.elmo_layers for i in tokens]
        stacked = get_array_module(layers[0]).stack(layers, axis=1)  # (n_layers, n_tokens, width)
        X = to_numpy(normalise(stacked))
        names = name_layers(len(X))
        return {
            "layers": [
                {"name": name, "cosines": (rows @ rows.T).tolist()} for name, rows in zip(names, X)
            ]
        }

    def substitute(self, text: str, token: int) -> Dict[str, Any]:
        """text (str): lines. token (int): a number. RETURNS (Dict[str, Any]): "substitutes", each
        with its "word" and "probability", the likeliest first."""
        self._require("surprisal")
        words = _get_token(self._read(text), token)._.elmo_substitutes(_N_SUBSTITUTES)
        return {"substitutes": [{"word": w, "probability": p} for w, p in words]}

    def search(self, text: str, token: int, layer: int = -1) -> Dict[str, Any]:
        """Search the sentences most similar to that of a token for the most similar tokens:
        "contexts", the nearest first, with "words", "position", "similarity", "source" and
        "number"."""
        self._require("contexts")
        assert self.index is not None
        embedder = self.index.encoder.embedder
        require_layer(layer, embedder.bilm.config.n_layers)
        found = _get_token(self._read(text), token)
        words = [other.text for other in found.doc if not other.is_space]
        position = sum(not other.is_space for other in found.doc[: found.i])
        hits = _find_others(self.index, words)
        if not hits:
            return {"contexts": []}
        asked = [(words, position)]
        (query,) = find_contexts(embedder, asked, hits, n=_N_CONTEXTS, layer=layer)
        return {
            "contexts": [
                {
                    "words": context.words,
                    "position": context.position,
                    "similarity": context.similarity,
                    "source": hits[tuple(context.words)].source,
                    "number": hits[tuple(context.words)].number,
                }
                for context in query.contexts
            ]
        }

    def _require(self, section: str) -> None:
        if self.obstacles[section] is not None:
            raise ValueError(self.obstacles[section])

    def _read(self, text: str) -> List[Doc]:
        """Read a doc for each line that is not blank, or take those of an earlier request."""
        if text not in self._kept:
            limits = self.limits
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            _require_size(len(text), limits.max_chars, "characters", "--max-chars")
            _require_size(len(lines), limits.max_lines, "lines", "--max-lines")
            docs = [make_doc(self.nlp.make_doc, line) for line in lines]
            _require_size(sum(map(len, docs)), limits.max_tokens, "tokens", "--max-tokens")
            self._kept[text] = list(self.nlp.pipe(docs))
        self._kept.move_to_end(text)
        while len(self._kept) > _N_KEPT:
            self._kept.popitem(last=False)
        return self._kept[text]


def _list_mixes(nlp: Language) -> Tuple[List[Dict[str, Any]], Optional[str]]:
    """RETURNS (Tuple): the learned mixes, and the reason if the list is empty."""
    try:
        mixes = collect_weights(nlp)
    except ValueError as err:
        return [], str(err)
    return [{**mix._asdict(), "layers": name_layers(len(mix.shares))} for mix in mixes], None


def _require_size(n: int, most: int, unit: str, option: str) -> None:
    if not 1 <= n <= most:
        raise ValueError(Errors.EL272.format(n=n, unit=unit, most=most, option=option))


def _get_token(docs: List[Doc], i: int) -> Token:
    tokens = [token for doc in docs for token in doc]
    if not 0 <= i < len(tokens) or tokens[i].is_space:
        raise ValueError(f"Token {i} (of {len(tokens)}) is not a word of the text.")
    return tokens[i]


def _describe_token(token: Token, has_scores: bool) -> Dict[str, Any]:
    bits = token._.elmo_surprisal if has_scores else math.nan
    return {
        "text": token.text,
        "is_space": token.is_space,
        "is_known": bool(get_entry(token)["is_known"][token.i]) if has_scores else True,
        "bits": None if math.isnan(bits) else bits,
    }


def _choose_tokens(tokens: List[Token], most: int) -> List[int]:
    """Choose tokens to compare at first: words that occur more than once, then other words."""
    words = {i: t.lower_ for i, t in enumerate(tokens) if t.is_alpha and not t.is_stop}
    counts = Counter(words.values())
    repeated = [i for i, word in words.items() if counts[word] > 1]
    others = [i for i in words if counts[words[i]] == 1]
    others = others or [i for i, t in enumerate(tokens) if not t.is_space]
    return [*repeated, *others[: max(0, _N_CHOSEN - len(repeated))]][:most]


def _find_others(index: SearchIndex, words: List[str]) -> Dict[Tuple[str, ...], Hit]:
    """Find sentences of the index that are similar to the words, but not equal, each once."""
    n = _N_SENTENCES
    while True:
        found = index.search(words, n)
        others: Dict[Tuple[str, ...], Hit] = {}
        for hit in found:
            if hit.words != words:
                others.setdefault(tuple(hit.words), hit)
        if len(others) >= _N_SENTENCES or len(found) < n or n >= _MOST_HITS:
            return dict(islice(others.items(), _N_SENTENCES))
        n = min(4 * n, _MOST_HITS)
