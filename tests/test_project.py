"""`project.yml`: all of it, on toy data and a toy model; and its assets."""

import lzma
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import srsly

from .toy import make_options, make_weights, write_model

ROOT = Path(__file__).parent.parent
CONLLU = (
    "# text = x\n1-2\tdont\t_\t_\t_\n1\tdo\tdo\tAUX\tVBP\n2\tnt\tnot\tPART\tRB\n\n"
    "1\tEat\teat\tVERB\tVB\n2\tham\tham\tNOUN\tNN\n\n"
)
CONLL = "Ham\tB-product\n#eggs\tO\n\t\nin\tO\nNew\tB-location\nYork\tI-location\n\n"


@pytest.fixture
def project(tmp_path):
    """A copy of the project with toy data and toy weights."""
    shutil.copy(ROOT / "project.yml", tmp_path)
    shutil.copytree(ROOT / "projects", tmp_path / "projects")
    options = make_options()
    write_model(tmp_path / "weights", options, make_weights(options))
    data = tmp_path / "assets"
    for split in ("train", "dev", "test"):
        path = data / f"pos-dep/ud_english_ewt/en_ewt-ud-{split}.conllu.xz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lzma.compress((2 * CONLLU).encode()))
    for name in ("wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated"):
        path = data / "ner/wnut17" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(2 * CONLL)
    for label in ("pos", "neg"):
        path = data / f"sentiment/sentence_polarity/rt-polarity.{label}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"a {label} caf\xe9\n".encode("latin-1") * 10)
    return tmp_path


def run(project, workflow, *arguments):
    command = [sys.executable, "-m", "spacy", "project", "run", workflow, str(project)]
    result = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, cwd=project, check=False
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


def check_table(project, seeds):
    table = (project / "work/results.md").read_text("utf-8")
    for task in ("UD English EWT", "WNUT 2017", "sentence polarity"):
        assert task in table
    results = srsly.read_json(project / "work/results.json")
    assert {(r["task"], r["split"]) for r in results} == {
        (task, split) for task in ("ewt", "wnut17", "polarity") for split in ("dev", "test")
    }
    assert all(len(r["plain"]) == len(r["elmo"]) == seeds for r in results)


@pytest.mark.slow
def test_all_runs_on_toy_data(project):
    run(project, "all", "--vars.seeds", "0", "--vars.max_steps", "2", "--vars.eval_frequency", "1")

    check_table(project, seeds=1)
    corpus = project / "work/corpus"
    import spacy
    from spacy.tokens import DocBin

    vocab = spacy.blank("en").vocab
    tagged = list(DocBin().from_disk(corpus / "ewt/train.spacy").get_docs(vocab))
    assert [t.tag_ for t in tagged[0]] == ["VBP", "RB"]
    named = list(DocBin().from_disk(corpus / "wnut17/test.spacy").get_docs(vocab))
    assert [[(e.text, e.label_) for e in doc.ents] for doc in named[:2]] == [
        [("Ham", "product")],
        [("New York", "location")],
    ]
    rated = list(DocBin().from_disk(corpus / "polarity/dev.spacy").get_docs(vocab))
    assert [(doc[-1].text, doc.cats["pos"]) for doc in rated] == [("café", 1.0), ("café", 0.0)]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_all_runs_on_a_part_of_the_real_data(project, shared, interim):
    shutil.rmtree(project / "assets")
    quick = ["--vars.seeds", "0", "--vars.max_steps", "4", "--vars.eval_frequency", "2"]
    real = ["--vars.data", str(shared / "data/tasks"), "--vars.weights", str(interim)]

    run(project, "all", *quick, *real, "--vars.limit", "100")

    check_table(project, seeds=1)


@pytest.mark.slow
def test_the_two_configs_differ_in_the_tok2vec_alone(project):
    run(project, "configs")
    from thinc.api import Config

    for task, component in (("ewt", "tagger"), ("wnut17", "ner"), ("polarity", "textcat")):
        elmo, plain = (
            Config().from_disk(project / f"work/configs/{task}_{kind}.cfg", interpolate=False)
            for kind in ("elmo", "plain")
        )
        blocks = [c["components"][component]["model"].pop("tok2vec") for c in (elmo, plain)]
        assert all(blocks[0][key] == blocks[1][key] for key in ("embed", "encode"))
        del elmo["components"]["elmo"], elmo["initialize"]["components"]
        elmo["nlp"]["pipeline"].remove("elmo")
        assert elmo == plain


def test_assets_have_public_addresses_and_checksums():
    project = srsly.read_yaml(ROOT / "project.yml")

    for asset in project["assets"]:
        source = asset["url"].split("}")[0].removeprefix("${vars.")
        assert project["vars"][source].startswith("https://")
        assert "checksum" in asset or asset["dest"].endswith(".zip")
