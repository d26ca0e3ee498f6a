"""Records of DocBins. See `record_readers`."""

from pathlib import Path
from typing import List

from spacy.attrs import ORTH
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from ..files import is_system_error
from ..text.docbins import load_docbin
from ..utils import show_path, show_reason
from .record_readers import BadRecord, Items, Keys, check_text, give_up
from .records import Place, Record

# What docs of the input keep: no user data, which may be anything.
_EXCLUDED = ("tensor", "user_data", "user_data_keys", "user_data_values")


def read_docs(path: Path, start: Place, keys: Keys) -> Items:
    """Read the docs of a DocBin, which has to be loaded whole. User data is left out.

    path (Path): a .spacy file.
    start (Place): its offset is a doc.
    keys (Keys): not used.
    YIELDS (Item): as `record_readers`.
    RAISES (OSError): if it cannot be read.
    """
    source = show_path(path)
    try:
        docs = load_docbin(path)
        vocab = Vocab(strings=list(docs.strings))
    # Any error may come of a file of another kind.
    except Exception as err:
        if is_system_error(err):
            raise
        yield give_up(path, start, err)
        return
    size = path.stat().st_size / max(1, len(docs))
    for i in range(start.offset, len(docs)):
        place = Place(start.file, i + 1, i + 1, start.n_bytes + int((i + 1) * size))
        yield _read_doc(source, docs, i, vocab), place


def _read_doc(source: str, docs: DocBin, i: int, vocab: Vocab) -> Record:
    one = DocBin(attrs=[ORTH])
    one.attrs = docs.attrs
    columns: List[str] = ["tokens", "spaces", "cats", "flags", "span_groups"]
    try:
        for name in columns:
            setattr(one, name, getattr(docs, name)[i : i + 1])
        (doc,) = one.get_docs(vocab)
        return Record(source, i, None, check_text(doc.text), doc.to_bytes(exclude=_EXCLUDED))
    except BadRecord as err:
        return Record(source, i, problem=str(err))
    # As above.
    except Exception as err:
        return Record(source, i, problem=f"the doc is damaged: {show_reason(err)}")
