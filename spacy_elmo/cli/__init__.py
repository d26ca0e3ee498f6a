"""`python -m spacy elmo ...`: one file for each command, added to spaCy's own app.

spaCy imports this module for all its commands, so nothing heavy is imported here.
"""

from typing import Callable, Tuple

import typer
from spacy.cli._util import app

from .benchmark import benchmark
from .convert import convert
from .convert_data import ConvertDataCommand, convert_data
from .demo import demo
from .embed import embed
from .evaluate import evaluate
from .experiment import experiment
from .explore import explore
from .index import index, search
from .init_config import init_config
from .neighbors import neighbors
from .pretrain import debug_corpus, pretrain
from .tasks import tasks
from .train_senses import train_senses
from .weights import weights

elmo_cli = typer.Typer(
    name="elmo",
    help="Contextual vectors from a bidirectional language model.",
    no_args_is_help=True,
)
# Name, function, and arguments of an example for `--help`.
_COMMANDS: Tuple[Tuple[str, Callable, str], ...] = (
    ("init-config", init_config, "config.cfg --preset word_features --pipeline tagger,ner"),
    ("demo", demo, "--word bank --output bank.png"),
    ("tasks", tasks, 'pipeline "Ann gave Bob the book." --html page.html'),
    ("explore", explore, "pipeline --index index --language-model en_small"),
    ("embed", embed, "text vectors --unit sentences --n-process 2"),
    ("index", index, "text index"),
    ("search", search, 'index "a ship in a storm"'),
    ("neighbors", neighbors, '"He sat by the bank of the river." --token bank --corpus text'),
    ("train-senses", train_senses, "semcor.jsonl wordnet/dict senses"),
    ("weights", weights, "pipeline --output weights.png"),
    ("experiment", experiment, "gain corpus results --component tagger --cache cache"),
    ("pretrain", pretrain, "pretrain.cfg output --paths.train text --paths.dev heldout"),
    ("debug-corpus", debug_corpus, "pretrain.cfg --paths.train text"),
    ("evaluate", evaluate, "output/model-best heldout"),
    ("benchmark", benchmark, "sentences.txt --precisions fp32,bf16"),
    ("convert", convert, "path/to/allennlp weights"),
    ("convert-data", convert_data, "conll2003 eng.train corpus/train.spacy --joined"),
)
# These commands accept settings of a config, such as `--training.seed 1`, or of a reader.
_OVERRIDABLE = ("pretrain", "convert-data", "debug-corpus")
for _name, _function, _example in _COMMANDS:
    _is_open = _name in _OVERRIDABLE
    elmo_cli.command(
        _name,
        cls=ConvertDataCommand if _name == "convert-data" else None,
        epilog=f"Example: python -m spacy elmo {_name} {_example}",
        context_settings={"allow_extra_args": _is_open, "ignore_unknown_options": _is_open},
    )(_function)
app.add_typer(elmo_cli)
