"""The curves of a pretraining run. Needs the extra "plot"."""

from pathlib import Path
from typing import Any, Dict, List

from ..drawing import Figure, require_matplotlib, save_figure


def plot_curves(lines: List[Dict[str, Any]], path: Path) -> None:
    """Draw the curves of a pretraining run: training loss, exact held-out perplexity,
    learning rate.

    lines (List[Dict[str, Any]]): lines of its log.jsonl.
    path (Path): file to write; its ending chooses the format.
    RAISES (ValueError): EL062 without matplotlib.
    """
    require_matplotlib()
    figure = Figure(figsize=(8, 9), layout="constrained")
    loss, dev, rate = figure.subplots(3, 1, sharex=True)
    millions = [line["n_tokens"] / 1e6 for line in lines]
    loss.plot(millions, [line.get("train_loss") for line in lines], color="C0", linewidth=0.8)
    loss.set_ylabel("training loss (nats)")
    measured = [line for line in lines if "dev_perplexity" in line]
    for key, label in (("dev_forward", "forward"), ("dev_backward", "backward")):
        points = [line["n_tokens"] / 1e6 for line in measured]
        dev.plot(points, [line[key] for line in measured], marker="o", label=label)
    dev.set_ylabel("held-out perplexity (exact)")
    if measured:
        dev.set_yscale("log")
        dev.legend()
    rate.plot(millions, [line["learn_rate"] for line in lines], color="C2")
    rate.set_ylabel("learning rate")
    rate.set_xlabel("million tokens")
    for axes in (loss, dev, rate):
        axes.grid(alpha=0.3)
    save_figure(figure, path)
