"""What a component's first use loads if nothing was loaded before."""

from typing import Any

from spacy.language import Language
from spacy.util import registry

from ..bilm.model import BiLM
from ..checkpoints.loaders import build_bundled_loader_v1
from ..errors import Errors
from ..layers.elmo_layers import get_embedder, is_frozen
from .saved_tok2vec import SavedTok2Vec
from .weights_language import find_language


class FirstUse:
    """A loader: as [initialize] says, else the bundled weights. spaCy initializes no component that
    is in [training] frozen_components, whose block holds all the same.

    component (SavedTok2Vec): an "elmo" without weights.
    nlp (Language): its pipeline, whose config is whole only after the component was made. Kept
        till then: another pipeline may have taken the component, and this one be forgotten.
    """

    def __init__(self, component: SavedTok2Vec, nlp: Language) -> None:
        self._component = component
        self._nlp = nlp

    @property
    def files(self) -> Any:
        """RETURNS (CheckpointFiles): Where the weights lie. RAISES (AttributeError): if they come
        from elsewhere."""
        return self._find_loader().files

    def __call__(self, bilm: BiLM) -> None:
        """bilm (BiLM): to be filled. RAISES (ValueError): whatever the loader raises; EL018 for a
        cache of a biLM that is not frozen."""
        component = self._component
        cache = self._make("activation_cache")
        if cache is not None and not is_frozen(component.model):
            raise ValueError(Errors.EL018.format(name=component.name))
        loader = self._find_loader()
        loader(bilm)
        component.set_language(find_language(loader))
        if cache is not None:
            get_embedder(component.model).use_activations(cache)

    def _find_loader(self) -> Any:
        return self._make("loader") or build_bundled_loader_v1()

    def _make(self, key: str) -> Any:
        """RETURNS (Any): What a block of [initialize] makes; None if there is none."""
        config = self._nlp.config.interpolate().get("initialize") or {}
        # Where another pipeline has taken it, it may have another name by now.
        own = (name for name, pipe in self._nlp.components if pipe is self._component)
        name = next(own, self._component.name)
        block = ((config.get("components") or {}).get(name) or {}).get(key)
        return registry.resolve({key: block})[key] if block else None
