"""Reference of all that setup.cfg registers: a page for each kind, from its entry points."""

import configparser
import inspect
import re
from importlib import import_module
from typing import Any, Dict, List, NamedTuple

from spacy.language import Language
from thinc.api import Config

from .objects import code, describe_class, describe_function
from .sources import ROOT, Sources


class Group(NamedTuple):
    """Groups of entry points that share a page.

    title (str): of the page.
    intro (str): Markdown below the title.
    groups (Dict[str, str]): group -> how a config or command names its members.
    """

    title: str
    intro: str
    groups: Dict[str, str]


PAGES = {
    "components": Group(
        "Components",
        "What `nlp.add_pipe` and `factory` in a config name. A component's settings are the "
        "parameters of its factory; its class has what Python code calls.",
        {"spacy_factories": 'factory = "{}"'},
    ),
    "architectures": Group(
        "Architectures",
        "Model architectures, named by `@architectures` in a config. All are Thinc models: "
        "`Floats2d` is an array of shape (rows, width), one row for each token.",
        {"spacy_architectures": '@architectures = "{}"'},
    ),
    "loaders": Group(
        "Loaders, span getters, cache",
        "Functions that a config names by `@misc`: loaders of weights for "
        "`[initialize.components.elmo.loader]`, span getters for `get_spans`, and the cache of a "
        "frozen biLM's layers for `[initialize.components.elmo.activation_cache]`.",
        {"spacy_misc": '@misc = "{}"'},
    ),
    "readers": Group(
        "Readers",
        "Corpus readers for a training config (`@readers`), readers of published task data "
        "(`python -m spacy elmo convert-data NAME`; keyword parameters are its options), and "
        "readers of raw text for pretraining, by the ending of a file's name.",
        {
            "spacy_readers": '@readers = "{}"',
            "spacy_elmo_task_readers": "python -m spacy elmo convert-data {} INPUT OUTPUT",
            "spacy_elmo_corpus_readers": "*.{}",
        },
    ),
    "scorers": Group(
        "Scorers and loggers",
        "Scorers of components (`@scorers`), and the logger of learned mixes (`@loggers`).",
        {"spacy_scorers": '@scorers = "{}"', "spacy_loggers": '@loggers = "{}"'},
    ),
    "extension-points": Group(
        "Extension points",
        "What other packages can add to by entry points of the same groups, and what this package "
        "registers there itself: formats of weights, named models, softmaxes and teachers of "
        "pretraining. Text formats and task data have groups, too: [readers](readers.md).",
        {
            "spacy_elmo_checkpoint_readers": "",
            "spacy_elmo_models": 'name = "{}"',
            "spacy_elmo_softmaxes": 'kind = "{}"',
            "spacy_elmo_teachers": 'kind = "{}"',
        },
    ),
}
# Described by the page of commands.
ELSEWHERE = ("spacy_cli",)


def read_entry_points() -> Dict[str, Dict[str, str]]:
    """RETURNS (Dict[str, Dict[str, str]]): group -> name -> "module:attribute", as setup.cfg has
    them. RAISES (ValueError): if a group is on no page."""
    config = configparser.ConfigParser(delimiters="=")
    config.optionxform = str  # type: ignore[assignment]
    config.read(ROOT / "setup.cfg", "utf-8")
    groups = {
        group: dict(line.split(" = ") for line in lines.strip().splitlines())
        for group, lines in config["options.entry_points"].items()
    }
    described = {group for page in PAGES.values() for group in page.groups}
    forgotten = set(groups) - described - set(ELSEWHERE)
    if forgotten:
        raise ValueError(f"docs_build/registered.py has no page for {sorted(forgotten)}")
    return groups


def list_described() -> Dict[Any, str]:
    """RETURNS (Dict[Any, str]): what a page of `make_pages` describes -> Markdown of a link to it,
    from a page in docs/reference/."""
    links = {}
    for page, group in PAGES.items():
        for name in group.groups:
            for key, path in read_entry_points()[name].items():
                thing = _load(path)
                anchor = re.sub(r"[^\w-]", "", key.lower())
                links[thing] = f"[{key}]({page}.md#{anchor})"
                if name == "spacy_factories":
                    cls = _get_component_class(thing)
                    links[cls] = f"[{cls.__name__}]({page}.md#class-{cls.__name__.lower()})"
    return links


def make_pages(sources: Sources) -> Dict[str, str]:
    """sources (Sources): takes note of the files. RETURNS (Dict[str, str]): Markdown by the
    page's place in docs/."""
    entry_points = read_entry_points()
    pages = {}
    for page, group in PAGES.items():
        parts = [f"# {group.title}", group.intro]
        for name, usage in group.groups.items():
            if len(group.groups) > 1:
                parts.append(f"## `{name}`")
            for key, path in sorted(entry_points[name].items()):
                parts.append(
                    _describe(name, key, path, usage, sources, 2 + (len(group.groups) > 1))
                )
        pages[f"reference/{page}.md"] = "\n\n".join(parts) + "\n"
    return pages


def _describe(group: str, name: str, path: str, usage: str, sources: Sources, level: int) -> str:
    thing = _load(path)
    title = f"{'#' * level} {name}"
    used = f"```text\n{usage.format(name)}\n```" if usage else ""
    if group == "spacy_factories":
        text = _describe_factory(name, thing, sources, level)
    elif inspect.isclass(thing):
        text = describe_class(thing, "", sources, level=level)
    elif group == "spacy_scorers":
        text = describe_function(thing(), "", sources, level=level)
    elif callable(thing):
        text = describe_function(thing, "", sources, level=level)
    else:  # a tuple of functions, such as a CheckpointReader
        fields = [value for value in thing if callable(value)]
        described = [
            describe_function(each, each.__name__, sources, level=level + 1) for each in fields
        ]
        text = "\n\n".join(described)
    return "\n\n".join(part for part in (title, used, text) if part)


def _load(path: str) -> Any:
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


def _describe_factory(name: str, function: Any, sources: Sources, level: int) -> str:
    meta = Language.get_factory_meta(name)
    parts: List[str] = [
        describe_function(
            function,
            "",
            sources,
            level=level,
            skip=("nlp", "name"),
            defaults=meta.default_config,
        ),
        _list_facts(meta),
        f"Its default config:\n\n```ini\n{_show_config(name, meta.default_config)}\n```",
    ]
    cls = _get_component_class(function)
    parts.append(describe_class(cls, f"Class {cls.__name__}", sources, level=level + 1))
    return "\n\n".join(part for part in parts if part)


def _list_facts(meta: Any) -> str:
    facts = {"assigns": meta.assigns, "requires": meta.requires, "scores": meta.scores}
    lines = [
        f"- {key}: {', '.join(code(value) for value in values)}"
        for key, values in facts.items()
        if values
    ]
    return "\n".join(lines)


def _show_config(name: str, config: Any) -> str:
    block = {"factory": name, **(config or {})}
    return Config({"components": {name: block}}).to_str(interpolate=False).strip()


def _get_component_class(function: Any) -> Any:
    annotation = inspect.signature(function).return_annotation
    if isinstance(annotation, str):
        annotation = getattr(import_module(function.__module__), annotation.strip('"'))
    return annotation
