"""Load a stranger's pipeline."""

from pathlib import Path
from typing import Union

import spacy
from spacy.language import Language

from ..errors import Errors
from ..util.showing import show_reason


def load_pipeline(path: Union[str, Path]) -> Language:
    """path (Union[str, Path]): folder or package of a pipeline. RETURNS (Language): it. RAISES
    (ValueError): EL171 if it cannot be loaded."""
    try:
        return spacy.load(path)
    # What is wrong with it can show anywhere in its components.
    except Exception as err:
        raise ValueError(Errors.EL171.format(path=path, error=show_reason(err))) from err
