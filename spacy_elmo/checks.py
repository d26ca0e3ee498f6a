"""Checks of settings that several rooms make."""

from typing import Sequence

from .errors import Errors


def require_least(key: str, value: float, least: float) -> None:
    """key (str): name of a setting. value (float): what it is. least (float): what it has to
    be at least. RAISES (ValueError): EL012 if it is less."""
    if value < least:
        raise ValueError(Errors.EL012.format(key=key, value=value, least=least))


def require_known(key: str, value: str, known: Sequence[str]) -> None:
    """key (str): name of a setting. value (str): what it is. known (Sequence[str]): what it
    can be. RAISES (ValueError): EL017 if it is none of these."""
    if value not in known:
        raise ValueError(Errors.EL017.format(key=key, value=value, known=", ".join(known)))
