"""`python -m spacy elmo weights`: the share of each layer in each task's mix."""

from pathlib import Path
from typing import Optional

import typer

from .common import exit_on_error, require_output
from .options import JSON, QUIET, TRAINED

# Shares of a mix add up to 1, but for rounding.
_MOST = 1.01


def weights(
    pipeline: str = TRAINED,
    output: Path = typer.Option(
        Path("weights.png"), help="Picture to write: .png, .svg or .pdf", dir_okay=False
    ),
    json: Optional[Path] = JSON,
    quiet: bool = QUIET,
) -> None:
    """Show each mix in a pipeline: the learned share of each layer, and the scale gamma
    (figure 2 of the paper)."""
    from ..drawing import require_drawable
    from ..experiments.contexts import name_layers
    from ..experiments.plots import plot_weights
    from ..files import write_json
    from ..pipeline.saving import load_pipeline
    from ..pipeline.weights_logger import collect_weights

    with exit_on_error(quiet) as console:
        require_output(output, json)
        require_drawable(output)
        mixes = [mix._asdict() for mix in collect_weights(load_pipeline(pipeline))]
        n_layers = max(len(mix["shares"]) for mix in mixes)
        header = ["component", "place", *name_layers(n_layers), "gamma"]
        rows = []
        for mix in mixes:
            shares = [f"{share:.3f}" for share in mix["shares"]]
            # Components may have different numbers of layers.
            shares += [""] * (n_layers - len(shares))
            rows.append([mix["component"], mix["place"], *shares, f"{mix['gamma']:.3f}"])
        console.show_table(rows, header)
        if any(sum(mix["shares"]) > _MOST for mix in mixes):
            console.inform(
                "Where each share is 1, all layers stand side by side and no mix is learned: the "
                "layer of the task that reads them weighs them."
            )
        plot_weights(mixes, output)
        if json is not None:
            write_json(json, mixes)
        console.finish(output, json)
