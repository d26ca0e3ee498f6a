"""`RunSettings`: what the runs of a folder share, so that they can be compared."""

from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict

import spacy

from ..checkpoints.loaders import load_embedder
from ..errors import Errors
from ..files import digest, digest_file, read_checked_json, write_checked_json
from ..utils import show_reason
from .subsets import find_further, find_splits

SETTINGS_FILE = "settings.json"
# Known by their content.
_PATHS = ("corpus", "weights", "config", "vectors")


@dataclass(frozen=True)
class RunSettings:
    """What all runs of a folder share.

    corpus (str): folder with train.spacy, dev.spacy and, if the runs are to be tested,
        test.spacy; its other .spacy files are further test sets.
    component (str): factory of the component to train.
    lang (str): language code.
    weights (str): folder of the biLM; "" for the bundled one.
    max_steps (int): updates at most.
    patience (int): updates without a better dev score; 0 for no end but `max_steps`.
    eval_frequency (int): updates between evaluations on dev.
    config (str): training config of all but the tok2vec; "" for the preset word_features.
    vectors (str): pipeline with static vectors; "" for none.
    """

    corpus: str
    component: str
    lang: str = "en"
    weights: str = ""
    max_steps: int = 1000
    patience: int = 0
    eval_frequency: int = 100
    config: str = ""
    vectors: str = ""

    def fix(self, output: Path) -> None:
        """Write the settings into a folder, or compare them with those that it has.

        RAISES (ValueError): EL065 if the folder has runs with others, EL066 for a missing
            corpus, EL103 or EL142 if settings.json is damaged.
        """
        path, settings = output / SETTINGS_FILE, {**asdict(self), **self._hash()}
        # Settings alone are those of a first run that did not come to its end.
        if not path.exists() or [*output.glob("*.json")] == [path]:
            write_checked_json(path, settings)
        stored = read_settings(output)
        # What is named no more, such as a test set or a config, changes what the runs say, too.
        gone = {key: None for key in stored if key not in (*settings, "digest")}
        for key, value in {**settings, **gone}.items():
            if key not in _PATHS and stored.get(key) != value:
                raise ValueError(
                    Errors.EL065.format(
                        path=output,
                        key=key,
                        before=stored.get(key),
                        now=value,
                        example=output / Path(self.corpus).resolve().name,
                    )
                )

    def _hash(self) -> Dict[str, str]:
        """Digests of the files, which may change under the same path."""
        splits = find_splits(Path(self.corpus))
        digests = {split: digest_file(path) for split, path in splits.items()}
        for name, path in find_further(Path(self.corpus)).items():
            digests[f"test set {name}"] = digest_file(path)
        if self.config:
            digests["config file"] = digest_file(Path(self.config))
        if self.vectors:
            digests["static vectors"] = hash_vectors(self.vectors)
        return {**digests, "biLM": load_embedder(self.weights or None).hash_weights().hex()[:16]}


@lru_cache
def hash_vectors(name: str) -> str:
    """name (str): a pipeline. RETURNS (str): digest of its static vectors. RAISES (ValueError):
    EL233 if it has none."""
    try:
        vectors = spacy.load(name).vocab.vectors
    except (OSError, ValueError) as err:
        raise ValueError(Errors.EL233.format(name=name, error=show_reason(err))) from err
    if not len(vectors):
        raise ValueError(Errors.EL233.format(name=name, error="its table is empty"))
    return digest(vectors.to_bytes())


def read_settings(output: Path) -> Dict[str, Any]:
    """output (Path): folder of runs. RETURNS (Dict[str, Any]): what `RunSettings.fix` wrote.
    RAISES (ValueError): EL100 to EL103 or EL142 if it cannot be read."""
    return read_checked_json(output / SETTINGS_FILE)
