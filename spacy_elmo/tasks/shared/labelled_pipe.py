"""Base classes of the components: `TaskPipe`, and `LabelledPipe` with labels from the data."""

from itertools import islice
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple, TypeVar

import numpy as np
import srsly
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.training import Example, validate_examples, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, set_dropout_rate

from ...bilm.config import BiLMConfig
from ...errors import Errors
from ...files import parse_json_object, unpack
from ...pipeline.saving import ExtensionOwner, SavedPipe

_BUNDLED = BiLMConfig()
# Listens to an `elmo` with the bundled biLM.
DEFAULT_TOK2VEC = {
    "@architectures": "spacy-elmo.ElmoListener.v2",
    "upstream": "elmo",
    "width": _BUNDLED.width,
    "depth": _BUNDLED.depth,
}
_CFG, _MODEL = "cfg", "model"
_Result = TypeVar("_Result")


class TaskPipe(ExtensionOwner, SavedPipe, TrainablePipe):
    """A trainable component whose results are read by custom attributes. **cfg (Any): settings that
    the scorer gets, too."""

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
        super().__init__(vocab, model, name, **cfg)
        self.scorer = scorer
        self.register_extensions()

    def require_result(self, nlp: Language, result: Optional[_Result]) -> _Result:
        """Return a result of this component. RAISES (ValueError): EL227 for None."""
        if result is None:
            known = ", ".join(nlp.pipe_names) or "no components"
            raise ValueError(Errors.EL227.format(name=self.name, known=known))
        return result

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optional[Optimizer] = None,
        losses: Optional[Dict[str, float]] = None,
    ) -> Dict[str, float]:
        """Learn from a batch. drop (float): dropout of the tok2vec; the task's own network has a
        separate setting. sgd (Optional[Optimizer]): None or False to keep the gradients."""
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, f"{type(self).__name__}.update")
        if not any(len(eg.predicted) for eg in examples):
            return losses
        set_dropout_rate(self.model, drop)
        losses[self.name] += self.learn(examples)
        if sgd not in (None, False):
            self.finish_update(sgd)
        return losses

    def learn(self, examples: List[Example]) -> float:
        """Backpropagate the loss of a batch with at least one token, and return it. For a model
        that reads docs; other tasks override this."""
        scores, backprop = self.model.begin_update([eg.predicted for eg in examples])
        loss, d_scores = self.get_loss(examples, scores)
        backprop(d_scores)
        return loss

    @staticmethod
    def take_sample(get_examples: Callable[[], Iterable[Example]]) -> List[Example]:
        """As many examples as spaCy's own components take for shape inference."""
        return list(islice(get_examples(), 10))

    def _get_files(self, exclude: Iterable[str]) -> Dict[str, bytes]:
        files = {}
        if _CFG not in exclude:
            files[_CFG] = srsly.json_dumps(self.cfg).encode("utf-8")
        if _MODEL not in exclude:
            files[_MODEL] = self.model.to_bytes()
        return files

    def _set_files(self, files: Dict[str, bytes], source: str) -> None:
        try:
            if _CFG in files:
                self.set_saved_cfg(parse_json_object(files[_CFG]))
            if _MODEL in files:
                _check_params(self.model, unpack(files[_MODEL], source))
                self.model.from_bytes(files[_MODEL])
        # Thinc and NumPy raise any of these for a model of another structure.
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as err:
            error = f"they hold no model of this config ({err})"
            raise ValueError(Errors.EL116.format(source=source, error=error)) from err

    def set_saved_cfg(self, saved: Dict[str, Any]) -> None:
        """Take saved state. Settings are those of the config, which may be overridden at load."""


class LabelledPipe(TaskPipe):
    """A trainable component with labels, in the order of the data. See `TaskPipe`."""

    # The least number of labels that can be learned.
    min_labels = 1
    # Needs of the training data, for errors.
    hint = "labels"

    def __init__(
        self, vocab: Vocab, model: Model, name: str, *, scorer: Optional[Callable] = None
    ) -> None:
        super().__init__(vocab, model, name, scorer=scorer, labels=[])

    @property
    def labels(self) -> Tuple[str, ...]:
        """RETURNS (Tuple[str, ...]): The labels, in the order of the model's output."""
        return tuple(self.cfg["labels"])

    @property
    def label_data(self) -> List[str]:
        """RETURNS (List[str]): What `init labels` writes, and `initialize` takes as `labels`."""
        return list(self.labels)

    def add_label(self, label: str) -> int:
        """Add a label, before the model is initialized. RETURNS (int): 1, or 0 if the component has
        it already."""
        if not isinstance(label, str) or not label:
            problem = "it is not a string of at least one character"
            raise ValueError(Errors.EL193.format(label=label, name=self.name, problem=problem))
        if label in self.labels:
            return 0
        n_outputs = self.model.maybe_get_dim("nO")
        if n_outputs is not None and n_outputs < self.count_outputs(len(self.labels) + 1):
            raise self.unknown_label(label)
        self.cfg["labels"].append(label)
        self.vocab.strings.add(label)
        return 1

    def set_saved_cfg(self, saved: Dict[str, Any]) -> None:
        self.cfg["labels"] = list(saved["labels"])

    def unknown_label(self, label: str) -> ValueError:
        """The error for a label that the model does not have, to be raised."""
        known = ", ".join(self.labels)
        problem = f"the label '{label}' is not one of those that it was initialized with"
        return ValueError(Errors.EL198.format(problem=problem, name=self.name, labels=known))

    def require_labels(self) -> None:
        """RAISES (ValueError): EL190 if the component was never trained."""
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
        RAISES (ValueError): EL194 for too few labels, EL198 if the model was given another number
            of outputs.
        """
        validate_get_examples(get_examples, f"{type(self).__name__}.initialize")
        if labels is None:
            labels = (label for eg in get_examples() for label in self.find_labels(eg))
        for label in labels:
            self.add_label(label)
        shown = ", ".join(self.labels) or "none"
        if len(self.labels) < self.min_labels:
            problem = f"labels: {shown}; expected at least {self.min_labels}"
            raise ValueError(Errors.EL194.format(name=self.name, problem=problem, needed=self.hint))
        n_outputs, expected = self.model.maybe_get_dim("nO"), self.count_outputs(len(self.labels))
        if n_outputs not in (None, expected):
            problem = f"its model has nO = {n_outputs}, but these labels need {expected}"
            raise ValueError(Errors.EL198.format(problem=problem, name=self.name, labels=shown))
        sample = self.take_sample(get_examples)
        Y = self.model.ops.alloc2f(len(sample), expected)
        self.model.initialize(X=[eg.reference for eg in sample], Y=Y)

    def find_labels(self, example: Example) -> Iterable[str]:
        """Labels in an example of the training data, with repetitions."""
        raise NotImplementedError

    def count_outputs(self, n_labels: int) -> int:
        """Width of the model's output for a number of labels."""
        return n_labels


def _check_params(model: Model, message: Dict[str, Any]) -> None:
    """Require saved parameters to be finite, and to have the model's shapes; or, if it has none
    yet, shapes made of the dimensions saved beside them: Thinc takes parameters of any shape."""
    for node, saved, params in zip(model.walk(), message["nodes"], message["params"]):
        sizes = set(saved["dims"].values())
        for name, value in params.items():
            if value is None:
                continue
            if not isinstance(value, np.ndarray) or not np.isfinite(value).all():
                raise ValueError(f"'{name}' of {node.name} is not an array of finite numbers")
            own = node.get_param(name).shape if node.has_param(name) else None
            if value.shape != own and (own is not None or not sizes.issuperset(value.shape)):
                raise ValueError(f"'{name}' of {node.name} has the wrong shape {value.shape}")
