"""Training configs: presets with ELMo for any components that have a tok2vec."""

from copy import deepcopy
from typing import Any, Dict, List, Optional

from spacy.language import Language
from spacy.util import get_lang_class
from thinc.api import Config

from ..bilm.config import BiLMConfig
from ..errors import Errors
from ..text.languages import require_language
from ..utils import read_template
from .saving import load_pipeline

STATIC_VECTORS = "static_vectors"
# Components that learn alike share an encoder, in presets that have one: a wide one, in a component
# tok2vec. Entities lose nine points by it (dev of UD EWT, docs/models.md).
_ENCODER = "tok2vec"
_SHARING = ("tagger", "morphologizer", "parser", "trainable_lemmatizer", "senter")
_WIDE = {
    "embed": {"rows": [2500, 500, 1250, 1250]},
    "encode": {"width": 192, "depth": 2},
}
_SENTENCIZER = "sentencizer"
# The templates of each, which are merged.
PRESETS = {
    "shared_mix": ("shared_mix",),
    "task_mix": ("task_mix",),
    "allennlp": ("allennlp",),
    "fine_tune": ("word_features", "fine_tune"),
    "word_features": ("word_features",),
    STATIC_VECTORS: ("word_features", STATIC_VECTORS),
}
# Tasks on pairs of texts -> the span groups that docs get before they are predicted.
_PAIR_GROUPS = {
    "elmo_entailment": ["premise", "hypothesis"],
    "elmo_qa": ["question", "context"],
}
_COREF = "elmo_coref"
_LISTENER = {
    "@architectures": "spacy.Tok2VecListener.v1",
    "width": f"${{components.{_ENCODER}.model.encode.width}}",
    "upstream": _ENCODER,
}
# The edit tree of a lemma is the first of so many that fits the word.
_LEMMATIZER = {"trainable_lemmatizer": {"top_k": 3}}


def make_config(
    preset: str,
    components: List[str],
    *,
    lang: str = "en",
    tokenizer: Optional[Dict[str, Any]] = None,
    shape: Optional[BiLMConfig] = None,
    loader: Optional[Dict[str, Any]] = None,
    paths: Optional[Dict[str, str]] = None,
    cache: Optional[str] = None,
    log_mixes: Optional[str] = None,
    base: Optional[str] = None,
) -> Config:
    """Make a training config; `spacy init fill-config` completes it. In presets with an encoder,
    tagger, morphologizer, parser, lemmatizer and senter share one.

    preset (str): one of `PRESETS`.
    components (List[str]): factories of the components that use the vectors.
    lang (str): language code; with `base`, that of the pipeline counts.
    tokenizer (Optional[Dict[str, Any]]): block of [nlp.tokenizer], written if it is not that of the
        language; None or {} for that.
    shape (Optional[BiLMConfig]): the biLM's; None for the bundled one's.
    loader (Optional[Dict[str, Any]]): block of [initialize.components.elmo.loader];
        None for the preset's, which is mostly the bundled weights.
    paths (Optional[Dict[str, str]]): values of [paths].
    cache (Optional[str]): folder in which the layers of a frozen biLM are kept.
    log_mixes (Optional[str]): JSONL file for the learned mixes in training.
    base (Optional[str]): package or folder of a trained pipeline. Its components stay as they are,
        without those of the same names as `components`, which then have an encoder each.
    RETURNS (Config): the config, with its variables not yet filled in.
    RAISES (ValueError): EL060 for an unknown preset, EL061 for a component that has no
        tok2vec, EL018 for a cache where the biLM trains, EL161 for an unknown language,
        EL327 for components that no corpus suits, EL171 for a `base` that cannot be loaded; also
        without components.
    EXAMPLE:
        >>> config = make_config("task_mix", ["tagger"])
        >>> config["components"]["tagger"]["model"]["tok2vec"]["@architectures"]
        'spacy-elmo.ElmoListener.v2'
    """
    require_language(lang)
    if not components:
        raise ValueError(
            "No component is named to use the vectors. Name one or more, such as `--pipeline "
            "tagger`."
        )
    if preset not in PRESETS:
        raise ValueError(Errors.EL060.format(preset=preset, presets=", ".join(PRESETS)))
    config = read_template("base")
    for template in PRESETS[preset]:
        config = config.merge(read_template(template))
    tok2vec = config.pop("tok2vec")
    nlp = None if base is None else load_pipeline(base)
    if nlp is not None and "elmo" in nlp.pipe_names:
        if loader is not None or cache is not None:
            raise ValueError(f"'{base}' has an 'elmo', so omit `--weights` and `--cache`.")
        # A sourced component has no shape that variables could name.
        listener = tok2vec.get("input", tok2vec)
        elmo = nlp.get_pipe_config("elmo")["model"]
        if not elmo["frozen"]:
            raise ValueError(f"The biLM of '{base}' trains. Set `frozen = true` in its config.cfg.")
        listener.update((key, elmo[key]) for key in ("width", "depth") if key in listener)
    config["components"]["elmo"]["model"].update((shape or BiLMConfig()).to_dict())
    shared = [name for name in components if name in _SHARING]
    if base is not None or len(shared) == 1 or "encode" not in tok2vec:
        shared = []
    if shared:
        wide = Config(tok2vec).merge(_WIDE)
        config["components"][_ENCODER] = {"factory": "tok2vec", "model": wide}
    for name in components:
        config["components"][name] = _make_component(name, _LISTENER if name in shared else tok2vec)
    if _SENTENCIZER in config["components"]:
        if "senter" in components:
            config["components"]["senter"]["overwrite"] = True
        else:
            # The sentencizer is not trained, so its score is not part of the final one.
            config["training"]["score_weights"] = {"sents_f": None}
    for section, block in _choose_corpora(components).items():
        config[section].update(block)
    config["nlp"]["lang"] = lang
    if tokenizer and tokenizer != get_lang_class(lang).default_config["nlp"].get("tokenizer"):
        config["nlp"]["tokenizer"] = tokenizer
    if nlp is not None:
        _add_base(config, nlp, str(base))
    config["nlp"]["pipeline"] = list(config["components"])
    config["paths"].update(paths or {})
    block = config["initialize"]["components"]["elmo"]
    if loader is not None:
        block["loader"] = loader
    if cache is not None:
        if not config["components"]["elmo"]["model"]["frozen"]:
            raise ValueError(Errors.EL018.format(name="elmo"))
        block["activation_cache"] = {"@misc": "spacy-elmo.ActivationCache.v1", "path": cache}
    if log_mixes is not None:
        logger = {"@loggers": "spacy.ConsoleLogger.v1", "progress_bar": False}
        config["training"]["logger"] = {
            "@loggers": "spacy-elmo.WeightsLogger.v1", "path": log_mixes, "logger": logger,
        }  # fmt: skip
    return config


def keeps_boundaries(preset: Optional[str], name: str) -> bool:
    """Whether a component could set sentences, but keeps those of the preset's sentencizer."""
    templates = PRESETS.get(preset or "", ())
    has_sentencizer = any(_SENTENCIZER in read_template(t).get("components", {}) for t in templates)
    return has_sentencizer and name in ("parser", "beam_parser")


def _make_component(name: str, tok2vec: Dict[str, Any]) -> Dict[str, Any]:
    # A pipeline fills spaCy's table of factories. No trainable component depends on the language,
    # whose tokenizer may need more than is installed.
    nlp = Language()
    defaults = (nlp.get_factory_meta(name).default_config if nlp.has_factory(name) else None) or {}
    model = deepcopy(defaults.get("model") or {})
    if "tok2vec" not in model:
        raise ValueError(Errors.EL061.format(name=name))
    model["tok2vec"] = deepcopy(tok2vec)
    return {"factory": name, **_LEMMATIZER.get(name, {}), "model": model}


def _add_base(config: Config, nlp: Language, base: str) -> None:
    """Take the other components, the tokenizer and the vocabulary from a trained pipeline. They are
    frozen, and no score of theirs counts: the data may have no such annotation. Its `elmo` is
    shared, or a new one comes after all that listen to another tok2vec, since it overwrites
    `doc.tensor`."""
    new = config["components"]
    if "elmo" in nlp.pipe_names:
        del new["elmo"]
    kept = {name: pipe for name, pipe in nlp.pipeline if name not in new}
    listening = {name for pipe in kept.values() for name in getattr(pipe, "listener_map", ())}
    n_first = max((i + 1 for i, name in enumerate(kept) if name in listening), default=0)
    sourced = [(name, {"source": base}) for name in kept]
    config["components"] = {**dict(sourced[:n_first]), **new, **dict(sourced[n_first:])}
    config["nlp"].update(lang=nlp.lang, tokenizer=nlp.config["nlp"]["tokenizer"])
    # Listeners get vectors from components that are updated. The biLM stays as it is.
    config["training"]["frozen_components"] = [name for name in kept if name != "elmo"]
    scores = {key for name in kept for key in nlp.get_pipe_meta(name).default_score_weights or ()}
    own = {key for name in new for key in nlp.get_factory_meta(name).default_score_weights or ()}
    config["training"]["score_weights"] = dict.fromkeys(sorted(scores - own))
    config["initialize"]["before_init"] = {
        "@callbacks": "spacy.copy_from_base_model.v1", "tokenizer": base, "vocab": base
    }  # fmt: skip


def _choose_corpora(components: List[str]) -> Dict[str, Any]:
    """Sections to be merged into the config, for tasks that spaCy's reader cannot serve: it makes
    the docs to be predicted from the text alone. With ours they also get sentences, whose score
    does not count. EL327 for components whose corpora are read differently."""
    paired = [name for name in components if name in _PAIR_GROUPS]
    if not paired and _COREF not in components:
        return {}
    if paired and _COREF in components:
        raise ValueError(Errors.EL327.format(first=paired[0], second=_COREF))
    reader: Dict[str, Any] = {"@readers": "spacy-elmo.CorefCorpus.v1"}
    if paired:
        groups = [group for name in paired for group in _PAIR_GROUPS[name]]
        reader = {"@readers": "spacy-elmo.SpanCorpus.v1", "groups": groups, "sentences": True}
    corpora = {part: {**reader, "path": f"${{paths.{part}}}"} for part in ("train", "dev")}
    return {"corpora": corpora, "training": {"score_weights": {"sents_f": None}}}
