"""ELMo for spaCy: contextual word vectors from a bidirectional language model (biLM).

Its sub-packages ("rooms"), from the bottom; each imports only those above it in this list:

    errors, registry   messages; extension points for other packages
    files, utils       atomic writes, locks, bounded reads, digests; small helpers
    drawing            pictures by matplotlib
    bilm, text         the network in plain torch; raw text to sequences of words
    inference          words to layers: `Embedder`, fast, without gradients
    checkpoints        weights on disk: our format, AllenNLP / bilm-tf, loaders
    layers             Thinc layers: biLM, scalar mix, listener
    language_model     a biLM with its softmax: losses, exact perplexity, evaluation
    search, senses     an index of sentences; word senses: inventory, training, choice
    pretraining        raw text to a trained biLM: a run, its config, checkpoints and log
    pipeline           the components elmo, elmo_lm and elmo_senses, architectures, presets
    embed              vectors of large amounts of text: shards, processes, a Ray cluster
    tasks              components for the tasks of the paper's table 1
    experiments        comparisons with and without ELMo on own data; contexts of a word
    explore            a local web page about a pipeline
    cli                `python -m spacy elmo ...`

docs/design.md explains the rules and the reasons. The names in `__all__` are imported at their
first use: `import spacy_elmo` imports neither torch nor spaCy.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, List

if TYPE_CHECKING:
    from .checkpoints.loaders import load_embedder, pipe_config
    from .experiments.contexts import find_contexts
    from .inference.embedder import Embedder
    from .pipeline.architectures import (
        build_elmo_listener_v2,
        build_elmo_tok2vec_v2,
        build_elmo_v2,
    )
    from .pipeline.elmo import Elmo
    from .pipeline.elmo_lm import ElmoLM
    from .pipeline.elmo_senses import ElmoSenses
    from .pipeline.presets import make_config
    from .pipeline.weights_logger import collect_weights
    from .search.search_index import SearchIndex
    from .tasks.coref.elmo_coref import ElmoCoref
    from .tasks.entailment.elmo_entailment import ElmoEntailment
    from .tasks.qa.elmo_qa import ElmoQA
    from .tasks.srl.elmo_srl import ElmoSRL

try:
    __version__ = version("spacy-elmo")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0.0.0"

__all__ = [
    "Elmo",
    "ElmoCoref",
    "ElmoEntailment",
    "ElmoLM",
    "ElmoQA",
    "ElmoSRL",
    "ElmoSenses",
    "Embedder",
    "SearchIndex",
    "__version__",
    "build_elmo_listener_v2",
    "build_elmo_tok2vec_v2",
    "build_elmo_v2",
    "collect_weights",
    "find_contexts",
    "load_embedder",
    "make_config",
    "pipe_config",
]

# PEP 562: torch is only paid for by those who ask for it.
_MODULES = {
    "Elmo": "pipeline.elmo",
    "ElmoCoref": "tasks.coref.elmo_coref",
    "ElmoEntailment": "tasks.entailment.elmo_entailment",
    "ElmoSRL": "tasks.srl.elmo_srl",
    "ElmoLM": "pipeline.elmo_lm",
    "ElmoQA": "tasks.qa.elmo_qa",
    "ElmoSenses": "pipeline.elmo_senses",
    "Embedder": "inference.embedder",
    "SearchIndex": "search.search_index",
    "build_elmo_listener_v2": "pipeline.architectures",
    "build_elmo_tok2vec_v2": "pipeline.architectures",
    "build_elmo_v2": "pipeline.architectures",
    "collect_weights": "pipeline.weights_logger",
    "find_contexts": "experiments.contexts",
    "load_embedder": "checkpoints.loaders",
    "make_config": "pipeline.presets",
    "pipe_config": "checkpoints.loaders",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__})
