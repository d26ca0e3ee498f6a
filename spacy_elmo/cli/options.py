"""Options that several commands have."""

import typer

QUIET = typer.Option(False, "--quiet", "-Q", help="Print results and errors only")
WEIGHTS = typer.Option(
    "", help="Folder of a biLM, or a model's name", show_default="the bundled model"
)
JSON = typer.Option(None, help="JSON file to write", show_default="none", dir_okay=False)
LANG = typer.Option("en", help="Language code of the tokenizer")
WEIGHTS_LANG = typer.Option(
    "", help="Language code of the tokenizer", show_default="that of the weights"
)
SEEDS = typer.Option("0,1,2", help="Seeds (whole numbers), with commas")
