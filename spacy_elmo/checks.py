"""Checks of settings that several rooms make."""

from .errors import Errors


def require_least(key: str, value: float, least: float) -> None:
    """key (str): name of a setting. value (float): what it is. least (float): what it has to
    be at least. RAISES (ValueError): EL012 if it is less."""
    if value < least:
        raise ValueError(Errors.EL012.format(key=key, value=value, least=least))
