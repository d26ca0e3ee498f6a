"""`python -m spacy elmo convert-data`: published data of a task -> a .spacy file."""

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List

import typer

from ..utils import count_things
from .common import LANG, QUIET, exit_on_error, require_output
from .data_formats import get_options, get_readers, spell_option

if TYPE_CHECKING:
    from spacy.tokens import Doc


def convert_data(
    ctx: typer.Context,
    format: str = typer.Argument(..., help="Format of INPUT; before --help, shows its options"),
    input: Path = typer.Argument(..., help="File, plain or .gz, .xz, .zst"),
    output: Path = typer.Argument(..., help=".spacy file to write", dir_okay=False),
    lang: str = LANG,
    quiet: bool = QUIET,
) -> None:
    """Convert published data of a task into docs to train on.

    Formats have options of their own: `convert-data squad --help` shows those of squad.
    """
    import spacy
    from spacy.tokens import DocBin

    from ..files import write_file
    from ..text.languages import require_language
    from ..utils import kept_hooks

    reader = _get_reader(format)
    options = _read_options(reader, format, ctx.args)
    with exit_on_error(quiet) as console:
        require_language(lang)
        require_output(output)
        if output.resolve() == input.resolve():
            raise ValueError(
                f"'{input}' cannot be replaced by its conversion. Give another OUTPUT."
            )
        # Docs are packed as they come: they take ten times the memory of what is written.
        packed, labels, n_tokens = DocBin(store_user_data=True), Counter[str](), 0
        with kept_hooks():
            for doc in reader(spacy.blank(lang), input, **options):
                packed.add(doc)
                labels.update(_list_labels(doc))
                n_tokens += len(doc)
            content = packed.to_bytes()
        if not len(packed):
            raise ValueError(
                f"Nothing was found in '{input}', and nothing was written: it is empty, its format "
                f"is not {format}, or the options select a part without content."
            )
        output.parent.mkdir(parents=True, exist_ok=True)
        write_file(output, content)
        console.finish(output, summary=_describe(len(packed), n_tokens, labels))


def _get_reader(name: str) -> Callable:
    readers = get_readers()
    if name not in readers:
        raise typer.BadParameter(f"'{name}': expected one of {', '.join(readers)}")
    return readers[name]


def _read_options(reader: Callable, format: str, arguments: List[str]) -> Dict[str, Any]:
    """Read options such as ["--joined", "--key", "sc"] by the reader's keyword arguments."""
    known = get_options(reader)
    options: Dict[str, Any] = {}
    rest = list(arguments)
    while rest:
        given, is_joined, value = rest.pop(0).partition("=")
        name = given.removeprefix("--").replace("-", "_")
        if name not in known or not given.startswith("--"):
            shown = ", ".join(map(spell_option, known)) or "none"
            raise typer.BadParameter(f"'{given}': the options of {format} are: {shown}")
        if isinstance(known[name], bool) and not is_joined:
            options[name] = True
            continue
        if not is_joined and not rest:
            raise typer.BadParameter(f"'{given}' needs a value")
        options[name] = _cast(given, value if is_joined else rest.pop(0), type(known[name]))
    return options


def _cast(given: str, value: str, kind: type) -> Any:
    flags = {"true": True, "false": False}
    if kind is bool and value.lower() in flags:
        return flags[value.lower()]
    try:
        if kind is not bool:
            return kind(value)
    except ValueError:
        pass
    raise typer.BadParameter(f"'{given}' takes a value of type {kind.__name__}, not '{value}'")


def _describe_group(name: str) -> str:
    # "coref_clusters_1", "coref_clusters_2" and so on are of one kind.
    return re.sub(r"_\d+$", "_*", name)


def _list_labels(doc: "Doc") -> Iterator[str]:
    yield from (ent.label_ for ent in doc.ents)
    yield from (label for label, value in doc.cats.items() if value)
    # Groups that are numbered, such as srl_1, are counted together.
    for name, group in doc.spans.items():
        yield from (f"{_describe_group(name)}/{span.label_}".rstrip("/") for span in group)


def _describe(n_docs: int, n_tokens: int, labels: "Counter[str]") -> str:
    """What docs hold, so that a person sees at once whether it is what was expected."""
    shown = ", ".join(f"{label} {n:,}" for label, n in labels.most_common(20))
    sizes = f"{count_things(n_docs, 'doc')}, {count_things(n_tokens, 'token')}"
    return f"{sizes}; {shown or 'no labels'}"
