"""Files are whole, whoever writes them."""

import subprocess
import sys
from pathlib import Path

from spacy_elmo.checkpoints.files import write_beside

OTHER = """
import sys
from pathlib import Path
from spacy_elmo.checkpoints.files import write_beside
write_beside(Path(sys.argv[1]), b"theirs")
"""


def test_another_process_may_write_the_same_file(tmp_path, monkeypatch):
    path, write_bytes = tmp_path / "x", Path.write_bytes

    def write_and_wait(self, content):
        write_bytes(self, content)
        subprocess.run([sys.executable, "-c", OTHER, path], check=True)
        assert path.read_bytes() == b"theirs"

    monkeypatch.setattr(Path, "write_bytes", write_and_wait)
    write_beside(path, b"ours")

    assert path.read_bytes() == b"ours"
    assert list(tmp_path.iterdir()) == [path]
