"""JSON with a digest of its own."""

import json

import pytest

from spacy_elmo.util.checked_json import read_checked_json, write_checked_json

CONTENT = {"ä": [1, None, 1e-13, "a/b"], "n": {}}


def test_each_flipped_bit_is_told_or_changes_nothing(tmp_path):
    path = tmp_path / "deep" / "x.json"
    write_checked_json(path, CONTENT)
    content = path.read_bytes()
    assert read_checked_json(path) == CONTENT
    assert list(json.loads(content)) == ["digest", *CONTENT]
    for bit in range(len(content) * 8):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            found = read_checked_json(path)
        except ValueError as err:
            assert "EL103" in str(err) or "EL104" in str(err)
        else:  # in the name of the digest: a key of others
            assert {key: found[key] for key in CONTENT} == CONTENT


def test_a_file_of_before_passes(tmp_path):
    (tmp_path / "x.json").write_text('{"a": 1}')
    assert read_checked_json(tmp_path / "x.json") == {"a": 1}
    (tmp_path / "x.json").write_text('{"digest": "x", "a": 1}')
    with pytest.raises(ValueError, match="EL104"):
        read_checked_json(tmp_path / "x.json")
