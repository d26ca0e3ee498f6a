"""Teachers: what else the biLM has to predict while it is pretrained."""

import hashlib
import math
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, NamedTuple, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from spacy.strings import get_string_id
from spacy.vectors import Mode, Vectors
from thinc.util import to_numpy
from torch import Tensor, nn
from torch.nn import functional as F

from ..bilm.config import BiLMConfig
from ..errors import Errors
from ..language_model.objective import Lesson, Teacher
from ..language_model.vocabulary import SPECIAL_WORDS, Vocabulary
from ..registry import teachers as registered
from ..text.languages import find_rows

# Of the tensors of a checkpoint that are teachers' weights.
PREFIX = "teachers."


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


# Vectors that are computed with at a time: a table may fill much of the memory.
_ROWS = 16384


class VectorTable(NamedTuple):
    """Which word has which vector. Many words can share one.

    keys (NDArray): hashes of the words as spaCy makes them, sorted, uint64, (n_words,).
    rows (NDArray): row of `vectors` for each, int32, (n_words,).
    vectors (NDArray): centred, of length 1, float16, shape (n_vectors, vector_width).
    """

    keys: NDArray
    rows: NDArray
    vectors: NDArray

    def find(self, words: Sequence[str]) -> NDArray:
        """words (Sequence[str]): any words. RETURNS (NDArray): place of each in `keys`, -1 for
        those outside, int64, (n_words,)."""
        wanted = np.array([get_string_id(word) for word in words], dtype=np.uint64)
        places = np.searchsorted(self.keys, wanted)
        places[places == len(self.keys)] = 0
        return np.where(self.keys[places] == wanted, places, -1)

    def get(self, places: NDArray) -> NDArray:
        """places (NDArray): in `keys`, (n_words,). RETURNS (NDArray): the vectors there,
        float32, shape (n_words, vector_width)."""
        return self.vectors[self.rows[places]].astype("float32")

    def hash(self) -> str:
        """RETURNS (str): the same for tables that say the same."""
        digest = hashlib.blake2b(digest_size=16)
        for part in self:
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()


def read_vector_table(path: str) -> VectorTable:
    """Read the vectors of a pipeline; nothing else of it is loaded.

    path (str): a pipeline's folder, or the vocab folder in it.
    RETURNS (VectorTable): the words that have a vector which is not zero.
    RAISES (ValueError): EL182 if there are none, or none that belong to single words.
    """
    folder = Path(path or "") / "vocab"
    folder = folder if folder.is_dir() else folder.parent
    if not path or not (folder / "vectors").is_file():
        raise ValueError(Errors.EL182.format(path=path, problem="it has no file 'vectors'"))
    try:
        vectors = Vectors().from_disk(folder)
        is_usable = vectors.mode == Mode.default and len(vectors.key2row) and vectors.data.any()
        problem = f"words: {len(vectors.key2row)}, mode: '{vectors.mode}'"
        table = _sort(vectors) if is_usable else None
    except Exception as err:  # NumPy, msgpack and spaCy each have their own
        raise ValueError(Errors.EL182.format(path=path, problem=err)) from err
    if table is None:
        raise ValueError(Errors.EL182.format(path=path, problem=problem))
    return table


def _sort(vectors: Vectors) -> VectorTable:
    """RAISES (Exception): whatever NumPy raises for tables that are none."""
    data = np.asarray(to_numpy(vectors.data), dtype="float32")
    keys = np.fromiter(vectors.key2row.keys(), dtype=np.uint64)
    rows = find_rows(vectors)
    if data.ndim != 2 or not np.isfinite(data).all():
        raise ValueError("they are no rows of finite numbers")
    kept = np.asarray(data.any(axis=1))[rows]
    if not kept.any():
        raise ValueError("all that belong to words are 0")
    order = np.argsort(keys[kept], kind="stable")
    return VectorTable(keys[kept][order], rows[kept][order], _normalise(data))


def _normalise(vectors: NDArray) -> NDArray:
    """A direction that all share says nothing of a word."""
    n_vectors = max(1, np.count_nonzero(vectors.any(axis=1)))
    centre = vectors.sum(axis=0, dtype="float64") / n_vectors
    normalised = np.empty(vectors.shape, dtype="float16")
    for start in range(0, len(vectors), _ROWS):
        rows = slice(start, start + _ROWS)
        centred = vectors[rows] - centre
        lengths = np.linalg.norm(centred, axis=1, keepdims=True)
        normalised[rows] = centred / np.maximum(1e-8, lengths)
    return normalised


KIND = "static_vectors"


class StaticVectorsTeacher(Teacher):
    """Predict a word's static vector from its word vector, through a linear head; the loss
    of a word is 1 - cosine. Words outside the table are left out.

    Each distinct word of a step weighs about the same, so that rare words count: a word that
    is read n times weighs 1 / n each time, with the n that its rank lets expect. (What the
    step really has would depend on how processes share it out.)

    context (TeacherContext): what it is made for.
    path (str): a pipeline's folder with static vectors, or its vocab folder.
    weight (float): of this loss beside the language model's.
    RAISES (ValueError): EL182 if there are no usable vectors, EL181 for a wrong setting, or if the
        word layer is not trained.
    """

    def __init__(self, context: TeacherContext, *, path: str = "", weight: float = 1.0) -> None:
        super().__init__()
        require_number(KIND, "weight", weight)
        if context.train_part != "all":
            part = context.train_part
            problem = f'[training] train_part = "{part}" leaves the word layer as it is'
            raise ValueError(Errors.EL181.format(kind=KIND, problem=problem))
        self.weight = weight
        self.table = read_vector_table(path)
        self.shares = expect_shares(self.table, context)
        self.head = nn.Linear(context.shape.direction_width, self.table.vectors.shape[1])

    def loss(self, lesson: Lesson) -> Tensor:
        """See `Teacher.loss`."""
        batch, device = lesson.batch, lesson.vectors.device
        n_read = np.bincount(
            np.concatenate([batch.forward.inputs, batch.backward.inputs]),
            minlength=len(batch.words),
        )
        places = self.table.find(batch.words)
        known = np.flatnonzero(places >= 0)
        places = places[known]
        weights = self.weight * self.shares[places] * n_read[known]
        with torch.autocast(device.type, enabled=False):
            guesses = self.head(lesson.vectors.to(self.head.weight.dtype))
            guesses = guesses[torch.from_numpy(known).to(device)]  # (n_known, vector_width)
            targets = torch.from_numpy(self.table.get(places)).to(guesses)
            errors = 1 - F.cosine_similarity(guesses, targets, dim=1)
            return (errors * torch.from_numpy(weights).to(guesses)).sum()

    def describe(self) -> Dict[str, Any]:
        """See `Teacher.describe`."""
        return {"weight": self.weight, "table": self.table.hash()}


def expect_shares(table: VectorTable, context: TeacherContext) -> NDArray:
    """Compute how much each occurrence of a word should weigh.

    table (VectorTable): the words.
    context (TeacherContext): with the vocabulary by frequency, and the tokens of a step.
    RETURNS (NDArray): the chance that the word is in a step, divided by how often it is
        expected there; float32, shape (n_words,).
    """
    words = context.vocabulary.words[len(SPECIAL_WORDS) :]
    ranks = np.full(len(table.keys), len(words), dtype="float64")
    places = table.find(words)
    ranks[places[places >= 0]] = np.flatnonzero(places >= 0)
    # Zipf's law: the word of rank r comes as 1 / (r + 1), all of them sum to 1.
    expected = context.batch_tokens / ((ranks + 1) * np.log(len(words) + 2))
    return (-np.expm1(-expected) / expected).astype("float32")
