"""`[training] train_part`: LSTMs that are trained alone."""

import pytest
import torch

from spacy_elmo import load_embedder

from ..support.runs import SMALL, all_bytes, train
from .test_run import native_softmax


def test_lstms_alone_are_trained_if_that_is_asked_for(tmp_path, texts):
    train(tmp_path, texts, "first")
    first = tmp_path / "first"
    paths = {
        "train": str(texts / "train"),
        "dev": str(texts / "dev"),
        "init": str(first / "model-last"),
    }
    changes = {
        "paths": paths,
        "corpus": {**SMALL["corpus"], "vocabulary": str(first / "model-last" / "vocab.txt")},
        "training": {**SMALL["training"], "train_part": "lstms"},
    }

    train(tmp_path, texts, "whole", **changes)

    before, after = (
        load_embedder(tmp_path / name / "model-last").bilm.state_dict()
        for name in ("first", "whole")
    )
    changed = {name for name, weight in before.items() if not torch.equal(weight, after[name])}
    assert changed == {name for name in before if "_lstm." in name}
    softmaxes = [
        native_softmax(tmp_path / name / "model-last").state for name in ("first", "whole")
    ]
    assert all(torch.equal(softmaxes[0][name], softmaxes[1][name]) for name in softmaxes[0])

    train(tmp_path, texts, "parts", stop_at=7, **changes)
    with pytest.raises(ValueError, match="EL096"):
        train(tmp_path, texts, "parts", resume=True, **{**changes, "training": SMALL["training"]})
    train(tmp_path, texts, "parts", resume=True, **changes)
    assert all_bytes(tmp_path / "parts") == all_bytes(tmp_path / "whole")


def test_lstms_alone_need_the_rest_of_the_weights(tmp_path, texts):
    training = {**SMALL["training"], "train_part": "lstms"}
    with pytest.raises(ValueError, match='EL091.*train_part.*"all" without weights in'):
        train(tmp_path, texts, "w", training=training)
    with pytest.raises(ValueError, match="EL091.*train_part.*half"):
        train(tmp_path, texts, "w", training={**training, "train_part": "half"})

    train(tmp_path, texts, "first")
    paths = {
        "train": str(texts / "train"),
        "dev": None,
        "init": str(tmp_path / "first" / "model-last"),
    }
    with pytest.raises(ValueError, match="EL091.*vocabulary.*vocab.txt of these weights"):
        train(tmp_path, texts, "w", paths=paths, training=training)
    words = tmp_path / "words.txt"
    words.write_text("<S>\n</S>\n<UNK>\nI\nzyzzyva\n", "utf-8")
    corpus = {**SMALL["corpus"], "vocabulary": str(words)}
    with pytest.raises(ValueError, match="EL330.*missing: 1 of 5"):
        train(tmp_path, texts, "w", paths=paths, training=training, corpus=corpus)
