"""`python -m spacy elmo benchmark`: how fast this machine is, on one's own text."""

from pathlib import Path
from typing import Any, Dict, List, Optional

import typer
from wasabi import msg, table

from .util import exit_on_error


def benchmark(
    text: Path = typer.Argument(
        ..., help="Text with a sentence in each line", exists=True, dir_okay=False
    ),
    weights: Optional[Path] = typer.Argument(
        None, help="Folder with weights; the bundled English ones if left out"
    ),
    precisions: str = typer.Option("fp32", help="fp32, bf16, fp16, int8; with commas"),
    batch_sizes: str = typer.Option("1,8,64,256", help="Sentences at a time; with commas"),
    threads: int = typer.Option(0, min=0, help="Threads; 0: as many as torch uses"),
    tokens: int = typer.Option(20_000, help="Tokens of the text to read"),
    repeats: int = typer.Option(3, min=1, help="Turns, of which the medians count"),
    lang: str = typer.Option("en", help="Language of the tokenizer"),
    output: Path = typer.Option(Path("speed.png"), help="Picture to write", dir_okay=False),
    json: Optional[Path] = typer.Option(None, help="JSON file to write", dir_okay=False),
) -> None:
    """Measure tokens per second by batch size and precision, what share of the machine's
    matrix products that is, and how exact each precision is."""
    import srsly

    from ..figures import plot_speed
    from ..loaders import load_embedder
    from ..speed import measure_speed

    with exit_on_error():
        result = measure_speed(
            load_embedder(weights).bilm,
            _read_sentences(text, lang, tokens),
            precisions=precisions.split(","),
            batch_sizes=_read_numbers(batch_sizes),
            n_threads=threads,
            n_repeats=repeats,
        )
        print(_format(result))
        if json is not None:
            srsly.write_json(json, result)
            msg.good(f"Wrote {json}")
        plot_speed(result, output)
        msg.good(f"Wrote {output}")


def _read_numbers(text: str) -> List[int]:
    numbers = [number for number in text.split(",") if number.strip().isdigit() and int(number)]
    if len(numbers) < len(text.split(",")):
        raise typer.BadParameter(f"{text!r}: expected numbers above 0, such as 1,8,64")
    return [int(number) for number in numbers]


def _read_sentences(path: Path, lang: str, n_tokens: int) -> List[List[str]]:
    import spacy

    from ..corpora.cutting import split_words

    nlp = spacy.blank(lang)
    sentences: List[List[str]] = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            words = split_words(nlp.tokenizer, line)
            if n_tokens <= 0:
                break
            n_tokens -= len(words)
            sentences.append(words)
    return sentences


_RATES = ("precision", "sentences", "tokens/s", "of the limit", "of packed", "of reading")


def _format(result: Dict[str, Any]) -> str:
    limits, each = result["limits"], result["operations_per_token"]
    facts = [
        ("threads", result["n_threads"]),
        ("tokens read", f"{result['n_tokens']:,}"),
        ("largest products", f"{limits['products'] / 1e9:.0f} G operations/s"),
        ("the same, packed", f"{limits['packed_products'] / 1e9:.0f} G operations/s"),
        ("memory reading", f"{limits['reading'] / 1e9:.0f} GB/s"),
        ("operations of a token", f"{each / 1e6:.1f} M"),
        ("limit", f"{limits['products'] / each:,.0f} tokens/s"),
        ("hits of the word cache", f"{result['hit_rate']:.0%} on the first pass"),
        ("peak memory", f"{result['memory'] / 2**20:,.0f} MiB"),
    ]
    rates = [
        (
            row["precision"],
            row["batch_size"],
            f"{row['tokens_per_second']:,.0f}",
            f"{row['share']:.2f}",
            f"{row['share_of_packed']:.2f}",
            f"{row['share_of_reading']:.2f}" if row["batch_size"] == 1 else "",
        )
        for row in result["rows"]
    ]
    exact = [
        (
            name,
            f"{result['cold'][name]:,.0f}",
            f"{error['largest']:.1e}",
            f"{error['cosine']:.5f}",
        )
        for name, error in result["errors"].items()
    ]
    return "\n".join(
        [
            table(facts, divider=True, header=("this machine", "")),
            table(rates, divider=True, header=_RATES),
            table(
                exact,
                divider=True,
                header=("precision", "empty cache", "largest error", "least cosine"),
            ),
        ]
    )
