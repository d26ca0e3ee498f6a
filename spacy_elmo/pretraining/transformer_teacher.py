"""`TransformerTeacher`: an LSTM layer learns the vectors of a transformer's layer."""

import hashlib
import warnings
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..errors import Errors, Warnings
from ..language_model.objective import Lesson, Teacher
from ..language_model.readings import LMBatch
from ..language_model.vocabulary import SPECIAL_WORDS
from ..utils import group_by_length
from .teachers import TeacherContext, invalid_teacher, require_number

_KIND = "transformer"
# Sequences that are read at a time, and attention scores of a head for them.
_N_SEQUENCES = 64
_N_SCORES = 64 * 128 * 128
# Pieces of a sequence, for a model that does not give its number, and when it is tried.
_N_PLACES = 512
# Frequent words that are read to measure the variance of each number of the layer.
_SCALE_WORDS = 4096
_SCALE_LENGTH = 32
# A transformer that knows a smaller share of these words was trained on other text.
_MIN_KNOWN = 0.5


class TransformerEncoder:
    """Read words with a `transformers` model, without its upper layers, and its fast tokenizer.
    Not a torch module, so that it is neither trained nor stored."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model = model.eval().requires_grad_(False)
        self.tokenizer = tokenizer
        # Silences advice to pad all sequences to the longest.
        tokenizer.deprecation_warnings["Asking-to-pad-a-fast-tokenizer"] = True
        self.n_places = min(tokenizer.model_max_length, _count_places(model))

    @property
    def width(self) -> int:
        return self.model.config.hidden_size

    @torch.no_grad()
    def read(self, sequences: List[List[str]], device: torch.device) -> Tuple[Tensor, NDArray]:
        """Compute the vectors of words, the means over their pieces, in bounded memory: of the
        known words, one sequence after the other, float32, shape (n_known, width), and their places
        among all words, int64, (n_known,). Words without a piece, with an unknown piece, or beyond
        the longest sequence that the transformer reads are left out."""
        self.model.to(device)
        vectors: List[Tensor] = [torch.zeros(0, self.width, device=device)]
        known: List[NDArray] = [np.zeros(0, dtype=np.int64)]
        encoded = self._encode(sequences)

        def fits(n_seqs: int, n_pieces: int) -> bool:
            return n_seqs <= _N_SEQUENCES and n_seqs * n_pieces**2 <= _N_SCORES

        for group in group_by_length([len(owners) for _, owners in encoded], fits):
            pieces = self.tokenizer.pad([encoded[i][0] for i in group], return_tensors="pt")
            hidden = self.model(**{k: v.to(device) for k, v in pieces.items()}).last_hidden_state
            owners = np.full(hidden.shape[:2], -1, dtype=np.int64)  # (n_seqs, n_pieces)
            for row, i in enumerate(group):
                owners[row, : len(encoded[i][1])] = encoded[i][1]
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

    def _encode(self, sequences: List[List[str]]) -> List[Tuple[Dict[str, List[int]], NDArray]]:
        """Cut each sequence into pieces, with the word that each piece belongs to."""
        if not sequences:
            return []
        encoded = self.tokenizer(
            sequences, is_split_into_words=True, truncation=True, max_length=self.n_places
        )
        starts = np.cumsum([0, *map(len, sequences)])
        return [
            ({key: encoded[key][i] for key in encoded}, self._find_owners(encoding, starts[i]))
            for i, encoding in enumerate(encoded.encodings)
        ]

    def _find_owners(self, encoding: Any, start: int) -> NDArray:
        """Find the word of each piece of a sequence whose first word is `start`; -1 for none, and
        for words that are not read as a whole."""
        unknown = self.tokenizer.unk_token_id
        left_out = {w for w, piece in zip(encoding.word_ids, encoding.ids) if piece == unknown}
        if encoding.overflowing:
            left_out |= {*encoding.overflowing[0].word_ids}
        left_out.add(None)
        owners = [-1 if w in left_out else start + w for w in encoding.word_ids]
        return np.array(owners, dtype=np.int64)

    def describe(self) -> Dict[str, Any]:
        """Layer and a hash of the weights, in JSON types."""
        digest = hashlib.blake2b(digest_size=16)
        for name, tensor in sorted(self.model.state_dict().items()):
            digest.update(name.encode("utf-8"))
            digest.update(tensor.cpu().contiguous().numpy().tobytes())
        return {"layer": self.model.config.num_hidden_layers, "transformer": digest.hexdigest()}


def load_encoder(path: str, layer: int) -> TransformerEncoder:
    """Load the layers of a transformer up to `layer`, without network and pickle, from a folder
    with a fast tokenizer and safetensors (EL181 for a layer that it does not have, EL038 without
    the package transformers, EL184 if the folder cannot be used)."""
    try:
        from transformers import AutoConfig, AutoModel, AutoTokenizer
        from transformers.utils import logging
    except ImportError as err:
        purpose = "Learning from a transformer"
        text = Errors.EL038.format(purpose=purpose, package="transformers", extra="teachers")
        raise ValueError(text) from err
    require_number(_KIND, "layer", layer, whole=True)
    if not path or not Path(path).is_dir():
        raise ValueError(Errors.EL184.format(path=path, problem="there is no such folder"))
    try:
        config = AutoConfig.from_pretrained(path, local_files_only=True)
        most = config.num_hidden_layers
        # Layers above are neither computed nor loaded.
        config.num_hidden_layers = min(layer, most)
        # Where a space is part of a piece, words alone lack it.
        tokenizer = AutoTokenizer.from_pretrained(
            path, local_files_only=True, use_fast=True, add_prefix_space=True
        )
        # Suppress a long warning that names each weight of the layers that are left out.
        verbosity = logging.get_verbosity()
        logging.set_verbosity_error()
        # The fused attention of a GPU is planned anew for each shape, which takes longer.
        settings = {"use_safetensors": True, "attn_implementation": "eager"}
        try:
            model = AutoModel.from_pretrained(
                path, config=config, local_files_only=True, **settings
            )
        finally:
            logging.set_verbosity(verbosity)
        encoder = TransformerEncoder(model.float(), tokenizer)
        # A tokenizer that cannot pad or truncate would end a run at its first long sentence.
        n_words = min(encoder.n_places, _N_PLACES)
        encoder.read([["a"], ["a"] * n_words], torch.device("cpu"))
    except Exception as err:  # transformers, tokenizers and safetensors each have their own
        raise ValueError(Errors.EL184.format(path=path, problem=err)) from err
    require_number(_KIND, "layer", layer, most=most, whole=True)
    return encoder


def _count_places(model: Any) -> int:
    """Count the pieces of the longest sequence that a model reads."""
    places = getattr(model.config, "max_position_embeddings", _N_PLACES)
    embeddings = getattr(model, "embeddings", None)
    # RoBERTa counts from the place after its padding.
    padding = getattr(getattr(embeddings, "position_embeddings", None), "padding_idx", None)
    return places if padding is None else places - padding - 1


class TransformerTeacher(Teacher):
    """Predict a transformer's vector of a token, the mean over its pieces, from both directions
    of an LSTM layer, through a linear head. The loss of a token is the mean squared error, with
    each number of the vector scaled to variance 1: about the share of unexplained variance.

    context (TeacherContext): the run.
    path (str): folder of a Hugging Face encoder with its fast tokenizer and safetensors.
    layer (int): layer of the transformer, the first is 1; those above are not computed.
    student_layer (int): LSTM layer of the biLM, the first is 1.
    weight (float): weight of this loss relative to the language model's.
    share (float): share of the sequences that are read, drawn anew for each step. Their loss
        is scaled up.
    RAISES (ValueError): EL181 for a wrong setting, or if the biLM does not read whole
        sequences; EL038 and EL184 if the transformer cannot be read.
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
        require_number(_KIND, "weight", weight)
        require_number(_KIND, "share", share, most=1)
        require_number(_KIND, "student_layer", student_layer, most=context.shape.depth, whole=True)
        if context.state_steps:
            problem = f"it needs whole sequences, so set state_steps = 0, not {context.state_steps}"
            raise invalid_teacher(_KIND, problem)
        self.weight, self.share, self.student_layer = weight, share, student_layer
        self.encoder = load_encoder(path, layer)
        self.scale = _measure_scale(self.encoder, context.vocabulary.words[len(SPECIAL_WORDS) :])
        self.head = nn.Linear(context.shape.width, self.encoder.width)

    def loss(self, lesson: Lesson) -> Tensor:
        """Compute the loss of a batch. Draws from torch's global generator."""
        forward = lesson.forward[self.student_layer - 1]
        backward = lesson.backward[self.student_layer - 1]
        drawn = torch.rand(lesson.batch.batch_sizes[0]) < self.share
        tokens = align_tokens(lesson.batch, np.flatnonzero(drawn.numpy()))
        targets, known = self.encoder.read(tokens.sequences, forward.device)
        rows = (torch.from_numpy(part[known]).to(forward.device) for part in tokens[1:])
        pairs = zip((forward, backward), rows)
        X = torch.cat([side[row] for side, row in pairs], dim=1)  # (n_known, width)
        with torch.autocast(forward.device.type, enabled=False):
            guesses = self.head(X.to(self.head.weight.dtype))
            errors = guesses - targets.to(guesses) / self.scale.to(guesses)
            # Each token is read twice, once in each direction.
            factor = 2 * self.weight / (self.share * self.encoder.width)
            return factor * errors.square().sum()

    def describe(self) -> Dict[str, Any]:
        return {
            "weight": self.weight,
            "share": self.share,
            "student_layer": self.student_layer,
            **self.encoder.describe(),
        }


class AlignedTokens(NamedTuple):
    """Sequences of a batch, and the row of each of their tokens in both readings, one sequence
    after the other, int64, shape (n_tokens,)."""

    sequences: List[List[str]]
    forward: NDArray
    backward: NDArray


def align_tokens(batch: LMBatch, members: NDArray) -> AlignedTokens:
    """Find the tokens of some sequences (the longest is number 0) in both readings of a batch."""
    sizes = np.asarray(batch.batch_sizes)
    starts = np.cumsum(sizes) - sizes
    # Step 0 reads a boundary.
    lengths = (sizes[:, None] > members).sum(axis=0) - 1
    forward = [starts[1 : n + 1] + row for row, n in zip(members, lengths)]
    backward = [starts[n:0:-1] + row for row, n in zip(members, lengths)]
    inputs = batch.forward.inputs
    sequences = [[batch.words[i] for i in inputs[rows]] for rows in forward]
    empty = [np.zeros(0, dtype=np.int64)]
    return AlignedTokens(
        sequences, np.concatenate(forward + empty), np.concatenate(backward + empty)
    )


def _measure_scale(encoder: TransformerEncoder, words: List[str]) -> Tensor:
    """Measure the deviation of each number of the layer over frequent words; 1 if none is known.
    Warns if few are known (WL068)."""
    words = words[:_SCALE_WORDS]
    lines = [words[i : i + _SCALE_LENGTH] for i in range(0, len(words), _SCALE_LENGTH)]
    vectors, _ = encoder.read(lines, torch.device("cpu"))
    if len(vectors) < _MIN_KNOWN * len(words):
        text = Warnings.WL068.format(n_known=len(vectors), n_words=len(words))
        warnings.warn(text, stacklevel=2)
    if not len(vectors):
        return torch.ones(encoder.width)
    return vectors.std(dim=0, correction=0).clamp(min=1e-3)
