"""Makes toy_service, and the server, importable; tests may be coroutines."""

import pytest
import toy_service  # noqa: F401


@pytest.fixture
def anyio_backend():
    return "asyncio"
