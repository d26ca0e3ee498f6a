"""What the rows start from: vectors, pretrained weights, transformers, a biLM."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

from spacy_elmo.checkpoints.loaders import load_embedder
from spacy_elmo.files import digest, digest_file

# Layers of the transformer that frozen rows choose from.
DEPTHS = (2, 3, 6)
# The larger biLM, beside the one that is compared.
MEDIUM = "en_medium"
# How they were made, in their folder.
MADE = "made.json"


class Inputs(NamedTuple):
    """Where they are.

    work (Path): folder of `rivals.py prepare`.
    weights (str): folder of a biLM; "" for the bundled one.
    """

    work: Path
    weights: str = ""

    def find(self, name: str) -> Path:
        """name (str): "vectors", "floret", "pretrained", "en_medium" or "minilm_2".
        RETURNS (Path): its folder, or its file."""
        return self.work / "inputs" / name

    def find_weights(self, name: str) -> str:
        """name (str): "biLM" or "en_medium". RETURNS (str): its folder; "" for the bundled one."""
        return self.weights if name == "biLM" else str(self.find(name))

    def has(self, name: str) -> bool:
        """RETURNS (bool): Whether it is there."""
        return name == "biLM" or self.find(name).exists()

    def hash(self, name: str) -> str:
        """RETURNS (str): Digest of its content, which may change under the same path."""
        if name in ("biLM", MEDIUM):
            return _hash_bilm(self.find_weights(name))
        return hash_files(self.find(name))


@cache
def _hash_bilm(weights: str) -> str:
    return load_embedder(weights or None).hash_weights().hex()[:16]


@cache
def hash_files(path: Path) -> str:
    """path (Path): a file or a folder. RETURNS (str): digest of its names and contents."""
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    digests = [f"{file.relative_to(path)} {digest_file(file)}" for file in files]
    return digest("\n".join(digests).encode())[:16]
