"""Checks of settings that several rooms make."""

from typing import Sequence

from ..errors import Errors

_MOST_SEED = 2**32 - 1


def require_least(key: str, value: float, least: float) -> None:
    """key (str): name of a setting. value (float): what it is. least (float): what it has to
    be at least. RAISES (ValueError): EL012 if it is less."""
    if value < least:
        raise ValueError(Errors.EL012.format(key=key, value=value, least=least))


def require_layer(layer: int, n_layers: int) -> None:
    """layer (int): from 0, the word layer; or counted from the top, -1. n_layers (int): of
    the biLM. RAISES (ValueError): EL017 if there is no such layer."""
    if not -n_layers <= layer < n_layers:
        known = ", ".join(str(i) for i in range(-1, n_layers))
        raise ValueError(Errors.EL017.format(key="layer", value=layer, known=known))


def require_known(key: str, value: str, known: Sequence[str]) -> None:
    """key (str): name of a setting. value (str): what it is. known (Sequence[str]): what it
    can be. RAISES (ValueError): EL017 if it is none of these."""
    if value not in known:
        raise ValueError(Errors.EL017.format(key=key, value=value, known=", ".join(known)))


def require_seed(seed: int) -> None:
    """seed (int): of random numbers. RAISES (ValueError): EL151 if NumPy takes no such."""
    if not 0 <= seed <= _MOST_SEED:
        raise ValueError(Errors.EL151.format(seed=seed, most=_MOST_SEED))
