"""`python -m spacy elmo neighbors`: where else a word is used like this."""

import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

import typer

from .common import JSON, QUIET, WEIGHTS, WEIGHTS_LANG, Console, exit_on_error, require_output

if TYPE_CHECKING:
    from ..experiments.contexts import Query


def neighbors(
    ctx: typer.Context,
    sentences: List[str] = typer.Argument(..., help="One sentence or more, each with the token"),
    token: str = typer.Option(..., help="The token, as it is written there"),
    corpus: str = typer.Option(..., help="Text to search: file, folder or glob"),
    weights: str = WEIGHTS,
    vectors: Optional[Path] = typer.Option(
        None,
        help="Pipeline with static vectors, such as GloVe, to compare with",
        show_default="none",
    ),
    n: int = typer.Option(10, "--n", "-n", min=1, help="Contexts to show"),
    layer: int = typer.Option(-1, help="Layer of the biLM: 0 for words, -1 for the top"),
    same_word: bool = typer.Option(False, "--same-word", help="Look only at the same word"),
    limit: int = typer.Option(
        0, min=0, max=sys.maxsize, help="Sequences to read of the corpus; 0: all"
    ),
    lang: str = WEIGHTS_LANG,
    html: Optional[Path] = typer.Option(
        None, help="Page to write", show_default="none", dir_okay=False
    ),
    output: Optional[Path] = typer.Option(
        None,
        help="Picture to write: the contexts in two dimensions",
        show_default="none",
        dir_okay=False,
    ),
    title: str = typer.Option("", help="What it is called in reports", show_default="the token"),
    json: Optional[Path] = JSON,
    quiet: bool = QUIET,
) -> None:
    """Show the nearest contexts of a token by its ELMo vector, and the nearest words by
    static vectors (table 4 of the paper)."""
    from ..checkpoints.loaders import load_embedder
    from ..experiments.contexts import find_contexts, summarise
    from ..experiments.results import get_effort
    from ..utils import require_layer

    start = time.perf_counter()
    with exit_on_error(quiet) as console:
        _require_places(html, output, json)
        tokenize, sequences = _open(corpus, weights, lang, limit)
        asked = [_find(tokenize(sentence), token) for sentence in sentences]
        static = _find_static(vectors, token, n, console)
        embedder = load_embedder(weights or None)
        require_layer(layer, embedder.bilm.config.n_layers)
        queries = find_contexts(embedder, asked, sequences, n=n, layer=layer, same_word=same_word)
        _show(queries, console)
        _write_pictures(queries, static, html, output)
        result = {**summarise(queries, static), **get_effort(start, embedder.hash_weights())}
        _write_result(json, title or token, result)
        console.finish(html, output, json)


def _require_places(html: Optional[Path], output: Optional[Path], json: Optional[Path]) -> None:
    from ..drawing import require_drawable

    require_output(html, output, json)
    if output is not None:
        require_drawable(output)


def _find_static(
    vectors: Optional[Path], token: str, n: int, console: Console
) -> List[Tuple[str, float]]:
    """The nearest words by static vectors, which are printed; none without a table."""
    from ..experiments.contexts import nearest_words
    from ..text.languages import read_static_vectors

    if vectors is None:
        return []
    static = nearest_words(read_static_vectors(vectors), token, n)
    names = ", ".join(f"{word} {cosine:.2f}" for word, cosine in static)
    console.show(f"Static vectors: {token}\n  {names or 'unknown'}")
    return static


def _write_pictures(
    queries: "Sequence[Query]",
    static: Sequence[Tuple[str, float]],
    html: Optional[Path],
    output: Optional[Path],
) -> None:
    from ..experiments.contexts import render_contexts, summarise
    from ..experiments.plots import plot_contexts
    from ..files import write_file

    if html is not None:
        html.parent.mkdir(parents=True, exist_ok=True)
        write_file(html, render_contexts(queries, static).encode("utf-8"))
    if output is not None:
        plot_contexts(summarise(queries, static), output)


def _write_result(json: Optional[Path], title: str, result: Dict[str, Any]) -> None:
    from ..experiments.results import write_result

    if json is not None:
        write_result(json, "neighbors", title, result)


def _show(queries: "Sequence[Query]", console: Console) -> None:
    from ..utils import mark_word

    cyan = partial(console.mark, name="cyan")
    for query in queries:
        console.show("\n" + mark_word(query.words, query.position, cyan))
        for context in query.contexts:
            shown = mark_word(context.words, context.position, console.mark)
            console.show(f"  {context.similarity:.2f}  {shown}")


def _open(corpus: str, weights: str, lang: str, limit: int) -> Tuple[Any, Any]:
    from itertools import islice

    from ..language_model.evaluation import find_tokenizer
    from ..text.corpus import cutter_maker, read_sequences
    from ..text.cutting import split_words
    from ..text.languages import make_tokenizer

    tokenizer = find_tokenizer(weights, lang)
    tokenize = partial(split_words, make_tokenizer(*tokenizer))
    return tokenize, islice(read_sequences(corpus, cutter_maker(*tokenizer)), limit or None)


def _find(words: List[str], token: str) -> Tuple[List[str], int]:
    from ..errors import Errors

    if token not in words:
        raise ValueError(Errors.EL053.format(word=token, text=" ".join(words)[:100]))
    return words, words.index(token)
