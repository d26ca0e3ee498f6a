"""JSON with a digest of its own."""

import json

import pytest

from spacy_elmo.files import read_checked_json, write_checked_json

from ..support.damage import flip, replace_by_others
from ..support.faults import fail_at_each_write, kill_at_each_write

CONTENT = {"ä": [1, None, 0.5, "a/b"], "digests": {}}


@pytest.fixture
def path(tmp_path):
    write_checked_json(tmp_path / "deep" / "x.json", CONTENT)
    return tmp_path / "deep" / "x.json"


def test_it_is_json_that_comes_back(path):
    assert read_checked_json(path) == read_checked_json(path, required=True) == CONTENT
    plain = json.loads(path.read_text("utf-8"))
    assert list(plain) == ["digest", *CONTENT]


@pytest.mark.parametrize("indent", [2, None])
@pytest.mark.parametrize("value", ["\udcff ä", 0.1 + 0.2, 1e-300, [], {"a": {}}], ids=repr)
def test_any_content_comes_back(tmp_path, value, indent):
    write_checked_json(tmp_path / "x.json", {"a": value}, indent=indent)
    assert read_checked_json(tmp_path / "x.json", required=True) == {"a": value}


def test_each_flipped_bit_is_told(path):
    content = path.read_bytes()
    for bit in range(len(content) * 8):
        flip(path, bit)
        with pytest.raises(ValueError, match=r"EL142|EL103"):
            read_checked_json(path, required=True)
        # In the name of the digest, it may pass for a key of others.
        try:
            found = read_checked_json(path)
        except ValueError as err:
            assert "EL142" in str(err) or "EL103" in str(err)
        else:
            assert {key: found[key] for key in CONTENT} == CONTENT
        path.write_bytes(content)


def test_a_file_of_before_or_of_people_passes_if_it_may(path):
    path.write_text('{"a": 1}')
    assert read_checked_json(path) == {"a": 1}
    with pytest.raises(ValueError, match="EL142.*x.json"):
        read_checked_json(path, required=True)
    path.write_text('{"digest": "x", "a": 1}')
    with pytest.raises(ValueError, match="EL142"):
        read_checked_json(path)


def test_a_change_on_purpose_is_told_until_the_digest_is_removed(path):
    lines = path.read_text("utf-8").replace("0.5", "0.6").splitlines(keepends=True)
    path.write_text("".join(lines), "utf-8")
    with pytest.raises(ValueError, match="EL142.*remove its line"):
        read_checked_json(path)
    path.write_text("".join([lines[0], *lines[2:]]), "utf-8")
    assert read_checked_json(path)["ä"][2] == 0.6


def test_other_things_are_told(path):
    for _ in replace_by_others(path):
        with pytest.raises(ValueError, match=r"EL10[013]|EL142"):
            read_checked_json(path)


def test_a_killed_writer_leaves_the_old_or_the_new(path):
    seen = []
    for _ in kill_at_each_write(lambda: write_checked_json(path, {"new": 1})):
        seen.append(read_checked_json(path))
        write_checked_json(path, CONTENT)
    assert CONTENT in seen and {"new": 1} in seen
    for _ in fail_at_each_write(lambda: write_checked_json(path, {"new": 1})):
        # What fails after the renaming comes too late to undo it.
        assert read_checked_json(path) in (CONTENT, {"new": 1})
        write_checked_json(path, CONTENT)
