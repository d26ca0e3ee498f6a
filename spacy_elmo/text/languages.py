"""The languages that spaCy knows."""

import pkgutil
from typing import List

import spacy.lang
from spacy.util import registry

from ..errors import Errors


def list_languages() -> List[str]:
    """RETURNS (List[str]): codes: spaCy's own, and those that other packages registered."""
    builtin = [module.name for module in pkgutil.iter_modules(spacy.lang.__path__) if module.ispkg]
    return sorted({*builtin, *registry.languages.get_all()})


def require_language(lang: str) -> None:
    """lang (str): a code. RAISES (ValueError): EL161 if spaCy has no such language."""
    known = list_languages()
    if lang not in known:
        raise ValueError(Errors.EL161.format(lang=lang, known=", ".join(known)))
