"""`SavedPipe`: a component whose files are written atomically, with digests, and read with care."""

from pathlib import Path
from typing import Dict, Iterable, TypeVar, Union

from spacy.util import SimpleFrozenList
from spacy.vocab import Vocab

from ..files import ANY_SIZE, join_files, read_files, split_files, write_files

_VOCAB = "vocab"
SelfT = TypeVar("SelfT", bound="SavedPipe")


class SavedPipe:
    """The four methods of a component that saves files, and vocab if it is not excluded. What
    inherits has `vocab` and `name`, and says what the files are."""

    vocab: Vocab
    name: str

    def to_disk(
        self, path: Union[str, Path], *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> None:
        """Save the component, each file atomically and with its digest.

        path (Union[str, Path]): folder; other files in it are kept.
        exclude (Iterable[str]): "vocab", "cfg" or "model".
        RAISES (OSError): if a file cannot be written; it is as it was then.
        """
        write_files(Path(path), self._get_files(exclude))
        if "vocab" not in exclude:
            self.vocab.to_disk(Path(path) / _VOCAB, exclude=exclude)

    def from_disk(
        self: SelfT, path: Union[str, Path], *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> SelfT:
        """Load what `to_disk` saved.

        path (Union[str, Path]): folder.
        exclude (Iterable[str]): as in `to_disk`.
        RETURNS (SelfT): itself.
        RAISES (ValueError): EL104 if a file is not what was written, EL100 to EL103 and
            EL116 if it cannot be read, EL020 to EL022 if it is of another shape.
        """
        self._set_files(read_files(Path(path), self._get_limits(exclude)), f"'{path}'")
        if "vocab" not in exclude and (Path(path) / _VOCAB).exists():
            self.vocab.from_disk(Path(path) / _VOCAB, exclude=exclude)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = SimpleFrozenList()) -> bytes:
        """exclude (Iterable[str]): as in `to_disk`. RETURNS (bytes): the files of `to_disk`."""
        files = self._get_files(exclude)
        if "vocab" not in exclude:
            files[_VOCAB] = self.vocab.to_bytes(exclude=exclude)
        return join_files(files)

    def from_bytes(
        self: SelfT, bytes_data: bytes, *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> SelfT:
        """bytes_data (bytes): from `to_bytes`. exclude (Iterable[str]): as in `to_disk`. RETURNS
        (SelfT): itself. RAISES (ValueError): EL116 if the bytes cannot be read or are not what
        was written, EL020 to EL022 if they are of another shape."""
        source = f"the component '{self.name}'"
        limits = {**self._get_limits(()), _VOCAB: ANY_SIZE}
        optional = {_VOCAB, *exclude}
        files = split_files(bytes_data, limits, source, optional=optional)
        self._set_files({k: v for k, v in files.items() if k not in exclude}, source)
        if _VOCAB in files and _VOCAB not in exclude:
            self.vocab.from_bytes(files[_VOCAB], exclude=exclude)
        return self

    def _get_files(self, exclude: Iterable[str]) -> Dict[str, bytes]:
        """RETURNS (Dict[str, bytes]): Name -> content of the files that are not excluded."""
        raise NotImplementedError

    def _get_limits(self, exclude: Iterable[str]) -> Dict[str, int]:
        """RETURNS (Dict[str, int]): Name -> bytes that a file can have, those not excluded."""
        raise NotImplementedError

    def _set_files(self, files: Dict[str, bytes], source: str) -> None:
        """files (Dict[str, bytes]): some of `_get_files`. source (str): for errors."""
        raise NotImplementedError
