"""`spacy train` with the config of docs/tasks.md."""

import re

import pytest
import spacy
from spacy.cli.train import train as spacy_train
from spacy.tokens import DocBin
from thinc.api import Config

from ...support.helpers import ROOT, SHAPE, silently
from ...support.toy_roles import make_corpus, read

SECTION = (ROOT / "docs" / "tasks.md").read_text("utf-8").partition("## Semantic roles")[2]
CONFIG = re.search(r"```ini\n(.*?)```", SECTION, flags=re.DOTALL)[1]
GIVEN = {
    "@readers": "spacy-elmo.SpanCorpus.v1",
    "path": "${paths.dev}",
    "groups": ["srl_predicates"],
}


def make_config(source):
    config = Config().from_str(CONFIG, interpolate=False)
    config["components"]["elmo"]["model"] = {"@architectures": "spacy-elmo.Elmo.v2", **SHAPE}
    srl = config["components"]["elmo_srl"]
    srl["model"]["tok2vec"]["output"]["width"] = SHAPE["width"]
    srl["predicates"] = source
    if source == "given":
        config["corpora"]["dev"] = GIVEN
    config["training"].update({"max_steps": 4, "eval_frequency": 2})
    loader = {"@misc": "spacy-elmo.RandomLoader.v1"}
    config["initialize"]["components"]["elmo"]["loader"] = loader
    return config


@pytest.mark.parametrize("source", ["predicted", "given"])
def test_spacy_train_trains_it(tmp_path, source):
    DocBin(docs=make_corpus(spacy.blank("en").vocab)).to_disk(tmp_path / "x.spacy")
    filled = spacy.util.load_model_from_config(make_config(source), auto_fill=True).config
    (tmp_path / "config.cfg").write_text(filled.to_str())
    paths = {"paths.train": str(tmp_path / "x.spacy"), "paths.dev": str(tmp_path / "x.spacy")}
    silently(lambda: spacy_train(tmp_path / "config.cfg", tmp_path / "out", overrides=paths))
    nlp = spacy.load(tmp_path / "out" / "model-last")

    assert set(nlp.get_pipe("elmo_srl").labels) == {"A0", "A1", "R-A1"}
    assert 0 <= nlp.meta["performance"]["srl_f"] <= 1
    assert nlp.meta["performance"]["srl_predicate_f"] == 1 or source == "predicted"
    doc = nlp.make_doc("Bob eats ham .")
    doc.spans["srl_predicates"] = [doc[1:2]]
    assert len(read(nlp(doc))) == 1 or source == "predicted"
