"""Memory of processes that each load a pipeline and read the same text (Linux)."""

import subprocess
import sys
from pathlib import Path

import typer
from common import print_table

READ = """
import sys
from pathlib import Path
import spacy
from thinc.api import NumpyOps, set_current_ops
set_current_ops(NumpyOps(use_blis=False))
path, text = sys.argv[1:]
nlp = spacy.load(path)
for doc in nlp.pipe(Path(text).read_text("utf-8").splitlines()):
    pass
status = Path("/proc/self/status").read_text().split()
print(int(status[status.index("VmHWM:") + 1]) * 1024 / 1e6)
"""


def main(
    text: Path = typer.Argument(..., help="A sentence in each line"),
    pipelines: list[Path] = typer.Argument(..., help="Folders of pipelines"),
) -> None:
    """Print a table."""
    rows = []
    for path in pipelines:
        command = [sys.executable, "-c", READ, str(path), str(text)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        rows.append([path.name, f"{float(done.stdout):.0f}"])
    print_table(["pipeline", "largest resident memory, MB"], rows)


if __name__ == "__main__":
    typer.run(main)
