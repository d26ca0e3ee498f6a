"""Reference of registered names (a page for each kind), of public Python names and of layers."""

import configparser
import inspect
import pkgutil
import re
from importlib import import_module
from typing import Any, Dict, Iterator, List, NamedTuple, get_origin

from spacy.language import Language
from thinc.api import Config, Model

import spacy_elmo
from spacy_elmo import layers
from spacy_elmo.tasks import shared

from .objects import ROOT, code, describe


class Group(NamedTuple):
    """A page: title, introduction, and its groups of entry points with the way to name a member."""

    title: str
    intro: str
    groups: Dict[str, str]


PAGES = {
    "components": Group(
        "Components",
        "Names for `nlp.add_pipe`, and for `factory` in a config. The parameters of a factory are "
        "the settings of its component.",
        {"spacy_factories": 'factory = "{}"'},
    ),
    "architectures": Group(
        "Architectures",
        "Names for `@architectures` in a config. All are Thinc models; `Floats2d` is an array of "
        "shape (rows, width), one row for each token.",
        {"spacy_architectures": '@architectures = "{}"'},
    ),
    "loaders": Group(
        "Loaders, span getters, cache",
        "Names for `@misc` in a config: loaders for `[initialize.components.elmo.loader]`, span "
        "getters for `get_spans`, the cache for `[initialize.components.elmo.activation_cache]`.",
        {"spacy_misc": '@misc = "{}"'},
    ),
    "readers": Group(
        "Readers",
        "Corpus readers for a training config, readers of published task data (their keyword "
        "parameters are options of `convert-data`), and readers of raw text by file ending.",
        {
            "spacy_readers": '@readers = "{}"',
            "spacy_elmo_task_readers": "python -m spacy elmo convert-data {} INPUT OUTPUT",
            "spacy_elmo_corpus_readers": "*.{}",
        },
    ),
    "scorers": Group(
        "Scorers and loggers",
        "Scorers of components, and the logger of learned mixes.",
        {"spacy_scorers": '@scorers = "{}"', "spacy_loggers": '@loggers = "{}"'},
    ),
    "extension-points": Group(
        "Extension points",
        "Entry point groups to which other packages can add, and the entries of this package. "
        "Text formats and task data have groups, too: [readers](readers.md).",
        {
            "spacy_elmo_checkpoint_readers": "",
            "spacy_elmo_models": 'name = "{}"',
            "spacy_elmo_softmaxes": 'kind = "{}"',
            "spacy_elmo_teachers": 'kind = "{}"',
        },
    ),
}
# On the page of the commands.
ELSEWHERE = ("spacy_cli",)
_PYTHON = "# Python\n\nNames that `from spacy_elmo import ...` offers, imported at first use."
_LAYERS = (
    "# Layers\n\nThe Thinc layers of the architectures, with their settings. Their `forward` is "
    "Thinc's: `(model, X, is_train) -> (Y, backprop)`."
)


def read_entry_points() -> Dict[str, Dict[str, str]]:
    """RETURNS (Dict[str, Dict[str, str]]): group -> name -> "module:attribute", from setup.cfg.
    RAISES (ValueError): if a group is on no page."""
    config = configparser.ConfigParser(delimiters="=")
    config.optionxform = str  # type: ignore[assignment]
    config.read(ROOT / "setup.cfg", "utf-8")
    groups = {
        group: dict(line.split(" = ") for line in lines.strip().splitlines())
        for group, lines in config["options.entry_points"].items()
    }
    described = {group for page in PAGES.values() for group in page.groups}
    missing = set(groups) - described - set(ELSEWHERE)
    if missing:
        raise ValueError(f"docs_build/registered.py has no page for {sorted(missing)}")
    return groups


def make_pages() -> Dict[str, str]:
    """RETURNS (Dict[str, str]): Markdown by the page's place in docs/."""
    entry_points, pages, links = read_entry_points(), {}, {}
    for page, group in PAGES.items():
        parts = [f"# {group.title}", group.intro]
        level = 2 if len(group.groups) == 1 else 3
        for kind, usage in group.groups.items():
            if level == 3:
                parts.append(f"## `{kind}`")
            for name, path in sorted(entry_points[kind].items()):
                module, _, attribute = path.partition(":")
                thing = getattr(import_module(module), attribute)
                parts.append(f"{'#' * level} {name}")
                parts += [f"```text\n{usage.format(name)}\n```"] if usage else []
                parts += _describe(kind, name, thing, level)
                owner = _get_component_class(thing) if kind == "spacy_factories" else thing
                anchor = re.sub(r"[^\w-]", "", name.lower())
                links[owner] = f"[{name}]({page}.md#{anchor})"
        pages[f"reference/{page}.md"] = "\n\n".join(parts) + "\n"
    public = {name: getattr(spacy_elmo, name) for name in spacy_elmo.__all__}
    pages["reference/python.md"] = _make_object_page(_PYTHON, public, links)
    found = {name: thing for name, thing in _find_layers() if thing not in links}
    pages["reference/layers.md"] = _make_object_page(_LAYERS, found, links)
    return pages


def _describe(kind: str, name: str, thing: Any, level: int) -> List[str]:
    if kind == "spacy_factories":
        meta = Language.get_factory_meta(name)
        facts = {"assigns": meta.assigns, "requires": meta.requires, "scores": meta.scores}
        lines = [f"- {key}: {', '.join(map(code, each))}" for key, each in facts.items() if each]
        block = {"components": {name: {"factory": name, **(meta.default_config or {})}}}
        config = Config(block).to_str(interpolate=False).strip()
        cls = _get_component_class(thing)
        return [
            describe(thing, level=level, skip=("nlp", "name"), defaults=meta.default_config),
            "\n".join(lines),
            f"Its default config:\n\n```ini\n{config}\n```",
            describe(cls, f"Class {cls.__name__}", level=level + 1),
        ]
    if kind == "spacy_scorers":
        thing = thing()
    if callable(thing):
        return [describe(thing, level=level)]
    functions = [each for each in thing if callable(each)]  # of a named tuple
    return [describe(each, each.__name__, level=level + 1) for each in functions]


def _make_object_page(intro: str, things: Dict[str, Any], links: Dict[Any, str]) -> str:
    parts = [intro]
    for name, thing in sorted(things.items(), key=lambda item: item[0].lower()):
        if isinstance(thing, str):
            parts.append(f"## {name}\n\nThe installed version, a string.")
        elif thing in links:
            parts.append(f"## {name}\n\nSee {links[thing]}.")
        else:
            parts.append(describe(thing, name))
    return "\n\n".join(parts) + "\n"


def _find_layers() -> Iterator[Any]:
    """Public functions that return a model, layers that are classes, and their settings."""
    for package in (layers, shared):
        for info in pkgutil.iter_modules(package.__path__):
            module = import_module(f"{package.__name__}.{info.name}")
            for name, thing in vars(module).items():
                own = getattr(thing, "__module__", "") == module.__name__
                if own and not name.startswith("_") and _is_layer(name, thing):
                    yield name, thing


def _is_layer(name: str, thing: Any) -> bool:
    if inspect.isclass(thing):
        return issubclass(thing, Model) or name.endswith("Settings")
    if not inspect.isfunction(thing) or re.match(r"(init|replace)_|.*_init$", name):
        return False
    result = inspect.signature(thing).return_annotation
    return Model in (result, get_origin(result))


def _get_component_class(factory: Any) -> Any:
    annotation = inspect.signature(factory).return_annotation
    if isinstance(annotation, str):
        annotation = getattr(import_module(factory.__module__), annotation.strip('"'))
    return annotation
