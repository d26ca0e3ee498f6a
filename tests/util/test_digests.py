"""Damage is told before it is read."""

import pytest

from spacy_elmo.files import DIGESTS_FILE, check_digests, digest, digest_file, write_digests

NAMES = ("a.bin", "b.txt")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.bin").write_bytes(bytes(range(256)))
    (tmp_path / "b.txt").write_bytes(b"text\n")
    write_digests(tmp_path)
    return tmp_path


def test_a_file_has_the_digest_of_its_content(folder):
    assert digest_file(folder / "b.txt") == digest(b"text\n")
    assert len(digest(b"")) == 32


def test_files_as_they_were_written_pass(folder):
    check_digests(folder, NAMES)
    write_digests(folder)  # its own digest is not in it
    check_digests(folder, NAMES)


def test_a_folder_from_before_there_were_digests_passes(folder):
    (folder / DIGESTS_FILE).unlink()
    check_digests(folder, NAMES)


@pytest.mark.parametrize("name", [*NAMES, DIGESTS_FILE])
def test_each_flipped_bit_is_told(folder, name):
    path = folder / name
    content = path.read_bytes()
    for bit in range(len(content) * 8):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"EL10[34]"):
            check_digests(folder, NAMES)


def test_a_cut_off_and_a_missing_file_are_told(folder):
    (folder / "a.bin").write_bytes(b"")
    with pytest.raises(ValueError, match=r"EL104.*a\.bin"):
        check_digests(folder, ["a.bin"])
    (folder / "a.bin").unlink()
    with pytest.raises(ValueError, match=r"EL100.*a\.bin"):
        check_digests(folder, ["a.bin"])


def test_a_file_that_was_not_written_with_the_others_is_told(folder):
    (folder / "c").write_bytes(b"")
    with pytest.raises(ValueError, match="EL104"):
        check_digests(folder, ["c"])


def test_a_file_of_others_passes_if_only_known_ones_are_checked(folder):
    (folder / "c").write_bytes(b"")
    check_digests(folder, [*NAMES, "c"], known_only=True)
    (folder / "b.txt").write_bytes(b"")
    with pytest.raises(ValueError, match=r"EL104.*b\.txt"):
        check_digests(folder, [*NAMES, "c"], known_only=True)
