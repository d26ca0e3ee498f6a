import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Toy networks are slower with more, on a busy machine ten times."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
