"""The component "elmo_senses": which sense a word has where it stands."""

import warnings
from pathlib import Path
from typing import Callable, Iterable, Iterator, Optional

from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Token
from spacy.training import Example
from spacy.util import SimpleFrozenList
from spacy.vocab import Vocab
from thinc.util import to_numpy

from ..errors import Errors, Warnings
from ..files import ANY_SIZE, join_files, read_files, split_files, write_files
from ..layers.doc_data import WEIGHTS, add_extension, get_entries, read_layers
from ..senses.inventory import map_pos
from ..senses.sense_model import SenseModel
from .saving import ExtensionOwner

ASSIGNS_SENSES = ["token._.sense", "token._.sense_gloss"]
_FILE = "senses.msgpack"
# More than the words and senses of any language take.
_MOST_BYTES = 2_000_000_000
# How the bytes of version 0.1.0 begin, which had no digest: a list of two.
_OLD = b"\x92"


@Language.factory(
    "elmo_senses",
    assigns=ASSIGNS_SENSES,
    requires=["doc._.elmo"],
    default_config={"upstream": "elmo"},
)
def make_elmo_senses(nlp: Language, name: str, upstream: str) -> "ElmoSenses":
    """Make the component. See `ElmoSenses`."""
    return ElmoSenses(nlp.vocab, name, upstream=upstream)


class ElmoSenses(ExtensionOwner, Pipe):
    """Give each word the sense whose contexts are nearest: `token._.sense`, a key such as
    "bank%1:17:01::", and `token._.sense_gloss`, what that means; None where there is none.
    It uses lemmas and parts of speech if components before it set them.

    vocab (Vocab): the shared vocabulary.
    name (str): name in the pipeline.
    upstream (str): name of the component "elmo", whose layers it reads.
    """

    def __init__(self, vocab: Vocab, name: str = "elmo_senses", *, upstream: str = "elmo") -> None:
        self.vocab = vocab
        self.name = name
        self.upstream = upstream
        self.model: Optional[SenseModel] = None
        # Other weights, which a warning has told.
        self._told: Optional[str] = None
        self.register_extensions()

    def get_model(self) -> SenseModel:
        """RETURNS (SenseModel): the senses. RAISES (ValueError): EL059 if there are none."""
        if self.model is None:
            raise ValueError(Errors.EL059.format(name=self.name))
        return self.model

    @staticmethod
    def register_extensions() -> None:
        """Register `token._.sense` and `token._.sense_gloss`."""
        add_extension(Token, "sense", default=None)
        add_extension(Token, "sense_gloss", default=None)

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Optional[Language] = None
    ) -> None:
        """RAISES (ValueError): EL059 if there are no senses: they are not trained here."""
        self.get_model()

    def __call__(self, doc: Doc) -> Doc:
        """Set the senses of a doc.

        doc (Doc): with the layers of the component upstream.
        RETURNS (Doc): the same.
        RAISES (ValueError): EL059 without senses, EL051 or EL052 without layers, EL050 if
            the tokens were changed since, EL315 if they are of a component of another name,
            EL117 if they are of another shape than the senses; other weights are warned of
            (WL065).
        """
        model = self.get_model()
        layers = read_layers(doc, self.upstream)
        if layers is None:
            raise ValueError(self._describe_missing(doc))
        model.require_layers(*layers.shape[1:])
        self._check_weights(model.weights, get_entries(doc).get(self.upstream, {}).get(WEIGHTS))
        for token, vectors in zip(doc, to_numpy(layers)):
            pos = map_pos(token.pos_, token.tag_)
            key = model.choose(token.text, vectors, lemma=token.lemma_, pos=pos)
            token._.sense = key or None
            token._.sense_gloss = model.get_gloss(key)
        return doc

    def _describe_missing(self, doc: Doc) -> str:
        """RETURNS (str): why a doc has no layers to read."""
        entries = get_entries(doc)
        if self.upstream in entries:
            return Errors.EL052.format(name=self.upstream)
        if entries:
            found = next(reversed(entries))
            return Errors.EL315.format(name=self.name, upstream=self.upstream, found=found)
        return Errors.EL051.format(text=doc.text[:50])

    def _check_weights(self, expected: str, found: Optional[str]) -> None:
        """Vectors of other weights are no nearer to one sense than to another."""
        if expected and found and found not in (expected, self._told):
            self._told = found
            text = Warnings.WL065.format(name=self.name, upstream=self.upstream)
            warnings.warn(text, stacklevel=3)

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """stream (Iterable[Doc]): docs. batch_size (int): not used. YIELDS (Doc): the docs
        in order."""
        error_handler = self.get_error_handler()
        for doc in stream:
            try:
                yield self(doc)
            except Exception as err:
                error_handler(self.name, self, [doc], err)

    def to_disk(self, path: Path, *, exclude: Iterable[str] = SimpleFrozenList()) -> None:
        """path (Path): folder for the senses; the file is written atomically, with its digest.
        RAISES (ValueError): EL059 without senses."""
        write_files(Path(path), {_FILE: self.get_model().to_bytes()})

    def from_disk(self, path: Path, *, exclude: Iterable[str] = SimpleFrozenList()) -> "ElmoSenses":
        """path (Path): folder that `to_disk` wrote. RETURNS (ElmoSenses): itself. RAISES
        (ValueError): EL104 if the file is not what was written, EL100 to EL103 and EL116 if it
        cannot be read."""
        files = read_files(Path(path), {_FILE: _MOST_BYTES})
        self.model = SenseModel.from_bytes(files[_FILE])
        return self

    def to_bytes(self, *, exclude: Iterable[str] = SimpleFrozenList()) -> bytes:
        """RETURNS (bytes): the senses. RAISES (ValueError): EL059 without."""
        return join_files({_FILE: self.get_model().to_bytes()})

    def from_bytes(
        self, data: bytes, *, exclude: Iterable[str] = SimpleFrozenList()
    ) -> "ElmoSenses":
        """data (bytes): from `to_bytes`, of version 0.1.0 too. RETURNS (ElmoSenses): itself.
        RAISES (ValueError): EL116 if the bytes cannot be read or are not what was written."""
        is_old = isinstance(data, bytes) and data.startswith(_OLD)
        if not is_old:
            data = split_files(data, {_FILE: ANY_SIZE}, f"the component '{self.name}'")[_FILE]
        self.model = SenseModel.from_bytes(data)
        return self

    def __repr__(self) -> str:
        description = "no senses"
        if self.model is not None:
            centroids = self.model.centroids
            n_senses = sum(map(len, self.model.inventory.senses.values()))
            description = (
                f"senses: {n_senses:,}, means: {len(centroids.counts):,}, layer: {centroids.layer}"
            )
        return f"<ElmoSenses '{self.name}': {description}; reads '{self.upstream}'>"
