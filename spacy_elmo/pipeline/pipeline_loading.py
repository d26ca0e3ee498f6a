"""Load a stranger's pipeline, or make one that only cuts text."""

from pathlib import Path
from typing import Any, Dict, Union

import spacy
from spacy.language import Language

from ..errors import Errors
from ..utils import show_reason


def load_pipeline(path: Union[str, Path]) -> Language:
    """path (Union[str, Path]): folder or package of a pipeline. RETURNS (Language): it. RAISES
    (ValueError): EL171 if it cannot be loaded."""
    try:
        return spacy.load(path)
    # What is wrong with it can show anywhere in its components.
    except Exception as err:
        raise ValueError(Errors.EL171.format(path=path, error=show_reason(err))) from err


def make_blank(lang: str, tokenizer: Dict[str, Any]) -> Language:
    """lang (str), tokenizer (Dict[str, Any]): from `find_tokenizer`. RETURNS (Language): a pipeline
    without components that cuts text as the weights have learned."""
    return spacy.blank(lang, config={"nlp": {"tokenizer": tokenizer}} if tokenizer else {})
