"""`python -m spacy elmo weights`: what each task takes from the layers."""

from pathlib import Path
from typing import Optional

import typer
from wasabi import msg, table

from .util import exit_on_error


def weights(
    pipeline: str = typer.Argument(..., help="Folder or package of a trained pipeline"),
    output: Path = typer.Option(
        Path("weights.png"), help="Picture to write: .png, .svg or .pdf", dir_okay=False
    ),
    json: Optional[Path] = typer.Option(None, help="JSON file to write", dir_okay=False),
) -> None:
    """Show the learned share of each layer and the scale of every mix in a pipeline
    (figure 2 of the paper)."""
    import spacy
    import srsly

    from ..figures import name_layers, plot_weights
    from ..layer_weights import collect_weights

    with exit_on_error():
        try:
            nlp = spacy.load(pipeline)
        except OSError as err:
            msg.fail(str(err), exits=1)
        mixes = [mix._asdict() for mix in collect_weights(nlp)]
        plot_weights(mixes, output)
    n_layers = max(len(mix["shares"]) for mix in mixes)
    header = ["component", "place", *name_layers(n_layers), "gamma"]
    rows = [
        [
            mix["component"],
            mix["place"],
            *(f"{share:.3f}" for share in mix["shares"]),
            f"{mix['gamma']:.3f}",
        ]
        for mix in mixes
    ]
    print(table(rows, header=header, divider=True))
    msg.good(f"Wrote {output}")
    if json is not None:
        srsly.write_json(json, mixes)
        msg.good(f"Wrote {json}")
