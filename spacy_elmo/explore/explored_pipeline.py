"""A pipeline that is to be explored: what it can show, and why not."""

from typing import Any, Dict, List, Optional, Tuple

from spacy.language import Language

from ..errors import Errors
from ..experiments.contexts import name_layers
from ..inference.embedder import Embedder
from ..layers.elmo_layers import get_embedder
from ..pipeline.elmo import Elmo
from ..pipeline.elmo_lm import ElmoLM
from ..pipeline.saving import turn_off_retokenizers
from ..pipeline.weights_logger import collect_weights
from ..search.search_index import SearchIndex
from ..utils import show_names
from .drawn_docs import list_factories
from .task_sections import find_all

ELMO, LANGUAGE_MODEL = "elmo", "elmo_lm"


def prepare_pipeline(nlp: Language, path: str, language_model: str = "") -> None:
    """Have a pipeline keep what is shown, and load its weights. What changes tokens after they
    were read is turned off (WL066).

    nlp (Language): the pipeline.
    path (str): what it is called in messages.
    language_model (str): folder or name of a biLM with its softmax, for a component elmo_lm if
        the pipeline has none; "" for no other.
    RAISES (ValueError): EL270 if nothing in it is of ELMo, EL074 and others if the language
        model cannot be read.
    """
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


def find_embedder(nlp: Language) -> Optional[Embedder]:
    """nlp (Language): a pipeline. RETURNS (Optional[Embedder]): of its last component elmo, if it
    has one."""
    pipes = [pipe for _, pipe in nlp.pipeline if isinstance(pipe, Elmo)]
    return get_embedder(pipes[-1].model) if pipes else None


def find_obstacles(nlp: Language, index: Optional[SearchIndex]) -> Dict[str, Optional[str]]:
    """Find out what can be shown.

    nlp (Language): the pipeline.
    index (Optional[SearchIndex]): of a corpus.
    RETURNS (Dict[str, Optional[str]]): "likeness", "surprisal", "contexts", "mixes" -> why it
        cannot be shown, None if it can.
    """
    factories, known = list_factories(nlp), show_names(nlp.pipe_names)
    has_layers, has_scores = ELMO in factories, LANGUAGE_MODEL in factories
    return {
        "likeness": None if has_layers else Errors.EL273.format(known=known),
        "surprisal": None if has_scores else Errors.EL274.format(known=known),
        "contexts": Errors.EL275 if index is None else None,
        "mixes": _list_mixes(nlp)[1],
    }


def describe_pipeline(nlp: Language, index: Optional[SearchIndex]) -> Dict[str, Any]:
    """nlp (Language): the pipeline. index (Optional[SearchIndex]): of a corpus. RETURNS (Dict[str,
    Any]): "name", "components", "obstacles", "mixes" (fields of `LayerWeights`, and names of
    the layers), "index" (its size and layers, or None)."""
    return {
        "name": f"{nlp.meta['lang']}_{nlp.meta['name']}",
        "lang": nlp.lang,
        "components": nlp.pipe_names,
        "obstacles": find_obstacles(nlp, index),
        "mixes": _list_mixes(nlp)[0],
        "index": None if index is None else _describe_index(index),
    }


def _list_mixes(nlp: Language) -> Tuple[List[Dict[str, Any]], Optional[str]]:
    """RETURNS (Tuple[List[Dict[str, Any]], Optional[str]]): the mixes, and why there are none."""
    try:
        mixes = collect_weights(nlp)
    except ValueError as err:
        return [], str(err)
    return [{**mix._asdict(), "layers": name_layers(len(mix.shares))} for mix in mixes], None


def _describe_index(index: SearchIndex) -> Dict[str, Any]:
    n_layers = index.encoder.embedder.bilm.config.n_layers
    return {"n_sentences": index.meta.n_sentences, "layers": name_layers(n_layers)}
