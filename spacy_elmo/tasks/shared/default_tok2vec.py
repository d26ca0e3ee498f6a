"""What components read unless a config says otherwise: the bundled biLM's `elmo`."""

from ...bilm.config import BiLMConfig

_BUNDLED = BiLMConfig()
DEFAULT_TOK2VEC = {
    "@architectures": "spacy-elmo.ElmoListener.v2",
    "upstream": "elmo",
    "width": _BUNDLED.width,
    "depth": _BUNDLED.depth,
}
