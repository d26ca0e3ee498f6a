"""`TaskPipe`: what spaCy's `TrainablePipe` leaves to each component of a task."""

from itertools import islice
from typing import Any, Callable, Dict, Iterable, List, Optional, TypeVar

import srsly
from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.training import Example, validate_examples
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer, set_dropout_rate

from ...errors import Errors
from ...files import ANY_SIZE, ContentError, parse_json_object, unpack
from ...pipeline.saving import ExtensionOwner, SavedPipe
from .saved_params import check_params

_Result = TypeVar("_Result")

_CFG, _MODEL = "cfg", "model"
# spaCy's own components take as many for shape inference.
_N_SAMPLE = 10


class TaskPipe(ExtensionOwner, SavedPipe, TrainablePipe):
    """A trainable component whose results are read by custom attributes. Its files have spaCy's
    names, and are written atomically, with digests.

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
        super().__init__(vocab, model, name, **cfg)
        self.scorer = scorer
        self.register_extensions()

    def require_result(self, nlp: Language, result: Optional[_Result]) -> _Result:
        """nlp (Language): the pipeline that was run. result (Optional[_Result]): what this
        component has given; None if nothing. RETURNS (_Result): it. RAISES (ValueError): EL227 for
        None."""
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
        """Learn from a batch.

        examples (Iterable[Example]): a batch.
        drop (float): dropout of the tok2vec; a task's own network has a setting of its own.
        sgd (Optional[Optimizer]): None or False to keep the gradients.
        losses (Optional[Dict[str, float]]): the loss is added under our name.
        RETURNS (Dict[str, float]): the losses.
        RAISES (ValueError): as `learn`.
        """
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
        """Run the model over a batch and back. A task whose model reads more than docs has its
        own.

        examples (List[Example]): a batch with at least one token.
        RETURNS (float): the loss.
        RAISES (ValueError): as `get_loss`.
        """
        scores, backprop = self.model.begin_update([eg.predicted for eg in examples])
        loss, d_scores = self.get_loss(examples, scores)
        backprop(d_scores)
        return loss

    @staticmethod
    def take_sample(get_examples: Callable[[], Iterable[Example]]) -> List[Example]:
        """get_examples (Callable[[], Iterable[Example]]): the training data. RETURNS
        (List[Example]): A few of them, from which models infer their shapes."""
        return list(islice(get_examples(), _N_SAMPLE))

    def _get_files(self, exclude: Iterable[str]) -> Dict[str, bytes]:
        writers = {
            _CFG: lambda: srsly.json_dumps(self.cfg).encode("utf-8"),
            _MODEL: self.model.to_bytes,
        }
        return {name: write() for name, write in writers.items() if name not in exclude}

    def _get_limits(self, exclude: Iterable[str]) -> Dict[str, int]:
        return {name: ANY_SIZE for name in (_CFG, _MODEL) if name not in exclude}

    def _set_files(self, files: Dict[str, bytes], source: str) -> None:
        cfg = self._read_cfg(files[_CFG], source) if _CFG in files else self.cfg
        if _MODEL in files:
            self._load_model(files[_MODEL], cfg, source)
        elif misfit := self.find_misfit(cfg, self._get_n_outputs()):
            raise ValueError(Errors.EL116.format(source=source, error=misfit))
        self.cfg = cfg

    def _read_cfg(self, content: bytes, source: str) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): Our cfg with what was saved. RAISES (ValueError): EL116 if that
        is of another type, or what `check_cfg` raises."""
        try:
            saved = parse_json_object(content)
        except ContentError as err:
            raise ValueError(Errors.EL116.format(source=source, error=f"cfg: {err}")) from err
        for key, value in saved.items():
            if key not in self.cfg or not _is_like(value, self.cfg[key]):
                error = (
                    f"cfg: {key!r:.50} is {value!r:.50}, expected a value as in {self.cfg!r:.200}"
                )
                raise ValueError(Errors.EL116.format(source=source, error=error))
        self.check_cfg({**self.cfg, **saved})
        return {**self.cfg, **saved}

    def check_cfg(self, cfg: Dict[str, Any]) -> None:
        """cfg (Dict[str, Any]): saved values, of the types of ours. RAISES (ValueError): for those
        that are not possible. Nothing is checked unless a component says so."""

    def find_misfit(self, cfg: Dict[str, Any], n_outputs: Optional[int]) -> str:
        """cfg (Dict[str, Any]): saved values. n_outputs (Optional[int]): `nO` of the model beside
        them; None if it is unknown. RETURNS (str): Why they do not go together; "" if they do, or
        unless a component says so."""
        return ""

    def _get_n_outputs(self) -> Optional[int]:
        return self.model.get_dim("nO") if self.model.has_dim("nO") else None

    def _load_model(self, data: bytes, cfg: Dict[str, Any], source: str) -> None:
        try:
            # Whatever is refused leaves the component as it was.
            message = unpack(data, source)
            check_params(self.model, message)
            if misfit := self.find_misfit(cfg, message["nodes"][0]["dims"].get("nO")):
                raise ValueError(misfit)
            self.model.from_bytes(data)
        # Whatever Thinc, msgpack or NumPy raise for a model of another structure.
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as err:
            error = f"they hold no model of this config ({err})"
            raise ValueError(Errors.EL116.format(source=source, error=error)) from err


def _is_like(value: Any, other: Any) -> bool:
    """Whether a value can stand where another one does."""
    numbers = (int, float)
    if type(other) in numbers:
        return type(value) in numbers
    if isinstance(other, list):
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    return type(value) is type(other)
