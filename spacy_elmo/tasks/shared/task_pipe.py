"""`TaskPipe`: what spaCy's `TrainablePipe` leaves to each component with labels."""

from itertools import islice
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

import srsly
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.training import Example, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model

from ...errors import Errors
from ...pipeline.saved_pipe import SavedPipe
from ...util.reading import parse_json_object
from ...util.saving import ANY_SIZE

_CFG, _MODEL = "cfg", "model"
# spaCy's own components take as many for shape inference.
_N_SAMPLE = 10


class TaskPipe(SavedPipe, TrainablePipe):
    """A trainable component with labels, which are collected from the data, in its order. Its
    files have spaCy's names, and are written atomically, with digests.

    vocab (Vocab): the shared vocabulary.
    model (Model): its model.
    name (str): name in the pipeline.
    scorer (Optional[Callable]): scores examples; None for no scores.
    **cfg (Any): saved with the component, in JSON's types.
    """

    cfg: Dict[str, Any]

    def __init__(
        self,
        vocab: Vocab,
        model: Model,
        name: str,
        *,
        scorer: Optional[Callable] = None,
        **cfg: Any,
    ) -> None:
        super().__init__(vocab, model, name, labels=[], **cfg)
        self.scorer = scorer

    @property
    def labels(self) -> Tuple[str, ...]:
        """RETURNS (Tuple[str, ...]): The labels, in the order of the model's output."""
        return tuple(self.cfg["labels"])

    @property
    def label_data(self) -> List[str]:
        """RETURNS (List[str]): What `init labels` writes, and `initialize` takes as `labels`."""
        return list(self.labels)

    def add_label(self, label: str) -> int:
        """Add a label, before the model is initialized.

        label (str): its name.
        RETURNS (int): 1, or 0 if it is there already.
        RAISES (ValueError): EL193 if it is no name, EL198 if the model has its labels already.
        """
        if not isinstance(label, str) or not label:
            raise ValueError(Errors.EL193.format(label=label, name=self.name))
        if label in self.labels:
            return 0
        if self.model.has_dim("nO"):
            raise self.unknown_label(label)
        self.cfg["labels"].append(label)
        self.vocab.strings.add(label)
        return 1

    def unknown_label(self, label: str) -> ValueError:
        """label (str): one that the model does not have. RETURNS (ValueError): EL198, to be
        raised."""
        known = ", ".join(self.labels)
        return ValueError(Errors.EL198.format(label=label, name=self.name, labels=known))

    def require_labels(self) -> None:
        """RAISES (ValueError): EL190 if the component has no labels: it was never trained."""
        if not self.labels:
            raise ValueError(Errors.EL190)

    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Optional[Language] = None,
        labels: Optional[Iterable[str]] = None,
    ) -> None:
        """Collect the labels and initialize the model.

        get_examples (Callable[[], Iterable[Example]]): the training data.
        nlp (Optional[Language]): the pipeline.
        labels (Optional[Iterable[str]]): the labels, as `init labels` writes them; None to
            collect them from the data.
        RAISES (ValueError): EL194 for fewer labels than `min_labels`.
        """
        validate_get_examples(get_examples, f"{type(self).__name__}.initialize")
        if labels is None:
            labels = (label for eg in get_examples() for label in self.find_labels(eg))
        for label in labels:
            self.add_label(label)
        if len(self.labels) < self.min_labels:
            shown = ", ".join(self.labels) or "none"
            least = self.min_labels
            text = Errors.EL194.format(name=self.name, least=least, labels=shown, hint=self.hint)
            raise ValueError(text)
        sample = list(islice(get_examples(), _N_SAMPLE))
        self.model.initialize(X=[eg.reference for eg in sample], Y=self.make_sample(sample))

    # What a component says of itself.
    # Labels without which there is nothing to learn.
    min_labels = 1
    # What its training data needs, for errors.
    hint = "labels"

    def find_labels(self, example: Example) -> Iterable[str]:
        """example (Example): of the training data. RETURNS (Iterable[str]): Labels in it, any
        number of times."""
        raise NotImplementedError

    def make_sample(self, examples: List[Example]) -> Any:
        """examples (List[Example]): a few. RETURNS (Any): What `model.initialize` takes as Y."""
        return self.model.ops.alloc2f(len(examples), len(self.labels))

    def _get_files(self, exclude: Iterable[str]) -> Dict[str, bytes]:
        writers = {
            _CFG: lambda: srsly.json_dumps(self.cfg).encode("utf-8"),
            _MODEL: self.model.to_bytes,
        }
        return {name: write() for name, write in writers.items() if name not in exclude}

    def _get_limits(self, exclude: Iterable[str]) -> Dict[str, int]:
        return {name: ANY_SIZE for name in (_CFG, _MODEL) if name not in exclude}

    def _set_files(self, files: Dict[str, bytes], source: str) -> None:
        cfg = parse_json_object(files[_CFG]) if _CFG in files else self.cfg
        if _MODEL in files:
            self._load_model(files[_MODEL], source)
        self.cfg = cfg

    def _load_model(self, data: bytes, source: str) -> None:
        try:
            self.model.from_bytes(data)
        # Whatever Thinc, msgpack or NumPy raise for a model of another structure.
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as err:
            error = f"they hold no model of this config ({err})"
            raise ValueError(Errors.EL116.format(source=source, error=error)) from err
