"""The scripts of benchmarks/ by which recipes of pretraining are chosen."""

import random
import sys
from pathlib import Path

import numpy as np
import pytest
import spacy
import srsly
import torch
from spacy.tokens import Doc, Span

from spacy_elmo import load_embedder
from spacy_elmo.pretraining.config import RunConfig
from spacy_elmo.pretraining.config_files import load_config

from .support.helpers import ROOT, SHAPE
from .support.runs import SMALL

pytest.importorskip("typer")
sys.path.insert(0, str(ROOT / "benchmarks"))
import ladder
import probe_biLM

sys.path.remove(str(ROOT / "benchmarks"))

KINDS = ["O", "PER", "LOC"]


def make_data(n_docs, seed):
    """Sentences, and vectors that say which kind of entity each word is of."""
    rng, vocab = random.Random(seed), spacy.blank("en").vocab
    docs, inputs = [], []
    for _ in range(n_docs):
        kinds = [rng.choice(KINDS) for _ in range(rng.randrange(1, 6))]
        doc = Doc(vocab, words=["x"] * len(kinds))
        # Each word is an entity of its own.
        doc.set_ents([Span(doc, i, i + 1, label=k) for i, k in enumerate(kinds) if k != "O"])
        docs.append(doc)
        noise = np.random.default_rng(rng.randrange(1 << 32))
        X = np.eye(3)[[KINDS.index(kind) for kind in kinds]]
        inputs.append((X + noise.normal(scale=0.05, size=X.shape)).astype("float16"))
    return docs, inputs


def test_the_probe_finds_what_the_vectors_know():
    docs, inputs = {}, {}
    for i, split in enumerate(("train", "dev")):
        docs[split], inputs[split] = make_data(60, i)
    known = probe_biLM.fit_all(inputs, docs, 60, 2)
    again = probe_biLM.fit_all(inputs, docs, 60, 1)
    blind = {split: [X * 0 for X in each] for split, each in inputs.items()}
    (unknown,) = probe_biLM.fit_all(blind, docs, 60, 1)

    assert min(known) > 95 and unknown < 60
    assert again == known[:1]


def test_the_probe_counts_whole_entities():
    doc = Doc(spacy.blank("en").vocab, words=["a", "b", "c"])
    doc.set_ents([Span(doc, 0, 2, label="PER")])
    for tags, expected in (
        (["B-PER", "I-PER", "O"], 100),
        (["B-PER", "O", "O"], 0),
        (["B-PER", "I-PER", "B-LOC"], pytest.approx(200 / 3)),
        (["O", "O", "O"], 0),
    ):
        assert probe_biLM.score([tags], [doc]) == expected


def test_a_rung_trains_as_long_as_its_budget(tmp_path, texts):
    settings = {"warmup_steps": 1, "precision": "fp32", "softmax": SMALL["training"]["softmax"]}
    training = {**settings, "batch_tokens": SMALL["training"]["batch_tokens"]}
    variants, words = tmp_path / "variants.json", tmp_path / "words.txt"
    srsly.write_json(
        variants,
        {
            "small": {"bilm": SHAPE, "training": training},
            "still": {"training": {**training, "learn_rate": 1e-12}},
        },
    )
    words.write_text("<S>\n</S>\n<UNK>\nlike\neggs\n", "utf-8")
    n_threads = torch.get_num_threads()

    def climb(name, init):
        ladder.train(
            variants, name, texts / "train", words, tmp_path / "work", init=init, vectors="",
            word_vectors="", transformer="", budget=0.1, precision="fp32", device="cpu", workers=0,
        )  # fmt: skip
        return load_embedder(tmp_path / "work" / name / "model-last").bilm

    try:
        first = climb("small", "")
        second = climb("still", str(tmp_path / "work" / "small" / "model-last"))
    finally:
        torch.set_num_threads(n_threads)

    found = srsly.read_json(tmp_path / "work" / "small" / "ladder.json")
    assert found["steps"] >= ladder.TRIAL_STEPS and found["n_tokens"] > 40 * found["steps"]
    again = srsly.read_json(tmp_path / "work" / "still" / "ladder.json")
    assert found["init"] == "" and len(again["init"]) == 16
    assert first.config == second.config and first.config.width == 8
    # It went on from the first, and stood still.
    for name, tensor in first.state_dict().items():
        torch.testing.assert_close(second.state_dict()[name], tensor, atol=1e-5, rtol=0)
    assert {folder.name for folder in (tmp_path / "work").iterdir()} == {"small", "still"}


def test_all_variants_of_the_ladder_are_configs(tmp_path):
    paths = dict.fromkeys(("train", "vectors", "word_vectors", "transformer"), "somewhere")
    configs = {}
    for name, changes in srsly.read_json(ROOT / "benchmarks/ladder.json").items():
        config = ladder.make_config(changes, paths, Path("words.txt"), "")
        config.to_disk(tmp_path / "run.cfg", interpolate=False)
        configs[name] = load_config(tmp_path / "run.cfg")
        teachers = configs[name]["training"].pop("teachers")
        assert all(teacher["path"] == "somewhere" for teacher in teachers.values())
        configs[name]["training"]["teachers"] = {}
        RunConfig.check(configs[name])
        configs[name]["training"]["teachers"] = teachers

    assert all(configs[name] != configs["base"] for name in configs if name != "base")
    assert {*configs["all_three"]["training"]["teachers"]} == {"words", "pieces", "context"}


def test_the_ladder_s_table_has_what_each_run_knows(tmp_path, capsys):
    for name, perplexity, beside in (("worse", 90.0, None), ("better", 80.0, [50.0, 52.0])):
        folder = tmp_path / name
        folder.mkdir()
        probe = {"perplexity": perplexity, "xpos": [85.0, 92.5, 92.0], "operations": 4_200_000}
        probe |= {task: [40.0, 42.0] for task in probe_biLM.ENTITIES}
        if beside:
            probe["wnut17_vectors"] = beside
        srsly.write_json(folder / "probe.json", probe)
        srsly.write_json(folder / "ladder.json", {"n_tokens": 1_500_000})
    ladder.tabulate(tmp_path)

    header, _, first, second = [
        [cell.strip() for cell in line.strip("| ").split("|")]
        for line in capsys.readouterr().out.strip().splitlines()
    ]
    assert header[:4] == ["run", "million tokens", "perplexity", "XPOS by layer"]
    assert first[:4] == ["better", "1.5", "80.0", "85.00 92.50 92.00"]
    assert first[header.index("wnut17_vectors")] == "51.0 ± 1.4"
    assert second[header.index("wnut17_vectors")] == "-"
    assert second[header.index("wnut17")] == "41.0 ± 1.4"
