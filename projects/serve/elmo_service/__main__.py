"""`python -m elmo_service PIPELINE`: serve a saved pipeline."""

from .cli import cli

cli()
