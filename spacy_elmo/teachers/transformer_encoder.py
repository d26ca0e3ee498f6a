"""`TransformerEncoder`: the vectors of a transformer's layer for words that are given."""

import hashlib
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import Errors
from ..language_model.teacher import require_number
from ..utils import group_by_length

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
