import pytest
from hypothesis import HealthCheck, settings

from .toy import make_options, make_weights, write_model
from .util import INTERIM, SHARED, make_nlp

settings.register_profile(
    "default",
    deadline=None,
    max_examples=40,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.load_profile("default")


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


@pytest.fixture(scope="session")
def shared():
    if not SHARED.exists():
        pytest.skip("needs ../shared")
    return SHARED


@pytest.fixture(scope="session")
def interim(shared):
    return INTERIM
