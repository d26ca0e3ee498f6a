"""`LabelledPipe`: a task whose labels are collected from the data."""

from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from spacy.language import Language
from spacy.training import Example, validate_get_examples
from spacy.vocab import Vocab
from thinc.api import Model

from ...errors import Errors
from .task_pipe import TaskPipe


class LabelledPipe(TaskPipe):
    """A trainable component with labels, in the order of the data. See `TaskPipe`."""

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
        """Add a label, before the model is initialized.

        label (str): its name.
        RETURNS (int): 1, or 0 if it is there already.
        RAISES (ValueError): EL193 if it is no name, EL198 if the model has its labels already.
        """
        if not isinstance(label, str) or not label:
            raise ValueError(Errors.EL193.format(label=label, name=self.name))
        if label in self.labels:
            return 0
        n_outputs = self._get_n_outputs()
        if n_outputs is not None and n_outputs < self.count_outputs(len(self.labels) + 1):
            raise self.unknown_label(label)
        self.cfg["labels"].append(label)
        self.vocab.strings.add(label)
        return 1

    def check_cfg(self, cfg: Dict[str, Any]) -> None:
        """cfg (Dict[str, Any]): saved values. RAISES (ValueError): EL116 for labels that are empty,
        or come twice."""
        labels = cfg["labels"]
        if "" in labels or len(set(labels)) < len(labels):
            error = f"the labels {labels!r:.100} are not distinct names"
            raise ValueError(
                Errors.EL116.format(source=f"the component '{self.name}'", error=error)
            )

    def find_misfit(self, cfg: Dict[str, Any], n_outputs: Optional[int]) -> str:
        """See `TaskPipe.find_misfit`: a model has outputs for its labels."""
        n_labels = len(cfg["labels"])
        expected = self.count_outputs(n_labels)
        if not n_labels or n_outputs in (None, expected):
            return ""
        return f"outputs of the model: {n_outputs}, for its labels: {expected}"

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
        RAISES (ValueError): EL194 for fewer labels than `min_labels`, EL303 if the model was given
            another number of outputs.
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
        n_outputs, expected = self._get_n_outputs(), self.count_outputs(len(self.labels))
        if n_outputs not in (None, expected):
            shown = ", ".join(self.labels)
            text = Errors.EL303.format(name=self.name, nO=n_outputs, n=expected, labels=shown)
            raise ValueError(text)
        sample = self.take_sample(get_examples)
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

    def count_outputs(self, n_labels: int) -> int:
        """n_labels (int): how many there are. RETURNS (int): Numbers that the model has for each
        doc, or token."""
        return n_labels

    def make_sample(self, examples: List[Example]) -> Any:
        """examples (List[Example]): a few. RETURNS (Any): What `model.initialize` takes as Y."""
        return self.model.ops.alloc2f(len(examples), self.count_outputs(len(self.labels)))
