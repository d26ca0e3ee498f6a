"""options.json of strangers: strict types, and messages with their own keys."""

import json
import os

import pytest

from spacy_elmo.checkpoints.allennlp import config_from_options, read_options

from ..support.toy import make_options

INTEGERS = {
    "projection_dim": "lstm.projection_dim",
    "dim": "lstm.dim",
    "n_layers": "lstm.n_layers",
    "max_characters_per_token": "char_cnn.max_characters_per_token",
    "n_highway": "char_cnn.n_highway",
    "n_characters": "char_cnn.n_characters",
}
NO_INTEGERS = {"text": '"4"', "float": "4.0", "flag": "true", "list": "[4]", "object": "{}"}
OTHERS = {
    "flag as text": ({"use_skip_connections": "False"}, 'lstm.use_skip_connections = "False"'),
    "flag null": ({"use_skip_connections": None}, "lstm.use_skip_connections = null"),
    "flag as number": ({"use_skip_connections": 1}, "lstm.use_skip_connections = 1, expected true"),
    "clip as text": ({"cell_clip": "3"}, 'lstm.cell_clip = "3", expected a number'),
    "clip as flag": ({"proj_clip": False}, "lstm.proj_clip = false"),
    "clip negative": ({"proj_clip": -1}, "lstm.proj_clip = -1"),
    "clip infinite": ({"cell_clip": 1e400}, "lstm.cell_clip = Infinity"),
    "embedding as number": ({"embedding": 16}, "char_cnn.embedding = 16, expected an object"),
    "embedding without dim": ({"embedding": {}}, "no 'dim' in char_cnn.embedding"),
    "embedding of text": ({"embedding": {"dim": "16"}}, 'char_cnn.embedding.dim = "16"'),
    "filters as text": ({"filters": "1,2"}, "filters = "),
    "filters of texts": ({"filters": [["1", "2"]]}, "filters = "),
    "filters of floats": ({"filters": [[1.0, 2]]}, "filters = "),
    "filters of three": ({"filters": [[1, 2, 3]]}, "filters = "),
    "activation as number": ({"activation": 1}, "activation = 1"),
    "activation null": ({"activation": None}, "activation = null"),
    "too many layers": ({"n_layers": 10**6}, "lstm.n_layers = 1000000, expected .* from 1 to 100"),
    "absurd width": ({"dim": 10**7}, "lstm.dim = 10000000"),
    "absurd characters": ({"max_characters_per_token": 10**9}, "max_characters_per_token"),
    "absurd highway": ({"n_highway": 10**5}, "char_cnn.n_highway = 100000"),
    "more than 64 bits": ({"dim": 10**30}, "lstm.dim = 1000"),
}


@pytest.mark.parametrize("value", NO_INTEGERS.values(), ids=NO_INTEGERS)
@pytest.mark.parametrize("key", INTEGERS)
def test_only_integers_are_integers(key, value):
    options = make_options(**{key: json.loads(value)})
    with pytest.raises(ValueError, match="EL036.*here") as caught:
        config_from_options(options, "here")
    assert f"{INTEGERS[key]} = {value}, expected an integer from" in str(caught.value)


@pytest.mark.parametrize("changes, match", OTHERS.values(), ids=OTHERS)
def test_other_types_are_refused(changes, match):
    with pytest.raises(ValueError, match=f"EL036.*here.*{match}"):
        config_from_options(make_options(**changes), "here")


@pytest.mark.parametrize("key", ["lstm", "char_cnn"])
@pytest.mark.parametrize("value", [None, 3, "x", []])
def test_blocks_are_objects(key, value):
    with pytest.raises(ValueError, match=f"EL036.*{key} = .*expected an object"):
        config_from_options({**make_options(), key: value}, "here")


@pytest.mark.parametrize("value", ["false", 0, None])
def test_directions_are_true_or_false(value):
    with pytest.raises(ValueError, match="EL036.*bidirectional = .*expected true or false"):
        config_from_options({**make_options(), "bidirectional": value}, "here")


def test_what_readers_of_others_take_is_taken():
    options = make_options(n_highway=None, n_characters=0, cell_clip=0.0, proj_clip=None)
    config = config_from_options({**options, "dropout": 0.1, "bidirectional": True}, "here")
    assert (config.n_highway, config.cell_clip, config.proj_clip) == (0, None, None)


CONTENTS = {
    "nothing": b"",
    "no json": b"{",
    "a list": b"[]",
    "a number": b"1",
    "null": b"null",
    "utf16": '{"a": 1}'.encode("utf-16"),
    "nan": b'{"lstm": NaN}',
    "nested": b"[" * 100_000,
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_what_is_no_object_is_refused_in_plain_words(tmp_path, content):
    path = tmp_path / "options.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"EL032.*options\.json'.* it (is|holds)") as caught:
        read_options(path)
    assert "Expecting" not in str(caught.value) and "codec" not in str(caught.value)


def test_pipes_and_folders_are_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    for path in (tmp_path, tmp_path / "pipe.json"):
        with pytest.raises(ValueError, match="EL101"):
            read_options(path)
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ValueError, match="EL102"):
        read_options(tmp_path / "large.json")
