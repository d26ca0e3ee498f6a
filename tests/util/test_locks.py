"""One writer at a time."""

import os
import signal
import subprocess
import sys

import pytest

from spacy_elmo.files import lock_folder

HOLD = """
import sys
from pathlib import Path
from spacy_elmo.files import lock_folder
with lock_folder(Path(sys.argv[1]), wait=False):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_a_lock_ends_with_its_process(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as holder:
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(ValueError, match="EL143"), lock_folder(tmp_path, wait=False):
            pass
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
    with lock_folder(tmp_path, wait=False):
        pass


def test_an_error_takes_the_lock_away(tmp_path):
    with pytest.raises(KeyError), lock_folder(tmp_path, wait=False):
        raise KeyError
    with lock_folder(tmp_path, wait=True):
        pass


def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"), lock_folder(tmp_path / "file", wait=True):
        pass
