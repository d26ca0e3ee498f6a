"""`python -m spacy elmo convert-data`: published data of a task -> a .spacy file."""

import inspect
import re
from collections import Counter
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List

import typer
from typer.core import TyperCommand

from ..utils import count_things
from .common import exit_on_error, require_output
from .options import LANG, QUIET

if TYPE_CHECKING:
    from spacy.tokens import Doc

# Tokens of a doc that is longer than texts are. A training step on it takes half a minute.
_LONGEST_TEXT = 20_000
_ARGUMENTS = "spacy_elmo.convert_data.arguments"


class ConvertDataCommand(TyperCommand):
    """The command, whose help has the names of all formats, and the options of the format before
    `--help`. Other packages may register formats."""

    def parse_args(self, ctx: Any, args: List[str]) -> List[str]:
        """Keep the arguments: the help is printed before they are parsed."""
        ctx.meta[_ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        readers = get_readers()
        shown = copy(self)
        shown.params = [copy(param) for param in self.params]
        for param in shown.params:
            if param.name == "format":
                param.help = f"{param.help}. One of: {', '.join(readers)}"  # type: ignore[attr-defined]
        format = next((name for name in ctx.meta[_ARGUMENTS] if name in readers), None)
        if format is not None:
            shown.params += make_options(readers[format], format).params
            summary = (inspect.getdoc(readers[format]) or "").partition("\n\n")[0]
            shown.help = f"{self.help}\n\n{format}: {' '.join(summary.split())}"
        TyperCommand.format_help(shown, ctx, formatter)


def convert_data(
    ctx: typer.Context,
    format: str = typer.Argument(..., help="Format of INPUT; `FORMAT --help` shows its options"),
    input: Path = typer.Argument(..., help="File to read, plain or .gz, .xz, .zst"),
    output: Path = typer.Argument(..., help=".spacy file to write", dir_okay=False),
    lang: str = LANG,
    quiet: bool = QUIET,
) -> None:
    """Convert published data of a task into docs to train on.

    Formats have their own options: `convert-data squad --help` shows the options of squad.
    """
    import spacy
    from spacy.tokens import DocBin

    from ..files import write_file
    from ..text.languages import require_language
    from ..utils import kept_hooks

    readers = get_readers()
    if format not in readers:
        raise typer.BadParameter(f"'{format}': expected one of {', '.join(readers)}")
    reader = readers[format]
    with make_options(reader, format).make_context(format, list(ctx.args)) as context:
        options = context.params
    with exit_on_error(quiet) as console:
        require_language(lang)
        require_output(output)
        if output.resolve() == input.resolve():
            raise ValueError(
                f"'{input}' cannot be replaced by its conversion. Give another file as OUTPUT."
            )
        # Docs are packed one by one: they take ten times the memory of the packed ones.
        packed, labels, n_tokens, longest = DocBin(store_user_data=True), Counter[str](), 0, 0
        with kept_hooks():
            for doc in reader(spacy.blank(lang), input, **options):
                packed.add(doc)
                labels.update(_list_labels(doc))
                n_tokens += len(doc)
                longest = max(longest, len(doc))
            content = packed.to_bytes()
        if not len(packed):
            raise ValueError(
                f"Nothing was found in '{input}', and nothing was written: the file is empty or "
                f"not in the format {format}, or your options select a part without content."
            )
        if longest > _LONGEST_TEXT:
            advice = "Training will be slow and need much memory. Split the file into documents."
            if options.get("joined"):
                advice = "Does it mark its documents? Omit `--joined` to make a doc of a sentence."
            console.warn(f"A doc of '{input}' has {count_things(longest, 'token')}. {advice}")
        write_file(output, content)
        console.finish(output, summary=_describe(len(packed), n_tokens, labels))


def get_readers() -> Dict[str, Callable]:
    """Readers of all packages by the name of their format."""
    from ..registry import task_readers

    return dict(sorted(task_readers.get_all().items()))


def make_options(reader: Callable, format: str) -> TyperCommand:
    """Make a command whose options are the keyword arguments of a reader. Their help is in its
    docstring: the text of a parameter, up to the next one."""

    def command(**options: Any) -> None:
        pass

    doc = inspect.getdoc(reader) or ""
    parameters = []
    for parameter in inspect.signature(reader).parameters.values():
        if parameter.kind is not parameter.KEYWORD_ONLY:
            continue
        name, default = parameter.name, parameter.default
        entry = rf"^{name} \([^)]*\):\s(.*?)(?=^\w+ \(|\Z)"
        found = re.search(entry, doc, re.MULTILINE | re.DOTALL)
        text = " ".join(found[1].split()).rstrip(".") if found else ""
        option = typer.Option(
            default,
            f"--{name.replace('_', '-')}",
            help=f"For {format}: {text}",
            show_default="none" if default == "" else True,
        )
        parameters.append(parameter.replace(default=option, annotation=type(default)))
    # Typer reads the signature, whatever the function takes.
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    app = typer.Typer(add_completion=False)
    app.command(add_help_option=False)(command)
    return typer.main.get_command(app)  # type: ignore[return-value]


def _list_labels(doc: "Doc") -> Iterator[str]:
    yield from (ent.label_ for ent in doc.ents)
    yield from (label for label, value in doc.cats.items() if value)
    # Groups that are numbered, such as srl_1, are counted together.
    for name, group in doc.spans.items():
        kind = re.sub(r"_\d+$", "_*", name)
        yield from (f"{kind}/{span.label_}".rstrip("/") for span in group)


def _describe(n_docs: int, n_tokens: int, labels: "Counter[str]") -> str:
    shown = ", ".join(f"{label} {n:,}" for label, n in labels.most_common(20))
    sizes = f"{count_things(n_docs, 'doc')}, {count_things(n_tokens, 'token')}"
    return f"{sizes}; {shown or 'no labels'}"
