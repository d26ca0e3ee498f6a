"""Experiments: what is compared, runs, subsets, summaries, probes."""

import json
from pathlib import Path

import numpy as np
import pytest
import spacy
import srsly
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy import util
from spacy.tokens import DocBin

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.experiments.jobs import run_all
from spacy_elmo.experiments.layer_probe import probe_layers
from spacy_elmo.experiments.results import read_results, write_result
from spacy_elmo.experiments.run_settings import RunSettings, read_settings
from spacy_elmo.experiments.runs import (
    Run,
    get_depth,
    get_lang,
    load_base,
    make_run_config,
    make_title,
)
from spacy_elmo.experiments.subsets import find_splits, write_subset
from spacy_elmo.experiments.summary import describe_suite, find_passing, format_scores, summarise
from spacy_elmo.experiments.variant_configs import make_variant
from spacy_elmo.experiments.variants import SUITES, choose_variants, get_score
from spacy_elmo.pipeline.presets import make_config

from ..support.helpers import SHAPE, hash_of
from ..support.pipelines import add_vectors
from ..support.toy_corpora import make_docs

COMPONENTS = {"tagger": "tag_acc", "ner": "ents_f", "textcat": "cats_score"}


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("component", COMPONENTS)
def test_variants_differ_in_the_tok2vec_alone(suite, component):
    configs = [make_variant(v, component, vectors="x") for v in choose_variants(suite, 2)]

    check_differences(suite, component, configs)


BASES = {
    "no encoder": {"encode": None},
    "an encoder": {"encode": {"@architectures": "spacy-elmo.BiLSTMEncoder.v1", "width": 8}},
}


def make_base(component, **tok2vec):
    """A config as a user writes it: its own network, corpus and batches."""
    base = make_config("word_features", [component])
    block = base["components"][component]["model"]["tok2vec"]
    block["embed"].update(attrs=["NORM", "SHAPE"], rows=[50, 50])
    block.update(tok2vec)
    base["training"]["batcher"]["size"] = 77
    base["components"]["elmo"]["model"]["batch_tokens"] = 99
    return base


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("name", BASES)
def test_variants_of_one_s_own_config_differ_in_the_tok2vec_alone(suite, name):
    base = make_base("tagger", **BASES[name])
    before = base.copy()
    variants = choose_variants(suite, 2)
    configs = [make_variant(v, "tagger", base=base, vectors="x") for v in variants]

    assert base == before
    for config, variant in zip(configs, variants):
        assert config["training"]["batcher"]["size"] == 77
        if variant.places:
            assert config["components"]["elmo"]["model"]["batch_tokens"] == 99
    if name == "an encoder":
        check_differences(suite, "tagger", configs)


def test_a_base_needs_word_features_and_vectors_a_pipeline():
    plain, _, *static = choose_variants("vectors", 2)
    for block in ({"embed": None}, {"@architectures": "spacy.Tok2Vec.v2"}):
        with pytest.raises(ValueError, match=r"EL230.*components\.tagger\.model"):
            make_variant(plain, "tagger", base=make_base("tagger", **block))
    with pytest.raises(ValueError, match="EL231.*'static vectors'.*--vectors"):
        make_variant(static[0], "tagger")
    with pytest.raises(ValueError, match="EL232.*nowhere"):
        load_base("nowhere.cfg")


@pytest.mark.parametrize(
    "change",
    [
        ("[components.tagger.model]", "[components.tagger]"),
        ("[components.tagger.model]", "[components.tagger.model]\n@layers = 1\n@layers = 2"),
        ("[nlp]", "[n]"),
        ("pipeline = [", "pipelin = ["),
        ("[components.tagger]", "[components]\ntagger = 3\n[x]"),
        ("[training.batcher]", "[training.x.y.z]"),
    ],
    ids=["twice", "two values", "no nlp", "no pipeline", "no block", "deep"],
)
def test_configs_that_are_none_are_refused(tmp_path, change):
    text = make_config("word_features", ["tagger"]).to_str()
    assert change[0] in text
    (tmp_path / "x.cfg").write_text(text.replace(*change))
    settings = RunSettings(str(tmp_path), "tagger", config=str(tmp_path / "x.cfg"))

    with pytest.raises(ValueError, match="EL232.*x.cfg|EL230"):
        make_run_config(Run(choose_variants("gain", 2)[1], 1.0, 0), settings)


def test_a_config_has_the_docs_of_the_settings(tmp_path):
    config = make_config("word_features", ["tagger"])
    config["corpora"]["train"]["path"] = "elsewhere/train.spacy"
    config["corpora"]["dev"]["path"] = "elsewhere/dev.spacy"
    config["corpora"]["own"] = dict(config["corpora"]["dev"])
    config["training"]["dev_corpus"] = "corpora.own"
    config.to_disk(tmp_path / "x.cfg")
    settings = RunSettings("corpus", "tagger", config=str(tmp_path / "x.cfg"))

    made = make_run_config(Run(choose_variants("gain", 2)[1], 1.0, 0), settings)

    made["paths"]["train"] = "here"
    corpora = made.interpolate()["corpora"]
    assert corpora["train"]["path"] == "here"
    assert corpora["dev"]["path"] == str(Path("corpus") / "dev.spacy")
    assert made["training"]["dev_corpus"] == "corpora.dev"


def test_a_language_that_is_named_is_that_of_every_run(tmp_path):
    make_config("word_features", ["tagger"], lang="de").to_disk(tmp_path / "x.cfg")
    config, run = str(tmp_path / "x.cfg"), Run(choose_variants("gain", 2)[1], 1.0, 0)

    for lang in ("ko", get_lang(config)):
        settings = RunSettings("corpus", "tagger", lang=lang, config=config)
        assert make_run_config(run, settings)["nlp"]["lang"] == lang
    assert get_lang(config) == "de" and get_lang("") == "en"


def check_differences(suite, component, configs):
    blocks = [c["components"][component]["model"].pop("tok2vec") for c in configs]
    assert len({str(block) for block in blocks}) == len(blocks)
    for config, variant in zip(configs, choose_variants(suite, 2)):
        expected = ["elmo", component] if variant.places else [component]
        assert config["nlp"]["pipeline"] == expected
        config["components"].pop("elmo", None)
        config["nlp"]["pipeline"] = [component]
        config["initialize"].pop("components", None)
        assert config == configs[0]
    for block in blocks:
        block["embed"].pop("include_static_vectors")
        assert all(block[key] == blocks[0][key] for key in ("embed", "encode"))


def test_the_paper_s_tables_are_covered():
    def listeners(suite):
        configs = [make_variant(v, "tagger", vectors="x") for v in choose_variants(suite, 2)]
        blocks = [c["components"]["tagger"]["model"]["tok2vec"] for c in configs]
        return [(b.get("input"), b.get("output")) for b in blocks]

    weighting = [i for i, o in listeners("weighting")[1:] if o is None]
    assert [i["output"] for i in weighting] == ["top", "average", "mix", "mix", "all", 0, 1]
    assert [i.get("mix_l2") for i in weighting] == [None, None, 1.0, 0.001, None, None, None]
    places = [(i is not None, o is not None) for i, o in listeners("placement")]
    assert places == [(False, False), (True, False), (False, True), (True, True)]
    _, elmo = listeners("gain")
    assert elmo[0]["output"] == "all" and elmo[1] is None
    # What is compared is the mix or the place, not norm and dropout.
    mixes = [block for suite in SUITES for pair in listeners(suite) for block in pair if block]
    kept = [(block["mix_layer_norm"], block["mix_dropout"]) for block in mixes]
    assert set(kept) == {(elmo[0]["mix_layer_norm"], elmo[0]["mix_dropout"])}
    assert len(choose_variants("weighting", 5)) == len(choose_variants("weighting", 2)) + 3


def get_tok2vec(variant, base=None):
    config = make_variant(variant, "tagger", base=base, vectors="x")
    block = config["components"]["tagger"]["model"]["tok2vec"]
    return {key: value for key, value in block.items() if value is not None}


def test_what_elmo_brings_is_what_its_presets_bring():
    _, elmo = choose_variants("gain", 2)
    *_, with_vectors = choose_variants("vectors", 2)
    for variant, preset in [(elmo, "word_features"), (with_vectors, "static_vectors")]:
        config = make_config(preset, ["tagger"])
        block = config["components"]["tagger"]["model"]["tok2vec"]
        assert get_tok2vec(variant) == {k: v for k, v in block.items() if v is not None}


PLACES = ("input", "output")
OWN_MIX = {"output": "mix", "initial_weights": [0.0, 1.0, 2.0], "mix_l2": 0.1, "mix_dropout": 0.2}


@pytest.mark.parametrize("suite", SUITES)
def test_the_mix_is_that_of_one_s_own_config(suite):
    """Where the suite does not compare mixes; where it does, norm and dropout are."""
    base = make_base("tagger")
    base["components"]["tagger"]["model"]["tok2vec"]["input"].update(OWN_MIX)
    for variant in choose_variants(suite, 2):
        block = get_tok2vec(variant, base)
        for place in variant.places:
            assert block[place]["mix_dropout"] == 0.2
            assert OWN_MIX.items() <= block[place].items() or "output" in variant.mix
            assert variant.mix.items() <= block[place].items()
            assert ("initial_weights" in block[place]) == ("output" not in variant.mix)


@pytest.mark.parametrize("own", [("input",), ("output",), ("input", "output")])
def test_elmo_stands_where_the_config_has_it(own):
    base = make_base("tagger")
    block = base["components"]["tagger"]["model"]["tok2vec"]
    listener = block.pop("input")
    block.update({place: {**listener, "mix_l2": 0.5 + len(place)} for place in own})
    elmo = get_tok2vec(choose_variants("gain", 2)[1], base)
    assert {p: elmo[p]["mix_l2"] for p in PLACES if p in elmo} == {p: 0.5 + len(p) for p in own}

    # The suites that set the mix set the place, too.
    for variant in choose_variants("placement", 2)[1:]:
        made = get_tok2vec(variant, base)
        assert tuple(place for place in PLACES if place in made) == variant.places


def test_words_are_dropped_where_elmo_is_beside_them():
    dropout = {v.name: get_tok2vec(v).get("word_dropout") for v in choose_variants("placement", 2)}

    preset = make_config("word_features", ["tagger"])["components"]["tagger"]["model"]["tok2vec"]
    share = preset["word_dropout"]
    assert share > 0
    assert dropout == {"plain": None, "input": share, "output": 0.0, "both": share}


@pytest.mark.parametrize("suite", SUITES)
def test_a_config_of_the_older_version_is_enough(suite, tmp_path):
    nlp = spacy.blank("en")
    add_vectors(nlp)
    nlp.to_disk(tmp_path)
    base = make_base("tagger")
    block = base["components"]["tagger"]["model"]["tok2vec"]
    block["@architectures"] = "spacy-elmo.ElmoTok2Vec.v1"
    block["input"]["@architectures"] = "spacy-elmo.ElmoListener.v1"
    del block["word_dropout"]
    shape = BiLMConfig(**SHAPE)
    for variant in choose_variants(suite, SHAPE["depth"]):
        config = make_variant(variant, "tagger", base=base, vectors=str(tmp_path), shape=shape)
        assert "tagger" in util.load_model_from_config(config, auto_fill=True).pipe_names


def test_unknown_experiments_and_components_are_said():
    with pytest.raises(ValueError, match="EL064.*samples"):
        choose_variants("best", 2)
    with pytest.raises(ValueError, match="EL061.*eggs"):
        get_score("eggs")


@pytest.mark.parametrize("component", COMPONENTS)
def test_the_score_is_the_component_s_own(component):
    assert get_score(component) == COMPONENTS[component]


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_subsets_keep_what_users_put_on_docs(tmp_path, share):
    docs = list(make_docs(10))
    for i, doc in enumerate(docs):
        doc.user_data["source"] = i
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "all.spacy")

    write_subset(tmp_path / "all.spacy", tmp_path / "part.spacy", share, 0)

    found = list(DocBin().from_disk(tmp_path / "part.spacy").get_docs(spacy.blank("en").vocab))
    assert all(doc.text == docs[doc.user_data["source"]].text for doc in found)


def test_the_score_of_spans_has_their_key():
    assert get_score("spancat", {"spans_key": "nested"}) == "spans_nested_f"
    assert get_score("spancat", {}) == "spans_sc_f"


@settings(max_examples=10)
@given(st.floats(0.001, 1), st.integers(0, 9))
def test_subsets_are_nested_and_chosen_by_the_seed(tmp_path, share, seed):
    DocBin(docs=make_docs(40)).to_disk(tmp_path / "all.spacy")

    def read(part):
        n_docs = write_subset(tmp_path / "all.spacy", tmp_path / "part.spacy", part, seed)
        docs = DocBin().from_disk(tmp_path / "part.spacy").get_docs(spacy.blank("en").vocab)
        found = [tuple((token.text, token.tag_) for token in doc) for doc in docs]
        assert len(found) == n_docs == max(1, round(part * 40))
        return found

    whole = read(1.0)
    larger, smaller, again = read(share), read(share / 2), read(share)
    assert larger == again
    remaining = list(whole)
    for doc in larger:
        remaining.remove(doc)
    remaining = list(larger)
    for doc in smaller:
        remaining.remove(doc)


def make_settings(tagged_corpus, weights, **changes):
    changes = {"max_steps": 4, "eval_frequency": 2, **changes}
    return RunSettings(str(tagged_corpus), "tagger", weights=str(weights), **changes)


@pytest.mark.slow
def test_runs_train_test_resume_and_say_how_they_were_made(tagged_corpus, weights, tmp_path):
    settings, output = make_settings(tagged_corpus, weights), tmp_path / "out"
    chosen = choose_variants("placement", get_depth(str(weights)))
    runs = [Run(variant, 1.0, 0) for variant in chosen]

    first = list(run_all(runs[:2], settings, output, cache=tmp_path / "cache"))
    times = {path: path.stat().st_mtime_ns for path in output.glob("*_1_0.json")}
    results = list(run_all(runs, settings, output, cache=tmp_path / "cache", n_jobs=2))

    assert {result["variant"] for result in results} == {v.name for v in chosen}
    assert results[:2] == json.loads(json.dumps(first))
    # Of this corpus alone.
    (kept,) = (tmp_path / "cache").iterdir()
    assert kept.name == tagged_corpus.name and list(kept.glob("*.sqlite"))
    assert all(path.stat().st_mtime_ns == time for path, time in times.items())
    for result in results:
        assert [line["step"] for line in result["curve"]] == [0, 2, 4]
        best = max(line["score"] for line in result["curve"])
        assert result["dev"]["tag_acc"] == pytest.approx(best, abs=1e-6)
        assert 0 <= result["test"]["tag_acc"] <= 1 and result["versions"]["spacy"]
        places = {mix["place"] for mix in result["mixes"]} - {"shared"}
        assert len(places) == {"plain": 0, "both": 2}.get(result["variant"], 1)
    # Nothing else is left there.
    names = {path.name for path in output.iterdir()}
    assert {Path(name).suffix for name in names - {".lock"}} == {".json"}
    found = describe_suite("toy", chosen, results, read_settings(output))
    write_result(output / "placement.json", "placement", "toy", found)
    assert [row["variant"] for row in found["rows"]] == [v.name for v in chosen]
    assert found["settings"]["biLM"] == hash_of(weights)
    old = [{**result, "date": "2020-01-01"} for result in results]
    assert describe_suite("toy", chosen, old, {})["date"] == "2020-01-01"
    (read,) = read_results(output).values()
    assert read["rows"] == json.loads(json.dumps(found["rows"]))


@pytest.mark.slow
def test_a_run_is_what_spacy_train_makes(tagged_corpus, weights, tmp_path):
    import spacy.cli.train

    settings = make_settings(tagged_corpus, weights)
    variant = choose_variants("gain", 2)[1]
    (result,) = run_all([Run(variant, 1.0, 3)], settings, tmp_path / "out")

    loader = {"@misc": "spacy-elmo.CheckpointLoader.v1", "path": str(weights)}
    config = make_variant(variant, "tagger", shape=BiLMConfig(**SHAPE), loader=loader)
    config["training"].update({"max_steps": 4, "eval_frequency": 2, "patience": 0})
    config["system"]["seed"] = 3
    config["paths"].update({n: str(tagged_corpus / f"{n}.spacy") for n in ("train", "dev")})
    config.to_disk(tmp_path / "x.cfg")
    from spacy.cli.init_config import fill_config

    fill_config(tmp_path / "x.cfg", tmp_path / "x.cfg", silent=True)
    spacy.cli.train.train(tmp_path / "x.cfg", tmp_path / "nlp")
    meta = srsly.read_json(tmp_path / "nlp/model-best/meta.json")
    assert result["dev"]["tag_acc"] == pytest.approx(meta["performance"]["tag_acc"], abs=0.02)


def test_runs_of_other_settings_are_not_mixed(tagged_corpus, weights, tmp_path):
    settings = make_settings(tagged_corpus, weights)
    assert list(run_all([], settings, tmp_path / "out")) == []
    (tmp_path / "out" / "plain_1_0.json").write_text("{}")

    with pytest.raises(ValueError, match="EL065.*max_steps = 4, not 5"):
        list(run_all([], make_settings(tagged_corpus, weights, max_steps=5), tmp_path / "out"))
    # The same path, other docs.
    DocBin(docs=make_docs(3)).to_disk(tagged_corpus / "train.spacy")
    with pytest.raises(ValueError, match="EL065.*train"):
        list(run_all([], settings, tmp_path / "out"))
    (tagged_corpus / "dev.spacy").unlink()
    with pytest.raises(ValueError, match="EL066.*dev.spacy"):
        list(run_all([], settings, tmp_path / "out"))


def test_a_test_split_is_optional(tagged_corpus):
    assert list(find_splits(tagged_corpus)) == ["train", "dev", "test"]
    (tagged_corpus / "test.spacy").unlink()
    assert list(find_splits(tagged_corpus)) == ["train", "dev"]


def make_result(variant, seed, score, steps, share=1.0):
    curve = [{"step": s, "epoch": 0, "score": score - 0.1 + s / 100} for s in steps]
    scores = {"tag_acc": score}
    return {
        "variant": variant, "share": share, "seed": seed, "score": "tag_acc", "dev": scores,
        "test": None, "curve": curve, "mixes": [], "n_docs": 7, "seconds": 1.0, "settings": {},
    }  # fmt: skip


def test_summaries_average_what_differs_in_the_seed():
    variants = choose_variants("gain", 2)
    results = [
        make_result("elmo", 1, 0.75, [0, 1, 2]),
        make_result("plain", 0, 0.25, [0, 1]),
        make_result("elmo", 0, 0.5, [0, 1]),
    ]

    plain, elmo = summarise(variants, results)

    assert plain["dev"] == [25.0] and plain["test"] == []
    assert elmo["seeds"] == [0, 1] and elmo["dev"] == [50.0, 75.0]
    # A run that ended keeps its last score.
    assert [line["step"] for line in elmo["curve"]] == [0, 1, 2]
    np.testing.assert_allclose(elmo["curve"][2]["scores"], [41.0, 67.0])
    np.testing.assert_allclose(elmo["curve"][1]["scores"], [41.0, 66.0])
    assert find_passing(elmo["curve"], 53.0) == 1
    assert find_passing(elmo["curve"], 90.0) == -1


def test_summaries_pass_over_what_was_not_run():
    variants = choose_variants("gain", 2)

    rows = summarise(variants, [make_result("elmo", 0, 0.5, [0], share=0.1)])

    assert [row["variant"] for row in rows] == ["elmo"]


@pytest.mark.parametrize("values, shown", [([], "-"), ([1.0], "1.00"), ([1.0, 3.0], "2.00 ± 1.41")])
def test_scores_are_shown_with_their_spread(values, shown):
    assert format_scores(values) == shown


def test_a_probe_finds_what_a_layer_knows(embedder):
    splits = {name: list(make_docs(300, i)) for i, name in enumerate(("train", "dev", "test"))}

    report = probe_layers(embedder, splits, "tag_", [0, 1])

    # The word alone says all; the word layer knows the word.
    assert report["frequent"] == {"dev": 100.0, "test": 100.0}
    assert np.mean(report["layers"][0]["test"]) > 70
    assert report["n_labels"] == 2 and report["splits"] == ["dev", "test"]
    assert report["n_tokens"]["train"] == sum(len(doc) for doc in splits["train"])
    again = probe_layers(embedder, splits, "tag_", [0, 1])
    assert again == report


def test_a_probe_knows_that_false_is_a_label(embedder):
    docs = list(make_docs(50))

    report = probe_layers(embedder, {"train": docs, "dev": docs}, "is_punct", [0])

    assert report["n_tokens"]["dev"] == sum(len(doc) for doc in docs)
    assert report["n_labels"] == len({token.is_punct for doc in docs for token in doc})


def test_titles_tell_shares_apart():
    titles = [make_title("elmo", share, 0) for share in (0.005, 0.015, 0.02, 0.025, 1.0)]
    assert titles[1] == "elmo, 1.5%, seed 0" and len(set(titles)) == 5


@pytest.mark.parametrize("attr", ["pos_", "eggs"])
def test_a_probe_of_nothing_is_said(embedder, attr):
    docs = list(make_docs(3))

    with pytest.raises(ValueError, match=f"EL041.*{attr}"):
        probe_layers(embedder, {"train": docs, "dev": docs}, attr, [0])


def test_a_split_without_labels_has_no_score():
    result = {**make_result("elmo", 0, 0.5, [0]), "test": {"tag_acc": None}}

    (row,) = summarise(choose_variants("gain", 2), [result])

    assert row["dev"] == [50.0] and row["test"] == []
