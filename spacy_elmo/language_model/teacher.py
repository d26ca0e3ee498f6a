"""`Teacher`: a second thing that the biLM has to predict while it is pretrained.

Its head reads what the biLM makes, is trained with it, and is thrown away at the end: a
checkpoint of a run keeps it, the models that a run writes do not.
"""

import math
from typing import Any, Callable, Dict, List, Mapping, NamedTuple

import torch
from torch import Tensor, nn

from ..bilm.config import BiLMConfig
from ..errors import Errors
from ..registry import teachers as registered
from .readings import LMBatch
from .vocabulary import SPECIAL_WORDS, Vocabulary

# Of the tensors of a checkpoint that are teachers' weights.
PREFIX = "teachers."


class Lesson(NamedTuple):
    """What a biLM made of a batch.

    batch (LMBatch): what it read.
    vectors (Tensor): of the batch's distinct words, shape (n_words, width // 2).
    forward, backward (List[Tensor]): outputs of each LSTM layer in the order of the readings,
        each (n_targets, width // 2).
    """

    batch: LMBatch
    vectors: Tensor
    forward: List[Tensor]
    backward: List[Tensor]


class Teacher(nn.Module):
    """What every teacher can do. Its parameters are the head's."""

    def loss(self, lesson: Lesson) -> Tensor:
        """lesson (Lesson): what the biLM made. RETURNS (Tensor): a scalar, in float32,
        summed over what both directions read, as the loss of the language model is: so
        it does not matter how a step is shared out. It has a gradient for every
        parameter, also where there is nothing to learn."""
        raise NotImplementedError

    def describe(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): what has to be the same when a run is resumed, in JSON's
        types."""
        raise NotImplementedError


class TeacherContext(NamedTuple):
    """What a teacher is made for.

    shape (BiLMConfig): the biLM.
    vocabulary (Vocabulary): the words that the softmax predicts, the most frequent first.
    batch_tokens (int): predictions of a direction in a step.
    state_steps (int): 0 if a batch holds whole sequences.
    train_part (str): what of the biLM is trained, see `TrainingSettings`.
    """

    shape: BiLMConfig
    vocabulary: Vocabulary
    batch_tokens: int
    state_steps: int = 0
    train_part: str = "all"


def require_number(
    kind: str, key: str, value: Any, *, most: float = math.inf, whole: bool = False
) -> None:
    """kind (str): of the teacher. key (str): of the setting. value (Any): found there. most
    (float): the highest that is possible. whole (bool): whether it has to be a whole number.
    RAISES (ValueError): EL181 if it is no number above 0 of this kind."""
    if type(value) not in ((int,) if whole else (int, float)) or not 0 < value <= most:
        number = "a whole number" if whole else "a number"
        limit = "" if most == math.inf else f", at most {most}"
        problem = f"{key} = {value!r} is not possible, expected {number} above 0{limit}"
        raise ValueError(Errors.EL181.format(kind=kind, problem=problem))


def make_teachers(blocks: Mapping[str, Any], context: TeacherContext) -> Dict[str, Teacher]:
    """Make the teachers of a config.

    blocks (Mapping[str, Any]): [training.teachers]: by name, each with "kind" and settings.
    context (TeacherContext): what they are made for.
    RETURNS (Dict[str, Teacher]): with random heads, in the order of their names.
    RAISES (ValueError): EL180 for a block without a known kind or a name that is no word,
        EL181 for settings that the kind does not have, and what the teachers raise.
    """
    return {name: _make_teacher(name, blocks[name], context) for name in sorted(blocks)}


def describe_teachers(
    blocks: Mapping[str, Any], depth: int = 1, state_steps: int = 0, train_part: str = "all"
) -> Dict[str, Any]:
    """Make the teachers of a config for a small biLM, to see whether they can be made.

    blocks (Mapping[str, Any]): as for `make_teachers`.
    depth (int): of the biLM that is trained.
    state_steps, train_part (int, str): as for `TeacherContext`.
    RETURNS (Dict[str, Any]): what they are, by name, in JSON's types.
    RAISES (ValueError): as `make_teachers`.
    """
    shape = BiLMConfig(width=2, depth=depth, cell_width=1, filters=((1, 1),))
    context = TeacherContext(shape, Vocabulary(SPECIAL_WORDS), 1, state_steps, train_part)
    teachers = make_teachers(blocks, context)
    return {name: {"kind": blocks[name]["kind"], **t.describe()} for name, t in teachers.items()}


def _make_teacher(name: str, block: Any, context: TeacherContext) -> Teacher:
    makers: Dict[str, Callable[..., Teacher]] = registered.get_all()
    kind = block.get("kind") if isinstance(block, dict) else None
    # torch keeps modules as attributes.
    is_name = name.isidentifier() and not hasattr(nn.ModuleDict(), name)
    if not isinstance(kind, str) or kind not in makers or not is_name:
        known = ", ".join(sorted(makers))
        raise ValueError(Errors.EL180.format(name=name, found=block, known=known))
    settings = {key: value for key, value in block.items() if key != "kind"}
    try:
        return makers[kind](context, **settings)
    except TypeError as err:
        raise ValueError(Errors.EL181.format(kind=kind, problem=err)) from err


def get_teacher_tensors(teachers: nn.ModuleDict) -> Dict[str, Tensor]:
    """teachers (nn.ModuleDict): of a run. RETURNS (Dict[str, Tensor]): their weights, by
    names for a checkpoint."""
    return {f"{PREFIX}{name}": t.detach().cpu() for name, t in teachers.state_dict().items()}


@torch.no_grad()
def set_teacher_tensors(teachers: nn.ModuleDict, tensors: Mapping[str, Tensor]) -> None:
    """Restore the weights that `get_teacher_tensors` returned.

    teachers (nn.ModuleDict): the same ones.
    tensors (Mapping[str, Tensor]): all of a checkpoint.
    """
    teachers.load_state_dict(
        {name.removeprefix(PREFIX): t for name, t in tensors.items() if name.startswith(PREFIX)}
    )
