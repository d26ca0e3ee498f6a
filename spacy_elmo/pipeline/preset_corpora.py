"""Corpora of the components that are given a part of what the data say, such as the two texts of a
pair: spaCy's reader makes the docs to be predicted from the text alone."""

from typing import Any, Dict, List

from ..errors import Errors

# By factory: the span groups that docs to be predicted get.
_GROUPS = {
    "elmo_entailment": ["premise", "hypothesis"],
    "elmo_qa": ["question", "context"],
}
# Learns from whole documents with the words of the data.
_COREF = "elmo_coref"


def choose_corpora(components: List[str]) -> Dict[str, Any]:
    """Choose the readers of a training config.

    components (List[str]): factories.
    RETURNS (Dict[str, Any]): sections of the config, to be merged into it; {} where spaCy's reader
        does. Sentences are given, too, and do not count in the score.
    RAISES (ValueError): EL327 for components whose corpora are read differently.
    """
    paired = [name for name in components if name in _GROUPS]
    if not paired and _COREF not in components:
        return {}
    if paired and _COREF in components:
        raise ValueError(Errors.EL327.format(first=paired[0], second=_COREF))
    reader: Dict[str, Any] = {"@readers": "spacy-elmo.CorefCorpus.v1"}
    if paired:
        groups = [group for name in paired for group in _GROUPS[name]]
        reader = {"@readers": "spacy-elmo.SpanCorpus.v1", "groups": groups, "sentences": True}
    corpora = {part: {**reader, "path": f"${{paths.{part}}}"} for part in ("train", "dev")}
    return {"corpora": corpora, "training": {"score_weights": {"sents_f": None}}}
