"""Loaders of weights for a config's [initialize], and functions to load without a config.

A loader fills a biLM in place, or raises ValueError and leaves it unchanged. Loaders are
objects, so that a pipeline that waits for its weights can be copied and pickled; not
dataclasses, which the config system would turn into dicts.
"""

import logging
from typing import Any, Dict, Optional

import torch

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM
from ..bilm.weights import usual_numbers
from ..errors import Errors
from ..inference.embedder import Embedder, Loader
from .formats import BUNDLED_NAME, CheckpointFiles, PathLike, fill_bilm, find_reader, read_bilm

logger = logging.getLogger("spacy_elmo")


class CheckpointLoader:
    """See `build_checkpoint_loader_v1`."""

    def __init__(self, files: CheckpointFiles) -> None:
        self.files = files

    def __call__(self, bilm: BiLM) -> None:
        fill_bilm(bilm, self.files, Errors.EL023)
        logger.info("Loaded %d weights from %s", _count(bilm), self.files)


class BundledLoader:
    """Load an installed model. See `build_bundled_loader_v2`."""

    def __init__(self, name: str = BUNDLED_NAME) -> None:
        self.name = name

    @property
    def files(self) -> CheckpointFiles:
        """The model's folder."""
        return CheckpointFiles.named(self.name)

    def __call__(self, bilm: BiLM) -> None:
        fill_bilm(bilm, self.files, Errors.EL023)
        logger.info("Loaded the weights of %s", self.name)


class RandomLoader:
    """Fill with random weights. See `build_random_loader_v1`."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    @usual_numbers()
    def __call__(self, bilm: BiLM) -> None:
        with torch.random.fork_rng(devices=[]):
            # Not torch.manual_seed, which would seed GPUs, too: fork_rng restores the CPU alone.
            torch.default_generator.manual_seed(self.seed)
            bilm.load_state_dict(BiLM(bilm.config).state_dict())
        logger.info("Filled %d weights with random numbers", _count(bilm))


def _count(bilm: BiLM) -> int:
    return sum(weight.numel() for weight in bilm.parameters())


def build_bundled_loader_v1() -> Loader:
    """Load the small English model that comes with the package. The default.

    RETURNS (Loader): raises ValueError EL023 if the component has another shape.
    """
    return BundledLoader()


def build_bundled_loader_v2(name: str = BUNDLED_NAME) -> Loader:
    """Load the bundled model, or that of an installed package such as spacy-elmo-en-medium.

    name (str): of the model.
    RETURNS (Loader): raises ValueError EL030 if no package has the model, EL189 if the package is
        broken, EL023 if the component has another shape.
    """
    return BundledLoader(name)


def build_checkpoint_loader_v1(path: str) -> Loader:
    """Load a folder of weights.

    path (str): a folder written by this package, one with AllenNLP's two files, or the name
        of an installed model.
    RETURNS (Loader): raises ValueError EL023 if the component has another shape.
    """
    return CheckpointLoader(CheckpointFiles.of(path))


def build_allennlp_loader_v1(options_path: str, weights_path: str) -> Loader:
    """Load published AllenNLP / bilm-tf weights.

    options_path (str): options.json.
    weights_path (str): the HDF5 file.
    RETURNS (Loader): errors as `build_checkpoint_loader_v1`.
    """
    return CheckpointLoader(CheckpointFiles.of(options_path, weights_path))


def build_random_loader_v1(seed: int = 0) -> Loader:
    """Start from random weights: for tests, and to train from scratch.

    seed (int): of the random numbers.
    RETURNS (Loader): never raises.
    """
    return RandomLoader(seed)


def read_config(path: PathLike, weights_path: Optional[PathLike] = None) -> BiLMConfig:
    """Read the shape of a checkpoint, and check that its weights have that shape. The arguments are
    those of `load_embedder`. RAISES (ValueError): EL020 and EL021 for weights of another shape,
    EL030 to EL038 and EL100 to EL104 if it cannot be read or is damaged."""
    files = CheckpointFiles.of(path, weights_path)
    return find_reader(files).read_config(files)


def load_embedder(
    path: Optional[PathLike] = None, weights_path: Optional[PathLike] = None
) -> Embedder:
    """Load a biLM for use without spaCy.

    path (Optional[PathLike]): a folder, the name of an installed model, or options.json; None
        for the bundled model.
    weights_path (Optional[PathLike]): the HDF5 file, if `path` is options.json.
    RETURNS (Embedder): with `embed` and `embed_stateful`; `.bilm` is the torch module.
    RAISES (ValueError): as `read_bilm`.
    EXAMPLE:
        >>> embedder = load_embedder()
        >>> [array.shape for array in embedder.embed([["I", "like", "eggs"], ["Ham", "!"]])]
        [(3, 3, 512), (3, 2, 512)]
    """
    files = CheckpointFiles.named() if path is None else CheckpointFiles.of(path, weights_path)
    bilm = read_bilm(files)
    logger.info("Loaded %d weights from %s", _count(bilm), files)
    return Embedder(bilm)


def pipe_config(path: PathLike, weights_path: Optional[PathLike] = None) -> Dict[str, Any]:
    """Make the settings of a component that fits a checkpoint:
    `nlp.add_pipe("elmo", config=pipe_config(path))`.

    path (PathLike): a folder, the name of an installed model, or options.json.
    weights_path (Optional[PathLike]): the HDF5 file, if `path` is options.json.
    RETURNS (Dict[str, Any]): {"model": the shape}. Add more keys as you like.
    RAISES (ValueError): as `read_config`.
    EXAMPLE:
        >>> config = pipe_config("en_small")
        >>> config["model"]["width"]
        512
    """
    shape = read_config(path, weights_path).to_dict()
    return {"model": {"@architectures": "spacy-elmo.Elmo.v2", **shape}}
