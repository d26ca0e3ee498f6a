"""Training configs of the variants that experiments compare."""

import pytest
import spacy
from spacy import util

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.experiments.runs import Run, RunSettings, get_score, load_base, make_run_config
from spacy_elmo.experiments.variants import SUITES, choose_variants, make_variant
from spacy_elmo.pipeline.presets import make_config

from ..support.helpers import ROOT, SHAPE
from ..support.pipelines import add_vectors

PLAIN, ELMO = choose_variants("gain", 2)
LOADER = {"@misc": "spacy-elmo.CheckpointLoader.v1", "path": "weights"}
TABLE1 = sorted((ROOT / "projects/table1").glob("*.cfg"))


@pytest.fixture
def vectors(tmp_path):
    """A pipeline with static vectors."""
    nlp = spacy.blank("en")
    add_vectors(nlp)
    nlp.to_disk(tmp_path / "vectors")
    return str(tmp_path / "vectors")


def make_base(component="tagger", **tok2vec):
    """A user's config: with settings that no preset has."""
    base = make_config("word_features", [component])
    block = base["components"][component]["model"]["tok2vec"]
    block["embed"].update(attrs=["NORM", "SHAPE"], rows=[50, 50])
    block.update(tok2vec)
    base["training"]["batcher"]["size"] = 77
    base["components"]["elmo"]["model"]["batch_tokens"] = 99
    return base


def get_tok2vec(variant, base=None):
    config = make_variant(variant, "tagger", base=base, vectors="x")
    block = config["components"]["tagger"]["model"]["tok2vec"]
    return {key: value for key, value in block.items() if value is not None}


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("component", ["tagger", "textcat"])
def test_variants_differ_in_the_tok2vec_only(suite, component):
    variants = choose_variants(suite, 2)
    for base in (None, make_base(component)):
        before = base and base.copy()
        configs = [make_variant(v, component, base=base, vectors="x") for v in variants]
        blocks = [c["components"][component]["model"].pop("tok2vec") for c in configs]

        assert base == before
        assert len({str(block) for block in blocks}) == len(blocks)
        for config, variant, block in zip(configs, variants, blocks):
            assert config["nlp"]["pipeline"] == ["elmo"] * bool(variant.places) + [component]
            elmo = config["components"].pop("elmo", None)
            assert elmo is None or base is None or elmo["model"]["batch_tokens"] == 99
            config["nlp"]["pipeline"] = [component]
            config["initialize"].pop("components", None)
            assert config == configs[0]
            block["embed"].pop("include_static_vectors")
            assert all(block[key] == blocks[0][key] for key in ("embed", "encode"))


def test_suites_cover_the_paper_s_tables():
    def list_listeners(suite):
        blocks = [get_tok2vec(variant) for variant in choose_variants(suite, 2)]
        return [(block.get("input"), block.get("output")) for block in blocks]

    weighting = [before for before, after in list_listeners("weighting")[1:] if after is None]
    assert [i["output"] for i in weighting] == ["top", "average", "mix", "mix", "all", 0, 1]
    assert [i.get("mix_l2") for i in weighting] == [None, None, 1.0, 0.001, None, None, None]
    places = [(i is not None, o is not None) for i, o in list_listeners("placement")]
    assert places == [(False, False), (True, False), (False, True), (True, True)]
    # Words are dropped only where ELMo is beside them.
    with_elmo = [get_tok2vec(variant) for variant in choose_variants("placement", 2)[1:]]
    assert [block["word_dropout"] > 0 for block in with_elmo] == [True, False, True]
    assert len(choose_variants("weighting", 5)) == len(choose_variants("weighting", 2)) + 3


@pytest.mark.parametrize("suite", SUITES)
def test_the_mix_of_a_config_is_kept_unless_the_suite_compares_mixes(suite):
    mix = {"output": "mix", "initial_weights": [0.0, 1.0, 2.0], "mix_l2": 0.1, "mix_dropout": 0.2}
    base = make_base()
    base["components"]["tagger"]["model"]["tok2vec"]["input"].update(mix)
    for variant in choose_variants(suite, 2):
        block = get_tok2vec(variant, base)
        for place in variant.places:
            assert block[place]["mix_dropout"] == 0.2
            assert mix.items() <= block[place].items() or "output" in variant.mix
            assert variant.mix.items() <= block[place].items()


@pytest.mark.parametrize("places", [("input",), ("output",), ("input", "output")])
def test_elmo_is_where_the_config_has_it_unless_the_suite_compares_places(places):
    base = make_base()
    block = base["components"]["tagger"]["model"]["tok2vec"]
    listener = block.pop("input")
    block.update({place: {**listener, "mix_l2": 0.5 + len(place)} for place in places})

    elmo = get_tok2vec(ELMO, base)

    found = {place: elmo[place]["mix_l2"] for place in ("input", "output") if place in elmo}
    assert found == {place: 0.5 + len(place) for place in places}
    for variant in choose_variants("placement", 2)[1:]:
        made = get_tok2vec(variant, base)
        assert tuple(p for p in ("input", "output") if p in made) == variant.places


@pytest.mark.parametrize("suite", SUITES)
def test_a_config_of_version_1_is_enough(suite, vectors):
    base = make_base()
    block = base["components"]["tagger"]["model"]["tok2vec"]
    block["@architectures"] = "spacy-elmo.ElmoTok2Vec.v1"
    block["input"]["@architectures"] = "spacy-elmo.ElmoListener.v1"
    del block["word_dropout"]
    for variant in choose_variants(suite, SHAPE["depth"]):
        shape = BiLMConfig(**SHAPE)
        config = make_variant(variant, "tagger", base=base, vectors=vectors, shape=shape)
        assert "tagger" in util.load_model_from_config(config, auto_fill=True).pipe_names


def test_the_place_and_settings_of_elmo_in_a_config_are_kept():
    base = make_base()
    base["nlp"]["pipeline"] = ["sentencizer", "elmo", "tagger"]
    base["components"]["sentencizer"] = {"factory": "sentencizer"}
    base["components"]["elmo"]["store_layers"] = True
    base["training"]["annotating_components"] = ["sentencizer", "elmo"]

    elmo, plain = (make_variant(v, "tagger", base=base) for v in (ELMO, PLAIN))

    assert elmo["nlp"]["pipeline"] == ["sentencizer", "elmo", "tagger"]
    assert elmo["components"]["elmo"]["store_layers"]
    assert plain["nlp"]["pipeline"] == sorted(plain["components"]) == ["sentencizer", "tagger"]
    assert plain["training"]["annotating_components"] == ["sentencizer"]


ELMO_BLOCKS = {
    "a loader": ("initialize", {"loader": dict(LOADER)}),
    "another width": ("components", {"model": {"width": 16}}),
    "a source": ("components", {"source": "pipeline"}),
}


@pytest.mark.parametrize("problem", ELMO_BLOCKS)
def test_weights_of_a_config_are_replaced_only_if_others_are_named(problem):
    base = make_base()
    section, block = ELMO_BLOCKS[problem]
    (base["initialize"]["components"] if section == "initialize" else base[section])["elmo"] = block
    with pytest.raises(ValueError, match=f"EL230.*{problem}.*--weights"):
        make_variant(ELMO, "tagger", base=base)

    loader = {**LOADER, "path": "other"}
    made = make_variant(ELMO, "tagger", base=base, shape=BiLMConfig(**SHAPE), loader=loader)

    assert BiLMConfig(**SHAPE).to_dict().items() <= made["components"]["elmo"]["model"].items()
    assert made["initialize"]["components"]["elmo"]["loader"] == loader
    assert "source" not in made["components"]["elmo"]


def test_mistakes_in_a_config_are_named(tmp_path):
    plain, _, static, _ = choose_variants("vectors", 2)
    for block in ({"embed": None}, {"@architectures": "spacy.Tok2Vec.v2"}):
        with pytest.raises(ValueError, match=r"EL230.*components\.tagger\.model"):
            make_variant(plain, "tagger", base=make_base(**block))
    with pytest.raises(ValueError, match="'static vectors'.*--vectors"):
        make_variant(static, "tagger")
    base = make_base()
    base["components"]["second"] = dict(base["components"]["elmo"])
    with pytest.raises(ValueError, match="EL230.*'second'"):
        make_variant(ELMO, "tagger", base=base)
    with pytest.raises(ValueError, match="nowhere.*not a training config"):
        load_base("nowhere.cfg")
    (tmp_path / "x.cfg").write_text("[nlp]\n[nlp]\n")
    with pytest.raises(ValueError, match="x.cfg.*not a training config"):
        load_base(str(tmp_path / "x.cfg"))
    with pytest.raises(ValueError, match="suite = 'best'.*samples"):
        choose_variants("best", 2)
    with pytest.raises(ValueError, match="EL061.*eggs"):
        get_score("eggs")


@pytest.mark.parametrize("suite", ["gain", "weighting", "placement"])
@pytest.mark.parametrize("preset", ["static_vectors", "word_features"])
def test_static_vectors_of_a_config_are_in_every_variant(suite, preset, vectors):
    base = make_config(preset, ["tagger"])
    base["paths"]["vectors"] = vectors
    block = base["components"]["tagger"]["model"]["tok2vec"]
    block["embed"]["include_static_vectors"] = preset == "word_features"
    for variant in choose_variants(suite, 2):
        made = make_variant(variant, "tagger", base=base)
        block = made["components"]["tagger"]["model"]["tok2vec"]
        is_beside = preset == "static_vectors" and bool(variant.places)
        assert block["embed"]["include_static_vectors"] == (not is_beside)
        assert bool(variant.places and block["vectors"]) == is_beside


def test_a_config_reads_the_docs_and_the_language_of_the_settings(tmp_path):
    config = make_config("word_features", ["tagger"], lang="de")
    config["corpora"]["train"]["path"] = "elsewhere/train.spacy"
    config["corpora"]["own"] = dict(config["corpora"]["dev"])
    config["training"]["dev_corpus"] = "corpora.own"
    config.to_disk(tmp_path / "x.cfg")
    settings = RunSettings("corpus", "tagger", lang="ko", config=str(tmp_path / "x.cfg"))

    made = make_run_config(Run(ELMO, 1.0, 0), settings)

    made["paths"]["train"] = "here"
    assert made.interpolate()["corpora"]["train"]["path"] == "here"
    assert made.interpolate()["corpora"]["dev"]["path"].endswith("dev.spacy")
    assert made["training"]["dev_corpus"] == "corpora.dev" and made["nlp"]["lang"] == "ko"


@pytest.mark.parametrize("path", TABLE1, ids=lambda path: path.stem)
def test_configs_of_table_1_make_all_variants(path, vectors):
    base, shape = load_base(str(path)), BiLMConfig(**SHAPE)
    component = base["nlp"]["pipeline"][-1]
    assert get_score(component)
    rest = []
    for suite in ("vectors", "placement"):
        for variant in choose_variants(suite, SHAPE["depth"]):
            config = make_variant(variant, component, base=base, vectors=vectors, shape=shape)
            made = util.load_model_from_config(config, auto_fill=True)
            assert made.pipe_names == ["elmo"] * bool(variant.places) + [component]
            model = config["components"][component]["model"]
            model.pop("tok2vec")
            rest.append((model, config["training"], config["corpora"]))

    assert all(each == rest[0] for each in rest)
