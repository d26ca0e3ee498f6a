"""`python -m spacy elmo experiment`: the paper's comparisons on one's own task."""

from pathlib import Path
from typing import Any, Dict, List, Optional

import typer
from wasabi import msg, table

from .util import exit_on_error, read_numbers


def experiment(
    suite: str = typer.Argument(
        ..., help="gain, weighting (table 2), placement (table 3), samples (figure 1) or tuned"
    ),
    corpus: Path = typer.Argument(
        ..., help="Folder with train.spacy, dev.spacy and perhaps test.spacy"
    ),
    output: Path = typer.Argument(..., help="Folder for the results; those there are kept"),
    component: str = typer.Option("tagger", help="Factory of the component to train"),
    title: str = typer.Option("", help="What the task is called in tables"),
    lang: str = typer.Option("en", help="Language"),
    weights: str = typer.Option("", help="Folder of a biLM; the bundled one if left out"),
    seeds: str = typer.Option("0,1,2", help="Seeds, with commas"),
    shares: str = typer.Option(
        "1,2,5,10,20,50,100", help="Percent of the training docs, of the suite samples"
    ),
    max_steps: int = typer.Option(1000, min=1, help="Updates at most"),
    patience: int = typer.Option(0, min=0, help="Updates without a better score; 0: no end"),
    eval_frequency: int = typer.Option(100, min=1, help="Updates between looks at dev"),
    cache: Optional[Path] = typer.Option(
        None, help="Folder for the biLM's layers, which all runs share", file_okay=False
    ),
    n_jobs: int = typer.Option(1, min=1, help="Runs at once"),
) -> None:
    """Train a component with ELMo and without, in the ways that the paper compares, and
    write a table and a picture. Goes on where it was stopped."""
    from tqdm import tqdm

    from ..experiments.results import write_suite
    from ..experiments.runs import Run, RunSettings, get_depth, run_all
    from ..experiments.variants import choose_variants
    from ..figures import plot_samples, plot_scores, plot_updates, require_matplotlib

    with exit_on_error():
        settings = RunSettings(
            str(corpus), component, lang, weights, max_steps, patience, eval_frequency
        )
        require_matplotlib()
        chosen = choose_variants(suite, get_depth(weights))
        parts = [p / 100 for p in read_numbers(shares)] if suite == "samples" else [1.0]
        if not all(0 < part <= 1 for part in parts):
            raise typer.BadParameter(f"{shares!r}: expected percent, above 0 and at most 100")
        runs = [Run(v, p, s) for s in read_numbers(seeds, int) for p in parts for v in chosen]
        results: List[Dict[str, Any]] = []
        for result in tqdm(
            run_all(runs, settings, output, cache=cache, n_jobs=n_jobs), total=len(runs)
        ):
            results.append(result)
            score = result["dev"][result["score"]]
            name = f"{result['variant']}, {result['share']:.0%}, seed {result['seed']}"
            tqdm.write(f"{name}: dev {score:.2%}, {result['seconds']:.0f} s")
        found = write_suite(suite, title or corpus.name, chosen, results, output)
        print(_format(found))
        picture = output / f"{suite}.png"
        if suite == "samples":
            plot_samples(found, picture)
        else:
            plot_scores(found, picture)
        plot_updates(found, output / f"{suite}_updates.png")
        msg.good(f"Wrote {output / suite}.json and {picture}")


def _format(found: Dict[str, Any]) -> str:
    from ..experiments.results import show

    header = [found["title"], "docs", f"{found['score']}, dev", "test"]
    rows = [
        [row["title"], f"{row['n_docs']:,.0f}", show(row["dev"]), show(row["test"])]
        for row in found["rows"]
    ]
    return table(rows, header=header, divider=True)
