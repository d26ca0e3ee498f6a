"""Options and arguments of several commands."""

from typing import Any

import typer

# More threads than any machine has; each costs memory.
MOST_THREADS = 1024


def optional(help: str, shown: str = "none", *, default: Any = None, **settings: Any) -> Any:
    """An option that may be omitted; `shown` is what its help names as the default."""
    return typer.Option(default, help=help, show_default=shown, **settings)


QUIET = typer.Option(False, "--quiet", "-Q", help="Print results and errors only")
WEIGHTS = optional("Folder of a biLM, or a model's name", "the bundled model", default="")
MODEL = typer.Argument(
    None, help="Folder with weights, or a model's name", show_default="the bundled model"
)
INDEX_WEIGHTS = optional(
    "Folder of the biLM that made the index", "the folder that the index names", default=""
)
TRAINED = typer.Argument(..., help="Folder or package of a trained pipeline")
CONFIG = typer.Argument(..., help="Pretraining config; `init-config --pretraining` writes one")
JSON = optional("JSON file to write", dir_okay=False)
HTML = optional("HTML page to write", dir_okay=False)
LANG = typer.Option("en", help="Language code of the tokenizer")
WEIGHTS_LANG = optional("Language code of the tokenizer", "the weights' language", default="")
