"""The component "elmo_senses": it chooses the sense of a word in its context."""

from typing import Callable, Dict, Iterable, Optional

from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Token
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.util import to_numpy

from ..errors import Errors
from ..layers.doc_data import add_extension, get_layers, missing_layers
from ..senses.inventory import map_pos
from ..senses.sense_model import SenseModel
from .saving import ExtensionOwner, SavedPipe

_FILE = "senses.msgpack"


@Language.factory(
    "elmo_senses",
    assigns=["token._.sense", "token._.sense_gloss"],
    requires=["doc._.elmo"],
    default_config={"upstream": "elmo"},
)
def make_elmo_senses(nlp: Language, name: str, upstream: str) -> "ElmoSenses":
    """Make the component. See `ElmoSenses`."""
    return ElmoSenses(nlp.vocab, name, upstream=upstream)


class ElmoSenses(ExtensionOwner, SavedPipe, Pipe):
    """Give each word the sense with the nearest mean vector: `token._.sense`, a key such as
    "bank%1:17:01::", and `token._.sense_gloss`, its meaning; None for words without a sense.
    The component uses lemmas and parts of speech if components before it set them.

    upstream (str): name of the component "elmo" whose layers are read.
    """

    saved_files = (_FILE,)

    def __init__(self, vocab: Vocab, name: str = "elmo_senses", *, upstream: str = "elmo") -> None:
        self.vocab = vocab
        self.name = name
        self.upstream = upstream
        self.model: Optional[SenseModel] = None
        self.register_extensions()

    @staticmethod
    def register_extensions() -> None:
        add_extension(Token, "sense", default=None)
        add_extension(Token, "sense_gloss", default=None)

    def get_model(self) -> SenseModel:
        """Get the senses. EL059 without senses."""
        if self.model is None:
            raise ValueError(Errors.EL059.format(name=self.name))
        return self.model

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Optional[Language] = None
    ) -> None:
        """Check that the component has senses, which are not trained here (EL059)."""
        self.get_model()

    def __call__(self, doc: Doc) -> Doc:
        """Set the senses of a doc with the layers of the component upstream. EL051 or EL052 without
        layers, EL117 if they are of another shape than the senses."""
        model = self.get_model()
        layers = get_layers(doc, self.upstream)
        if layers is None:
            raise missing_layers(doc, self.upstream)
        model.require_layers(*layers.shape[1:])
        for token, vectors in zip(doc, to_numpy(layers)):
            pos = map_pos(token.pos_, token.tag_)
            key = model.choose(token.text, vectors, lemma=token.lemma_, pos=pos)
            token._.sense = key or None
            token._.sense_gloss = model.inventory.glosses.get(key)
        return doc

    def _get_files(self, exclude: Iterable[str]) -> Dict[str, bytes]:
        return {_FILE: self.get_model().to_bytes()} if _FILE not in exclude else {}

    def _set_files(self, files: Dict[str, bytes], source: str) -> None:
        if _FILE in files:
            self.model = SenseModel.from_bytes(files[_FILE])

    def __repr__(self) -> str:
        description = "no senses"
        if self.model is not None:
            n_senses = sum(map(len, self.model.inventory.senses.values()))
            description = f"senses: {n_senses:,}, layer: {self.model.centroids.layer}"
        return f"<ElmoSenses '{self.name}': {description}; reads '{self.upstream}'>"
