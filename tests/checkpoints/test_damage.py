"""Damage of any kind is noticed, or at least is one of our errors."""

import json
import os
import random
import shutil
import struct
import warnings

import pytest
import torch

from spacy_elmo import load_embedder
from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.bilm.model import BiLM
from spacy_elmo.checkpoints.allennlp import write_allennlp
from spacy_elmo.checkpoints.formats import CheckpointFiles
from spacy_elmo.checkpoints.loaders import read_config
from spacy_elmo.checkpoints.native import read_meta, write_native
from spacy_elmo.files import DIGESTS_FILE
from spacy_elmo.language_model.loading import collect_softmax, load_language_model
from spacy_elmo.language_model.softmax import make_softmax

from ..support.helpers import SHAPE
from ..support.limits import finish_limited

WORDS = ["<S>", "</S>", "<UNK>", "eggs", "ham", "höher"]
KINDS = ("native", "adaptive", "words", "allennlp")
# Bits of a large file that the default suite flips.
N_SAMPLED = 40
SMALL = 2000


def make_folder(path, kind):
    """A checkpoint with all its files: native with each kind of softmax and input, or
    AllenNLP's."""
    torch.manual_seed(0)
    changes = {"input": "words", "n_words": 2} if kind == "words" else {}
    bilm = BiLM(BiLMConfig(**{**SHAPE, **changes}))
    settings = {"cutoffs": [4]} if kind == "adaptive" else {}
    name = "adaptive" if kind == "adaptive" else "full"
    softmax = collect_softmax(make_softmax(name, 4, len(WORDS), **settings), name, settings, WORDS)
    if kind == "allennlp":
        write_allennlp(bilm, path, softmax)
    else:
        write_native(bilm, path, softmax=softmax, meta={"lang": "en", "n": [1, 2.5, None]})
    return path


def load(folder):
    """Read all there is."""
    loaded = load_language_model(CheckpointFiles(folder))
    return {**loaded.model.state_dict(), "words": loaded.vocabulary.words}


def list_files(folder):
    return sorted(path.name for path in folder.iterdir())


def flip(path, bit):
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def count_unnoticed(folder, bits_of):
    """Flip bits one at a time. RETURNS how many were flipped and, of these, which went by."""
    n_flipped, unnoticed = 0, []
    for name in list_files(folder):
        path = folder / name
        content = path.read_bytes()
        for bit in bits_of(len(content) * 8):
            flip(path, bit)
            n_flipped += 1
            try:
                load(folder)
                unnoticed.append((name, bit))
            except ValueError as err:
                assert "[EL" in str(err), err
            path.write_bytes(content)
    return n_flipped, unnoticed


def sample_bits(n_bits):
    rng = random.Random(n_bits)
    return rng.sample(range(n_bits), min(n_bits, N_SAMPLED))


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_of_any_file_is_noticed(tmp_path, kind):
    folder = make_folder(tmp_path / "model", kind)
    n_flipped, unnoticed = count_unnoticed(folder, sample_bits)
    assert n_flipped >= N_SAMPLED * 5 and not unnoticed
    load(folder)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_of_each_byte_of_small_files_and_of_many_of_large_ones_is_noticed(
    tmp_path, kind
):
    folder = make_folder(tmp_path / "model", kind)
    rng = random.Random(0)

    def choose(n_bits):
        n_bytes = n_bits // 8
        places = range(n_bytes) if n_bytes <= SMALL else rng.sample(range(n_bytes), SMALL // 4)
        return [8 * place + rng.randrange(8) for place in places]

    n_flipped, unnoticed = count_unnoticed(folder, choose)
    assert n_flipped > 1_000 and not unnoticed


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_and_an_empty_file_are_noticed(tmp_path, kind):
    folder = make_folder(tmp_path / "model", kind)
    for name in list_files(folder):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(b"")
        with pytest.raises(ValueError, match=r"\[EL"):
            load(folder)
        (folder / name).unlink()
        if name not in ("meta.json", DIGESTS_FILE):
            with pytest.raises(ValueError, match=r"\[EL"):
                load(folder)
        (folder / name).write_bytes(content)


def test_numbers_of_a_single_file_are_checked_too(tmp_path):
    """An exported file of weights that was moved without the others has its own digests."""
    folder = make_folder(tmp_path / "model", "allennlp")
    (folder / DIGESTS_FILE).unlink()
    pair = folder / "options.json", folder / "weights.hdf5"
    path = pair[1]
    content = path.read_bytes()
    bias = load_embedder(*pair).bilm.char_cnn.projection.bias.detach().numpy().tobytes()
    flip(path, content.index(bias) * 8)
    with pytest.raises(ValueError, match=r"EL111.*CNN_proj/b_proj.*weights\.hdf5"):
        load_embedder(*pair)


def test_a_pair_out_of_an_exported_folder_is_checked(tmp_path):
    folder = make_folder(tmp_path / "model", "allennlp")
    pair = folder / "options.json", folder / "weights.hdf5"
    load_embedder(*pair)
    shutil.copy(pair[0], folder / "mine.json")
    load_embedder(folder / "mine.json", pair[1])
    options = json.loads(pair[0].read_text())
    options["lstm"]["use_skip_connections"] = False
    pair[0].write_text(json.dumps(options))
    for read in (load_embedder, read_config):
        with pytest.raises(ValueError, match=r"EL104.*options\.json"):
            read(*pair)


# Fuzzing


def mutate_bytes(rng, content):
    content = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        if not content:
            break
        at = rng.randrange(len(content))
        content[at] = rng.choice(
            [content[at] ^ (1 << rng.randrange(8)), rng.randrange(256), 0, 255]
        )
    return bytes(content)


def mutate_head(rng, content):
    """What describes a file stands at its begin and, in HDF5, around the numbers."""
    head = rng.choice([64, 256, 1024, 4096])
    return mutate_bytes(rng, content[:head]) + content[head:]


def cut(rng, content):
    at = rng.randrange(len(content) + 1)
    return rng.choice([content[:at], content[at:], content[:at] + bytes(len(content) - at)])


def splice(rng, content):
    if not content:
        return b"\0"
    a, b, n = (rng.randrange(len(content)) for _ in range(3))
    return content[:a] + content[b : b + n] + content[a + rng.choice([0, n]) :]


def overwrite_number(rng, content):
    """A size or an address of the file that is another, or absurd."""
    if len(content) < 8:
        return content
    at = rng.randrange(0, len(content) - 7)
    value = rng.choice([0, 1, at, 1 << 31, 1 << 40, (1 << 64) - 1, rng.randrange(len(content))])
    return content[:at] + struct.pack("<Q", value) + content[at + 8 :]


VALUES = [None, True, "4", 4.5, -1, 0, 10**9, 10**30, [], {}, [[1, 2]], "x" * 5000, [None], 1e400]


def mutate_json(rng, value):
    """Replace, remove or add a value somewhere."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(sorted(value))
        if rng.random() < 0.2:
            return {k: v for k, v in value.items() if k != key}
        if rng.random() < 0.1:
            return {**value, "more": rng.choice(VALUES)}
        return {**value, key: mutate_json(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.7:
        i = rng.randrange(len(value))
        return [*value[:i], mutate_json(rng, value[i]), *value[i + 1 :]]
    return rng.choice(VALUES)


def mutate_header(rng, content):
    """The JSON that begins a file of tensors."""
    (n_bytes,) = struct.unpack_from("<Q", content)
    header = json.dumps(mutate_json(rng, json.loads(content[8 : 8 + n_bytes]))).encode()
    return struct.pack("<Q", len(header)) + header + content[8 + n_bytes :]


def mutate(rng, name, content):
    ways = [mutate_bytes, mutate_head, cut, splice, overwrite_number]
    if name.endswith(".json"):
        ways += [lambda rng, text: json.dumps(mutate_json(rng, json.loads(text))).encode()] * 5
    if name.endswith(".safetensors"):
        ways += [mutate_header] * 5
    return rng.choice(ways)(rng, content)


def use(folder, changed):
    """Whatever can be done with a checkpoint; the embedder must work where it was made."""
    for work in (
        lambda: read_config(folder),
        lambda: load(folder),
        lambda: load_embedder(folder).embed([["eggs", "x" * 40], []]),
        lambda: read_meta(folder),
    ):
        try:
            work()
        except ValueError as err:
            assert str(err).startswith("[EL"), f"{changed}: {err!r}"
            assert len(str(err)) < 3000 and str(err).isprintable(), changed


def fuzz(folder, seed, n_mutations):
    rng = random.Random(seed)
    names = [name for name in list_files(folder) if name != DIGESTS_FILE]
    (folder / DIGESTS_FILE).unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(n_mutations):
            name = rng.choice(names)
            content = (folder / name).read_bytes()
            (folder / name).write_bytes(mutate(rng, name, content))
            use(folder, f"mutation {i} of {name}, seed {seed}")
            (folder / name).write_bytes(content)


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files_raise_our_errors_alone(tmp_path, kind):
    """Without digests: other numbers may come, but nothing else."""
    folder = make_folder(tmp_path / "model", kind)
    finish_limited(lambda: fuzz(folder, 0, 60), seconds=60, n_bytes=1_000_000_000)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", KINDS)
def test_many_mutated_files_raise_our_errors_alone(tmp_path, kind):
    folder = make_folder(tmp_path / "model", kind)
    finish_limited(lambda: fuzz(folder, 1, 600), seconds=900, n_bytes=1_000_000_000)


@pytest.mark.parametrize("kind", KINDS)
def test_a_mutated_file_is_noticed_by_its_digest(tmp_path, kind):
    folder = make_folder(tmp_path / "model", kind)
    rng = random.Random(0)
    for _ in range(60):
        name = rng.choice(list_files(folder))
        content = (folder / name).read_bytes()
        changed = mutate(rng, name, content)
        if changed == content or (name == DIGESTS_FILE and is_same_json(changed, content)):
            continue
        (folder / name).write_bytes(changed)
        with pytest.raises(ValueError, match=r"^\[EL"):
            load(folder)
        (folder / name).write_bytes(content)


def is_same_json(a, b):
    try:
        return {**json.loads(b), **json.loads(a)} == json.loads(a)
    except (ValueError, TypeError):
        return False


def test_the_bundled_model_has_digests(tmp_path):
    from spacy_elmo.checkpoints.formats import BUNDLED

    shutil.copytree(BUNDLED, tmp_path / "copy")
    assert (tmp_path / "copy" / DIGESTS_FILE).exists()
    path = tmp_path / "copy" / "softmax.safetensors"
    flip(path, 8 * (os.path.getsize(path) - 1))
    with pytest.raises(ValueError, match=r"EL104.*softmax\.safetensors"):
        load(tmp_path / "copy")
