"""Which language weights are of, saved with them; and a word where the docs are of another."""

import json
import warnings
from typing import Any, Optional

import srsly

from ..checkpoints.checkpoint_files import CheckpointFiles
from ..checkpoints.native import META_FILE
from ..errors import Errors, Warnings
from ..files import find_folder, read_file, read_json_object
from ..layers.pipeline_weights import find_component, matches_pipeline

# spaCy's code for no language in particular.
_ANY = "xx"
# Of a component, in its folder.
CFG_FILE = "cfg"
# Bytes that a component's cfg can have.
CFG_BYTES = 10_000


def read_language(files: CheckpointFiles) -> Optional[str]:
    """Read the language that weights were trained on.

    files (CheckpointFiles): a checkpoint.
    RETURNS (Optional[str]): its code, such as "en"; None if nothing says it.
    """
    if files.weights_path is not None:
        return None
    try:
        if matches_pipeline(files):
            # A pipeline may be of another language than the weights in it.
            path = find_component(files.folder) / CFG_FILE
            return read_cfg(read_file(path, CFG_BYTES), str(path))
        lang = read_json_object(find_folder(files.path) / META_FILE).get("lang")
    except ValueError:
        return None
    return lang if isinstance(lang, str) else None


def find_language(loader: Any) -> Optional[str]:
    """loader (Any): what filled a biLM. RETURNS (Optional[str]): as `read_language`."""
    try:
        files = loader.files
    except (ValueError, AttributeError):
        return None
    return read_language(files) if isinstance(files, CheckpointFiles) else None


def warn_language(name: str, how: str, weights: Optional[str], docs: str) -> None:
    """Say that weights are of another language than the docs.

    name (str): the component.
    how (str): how other weights are loaded, in code.
    weights (Optional[str]): language of the weights; None if it is not known.
    docs (str): language of the docs; "" if they have none.
    """
    if weights and docs and weights not in (docs, _ANY):
        text = Warnings.WL018.format(name=name, how=how, weights=weights, docs=docs)
        warnings.warn(text, stacklevel=2)


def write_cfg(lang: Optional[str]) -> bytes:
    """lang (Optional[str]): language of the weights. RETURNS (bytes): a component's cfg."""
    return srsly.json_dumps({"lang": lang}).encode("utf-8")


def read_cfg(content: bytes, source: str) -> Optional[str]:
    """Read what `write_cfg` wrote, or the empty one of version 0.1.0.

    content (bytes): the file.
    source (str): where it comes from, for errors.
    RETURNS (Optional[str]): language of the weights, None if it is not known.
    RAISES (ValueError): EL116 if it is something else.
    """
    try:
        lang = dict(json.loads(content)).get("lang")
    except (ValueError, TypeError, RecursionError) as err:
        raise ValueError(Errors.EL116.format(source=source, error=f"cfg: {err}")) from err
    if lang is not None and not isinstance(lang, str):
        error = f"cfg: lang is {lang!r:.50}, expected a string or null"
        raise ValueError(Errors.EL116.format(source=source, error=error))
    return lang
