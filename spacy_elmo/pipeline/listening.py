"""What the components of a pipeline need: vectors of a component "elmo", static vectors."""

import warnings
from typing import Any, Iterable, List, Tuple, Union

from spacy.language import Language
from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener
from thinc.api import Model

from ..errors import Errors, Warnings
from ..layers.listener import ElmoListener


def check_listeners(elmo: Tok2Vec, nlp: Language) -> None:
    """Look for listeners of spaCy's own kind that will not get our vectors.

    elmo (Tok2Vec): the component.
    nlp (Language): its pipeline.
    RAISES (ValueError): EL001 for a listener to anyone ("*") that nobody serves, EL339 if its
        component comes before ours, EL186 for a component that wants static vectors where there
        are none.
    """
    _require_static_vectors(nlp)
    encoders = {name: pipe for name, pipe in nlp.pipeline if isinstance(pipe, Tok2Vec)}
    for name, listeners in _stock_listeners(nlp):
        claims = [e for e, pipe in encoders.items() if name in pipe.listening_components]
        for listener in listeners:
            expected = elmo.model.get_dim("nO")
            is_wanted = listener.upstream_name in ("*", elmo.name) and not claims
            if is_wanted and listener.get_dim("nO") == expected and _is_before(nlp, name, elmo):
                raise ValueError(Errors.EL339.format(name=name, upstream=elmo.name))
            if listener.upstream_name == "*" and not claims:
                raise wrong_width(listener, name, elmo.name, expected)
            if listener.upstream_name == "*" and len(claims) > 1 and claims[-1] == elmo.name:
                upstreams = ", ".join(f"'{claim}'" for claim in claims)
                text = Warnings.WL002.format(name=name, upstreams=upstreams)
                warnings.warn(text, stacklevel=3)
        if elmo.name in claims:
            _warn_overwritten(elmo.name, nlp, name, list(encoders))


def _is_before(nlp: Language, name: str, elmo: Tok2Vec) -> bool:
    return nlp.pipe_names.index(name) < nlp.pipe_names.index(elmo.name)


def wrong_width(listener: Tok2VecListener, name: str, upstream: str, expected: int) -> ValueError:
    """listener (Tok2VecListener): that wants another width than it gets. name (str): its component.
    upstream (str): what it listens to. expected (int): what that sends. RETURNS (ValueError):
    EL001."""
    shape = f"components.{upstream}.model"
    hint = f"`width = {expected}`"
    if isinstance(listener, ElmoListener):
        hint = f"`width = ${{{shape}.width}}` and `depth = ${{{shape}.depth}}`"
    found = listener.get_dim("nO")
    text = Errors.EL001.format(
        name=name, found=found, upstream=upstream, expected=expected, hint=hint
    )
    return ValueError(text)


def _require_static_vectors(nlp: Language) -> None:
    """spaCy would say that an index is out of bounds."""
    if len(nlp.vocab.vectors):
        return
    for name, pipe in nlp.pipeline:
        model: Union[Model, Any] = getattr(pipe, "model", None)
        if isinstance(model, Model) and any(node.name == "static_vectors" for node in model.walk()):
            raise ValueError(Errors.EL186.format(name=name))


def _warn_overwritten(upstream: str, nlp: Language, name: str, encoders: List[str]) -> None:
    order = nlp.pipe_names
    for between in encoders:
        if order.index(upstream) < order.index(between) < order.index(name):
            text = Warnings.WL001.format(between=between, upstream=upstream, name=name)
            warnings.warn(text, stacklevel=4)


def _stock_listeners(nlp: Language) -> Iterable[Tuple[str, List[Tok2VecListener]]]:
    """Components that have spaCy's own listeners, with these."""
    for name, pipe in nlp.pipeline:
        model: Union[Model, Any] = getattr(pipe, "model", None)
        if isinstance(model, Model):
            listeners = [
                node
                for node in model.walk()
                if isinstance(node, Tok2VecListener) and not isinstance(node, ElmoListener)
            ]
            if listeners:
                yield name, listeners
