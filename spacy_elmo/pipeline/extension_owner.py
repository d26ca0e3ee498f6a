"""`ExtensionOwner`: a component whose results are read by custom attributes."""

from typing import Any


class ExtensionOwner:
    """Registers the attributes in each process that has the component: its `__init__` calls
    `register_extensions`, and what is unpickled was not made by it. To be inherited before spaCy's
    `Pipe`."""

    @staticmethod
    def register_extensions() -> None:
        """Register the attributes. Harmless when done before."""
        raise NotImplementedError

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        self.register_extensions()
