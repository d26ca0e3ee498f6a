"""`python -m elmo_service PIPELINE`: serve a saved pipeline."""

try:
    from .cli import cli
except ModuleNotFoundError as error:
    raise SystemExit(
        f"There is no package '{error.name}' here. Install all: `pip install 'spacy-elmo[serve]'`."
    ) from None

cli()
