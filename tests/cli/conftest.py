import pytest
import spacy


@pytest.fixture(scope="session", autouse=True)
def commands():
    """What `python -m spacy` does before it runs a command."""
    spacy.registry.cli.get_all()
