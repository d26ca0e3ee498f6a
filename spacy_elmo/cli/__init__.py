"""`python -m spacy elmo ...`: one file for each command, hung on spaCy's own app.

spaCy imports this for every command of its own, so nothing heavy is imported here.
"""

import typer
from spacy.cli._util import app

from .benchmark import benchmark
from .convert import convert
from .convert_data import convert_data
from .debug_corpus import debug_corpus
from .demo import demo
from .embed import embed
from .evaluate import evaluate
from .experiment import experiment
from .export import export
from .index import index
from .init_config import init_config
from .neighbors import neighbors
from .pretrain import pretrain
from .probe import probe
from .report import report
from .search import search
from .tasks import tasks
from .train_senses import train_senses
from .weights import weights

elmo_cli = typer.Typer(
    name="elmo",
    help="Contextual vectors from a bidirectional language model.",
    no_args_is_help=True,
)
elmo_cli.command("init-config")(init_config)
elmo_cli.command("convert")(convert)
elmo_cli.command("demo")(demo)
elmo_cli.command("benchmark")(benchmark)
elmo_cli.command("weights")(weights)
elmo_cli.command("neighbors")(neighbors)
elmo_cli.command("experiment")(experiment)
elmo_cli.command("probe")(probe)
elmo_cli.command("index")(index)
elmo_cli.command("search")(search)
elmo_cli.command("report")(report)
elmo_cli.command("train-senses")(train_senses)
elmo_cli.command("tasks")(tasks)
elmo_cli.command("evaluate")(evaluate)
elmo_cli.command("export")(export)
elmo_cli.command("embed")(embed)
_overridable = {"allow_extra_args": True, "ignore_unknown_options": True}
elmo_cli.command("pretrain", context_settings=_overridable)(pretrain)
elmo_cli.command("convert-data", context_settings=_overridable)(convert_data)
elmo_cli.command("debug-corpus", context_settings=_overridable)(debug_corpus)
app.add_typer(elmo_cli)
