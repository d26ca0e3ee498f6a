"""`python -m spacy elmo ...`: one file for each command, hung on spaCy's own app.

spaCy imports this for every command of its own, so nothing heavy is imported here.
"""

import typer
from spacy.cli._util import app

from .convert import convert
from .demo import demo
from .init_config import init_config

elmo_cli = typer.Typer(
    name="elmo",
    help="Contextual vectors from a bidirectional language model.",
    no_args_is_help=True,
)
elmo_cli.command("init-config")(init_config)
elmo_cli.command("convert")(convert)
elmo_cli.command("demo")(demo)
app.add_typer(elmo_cli)
