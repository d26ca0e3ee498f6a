"""`python -m spacy elmo benchmark`: measure the speed of a biLM on this machine and your text."""

from pathlib import Path
from typing import Any, Dict, List, Optional

import typer

from ..utils import count_things
from .common import Console, exit_on_error, read_numbers, require_output
from .options import JSON, LANG, MODEL, MOST_THREADS, QUIET

_MOST_SENTENCES = 1_000_000


def benchmark(
    text: str = typer.Argument(..., help="Text with a sentence in each line: a file or folder"),
    weights: Optional[Path] = MODEL,
    precisions: str = typer.Option("fp32", help="One or more of fp32,bf16,fp16,int8"),
    batch_sizes: str = typer.Option("1,8,64,256", help="Sentences in a batch: one or more numbers"),
    threads: int = typer.Option(
        0, min=0, max=MOST_THREADS, help="Threads; 0: as many as torch uses"
    ),
    tokens: int = typer.Option(20_000, min=1, help="Most tokens to read from the text"),
    repeats: int = typer.Option(3, min=1, help="Passes over the text; the median is shown"),
    lang: str = LANG,
    output: Path = typer.Option(Path("speed.png"), help="Picture to write", dir_okay=False),
    json: Optional[Path] = JSON,
    quiet: bool = QUIET,
) -> None:
    """Measure tokens per second for each batch size and precision, and how exact each precision
    is; name the fastest choice. The JSON file also has the speed with an empty word cache, and the
    share of the limit that this machine's matrix products set."""
    from ..checkpoints.loaders import load_embedder
    from ..drawing import require_drawable
    from ..experiments.plots import plot_speed
    from ..files import write_json
    from ..inference.speed import measure_speed

    sizes = read_numbers(batch_sizes, int)
    if not all(0 < size <= _MOST_SENTENCES for size in sizes):
        expected = f"expected numbers from 1 to {_MOST_SENTENCES}, such as 1,8,64"
        raise typer.BadParameter(f"{batch_sizes!r}: {expected}")
    names = list(dict.fromkeys(name.strip() for name in precisions.split(",")))
    with exit_on_error(quiet) as console:
        require_output(output, json)
        require_drawable(output)
        result = measure_speed(
            load_embedder(weights).bilm,
            _read_sentences(text, lang, tokens),
            precisions=names,
            batch_sizes=sizes,
            n_threads=threads,
            n_repeats=repeats,
        )
        _show(result, console)
        if json is not None:
            write_json(json, result)
        plot_speed(result, output)
        console.finish(output, json)


def _read_sentences(path: str, lang: str, n_tokens: int) -> List[List[str]]:
    from ..text.corpus import TextSource
    from ..text.cutting import split_words
    from ..text.languages import make_tokenizer

    tokenizer = make_tokenizer(lang, {})
    sentences: List[List[str]] = []
    for line in TextSource(path, seed=0).read_texts():
        words = split_words(tokenizer, line)
        if n_tokens <= 0:
            break
        n_tokens -= len(words)
        sentences.append(words)
    return sentences


def _show(result: Dict[str, Any], console: Console) -> None:
    rates = [
        (
            row["precision"],
            row["batch_size"],
            f"{row['tokens_per_second']:,.0f}",
            f"{result['errors'][row['precision']]['cosine']:.5f}",
        )
        for row in result["rows"]
    ]
    console.show_table(rates, ("precision", "batch size", "tokens/s", "least cosine with fp32"))
    best = max(result["rows"], key=lambda row: row["tokens_per_second"])
    console.show(
        f"Fastest here: {best['tokens_per_second']:,.0f} tokens/s with `precision = "
        f'"{best["precision"]}"` in [components.elmo.model] and `nlp.pipe(texts, '
        f"batch_size={best['batch_size']})`, on {count_things(result['n_threads'], 'thread')}; "
        f"at most {result['memory'] / 1e6:,.0f} MB of memory."
    )
