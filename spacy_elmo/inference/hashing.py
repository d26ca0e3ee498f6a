"""`hash_weights`: which vectors a biLM makes, in a few bytes."""

from dataclasses import fields
from hashlib import blake2b
from typing import Mapping

import torch
from torch import Tensor

from ..bilm.config import BiLMConfig
from ..bilm.model import BiLM

# Always written, in this order. A field that is not here came later, and is written after
# these unless it has its default: so it changes no hash of before, which caches and
# results on disk are named after.
_ALWAYS = (
    "width",
    "depth",
    "cell_width",
    "char_width",
    "filters",
    "n_highway",
    "max_chars",
    "cell_clip",
    "proj_clip",
    "projection",
    "skip_connections",
    "activation",
    "input",
    "n_words",
    "vector_width",
)


def hash_weights(bilm: BiLM, precision: str) -> bytes:
    """Hash a biLM and how it is run.

    bilm (BiLM): with its weights.
    precision (str): of the products.
    RETURNS (bytes): 16, the same for biLMs that make the same vectors.
    """
    # "zero" is what sequences start from: there was a choice once, and hashes are kept.
    settings = f"{_describe(bilm.config)} zero {precision}"
    digest = blake2b(settings.encode("utf-8"), digest_size=16)
    add_tensors(digest, bilm.state_dict())
    return digest.digest()


def add_tensors(digest: blake2b, tensors: Mapping[str, Tensor]) -> None:
    """Add tensors to a hash, in the order of their names.

    digest (blake2b): what to add to.
    tensors (Mapping[str, Tensor]): by name.
    """
    for name, tensor in sorted(tensors.items()):
        digest.update(name.encode("utf-8"))
        # As bytes: NumPy has no bfloat16.
        digest.update(tensor.cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())


def _describe(config: BiLMConfig) -> str:
    later = [
        field.name
        for field in fields(config)
        if field.name not in _ALWAYS and getattr(config, field.name) != field.default
    ]
    values = [f"{name}={getattr(config, name)!r}" for name in (*_ALWAYS, *sorted(later))]
    return f"BiLMConfig({', '.join(values)})"
