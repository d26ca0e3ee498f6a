import pytest

from ..support.helpers import make_nlp


@pytest.fixture
def pipeline(tmp_path):
    """Folder of a pipeline with a tiny random elmo."""
    make_nlp().to_disk(tmp_path / "pipeline")
    return str(tmp_path / "pipeline")


@pytest.fixture
def texts(tmp_path):
    """A folder with some lines of text in two files."""
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("".join(f"Green eggs number {i}. And ham!\n" for i in range(8)))
    (folder / "b.txt").write_text("I do not like it.\n\nEat it, or not, by the river.\n")
    return folder
