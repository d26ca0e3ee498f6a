"""Makes toy_service, and the server, importable."""

import toy_service  # noqa: F401
