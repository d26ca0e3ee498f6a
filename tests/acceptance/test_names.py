"""Released names, their arguments and defaults, as data: what changes one of them fails here.

An argument more, or another default, is a new version of the name.
"""

import copy
import inspect
import pickle
from importlib.metadata import entry_points

import catalogue
import pytest
import spacy
import srsly

from spacy_elmo.checkpoints.formats import CheckpointFiles, CheckpointReader, find_reader
from spacy_elmo.registry import checkpoint_readers

NAMES = {
    "spacy_factories": [
        "elmo",
        "elmo_coref",
        "elmo_entailment",
        "elmo_lm",
        "elmo_qa",
        "elmo_senses",
        "elmo_srl",
    ],
    "spacy_architectures": [
        "spacy-elmo.BiLSTMEncoder.v1",
        "spacy-elmo.CorefSpanRanker.v1",
        "spacy-elmo.CorefSpanRanker.v2",
        "spacy-elmo.Elmo.v1",
        "spacy-elmo.Elmo.v2",
        "spacy-elmo.ElmoListener.v1",
        "spacy-elmo.ElmoListener.v2",
        "spacy-elmo.ElmoTok2Vec.v1",
        "spacy-elmo.ElmoTok2Vec.v2",
        "spacy-elmo.EntailmentESIM.v1",
        "spacy-elmo.EntailmentESIM.v2",
        "spacy-elmo.QABiDAF.v1",
        "spacy-elmo.QABiDAF.v2",
        "spacy-elmo.SRLTagger.v1",
        "spacy-elmo.StaticVectors.v1",
        "spacy-elmo.TextCatBCN.v1",
    ],
    "spacy_misc": [
        "spacy-elmo.ActivationCache.v1",
        "spacy-elmo.AllenNLPLoader.v1",
        "spacy-elmo.BundledLoader.v1",
        "spacy-elmo.BundledLoader.v2",
        "spacy-elmo.CheckpointLoader.v1",
        "spacy-elmo.RandomLoader.v1",
        "spacy-elmo.sentence_spans.v1",
        "spacy-elmo.window_spans.v1",
    ],
    "spacy_cli": ["elmo"],
    "spacy_loggers": ["spacy-elmo.WeightsLogger.v1"],
    "spacy_scorers": [
        "spacy-elmo.coref_scorer.v1",
        "spacy-elmo.entailment_scorer.v1",
        "spacy-elmo.qa_scorer.v1",
        "spacy-elmo.srl_scorer.v1",
    ],
    "spacy_readers": ["spacy-elmo.CorefCorpus.v1", "spacy-elmo.SpanCorpus.v1"],
    "spacy_elmo_checkpoint_readers": ["allennlp", "native", "pipeline"],
    "spacy_elmo_corpus_readers": ["jsonl", "spacy", "txt"],
    "spacy_elmo_models": ["en_small"],
    "spacy_elmo_softmaxes": ["adaptive", "full", "sampled"],
    "spacy_elmo_task_readers": [
        "annotations",
        "conll2003",
        "conll2005",
        "conll2012_coref",
        "conll2012_roles",
        "labelled_lines",
        "litbank_coref",
        "litbank_entities",
        "ontogum",
        "propbank_spans",
        "snli",
        "squad",
        "sst",
    ],
    "spacy_elmo_teachers": ["static_vectors", "transformer"],
}  # fmt: skip

REQUIRED = inspect.Parameter.empty
MIX = {
    "output": "mix",
    "initial_weights": None,
    "fixed_weights": False,
    "mix_l2": 0.0,
    "mix_layer_norm": False,
    "mix_dropout": 0.0,
}
ELMO = {
    "get_spans": None,
    "width": 256,
    "depth": 2,
    "cell_width": 512,
    "char_width": 16,
    "filters": ((1, 32), (2, 32), (3, 64), (4, 128), (5, 128)),
    "n_highway": 1,
    "max_chars": 50,
    "cell_clip": None,
    "proj_clip": None,
    "projection": True,
    "skip_connections": True,
    "activation": "relu",
    "input": "characters",
    "n_words": 0,
    "vector_width": 0,
    "frozen": True,
    **MIX,
    "batch_tokens": 8192,
    "word_cache": 100_000,
    "initial_state": "zero",
    "precision": "fp32",
    "n_threads": 0,
}
# What `.v2` has of another shape.
BUNDLED = {
    "width": 512,
    "cell_width": 256,
    "projection": False,
    "filters": ((1, 32), (2, 64), (3, 128), (4, 256), (5, 256), (6, 288)),
}
ARGUMENTS = {
    "spacy-elmo.Elmo.v1": ELMO,
    "spacy-elmo.Elmo.v2": {**ELMO, **BUNDLED},
    "spacy-elmo.BiLSTMEncoder.v1": {"width": REQUIRED, "depth": 1, "dropout": 0.0},
    "spacy-elmo.CorefCorpus.v1": {
        "path": REQUIRED, "gold_tokens": True, "sentences": True, "limit": 0, "augmenter": None,
    },
    "spacy-elmo.CorefSpanRanker.v1": {
        "tok2vec": REQUIRED, "width": 200, "depth": 1, "max_span": 20, "share": 0.3,
        "n_antecedents": 50, "max_train_sentences": 40, "dropout": 0.3,
        "word_match": False,
    },
    "spacy-elmo.CorefSpanRanker.v2": {
        "tok2vec": REQUIRED, "width": 200, "depth": 1, "max_span": 20, "share": 0.3,
        "n_antecedents": 50, "max_train_sentences": 40, "dropout": 0.3,
        "word_match": True,
    },
    "spacy-elmo.coref_scorer.v1": {},
    "spacy-elmo.EntailmentESIM.v1": {
        "tok2vec": REQUIRED, "width": 200, "dropout": 0.3, "nO": None, "word_match": False,
    },
    "spacy-elmo.EntailmentESIM.v2": {
        "tok2vec": REQUIRED, "width": 200, "dropout": 0.3, "nO": None, "word_match": True,
    },
    "spacy-elmo.TextCatBCN.v1": {
        "tok2vec": REQUIRED, "exclusive_classes": REQUIRED, "width": 200, "maxout_pieces": 4,
        "dropout": 0.3, "nO": None,
    },
    "spacy-elmo.entailment_scorer.v1": {},
    "spacy-elmo.QABiDAF.v1": {
        "tok2vec": REQUIRED, "width": 128, "self_attention": True, "dropout": 0.2,
        "word_match": False,
    },
    "spacy-elmo.QABiDAF.v2": {
        "tok2vec": REQUIRED, "width": 128, "self_attention": True, "dropout": 0.2,
        "word_match": True,
    },
    "spacy-elmo.qa_scorer.v1": {},
    "spacy-elmo.ElmoListener.v1": {
        "upstream": "elmo", "width": REQUIRED, "depth": REQUIRED, **MIX,
    },
    "spacy-elmo.ElmoListener.v2": {
        "upstream": "elmo", "width": REQUIRED, "depth": REQUIRED, **MIX,
    },
    "spacy-elmo.ElmoTok2Vec.v2": {
        "encode": None, "embed": None, "input": None, "output": None, "word_dropout": 0.0,
        "vectors": None,
    },
    "spacy-elmo.StaticVectors.v1": {"width": 96},
    "spacy-elmo.ElmoTok2Vec.v1": {
        "encode": REQUIRED, "embed": None, "input": None, "output": None, "word_dropout": 0.0,
    },
    "spacy-elmo.SRLTagger.v1": {
        "tok2vec": REQUIRED, "width": 200, "depth": 4, "dropout": 0.1, "max_tokens": 128,
        "batch_tokens": 8192,
    },
    "spacy-elmo.ActivationCache.v1": {"path": None, "megabytes": 4000, "dtype": "float32"},
    "spacy-elmo.AllenNLPLoader.v1": {"options_path": REQUIRED, "weights_path": REQUIRED},
    "spacy-elmo.BundledLoader.v1": {},
    "spacy-elmo.BundledLoader.v2": {"name": "en_small"},
    "spacy-elmo.CheckpointLoader.v1": {"path": REQUIRED},
    "spacy-elmo.RandomLoader.v1": {"seed": 0},
    "spacy-elmo.sentence_spans.v1": {"max_tokens": 1024},
    "spacy-elmo.window_spans.v1": {"window": 128},
    "spacy-elmo.SpanCorpus.v1": {
        "path": REQUIRED, "groups": REQUIRED, "sentences": False, "gold_preproc": False,
        "max_length": 0, "limit": 0, "augmenter": None,
    },
    "spacy-elmo.WeightsLogger.v1": {"logger": None, "path": None},
    "spacy-elmo.srl_scorer.v1": {},
    "annotations": {"nlp": REQUIRED, "path": REQUIRED, "part": "all", "key": ""},
    "conll2003": {"nlp": REQUIRED, "path": REQUIRED, "joined": False},
    "conll2005": {"nlp": REQUIRED, "path": REQUIRED},
    "conll2012_coref": {"nlp": REQUIRED, "path": REQUIRED},
    "conll2012_roles": {"nlp": REQUIRED, "path": REQUIRED, "joined": False},
    "litbank_coref": {"nlp": REQUIRED, "path": REQUIRED},
    "ontogum": {"nlp": REQUIRED, "path": REQUIRED},
    "labelled_lines": {"nlp": REQUIRED, "path": REQUIRED},
    "litbank_entities": {"nlp": REQUIRED, "path": REQUIRED, "joined": False, "key": "sc"},
    "propbank_spans": {"nlp": REQUIRED, "path": REQUIRED, "joined": False},
    "snli": {"nlp": REQUIRED, "path": REQUIRED},
    "squad": {
        "nlp": REQUIRED, "path": REQUIRED, "part": "", "parts": "8,1,1", "without": "",
        "negatives": 0.0,
    },
    "sst": {"nlp": REQUIRED, "path": REQUIRED, "binary": False, "phrases": False},
    "adaptive": {
        "width": REQUIRED, "n_words": REQUIRED, "cutoffs": (2000, 10000), "div_value": 2.0,
    },
    "full": {"width": REQUIRED, "n_words": REQUIRED},
    "sampled": {"width": REQUIRED, "n_words": REQUIRED, "n_samples": 4096},
}  # fmt: skip
WITH_ARGUMENTS = [
    "spacy_architectures", "spacy_misc", "spacy_loggers", "spacy_readers", "spacy_scorers",
    "spacy_elmo_softmaxes", "spacy_elmo_task_readers",
]  # fmt: skip
COMPONENTS = {
    "elmo": {
        "model": {"@architectures": "spacy-elmo.Elmo.v2"},
        "store_layers": False,
        "vector_hooks": None,
        "learn_rate_factor": 1.0,
        "installed_weights": None,
    },
    "elmo_coref": {
        "model": {
            "@architectures": "spacy-elmo.CorefSpanRanker.v2",
            "tok2vec": {
                "@architectures": "spacy-elmo.ElmoListener.v2",
                "upstream": "elmo",
                "width": 512,
                "depth": 2,
            },
        },
        "prefix": "coref_clusters",
        "singletons": False,
        "mention_weight": 1.0,
        "scorer": {"@scorers": "spacy-elmo.coref_scorer.v1"},
    },
    "elmo_entailment": {
        "model": {
            "@architectures": "spacy-elmo.EntailmentESIM.v2",
            "tok2vec": {
                "@architectures": "spacy-elmo.ElmoListener.v2",
                "upstream": "elmo",
                "width": 512,
                "depth": 2,
            },
        },
        "scorer": {"@scorers": "spacy-elmo.entailment_scorer.v1"},
    },
    "elmo_lm": {"path": None, "get_spans": None, "substitutes": True, "batch_tokens": 4096},
    "elmo_qa": {
        "model": {
            "@architectures": "spacy-elmo.QABiDAF.v2",
            "tok2vec": {
                "@architectures": "spacy-elmo.ElmoListener.v2",
                "upstream": "elmo",
                "width": 512,
                "depth": 2,
            },
        },
        "window": 384,
        "stride": 256,
        "max_answer": 30,
        "train_windows": 3,
        "n_best": 5,
        "threshold": 0.5,
        "scorer": {"@scorers": "spacy-elmo.qa_scorer.v1"},
    },
    "elmo_senses": {"upstream": "elmo"},
    "elmo_srl": {
        "model": {
            "@architectures": "spacy-elmo.SRLTagger.v1",
            "tok2vec": {
                "@architectures": "spacy-elmo.ElmoListener.v2",
                "upstream": "elmo",
                "width": 512,
                "depth": 2,
            },
        },
        "predicates": "predicted",
        "threshold": 0.5,
        "scorer": {"@scorers": "spacy-elmo.srl_scorer.v1"},
    },
}


@pytest.mark.parametrize("group, names", NAMES.items(), ids=NAMES)
def test_released_names_are_declared(group, names):
    ours = [e for e in entry_points(group=group) if e.value.startswith("spacy_elmo.")]

    assert sorted(e.name for e in ours) == names
    for entry in ours:
        assert entry.load() is not None


@pytest.mark.parametrize("name", NAMES["spacy_architectures"])
def test_spacy_finds_our_architectures(name):
    assert spacy.registry.architectures.get(name)


def get_arguments():
    for group in WITH_ARGUMENTS:
        for entry in entry_points(group=group):
            if entry.value.startswith("spacy_elmo."):
                parameters = inspect.signature(entry.load()).parameters
                yield entry.name, {key: p.default for key, p in parameters.items()}


def test_arguments_and_defaults_stay():
    found = dict(get_arguments())

    assert found == ARGUMENTS
    # An equal value of another kind is another default: 1 for 1.0, a list for a tuple.
    assert repr(found) == repr({name: ARGUMENTS[name] for name in found})


@pytest.mark.parametrize("name", COMPONENTS)
def test_defaults_of_components_stay(name):
    meta = spacy.blank("en").get_factory_meta(name)

    assert repr(meta.default_config) == repr(COMPONENTS[name])
    arguments = inspect.signature(spacy.registry.factories.get(name)).parameters
    assert [*arguments] == ["nlp", "name", *COMPONENTS[name]]


def test_defaults_can_be_copied_sent_and_written_and_not_changed():
    """They stand in the config of each pipeline."""
    for name, arguments in [*get_arguments(), *COMPONENTS.items()]:
        for key, value in arguments.items():
            if value is REQUIRED:
                continue
            assert copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == value
            assert srsly.is_json_serializable(value), (name, key)
            assert name in COMPONENTS or not isinstance(value, (list, dict, set)), (name, key)


def test_others_can_add_a_format(tmp_path):
    reader = CheckpointReader(lambda files: files.path.suffix == ".toy", None, None, None)
    (tmp_path / "model.toy").touch()
    checkpoint_readers.register("toy", func=reader)
    try:
        assert find_reader(CheckpointFiles(tmp_path / "model.toy")) is reader
    finally:
        catalogue._remove(("spacy_elmo", "checkpoint_readers", "toy"))
