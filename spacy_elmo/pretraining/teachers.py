"""Teachers: further losses of the biLM while it is pretrained."""

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

# Before the names of the teachers' weights in a checkpoint.
PREFIX = "teachers."
# Vectors that are normalised at a time: a table may fill much of the memory.
_ROWS = 16384


class TeacherContext(NamedTuple):
    """The run that a teacher is made for.

    shape (BiLMConfig): the biLM.
    vocabulary (Vocabulary): the words that the softmax predicts, the most frequent first.
    batch_tokens (int): predictions of a direction in a step.
    state_steps (int): 0 if a batch holds whole sequences.
    """

    shape: BiLMConfig
    vocabulary: Vocabulary
    batch_tokens: int
    state_steps: int = 0


def invalid_teacher(kind: str, problem: object) -> ValueError:
    """Make the error EL181 for a block of [training.teachers]."""
    return ValueError(Errors.EL181.format(kind=kind, problem=problem))


def require_number(
    kind: str, key: str, value: Any, *, most: float = math.inf, whole: bool = False
) -> None:
    """Raise EL181 unless a setting is a number above 0 and at most `most`."""
    if type(value) not in ((int,) if whole else (int, float)) or not 0 < value <= most:
        number = "a whole number" if whole else "a number"
        limit = "" if most == math.inf else f", at most {most}"
        raise invalid_teacher(kind, f"{key} = {value!r}, expected {number} above 0{limit}")


def make_teachers(blocks: Mapping[str, Any], context: TeacherContext) -> Dict[str, Teacher]:
    """Make the teachers of [training.teachers], in the order of their names (EL181)."""
    makers: Dict[str, Callable[..., Teacher]] = registered.get_all()
    teachers = {}
    for name, block in sorted(blocks.items()):
        kind = block.get("kind") if isinstance(block, dict) else None
        if not isinstance(kind, str) or kind not in makers:
            known = ", ".join(sorted(makers))
            problem = f"[training.teachers.{name}] needs a kind, one of: {known}"
            raise invalid_teacher(str(kind), problem)
        # torch stores modules as attributes.
        if not name.isidentifier() or hasattr(nn.ModuleDict(), name):
            raise invalid_teacher(kind, f"its name '{name}' is not possible; take another word")
        settings = {key: value for key, value in block.items() if key != "kind"}
        try:
            teachers[name] = makers[kind](context, **settings)
        except TypeError as err:
            raise invalid_teacher(kind, err) from err
    return teachers


def describe_teachers(
    blocks: Mapping[str, Any], depth: int = 1, state_steps: int = 0
) -> Dict[str, Any]:
    """Make the teachers for a small biLM, to check the config, and describe them in JSON types."""
    shape = BiLMConfig(width=2, depth=depth, cell_width=1, filters=((1, 1),))
    teachers = make_teachers(
        blocks, TeacherContext(shape, Vocabulary(SPECIAL_WORDS), 1, state_steps)
    )
    return {name: {"kind": blocks[name]["kind"], **t.describe()} for name, t in teachers.items()}


class VectorTable(NamedTuple):
    """Vectors by the hash of a word. Several words can share one.

    keys (NDArray): hashes of the words as spaCy makes them, sorted, uint64, (n_words,).
    rows (NDArray): row of `vectors` for each, int32, (n_words,).
    vectors (NDArray): centred, of length 1, float16, shape (n_vectors, vector_width).
    """

    keys: NDArray
    rows: NDArray
    vectors: NDArray

    def find(self, words: Sequence[str]) -> NDArray:
        """Find the places of words in `keys`, -1 for unknown words, int64, (n_words,)."""
        wanted = np.array([get_string_id(word) for word in words], dtype=np.uint64)
        places = np.searchsorted(self.keys, wanted)
        places[places == len(self.keys)] = 0
        return np.where(self.keys[places] == wanted, places, -1)

    def get(self, places: NDArray) -> NDArray:
        """Vectors at places of `keys`, float32, (n_words, vector_width)."""
        return self.vectors[self.rows[places]].astype("float32")

    def hash(self) -> str:
        digest = hashlib.blake2b(digest_size=16)
        for part in self:
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()


def read_vector_table(path: str) -> VectorTable:
    """Read the vectors of a pipeline's folder, or of the vocab folder in it (EL087 without any)."""
    folder = Path(path or "") / "vocab"
    folder = folder if folder.is_dir() else folder.parent
    if not path or not (folder / "vectors").is_file():
        raise ValueError(Errors.EL087.format(path=path, problem="it has no file 'vectors'"))
    try:
        vectors = Vectors().from_disk(folder)
        if vectors.mode != Mode.default or not len(vectors.key2row):
            raise ValueError(f"words: {len(vectors.key2row)}, mode: '{vectors.mode}'")
        data = np.asarray(to_numpy(vectors.data), dtype="float32")
        keys = np.fromiter(vectors.key2row.keys(), dtype=np.uint64)
        rows = find_rows(vectors)
        if data.ndim != 2 or not np.isfinite(data).all():
            raise ValueError("they are not rows of finite numbers")
        kept = np.asarray(data.any(axis=1))[rows]
        if not kept.any():
            raise ValueError("all vectors of words are 0")
    except Exception as err:  # NumPy, msgpack and spaCy each have their own
        raise ValueError(Errors.EL087.format(path=path, problem=err)) from err
    order = np.argsort(keys[kept], kind="stable")
    return VectorTable(keys[kept][order], rows[kept][order], _normalise(data))


def _normalise(vectors: NDArray) -> NDArray:
    """Subtract the mean, which says nothing about a word, and divide by the length."""
    n_vectors = max(1, np.count_nonzero(vectors.any(axis=1)))
    centre = vectors.sum(axis=0, dtype="float64") / n_vectors
    normalised = np.empty(vectors.shape, dtype="float16")
    for start in range(0, len(vectors), _ROWS):
        rows = slice(start, start + _ROWS)
        centred = vectors[rows] - centre
        lengths = np.linalg.norm(centred, axis=1, keepdims=True)
        normalised[rows] = centred / np.maximum(1e-8, lengths)
    return normalised


class StaticVectorsTeacher(Teacher):
    """Predict a word's static vector from its word vector, through a linear head; the loss
    of a word is 1 - cosine. Words outside the table are left out.

    Each distinct word of a step weighs about the same, so that rare words count: a word that
    is read n times weighs 1 / n each time, with the n expected for its rank. (The real n would
    depend on how processes share the step.)

    context (TeacherContext): the run.
    path (str): a pipeline's folder with static vectors, or its vocab folder.
    weight (float): weight of this loss relative to the language model's.
    RAISES (ValueError): EL087 if there are no usable vectors, EL181 for a wrong setting.
    """

    def __init__(self, context: TeacherContext, *, path: str = "", weight: float = 1.0) -> None:
        super().__init__()
        require_number("static_vectors", "weight", weight)
        self.weight = weight
        self.table = read_vector_table(path)
        self.shares = _expect_shares(self.table, context)
        self.head = nn.Linear(context.shape.direction_width, self.table.vectors.shape[1])

    def loss(self, lesson: Lesson) -> Tensor:
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
        return {"weight": self.weight, "table": self.table.hash()}


def _expect_shares(table: VectorTable, context: TeacherContext) -> NDArray:
    """Compute the weight of one occurrence of each word: the probability that the word is in a
    step, divided by its expected count there; float32, shape (n_words,)."""
    words = context.vocabulary.words[len(SPECIAL_WORDS) :]
    ranks = np.full(len(table.keys), len(words), dtype="float64")
    places = table.find(words)
    ranks[places[places >= 0]] = np.flatnonzero(places >= 0)
    # Zipf's law: the word of rank r has the probability 1 / (r + 1), normalised.
    expected = context.batch_tokens / ((ranks + 1) * np.log(len(words) + 2))
    return (-np.expm1(-expected) / expected).astype("float32")
