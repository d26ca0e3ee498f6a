"""Reference of what Python code imports: the public names, and the Thinc layers."""

import inspect
import pkgutil
from importlib import import_module
from typing import Any, Dict, Iterator, List, get_origin

from thinc.api import Model

import spacy_elmo
from spacy_elmo import layers
from spacy_elmo.tasks import shared

from .objects import describe_class, describe_function
from .registered import list_described
from .sources import Sources

_PYTHON_INTRO = """# Python

What `from spacy_elmo import ...` offers. Nothing heavy is imported until it is used. Everything
else in the package may change between versions.
"""
_LAYERS_INTRO = """# Layers

The Thinc layers that the architectures are made of, with their settings. Their `forward` is
Thinc's: `(model, X, is_train) -> (Y, backprop)`.
"""


def make_python_page(sources: Sources) -> str:
    """sources (Sources): takes note of the files. RETURNS (str): Markdown."""
    described = list_described()
    parts = [_PYTHON_INTRO.strip()]
    for name in spacy_elmo.__all__:
        thing = getattr(spacy_elmo, name)
        if name == "__version__":
            parts.append(f"## {name}\n\nThe installed version, a string.")
        elif thing in described:
            link = described[thing]
            parts.append(f"## {name}\n\nSee {link}.")
        elif inspect.isclass(thing):
            parts.append(describe_class(thing, name, sources))
        else:
            parts.append(describe_function(thing, name, sources))
    return "\n\n".join(parts) + "\n"


def make_layers_page(sources: Sources) -> str:
    """sources (Sources): takes note of the files. RETURNS (str): Markdown."""
    parts = [_LAYERS_INTRO.strip()]
    for name, thing in sorted(_find_layers().items(), key=lambda item: item[0].lower()):
        describe = describe_class if inspect.isclass(thing) else describe_function
        parts.append(describe(thing, name, sources))
    return "\n\n".join(parts) + "\n"


def _find_layers() -> Dict[str, Any]:
    """Public functions that return a model, layers that are classes, and their settings."""
    found: Dict[str, Any] = {}
    described = list_described()
    for module in [*_walk(layers), *_walk(shared)]:
        for name, thing in vars(module).items():
            is_own = getattr(thing, "__module__", "") == module.__name__
            if is_own and not name.startswith("_") and thing not in described and _is_layer(thing):
                found[name] = thing
    return found


def _is_layer(thing: Any) -> bool:
    if inspect.isclass(thing):
        return issubclass(thing, Model) or thing.__name__.endswith("Settings")
    if not inspect.isfunction(thing) or thing.__name__.startswith(("init_", "replace_")):
        return False
    result = inspect.signature(thing).return_annotation
    return not thing.__name__.endswith("_init") and Model in (result, get_origin(result))


def _walk(package: Any) -> Iterator[Any]:
    names: List[str] = [info.name for info in pkgutil.iter_modules(package.__path__)]
    for name in names:
        yield import_module(f"{package.__name__}.{name}")
