import pytest
import srsly
import torch
from hypothesis import HealthCheck, settings
from spacy.tokens import DocBin
from spacy.util import fix_random_seed

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints.native import write_native
from spacy_elmo.inference.embedder import Embedder

from .support.helpers import SHAPE, SHARED, make_nlp
from .support.runs import write_texts
from .support.toy import make_options, make_weights, write_model
from .support.toy_corpora import make_docs
from .support.toy_wordnet import make_lines, write_wordnet

settings.register_profile(
    "default",
    deadline=None,
    max_examples=40,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.load_profile("default")


def pytest_collection_modifyitems(config, items):
    """Tests that may take long come first: with several processes, none waits at the end."""
    usual = float(config.getini("timeout"))

    def get_limit(item):
        mark = item.get_closest_marker("timeout")
        return max(usual, mark.args[0] if mark else usual)

    items.sort(key=get_limit, reverse=True)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Fixtures and tests draw the same numbers each time, whatever ran before them."""
    fix_random_seed(0)


@pytest.fixture
def toy_folder(tmp_path):
    """A folder with a toy model in the AllenNLP layout."""
    options = make_options()
    write_model(tmp_path / "toy", options, make_weights(options))
    return tmp_path / "toy"


@pytest.fixture
def nlp():
    """A pipeline with a tiny random elmo."""
    return make_nlp()


@pytest.fixture
def embedder():
    """A tiny random biLM, the same each time."""
    torch.manual_seed(0)
    return Embedder(BiLM(BiLMConfig(**SHAPE)))


@pytest.fixture
def weights(embedder, tmp_path):
    """Folder of the same."""
    write_native(embedder.bilm, tmp_path / "weights")
    return tmp_path / "weights"


@pytest.fixture(scope="session")
def texts(tmp_path_factory):
    """Folder with train and dev of small texts."""
    return write_texts(tmp_path_factory.mktemp("texts"))


@pytest.fixture
def tagged_corpus(tmp_path):
    """Folder with train, dev and test of tagged docs."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    for i, split in enumerate(("train", "dev", "test")):
        DocBin(docs=make_docs(30, i), store_user_data=True).to_disk(folder / f"{split}.spacy")
    return folder


@pytest.fixture
def wordnet_folder(tmp_path):
    """A WordNet of a few words."""
    return write_wordnet(tmp_path / "dict")


@pytest.fixture
def sense_corpus(tmp_path):
    """A file of sentences with senses."""
    path = tmp_path / "senses.jsonl"
    srsly.write_jsonl(path, make_lines())
    return path


@pytest.fixture(scope="session")
def shared():
    if not SHARED.exists():
        pytest.skip("needs ../shared")
    return SHARED
