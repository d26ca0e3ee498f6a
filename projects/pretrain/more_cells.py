"""Give a biLM more LSTM cells: the start of en_medium, made from en_small.

Both biLMs compute the same vectors: the projection of the new cells is 0, until training finds a
use for them. (After Chen et al. 2016, "Net2Net", with new cells instead of copies.)
"""

from pathlib import Path

import torch
import typer

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints.formats import CheckpointFiles, find_reader, read_bilm
from spacy_elmo.checkpoints.native import read_meta, write_native
from spacy_elmo.pretraining.config import load_config, make_settings


def main(
    config: Path = typer.Argument(..., help="Pretraining config with the larger shape"),
    start: str = typer.Argument(..., help="Folder or name of a biLM that reads characters"),
    output: Path = typer.Argument(..., help="Folder to write"),
) -> None:
    """Write a biLM of the shape of the config, and the softmax of the smaller biLM."""
    files = CheckpointFiles.of(start)
    shape = make_settings(BiLMConfig, load_config(config)["bilm"], "bilm")
    smaller = read_bilm(files)
    differences = shape.differences(smaller.config, but=("cell_width", "projection"))
    if differences or not shape.projection or shape.cell_width < smaller.config.cell_width:
        raise typer.BadParameter(f"'{start}' cannot be enlarged to [bilm] of '{config}'")
    softmax = find_reader(files).read_softmax(files)
    write_native(add_cells(smaller, shape), output, softmax=softmax, meta=read_meta(files.path))


@torch.no_grad()
def add_cells(smaller: BiLM, shape: BiLMConfig) -> BiLM:
    """smaller (BiLM): with fewer cells, with a projection or without. shape (BiLMConfig): with more
    cells and a projection. RETURNS (BiLM): with random weights of the new cells."""
    torch.manual_seed(0)
    larger = BiLM(shape)
    learned, n_cells = smaller.state_dict(), smaller.config.cell_width
    state = larger.state_dict()
    for name, tensor in state.items():
        if not name.endswith((".weight", ".bias", ".projection")) or "_lstm." not in name:
            tensor.copy_(learned[name])
        elif name.endswith(".projection"):
            tensor.zero_()  # (cell_width, width // 2)
            # Without a projection, each cell is a number of the output.
            tensor[:n_cells] = learned.get(name, torch.eye(n_cells))
        else:
            # The last axis, 4 * cell_width, has a block for each gate.
            tensor.unflatten(-1, (4, -1))[..., :n_cells] = learned[name].unflatten(-1, (4, -1))
    return larger


if __name__ == "__main__":
    typer.run(main)
