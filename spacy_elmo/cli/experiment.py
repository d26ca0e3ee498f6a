"""`python -m spacy elmo experiment`: the paper's comparisons on one's own task."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

import typer

from .common import exit_on_error, read_numbers
from .console import Console
from .option_conflicts import list_idle_of_experiment, require_no_conflicts
from .options import QUIET, SEEDS, WEIGHTS
from .outputs import writing

if TYPE_CHECKING:
    from ..experiments.run_settings import RunSettings
    from ..experiments.runs import Run
    from ..experiments.variants import Variant


def experiment(
    ctx: typer.Context,
    suite: str = typer.Argument(
        ...,
        help="gain, weighting (table 2), placement (table 3), samples (figure 1) or "
        "vectors (table 1, beside static vectors)",
    ),
    corpus: Path = typer.Argument(
        ...,
        help="Folder with train.spacy, dev.spacy and perhaps test.spacy; other .spacy files are "
        "further test sets",
    ),
    output: Path = typer.Argument(..., help="Folder for the results; those there are kept"),
    component: str = typer.Option("tagger", help="Factory of the component to train"),
    title: str = typer.Option(
        "", help="What the task is called in tables", show_default="the folder's name"
    ),
    lang: str = typer.Option("", help="Language code", show_default="the config's, or en"),
    weights: str = WEIGHTS,
    config: Optional[Path] = typer.Option(
        None,
        help="Training config of all but ELMo, whose tok2vec is an ElmoTok2Vec",
        show_default="the preset word_features",
        dir_okay=False,
    ),
    vectors: str = typer.Option(
        "", help="Pipeline with static vectors, for the suite vectors", show_default="none"
    ),
    seeds: str = SEEDS,
    shares: str = typer.Option(
        "1,2,5,10,20,50,100",
        help="Percent of the training docs, with commas; for the suite samples",
    ),
    max_steps: int = typer.Option(1000, min=1, help="Updates at most"),
    patience: int = typer.Option(0, min=0, help="Updates without a better score; 0: no end"),
    eval_frequency: int = typer.Option(100, min=1, help="Updates between evaluations on dev"),
    cache: Optional[Path] = typer.Option(
        None,
        help="Folder for the biLM's layers, which all runs of a corpus share",
        show_default="none",
        file_okay=False,
    ),
    n_jobs: int = typer.Option(1, min=1, help="Runs at once"),
    gpu_id: int = typer.Option(
        -1, "--gpu-id", "-g", min=-1, help="Number of a GPU to train on; -1 for the processors"
    ),
    quiet: bool = QUIET,
) -> None:
    """Train a component with ELMo and without, in the ways that the paper compares, and
    write a table and a picture. Resumes where it was stopped."""
    from ..checkpoints.named_models import is_bundled
    from ..drawing import require_matplotlib
    from ..errors import Warnings
    from ..experiments.run_settings import RunSettings
    from ..experiments.runs import Run, get_depth, get_lang
    from ..experiments.variants import choose_variants

    interrupted = Warnings.WL058.format(how="")
    config_path = "" if config is None else str(config)
    with exit_on_error(quiet, interrupted) as console, writing(output):
        require_no_conflicts(ctx, list_idle_of_experiment(ctx.params))
        # By whatever name, so that runs of before go on.
        weights = "" if is_bundled(weights) else weights
        settings = RunSettings(
            str(corpus),
            component,
            lang or get_lang(config_path),
            weights,
            max_steps,
            patience,
            eval_frequency,
            config_path,
            vectors,
        )
        require_matplotlib()
        variants = choose_variants(suite, get_depth(weights))
        parts = _read_shares(shares) if suite == "samples" else [1.0]
        runs = [Run(v, p, s) for s in read_numbers(seeds, int) for p in parts for v in variants]
        results = _run_all(runs, settings, output, cache, n_jobs, gpu_id, console)
        summary = _summarize(title or corpus.resolve().name, variants, results, output)
        # Printed first: if the disk is full, only the files are lost.
        console.show_table(*_tabulate(summary))
        console.finish(*_write(suite, summary, output))


def _run_all(
    runs: "List[Run]",
    settings: "RunSettings",
    output: Path,
    cache: Optional[Path],
    n_jobs: int,
    gpu_id: int,
    console: Console,
) -> List[Dict[str, Any]]:
    """Make the runs with a progress bar for each. RETURNS (List[Dict[str, Any]]): results."""
    from ..experiments.jobs import run_all
    from ..experiments.runs import make_title
    from .run_bars import RunBars, format_score

    bars = RunBars(len(runs), settings.max_steps, console)
    made = run_all(
        runs, settings, output, cache=cache, n_jobs=n_jobs, gpu_id=gpu_id, report=bars.report
    )
    results: List[Dict[str, Any]] = []
    with closing(bars), closing(made):
        for result in made:
            results.append(result)
            name = make_title(result["variant"], result["share"], result["seed"])
            score = format_score(result["dev"][result["score"]])
            bars.end(name, f"{score}, {result['seconds']:.0f} s")
    return results


def _summarize(
    task: str, variants: "List[Variant]", results: List[Dict[str, Any]], output: Path
) -> Dict[str, Any]:
    from ..experiments.run_settings import read_settings
    from ..experiments.summary import describe_suite

    return describe_suite(task, variants, results, read_settings(output))


def _write(suite: str, summary: Dict[str, Any], output: Path) -> List[Path]:
    """RETURNS (List[Path]): The files that were written."""
    from ..experiments.figures import plot_samples, plot_scores, plot_updates
    from ..experiments.results import write_result

    path, picture, curves = (output / f"{suite}{end}" for end in (".json", ".png", "_updates.png"))
    write_result(path, suite, summary["title"], summary)
    plot = plot_samples if suite == "samples" else plot_scores
    plot(summary, picture)
    plot_updates(summary, curves)
    return [path, picture, curves]


def _read_shares(text: str) -> List[float]:
    shares = [percent / 100 for percent in read_numbers(text)]
    if not all(0 < share <= 1 for share in shares):
        raise typer.BadParameter(f"{text!r}: expected percent, above 0 and at most 100")
    return shares


def _tabulate(summary: Dict[str, Any]) -> Tuple[List[List[str]], List[str]]:
    """RETURNS (Tuple[List[List[str]], List[str]]): Rows and header of the table."""
    from ..experiments.summary import format_scores, list_further

    further = list_further(summary["rows"])
    header = [summary["title"], "docs", f"{summary['score']}, dev", "test", *further]
    rows = [
        [
            row["title"],
            f"{row['n_docs']:,.0f}",
            format_scores(row["dev"]),
            format_scores(row["test"]),
            *(format_scores(row["further"][name]) for name in further),
        ]
        for row in summary["rows"]
    ]
    return rows, header
