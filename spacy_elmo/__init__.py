"""ELMo for spaCy: contextual word vectors from a bidirectional language model.

The rooms, from left (text) to right (vectors):

    characters, batch   strings -> character ids, distinct words per batch
    bilm                the network and `Embedder`, its one forward pass
    checkpoints         weights on disk: our own folder, AllenNLP / bilm-tf HDF5
    spans               docs -> the sequences that the biLM reads
    layers              Thinc: biLM layers, scalar mix, listener
    architectures       what a config can name
    loaders             where weights come from
    pipeline            the component "elmo"
    cli                 `python -m spacy elmo ...`

Importing the package imports none of them.
"""

from importlib.metadata import PackageNotFoundError, version
from typing import Any

try:
    __version__ = version("spacy-elmo")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0.0.0"

__all__ = ["__version__", "load_embedder", "pipe_config"]


def __getattr__(name: str) -> Any:
    # PEP 562: torch is only paid for by those who ask for it.
    if name in ("load_embedder", "pipe_config"):
        from .checkpoints import loaders

        return getattr(loaders, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
