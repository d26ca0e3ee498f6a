"""Against another ELMo, with equal weights: ELMoForManyLangs, whose LSTM is AllenNLP's;
and against torch's own LSTM with projections, which has no clips and no skip connections.

Needs the extra "bench", and without its dependencies, which are of another time:
`pip install --no-deps elmoformanylangs overrides==3.1.0`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import typer
from common import compare_medians, describe_machine, print_table, read_lines, tokenize
from elmoformanylangs.elmo import Embedder as PeerEmbedder
from elmoformanylangs.frontend import Model as PeerModel
from elmoformanylangs.modules.embedding_layer import EmbeddingLayer
from torch.nn.utils.rnn import pack_sequence

from spacy_elmo.bilm.batch import N_CHARACTERS
from spacy_elmo.bilm.char_cnn import Highway
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.lstm import LSTMLayer
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.inference.embedder import Embedder
from spacy_elmo.inference.speed import measure_limit

FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
SHAPES: dict[str, dict[str, Any]] = {
    "small": {"width": 256, "cell_width": 1024, "n_highway": 1},
    "medium": {"width": 512, "cell_width": 2048, "n_highway": 1},
    "original": {"width": 1024, "cell_width": 4096, "n_highway": 2},
}


def make_config(shape: str) -> BiLMConfig:
    """RETURNS (BiLMConfig): a published shape."""
    return BiLMConfig(filters=FILTERS, cell_clip=3.0, proj_clip=3.0, **SHAPES[shape])


@torch.no_grad()
def make_peer(bilm: BiLM, batch_size: int) -> PeerEmbedder:
    """RETURNS (PeerEmbedder): ELMoForManyLangs with the weights of a biLM, for ASCII."""
    c = bilm.config
    lexicon = {chr(i): i for i in range(256)}
    # Their names of the two markers are swapped.
    lexicon.update({"<bos>": 256, "<eos>": 257, "<eow>": 258, "<bow>": 259, "<pad>": 260})
    lexicon["<oov>"] = N_CHARACTERS
    config = {
        "encoder": {
            "name": "elmo",
            "projection_dim": c.direction_width,
            "dim": c.cell_width,
            "n_layers": c.depth,
            "cell_clip": c.cell_clip,
            "proj_clip": c.proj_clip,
        },
        "token_embedder": {
            "name": "cnn",
            "activation": c.activation,
            "filters": [list(f) for f in c.filters],
            "n_highway": c.n_highway,
            "word_dim": 0,
            "char_dim": c.char_width,
            "max_characters_per_token": c.max_chars,
        },
        "dropout": 0.0,
    }
    chars = EmbeddingLayer(c.char_width, lexicon, fix_emb=False)
    model = PeerModel(config, None, chars).eval()
    words, cnn = model.token_embedder, bilm.char_cnn
    chars.embedding.weight[:N_CHARACTERS] = cnn.embedding.weight
    for theirs, ours in zip(words.convolutions, cnn.convolutions, strict=True):
        theirs.load_state_dict(ours.state_dict())
    highways = cast(list[Highway], cnn.highways)
    for theirs, highway in zip(words.highways._layers, highways, strict=True):
        # Their gate carries, ours transforms.
        sign = torch.cat([torch.ones(c.n_filters), -torch.ones(c.n_filters)])
        theirs.weight.copy_(highway.linear.weight * sign[:, None])
        theirs.bias.copy_(highway.linear.bias * sign)
    words.projection.load_state_dict(cnn.projection.state_dict())
    for direction, stack in (("forward", bilm.forward_lstm), ("backward", bilm.backward_lstm)):
        for i, layer in enumerate(cast(list[LSTMLayer], stack.layers)):
            cell = getattr(model.encoder, f"{direction}_layer_{i}")
            # Their gates stand as i, f, j, o.
            weight, bias = swap_gates(layer.weight.t()), swap_gates(layer.bias)
            cell.input_linearity.weight.copy_(weight[:, : c.direction_width])
            cell.state_linearity.weight.copy_(weight[:, c.direction_width :])
            cell.state_linearity.bias.copy_(bias)
            assert layer.projection is not None
            cell.state_projection.weight.copy_(layer.projection.t())
    peer = PeerEmbedder.__new__(PeerEmbedder)
    peer.model, peer.config, peer.batch_size, peer.use_cuda = model, config, batch_size, False
    peer.char_lexicon, peer.word_lexicon = lexicon, None
    return peer


def swap_gates(X: torch.Tensor) -> torch.Tensor:
    """RETURNS (torch.Tensor): rows in the order i, f, j, o of rows i, f, o, j."""
    i, f, o, j = X.chunk(4)
    return torch.cat([i, f, j, o])


def run_torch_lstm(config: BiLMConfig, lengths: list[int]) -> Callable[[], None]:
    """RETURNS (Callable): runs torch's LSTM of a shape over random word vectors."""
    P, D = config.direction_width, config.cell_width
    layers = [
        torch.nn.LSTM(P, D, num_layers=config.depth, proj_size=P, bias=True) for _ in range(2)
    ]
    inputs = pack_sequence([torch.randn(n, P) for n in sorted(lengths, reverse=True)])

    @torch.no_grad()
    def run() -> None:
        for lstm in layers:
            lstm(inputs)

    return run


def main(
    text: Path = typer.Argument(..., help="Sentences: lines, or the dev part of UD EWT"),
    shapes: str = typer.Option("small,medium,original"),
    tokens: int = typer.Option(4000),
    batch_size: int = typer.Option(64, help="Sentences at a time, for both sides"),
    repeats: int = typer.Option(3),
) -> None:
    """Print a table for each shape."""
    print(describe_machine())
    lines = [line for line in read_lines(text, tokens) if line.isascii()]
    # Longer words raise an error there.
    sentences = [[word[:48] for word in words] for words in tokenize(lines)]
    n_tokens = sum(map(len, sentences))
    print(f"{n_tokens} tokens in {len(sentences)} sentences, {batch_size} at a time")
    header = ["shape", "system", "tokens/s", "times the peer", "of products"]
    rows = []
    for shape in shapes.split(","):
        torch.manual_seed(0)
        config = make_config(shape)
        bilm = BiLM(config).eval().requires_grad_(False)
        ours, peer = Embedder(bilm), make_peer(bilm, batch_size)
        check(ours, peer, sentences[:batch_size])
        groups = [sentences[i : i + batch_size] for i in range(0, len(sentences), batch_size)]

        def embed_cold(ours: Embedder = ours, groups: list = groups) -> None:
            ours.word_cache.clear()
            embed_warm(ours, groups)

        def embed_warm(ours: Embedder = ours, groups: list = groups) -> None:
            for group in groups:
                ours.embed(group)

        def embed_peer(peer: PeerEmbedder = peer) -> None:
            with torch.no_grad():
                peer.sents2elmo(sentences, -2)

        embed_warm()
        functions: dict[str, Callable[[], None]] = {
            "peer": embed_peer,
            "torch LSTM alone": run_torch_lstm(config, [len(words) + 2 for words in sentences]),
            "spacy-elmo, empty cache": embed_cold,
            "spacy-elmo, full cache": embed_warm,
        }
        limit = measure_limit(torch.get_num_threads()) / config.n_operations
        rates = {name: n_tokens / s for name, s in compare_medians(functions, repeats).items()}
        rows += [
            [
                shape,
                name,
                f"{rate:,.0f}",
                f"{rate / rates['peer']:.1f}",
                f"{rate / limit:.2f}",
            ]
            for name, rate in rates.items()
        ]
    print_table(header, rows)


def check(ours: Embedder, peer: PeerEmbedder, sentences: list[list[str]]) -> None:
    """Compare the two sides' layers before they are timed."""
    with torch.no_grad():
        theirs = peer.sents2elmo(sentences, -2)
    found = ours.embed(sentences)
    error = max(np.abs(a - b).max() for a, b in zip(found, theirs, strict=True))
    print(f"largest difference from the peer: {error:.1e}")


if __name__ == "__main__":
    typer.run(main)
