"""`python -m spacy elmo neighbors`: find contexts in which a word is used in a similar way."""

import sys
import time
from functools import partial
from itertools import islice
from pathlib import Path
from typing import List, Optional

import typer

from .common import exit_on_error, require_output
from .options import HTML, JSON, QUIET, WEIGHTS, WEIGHTS_LANG, optional


def neighbors(
    sentences: List[str] = typer.Argument(..., help="Sentences, each with the token in it"),
    token: str = typer.Option(..., help="The token, exactly as the sentences have it"),
    corpus: str = typer.Option(..., help="Text to search: file, folder or glob"),
    weights: str = WEIGHTS,
    vectors: Optional[Path] = optional(
        "Pipeline with static vectors, such as GloVe, to compare with"
    ),
    n: int = typer.Option(10, "--n", "-n", min=1, help="Contexts to show"),
    layer: int = typer.Option(-1, help="Layer of the biLM: 0 for words, -1 for the top"),
    same_word: bool = typer.Option(False, "--same-word", help="Show only contexts of this token"),
    limit: int = typer.Option(
        0, min=0, max=sys.maxsize, help="Sequences to read from the corpus; 0: all"
    ),
    lang: str = WEIGHTS_LANG,
    html: Optional[Path] = HTML,
    output: Optional[Path] = optional(
        "Picture to write, with the contexts in two dimensions", dir_okay=False
    ),
    title: str = optional("Name of the result in reports", "the token", default=""),
    json: Optional[Path] = JSON,
    quiet: bool = QUIET,
) -> None:
    """Show the nearest contexts of a token by its ELMo vector, and the nearest words by
    static vectors (table 4 of the paper)."""
    from ..checkpoints.loaders import load_embedder
    from ..drawing import require_drawable
    from ..errors import Errors
    from ..experiments.contexts import find_contexts, nearest_words, render_contexts, summarise
    from ..experiments.plots import plot_contexts
    from ..experiments.results import get_effort, write_result
    from ..files import write_file
    from ..language_model.evaluation import find_tokenizer
    from ..text.corpus import cutter_maker, read_sequences
    from ..text.cutting import split_words
    from ..text.languages import make_tokenizer, read_static_vectors
    from ..utils import mark_word, require_layer

    start = time.perf_counter()
    with exit_on_error(quiet) as console:
        require_output(html, output, json)
        if output is not None:
            require_drawable(output)
        tokenizer = find_tokenizer(weights, lang)
        sequences = islice(read_sequences(corpus, cutter_maker(*tokenizer)), limit or None)
        tokenize = make_tokenizer(*tokenizer)
        asked = []
        for sentence in sentences:
            words = split_words(tokenize, sentence)
            if token not in words:
                raise ValueError(Errors.EL053.format(word=token, text=" ".join(words)[:100]))
            asked.append((words, words.index(token)))
        static = []
        if vectors is not None:
            static = nearest_words(read_static_vectors(vectors), token, n)
            names = ", ".join(f"{word} {cosine:.2f}" for word, cosine in static)
            console.show(f"Static vectors: {token}\n  {names or 'unknown'}")
        embedder = load_embedder(weights or None)
        require_layer(layer, embedder.bilm.config.n_layers)
        queries = find_contexts(embedder, asked, sequences, n=n, layer=layer, same_word=same_word)
        for query in queries:
            cyan = partial(console.mark, name="cyan")
            console.show("\n" + mark_word(query.words, query.position, cyan))
            for context in query.contexts:
                shown = mark_word(context.words, context.position, console.mark)
                console.show(f"  {context.similarity:.2f}  {shown}")
        if html is not None:
            write_file(html, render_contexts(queries, static).encode("utf-8"))
        result = summarise(queries, static)
        if output is not None:
            plot_contexts(result, output)
        if json is not None:
            result = {**result, **get_effort(start, embedder.hash_weights())}
            write_result(json, "neighbors", title or token, result)
        console.finish(html, output, json)
