"""`python -m spacy elmo experiment`: repeat the paper's comparisons on the user's own task."""

from contextlib import closing
from pathlib import Path
from typing import Any, Dict, List, Optional

import typer

from .common import Console, exit_on_error, read_numbers, writing
from .options import QUIET, WEIGHTS, optional


def experiment(
    suite: str = typer.Argument(
        ...,
        help="What to compare: gain (with and without ELMo), weighting (table 2), placement "
        "(table 3), samples (figure 1) or vectors (as gain, each also with static vectors)",
    ),
    corpus: Path = typer.Argument(
        ...,
        help="Folder with train.spacy, dev.spacy and, if you have one, test.spacy; other .spacy "
        "files are further test sets",
    ),
    output: Path = typer.Argument(..., help="Folder for the results; existing ones are kept"),
    component: str = typer.Option("tagger", help="Factory of the component to train"),
    title: str = optional("Name of the task in tables", "the folder's name", default=""),
    lang: str = optional("Language code", "the config's language, or en", default=""),
    weights: str = WEIGHTS,
    config: Optional[Path] = optional(
        "Training config for all settings but ELMo's; its tok2vec is an ElmoTok2Vec",
        "the preset word_features",
        dir_okay=False,
    ),
    vectors: str = optional("Pipeline with static vectors, for the suite vectors", default=""),
    seeds: str = typer.Option("0,1,2", help="Seeds (whole numbers), with commas"),
    shares: str = typer.Option(
        "1,2,5,10,20,50,100",
        help="Percentages of the training docs, with commas; for the suite samples",
    ),
    max_steps: int = typer.Option(1000, min=1, help="Most updates of a run"),
    patience: int = typer.Option(0, min=0, help="Stop after updates without a gain; 0: never"),
    eval_frequency: int = typer.Option(100, min=1, help="Updates between evaluations on dev"),
    cache: Optional[Path] = optional(
        "Folder to keep the biLM's layers in; all runs of a corpus share it", file_okay=False
    ),
    n_jobs: int = typer.Option(1, min=1, help="Runs at the same time"),
    gpu_id: int = typer.Option(
        -1, "--gpu-id", "-g", min=-1, help="Number of the GPU to train on; -1 for the CPU"
    ),
    quiet: bool = QUIET,
) -> None:
    """Train a component with ELMo and without, in the ways that the paper compares, and write
    a table and pictures. To continue after a stop, repeat the command."""
    from ..bilm.config import BiLMConfig
    from ..checkpoints.formats import is_bundled
    from ..checkpoints.loaders import read_config
    from ..drawing import require_matplotlib
    from ..experiments.plots import plot_samples, plot_scores, plot_updates
    from ..experiments.results import describe_suite, judge_samples, write_result
    from ..experiments.runs import Run, RunSettings, load_base, make_title, run_all
    from ..experiments.variants import choose_variants

    interrupted = "Interrupted. Finished runs are kept: repeat the command to continue."
    with exit_on_error(quiet, interrupted) as console, writing(output):
        require_matplotlib()
        # The same settings by each name of the bundled model.
        weights = "" if is_bundled(weights) else weights
        if config is not None and not lang:
            lang = load_base(str(config))["nlp"].get("lang") or ""
        settings = RunSettings(
            str(corpus),
            component,
            lang or "en",
            weights,
            max_steps,
            patience,
            eval_frequency,
            "" if config is None else str(config),
            vectors,
        )
        depth = (read_config(weights) if weights else BiLMConfig()).depth
        variants = choose_variants(suite, depth)
        parts = [1.0]
        if suite == "samples":
            parts = [percent / 100 for percent in read_numbers(shares)]
            if not all(0 < part <= 1 for part in parts):
                raise typer.BadParameter(f"{shares!r}: expected percent, above 0 and at most 100")
        runs = [Run(v, p, s) for s in read_numbers(seeds, int) for p in parts for v in variants]
        results: List[Dict[str, Any]] = []
        options: Dict[str, Any] = {"cache": cache, "n_jobs": n_jobs, "gpu_id": gpu_id}
        with closing(run_all(runs, settings, output, verbose=not quiet, **options)) as made:
            for result in made:
                results.append(result)
                name = make_title(result["variant"], result["share"], result["seed"])
                score = result["dev"][result["score"]]
                shown = "no dev score" if score is None else f"dev {score:.2%}"
                console.tell(f"{name}: {shown} ({len(results)} of {len(runs)} runs)")
        summary = describe_suite(title or corpus.resolve().name, variants, results)
        # Before files are written: if the disk is full, only the files are lost.
        _show(summary, console)
        if suite == "samples":
            for line in judge_samples(summary["rows"]):
                console.tell(line)
        ends = (".json", ".png", "_updates.png")
        path, picture, curves = (output / f"{suite}{end}" for end in ends)
        write_result(path, suite, summary["title"], summary)
        (plot_samples if suite == "samples" else plot_scores)(summary, picture)
        plot_updates(summary, curves)
        console.finish(path, picture, curves)


def _show(summary: Dict[str, Any], console: "Console") -> None:
    from ..experiments.results import format_scores

    rows = summary["rows"]
    further = list(rows[0].get("further", ()))
    header = [summary["title"], "docs", f"{summary['score']}, dev", "test", *further]
    cells = [
        [
            row["title"],
            f"{row['n_docs']:,.0f}",
            *(format_scores(row[split]) for split in ("dev", "test")),
            *(format_scores(row["further"][name]) for name in further),
        ]
        for row in rows
    ]
    console.show_table(cells, header)
