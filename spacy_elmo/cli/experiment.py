"""`python -m spacy elmo experiment`: the paper's comparisons on one's own task."""

from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional

import typer
from wasabi import msg, table

from .common import exit_on_error, read_numbers
from .outputs import writing

if TYPE_CHECKING:
    from ..experiments.run_settings import RunSettings
    from ..experiments.runs import Run
    from ..experiments.variants import Variant


def experiment(
    suite: str = typer.Argument(
        ...,
        help="gain, weighting (table 2), placement (table 3), samples (figure 1), vectors "
        "(table 1, beside static vectors) or tuned",
    ),
    corpus: Path = typer.Argument(
        ..., help="Folder with train.spacy, dev.spacy and perhaps test.spacy"
    ),
    output: Path = typer.Argument(..., help="Folder for the results; those there are kept"),
    component: str = typer.Option("tagger", help="Factory of the component to train"),
    title: str = typer.Option("", help="What the task is called in tables"),
    lang: str = typer.Option("en", help="Language"),
    weights: str = typer.Option(
        "", help="Folder of a biLM, or its name; the bundled one if left out"
    ),
    config: Optional[Path] = typer.Option(
        None,
        help="Training config of all but ELMo, whose tok2vec is an ElmoTok2Vec; the preset "
        "word_features if left out",
        dir_okay=False,
    ),
    vectors: str = typer.Option("", help="Pipeline with static vectors, for the suite vectors"),
    seeds: str = typer.Option("0,1,2", help="Seeds, with commas"),
    shares: str = typer.Option(
        "1,2,5,10,20,50,100", help="Percent of the training docs, of the suite samples"
    ),
    max_steps: int = typer.Option(1000, min=1, help="Updates at most"),
    patience: int = typer.Option(0, min=0, help="Updates without a better score; 0: no end"),
    eval_frequency: int = typer.Option(100, min=1, help="Updates between evaluations on dev"),
    cache: Optional[Path] = typer.Option(
        None, help="Folder for the biLM's layers, which all runs share", file_okay=False
    ),
    n_jobs: int = typer.Option(1, min=1, help="Runs at once"),
) -> None:
    """Train a component with ELMo and without, in the ways that the paper compares, and
    write a table and a picture. Resumes where it was stopped."""
    from ..experiments.run_settings import RunSettings
    from ..experiments.runs import Run, get_depth
    from ..experiments.variants import choose_variants
    from ..util.drawing import require_matplotlib

    with exit_on_error(), writing(output), _exit_on_interrupt():
        settings = RunSettings(
            str(corpus),
            component,
            lang,
            weights,
            max_steps,
            patience,
            eval_frequency,
            "" if config is None else str(config),
            vectors,
        )
        require_matplotlib()
        variants = choose_variants(suite, get_depth(weights))
        parts = _read_shares(shares) if suite == "samples" else [1.0]
        runs = [Run(v, p, s) for s in read_numbers(seeds, int) for p in parts for v in variants]
        results = _run_all(runs, settings, output, cache, n_jobs)
        _write(suite, title or corpus.resolve().name, variants, results, output)


@contextmanager
def _exit_on_interrupt() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        msg.warn("Interrupted. Finished runs are kept: give the same command again to resume.")
        raise typer.Exit(130) from None


def _run_all(
    runs: "List[Run]", settings: "RunSettings", output: Path, cache: Optional[Path], n_jobs: int
) -> List[Dict[str, Any]]:
    """Make the runs with a progress bar for each. RETURNS (List[Dict[str, Any]]): results."""
    from ..experiments.jobs import run_all
    from ..experiments.runs import make_title
    from .run_bars import RunBars, format_score

    bars = RunBars(len(runs), settings.max_steps)
    made = run_all(runs, settings, output, cache=cache, n_jobs=n_jobs, report=bars.report)
    results: List[Dict[str, Any]] = []
    with closing(bars), closing(made):
        for result in made:
            results.append(result)
            name = make_title(result["variant"], result["share"], result["seed"])
            score = format_score(result["dev"][result["score"]])
            bars.end(name, f"{score}, {result['seconds']:.0f} s")
    return results


def _write(
    suite: str,
    task: str,
    variants: "List[Variant]",
    results: List[Dict[str, Any]],
    output: Path,
) -> None:
    from ..experiments.results import write_result
    from ..experiments.run_settings import read_settings
    from ..experiments.summary import describe_suite

    summary = describe_suite(task, variants, results, read_settings(output))
    # Printed first: if the disk is full, only the file is lost.
    print(_format(summary))
    write_result(output / f"{suite}.json", suite, task, summary)
    _draw(suite, summary, output)
    msg.good(f"Wrote {output / suite}.json and {output / suite}.png")


def _read_shares(text: str) -> List[float]:
    shares = [percent / 100 for percent in read_numbers(text)]
    if not all(0 < share <= 1 for share in shares):
        raise typer.BadParameter(f"{text!r}: expected percent, above 0 and at most 100")
    return shares


def _draw(suite: str, summary: Dict[str, Any], output: Path) -> None:
    from ..experiments.figures import plot_samples, plot_scores, plot_updates

    plot = plot_samples if suite == "samples" else plot_scores
    plot(summary, output / f"{suite}.png")
    plot_updates(summary, output / f"{suite}_updates.png")


def _format(summary: Dict[str, Any]) -> str:
    from ..experiments.summary import format_scores

    header = [summary["title"], "docs", f"{summary['score']}, dev", "test"]
    rows = [
        [
            row["title"],
            f"{row['n_docs']:,.0f}",
            format_scores(row["dev"]),
            format_scores(row["test"]),
        ]
        for row in summary["rows"]
    ]
    return table(rows, header=header, divider=True)
