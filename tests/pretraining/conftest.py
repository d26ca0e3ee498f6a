import pytest

from ..support.runs import share_tokenizer


@pytest.fixture(autouse=True)
def shared_tokenizer(monkeypatch):
    """Runs of the tests share one English tokenizer: making it takes as long as a tiny run."""
    share_tokenizer(monkeypatch.setattr)
