"""A layer of the biLM learns the vectors of a transformer's layer."""

import hashlib
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..errors import Errors, Warnings
from ..language_model.objective import Lesson, Teacher
from ..language_model.readings import LMBatch
from ..language_model.vocabulary import SPECIAL_WORDS
from ..utils import group_by_length
from .teachers import TeacherContext, require_number

# Of the sequences that are read at a time, and of their attention: numbers of a head.
_N_SEQUENCES = 64
_N_SCORES = 64 * 128 * 128
# Pieces of a sequence: of a model that does not say how many it reads, and of what is read to see
# whether it can be.
_N_PLACES = 512


class _Encoded(NamedTuple):
    """pieces (Dict[str, List[int]]): what the model reads of a sequence. owners (NDArray): see
    `TransformerEncoder._find_owners`, int64, shape (n_pieces,)."""

    pieces: Dict[str, List[int]]
    owners: NDArray


class TransformerEncoder:
    """No torch module, so that whoever has it does not train or store it.

    model (Any): a `transformers` model without the layers that are not read.
    tokenizer (Any): its fast tokenizer.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model = model.eval().requires_grad_(False)
        self.tokenizer = tokenizer
        # It would advise to pad all sequences to the longest.
        tokenizer.deprecation_warnings["Asking-to-pad-a-fast-tokenizer"] = True
        self.n_places = min(tokenizer.model_max_length, _count_places(model))

    @property
    def width(self) -> int:
        """RETURNS (int): Numbers of a vector."""
        return self.model.config.hidden_size

    @torch.no_grad()
    def read(self, sequences: List[List[str]], device: torch.device) -> Tuple[Tensor, NDArray]:
        """Compute the vectors of words, each the mean over its pieces. The memory is bounded: few
        long sequences, or many short ones, are computed at a time.

        sequences (List[List[str]]): words.
        device (torch.device): where to compute.
        RETURNS (Tuple[Tensor, NDArray]): vectors of the words that have a piece, one sequence
            after the other, float32, shape (n_known, width), and which words these are,
            int64, (n_known,). Others are without, have an unknown piece, or reach beyond what
            the transformer reads.
        """
        self.model.to(device)
        vectors: List[Tensor] = [torch.zeros(0, self.width, device=device)]
        known: List[NDArray] = [np.zeros(0, dtype=np.int64)]
        encoded = self._encode(sequences)
        for group in group_by_length([len(each.owners) for each in encoded], _fits):
            pieces = self.tokenizer.pad([encoded[i].pieces for i in group], return_tensors="pt")
            hidden = self.model(**{k: v.to(device) for k, v in pieces.items()}).last_hidden_state
            owners = np.full(hidden.shape[:2], -1, dtype=np.int64)  # (n_seqs, n_pieces)
            for row, i in enumerate(group):
                owners[row, : len(encoded[i].owners)] = encoded[i].owners
            places = np.flatnonzero(owners >= 0)
            words, index, counts = np.unique(
                owners.ravel()[places], return_inverse=True, return_counts=True
            )
            sums = hidden.new_zeros(len(words), self.width, dtype=torch.float32)
            rows = hidden.flatten(0, 1)[torch.from_numpy(places).to(device)].float()
            sums.index_add_(0, torch.from_numpy(index).to(device), rows)
            vectors.append(sums / torch.from_numpy(counts).to(device)[:, None])
            known.append(words)
        found = np.concatenate(known)
        order = np.argsort(found)
        return torch.cat(vectors)[torch.from_numpy(order).to(device)], found[order]

    def _encode(self, sequences: List[List[str]]) -> List["_Encoded"]:
        if not sequences:
            return []
        encoded = self.tokenizer(
            sequences, is_split_into_words=True, truncation=True, max_length=self.n_places
        )
        starts = np.cumsum([0, *map(len, sequences)])
        return [
            _Encoded({key: encoded[key][i] for key in encoded}, self._find_owners(own, starts[i]))
            for i, own in enumerate(encoded.encodings)
        ]

    def _find_owners(self, encoding: Any, start: int) -> NDArray:
        """RETURNS (NDArray): The word that each piece of a sequence is of, which begins with the
        word `start`; -1 for none, and for words that are not read as a whole."""
        unknown = self.tokenizer.unk_token_id
        left_out = {w for w, piece in zip(encoding.word_ids, encoding.ids) if piece == unknown}
        if encoding.overflowing:
            left_out |= {*encoding.overflowing[0].word_ids}
        left_out.add(None)
        owners = [-1 if w in left_out else start + w for w in encoding.word_ids]
        return np.array(owners, dtype=np.int64)

    def describe(self) -> Dict[str, Any]:
        """RETURNS (Dict[str, Any]): layer, and a hash of the weights, in JSON's types."""
        digest = hashlib.blake2b(digest_size=16)
        for name, tensor in sorted(self.model.state_dict().items()):
            digest.update(name.encode("utf-8"))
            digest.update(tensor.cpu().contiguous().numpy().tobytes())
        return {"layer": self.model.config.num_hidden_layers, "transformer": digest.hexdigest()}


def load_encoder(kind: str, path: str, layer: int) -> TransformerEncoder:
    """Load the lower layers of a transformer. Nothing is fetched, and nothing unpickled.

    kind (str): of the teacher, for messages.
    path (str): folder of a Hugging Face encoder with a fast tokenizer and safetensors.
    layer (int): the last layer to compute, the first is 1.
    RETURNS (TransformerEncoder): the encoder.
    RAISES (ValueError): EL181 if it has no such layer, EL183 without the package transformers,
        EL184 if the folder is not what it should be.
    """
    try:
        from transformers import AutoConfig, AutoModel, AutoTokenizer
        from transformers.utils import logging
    except ImportError as err:
        raise ValueError(Errors.EL183) from err
    require_number(kind, "layer", layer, whole=True)
    if not path or not Path(path).is_dir():
        raise ValueError(Errors.EL184.format(path=path, problem="there is no such folder"))
    try:
        config = AutoConfig.from_pretrained(path, local_files_only=True)
        most = config.num_hidden_layers
        # What is above is neither computed nor loaded.
        config.num_hidden_layers = min(layer, most)
        # Where a space is part of a piece, words alone lack it.
        tokenizer = AutoTokenizer.from_pretrained(
            path, local_files_only=True, use_fast=True, add_prefix_space=True
        )
        with _silence(logging):
            # The fused attention of a GPU is planned anew for each shape: longer than it takes.
            model = AutoModel.from_pretrained(
                path,
                config=config,
                local_files_only=True,
                use_safetensors=True,
                attn_implementation="eager",
            )
        encoder = TransformerEncoder(model.float(), tokenizer)
        # What cannot be read would end a run at its first long sentence.
        n_words = min(encoder.n_places, _N_PLACES)
        encoder.read([["a"], ["a"] * n_words], torch.device("cpu"))
    except Exception as err:  # transformers, tokenizers and safetensors each have their own
        raise ValueError(Errors.EL184.format(path=path, problem=err)) from err
    require_number(kind, "layer", layer, most=most, whole=True)
    return encoder


def _fits(n: int, n_pieces: int) -> bool:
    """RETURNS (bool): Whether so many sequences of so many pieces are read at a time."""
    return n <= _N_SEQUENCES and n * n_pieces**2 <= _N_SCORES


def _count_places(model: Any) -> int:
    """RETURNS (int): Pieces that a model reads of a sequence."""
    places = getattr(model.config, "max_position_embeddings", _N_PLACES)
    embeddings = getattr(model, "embeddings", None)
    # RoBERTa counts from behind the place of its padding.
    padding = getattr(getattr(embeddings, "position_embeddings", None), "padding_idx", None)
    return places if padding is None else places - padding - 1


@contextmanager
def _silence(logging: Any) -> Iterator[None]:
    """A long warning would name each weight of the layers that are left out."""
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


KIND = "transformer"
# Words that tell how far each number of the transformer's layer varies.
_SCALE_WORDS = 4096
_SCALE_LENGTH = 32
# Of these words: who knows fewer has learned from another kind of text.
_FEW = 0.5


class TransformerTeacher(Teacher):
    """Predict a transformer's vector of a token, the mean over its pieces, from both directions
    of a layer, through a linear head. The loss of a token is the mean squared error, each
    number of the vector scaled to vary by about 1: so it is near the share of the variance
    that is not explained.

    context (TeacherContext): what it is made for.
    path (str): folder of a Hugging Face encoder with its fast tokenizer and safetensors.
    layer (int): of the transformer, the first is 1; those above are not computed.
    student_layer (int): LSTM layer of the biLM, the first is 1.
    weight (float): of this loss beside the language model's.
    share (float): of the sequences that are taught, drawn anew for each step; the transformer
        reads no others. Their loss is scaled up.
    RAISES (ValueError): EL181 for a wrong setting, EL183 and EL184 if the transformer cannot
        be read, EL185 if the biLM does not read whole sequences.
    """

    def __init__(
        self,
        context: TeacherContext,
        *,
        path: str = "",
        layer: int = 2,
        student_layer: int = 1,
        weight: float = 1.0,
        share: float = 0.25,
    ) -> None:
        super().__init__()
        require_number(KIND, "weight", weight)
        require_number(KIND, "share", share, most=1)
        depth = context.shape.depth
        require_number(KIND, "student_layer", student_layer, most=depth, whole=True)
        if context.state_steps:
            raise ValueError(Errors.EL185.format(kind=KIND, state_steps=context.state_steps))
        self.weight, self.share, self.student_layer = weight, share, student_layer
        self.encoder = load_encoder(KIND, path, layer)
        self.scale = _measure_scale(self.encoder, context.vocabulary.words[len(SPECIAL_WORDS) :])
        self.head = nn.Linear(context.shape.width, self.encoder.width)

    def loss(self, lesson: Lesson) -> Tensor:
        """See `Teacher.loss`. Draws from torch's global generator."""
        forward, backward = (side[self.student_layer - 1] for side in lesson[2:])
        drawn = torch.rand(lesson.batch.batch_sizes[0]) < self.share
        tokens = align_tokens(lesson.batch, np.flatnonzero(drawn.numpy()))
        targets, known = self.encoder.read(tokens.sequences, forward.device)
        rows = (torch.from_numpy(part[known]).to(forward.device) for part in tokens[1:])
        pairs = zip((forward, backward), rows)
        X = torch.cat([side[row] for side, row in pairs], dim=1)  # (n_known, width)
        with torch.autocast(forward.device.type, enabled=False):
            guesses = self.head(X.to(self.head.weight.dtype))
            errors = guesses - targets.to(guesses) / self.scale.to(guesses)
            # Each token is read twice, by either direction.
            factor = 2 * self.weight / (self.share * self.encoder.width)
            return factor * errors.square().sum()

    def describe(self) -> Dict[str, Any]:
        """See `Teacher.describe`."""
        return {
            "weight": self.weight,
            "share": self.share,
            "student_layer": self.student_layer,
            **self.encoder.describe(),
        }


class Tokens(NamedTuple):
    """Sequences of a batch, and where each of their tokens was read.

    sequences (List[List[str]]): words.
    forward, backward (NDArray): row of the readings for each token, one sequence after the
        other, int64, shape (n_tokens,).
    """

    sequences: List[List[str]]
    forward: NDArray
    backward: NDArray


def align_tokens(batch: LMBatch, members: NDArray) -> Tokens:
    """Find the tokens of sequences in what both directions read.

    batch (LMBatch): of whole sequences.
    members (NDArray): sequences, the longest is 0, int64.
    RETURNS (Tokens): their words and rows.
    """
    sizes = np.asarray(batch.batch_sizes)
    starts = np.cumsum(sizes) - sizes
    # Step 0 reads a boundary.
    lengths = (sizes[:, None] > members).sum(axis=0) - 1
    forward = [starts[1 : n + 1] + row for row, n in zip(members, lengths)]
    backward = [starts[n:0:-1] + row for row, n in zip(members, lengths)]
    inputs = batch.forward.inputs
    sequences = [[batch.words[i] for i in inputs[rows]] for rows in forward]
    empty = [np.zeros(0, dtype=np.int64)]
    return Tokens(sequences, np.concatenate(forward + empty), np.concatenate(backward + empty))


def _measure_scale(encoder: TransformerEncoder, words: List[str]) -> Tensor:
    """RETURNS (Tensor): the deviation of each number of the layer, over frequent words; 1 if the
    transformer knows none of them. Warns if they are few (WL068)."""
    words = words[:_SCALE_WORDS]
    lines = [words[i : i + _SCALE_LENGTH] for i in range(0, len(words), _SCALE_LENGTH)]
    vectors, _ = encoder.read(lines, torch.device("cpu"))
    if len(vectors) < _FEW * len(words):
        text = Warnings.WL068.format(n_known=len(vectors), n_words=len(words))
        warnings.warn(text, stacklevel=2)
    if not len(vectors):
        return torch.ones(encoder.width)
    return vectors.std(dim=0, correction=0).clamp(min=1e-3)
