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


PRETRAIN = """
[nlp]
lang = "{lang}"
[nlp.tokenizer]
@tokenizers = "spacy.Tokenizer.v1"
[bilm]
width = 8
cell_width = 6
[corpus]
min_count = 1
[training]
max_steps = 3
batch_tokens = 60
"""


@pytest.fixture
def project(tmp_path):
    """A copy of the project with toy data and toy weights."""
    shutil.copy(ROOT / "project.yml", tmp_path)
    shutil.copytree(ROOT / "projects", tmp_path / "projects")
    for name in ("en", "ko"):
        (tmp_path / f"{name}.cfg").write_text(PRETRAIN.format(lang=name))
    options = make_options()
    write_model(tmp_path / "weights", options, make_weights(options))
    data = tmp_path / "assets"
    for name in ("pos-dep/ud_english_ewt/en_ewt", "korean/ud_korean_gsd/ko_gsd"):
        for split in ("train", "dev", "test"):
            path = data / f"{name}-ud-{split}.conllu.xz"
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


QUICK = [
    "--vars.seeds", "0", "--vars.max_steps", "2", "--vars.eval_frequency", "1",
    "--vars.english_config", "en.cfg", "--vars.korean_config", "ko.cfg",
]  # fmt: skip


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
    run(project, "all", "--vars.weights", "weights", *QUICK)

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
    run(project, "configs", "--vars.weights", "weights")
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


@pytest.mark.slow
def test_the_english_model_is_made_and_compared(project):
    for name in ("text", "heldout"):
        (project / "english" / name).mkdir(parents=True)
        (project / "english" / name / "x.txt").write_text("I like ham. You do not!\n" * 30)
    words = project / "words.txt"
    words.write_text("<S>\n</S>\n<UNK>\nham\nzebra\n")

    run(
        project, "pretrain", *QUICK, "--vars.include", words, "--vars.other",
        "work/en_small/model-best",
    )  # fmt: skip

    folder = project / "work/en_small"
    ours, same = (srsly.read_json(folder / f"{n}.json") for n in ("heldout", "heldout_other"))
    assert ours == same and ours["n_sequences"] == 60
    assert "zebra" in (folder / "bundle" / "vocab.txt").read_text().split()
    meta = srsly.read_json(folder / "bundle" / "meta.json")
    assert meta["name"] == "en_small" and meta["n_tokens_trained"] > 0


@pytest.mark.slow
def test_korean_is_pretrained_and_tagged(project):
    (project / "assets/korean/raw_text").mkdir(parents=True)
    lines = [f"나는 달걀 {i} 개를 좋아한다 ." for i in range(400)]
    text = "\n".join(lines).encode()
    (project / "assets/korean/raw_text/x.txt.xz").write_bytes(lzma.compress(text))

    run(project, "pretrain-ko", *QUICK)

    heldout = (project / "work/korean/heldout/x.txt").read_text("utf-8").splitlines()
    rest = (project / "work/korean/text/x.txt").read_text("utf-8").splitlines()
    assert sorted(heldout + rest) == sorted(lines) and len(heldout) > 0
    (dev, test) = srsly.read_json(project / "work/results.json")
    assert dev["task"] == test["task"] == "ko_gsd"


def test_assets_have_public_addresses_and_checksums():
    project = srsly.read_yaml(ROOT / "project.yml")

    for asset in project["assets"]:
        source = asset["url"].split("}")[0].removeprefix("${vars.")
        assert project["vars"][source].startswith("https://")
        assert "checksum" in asset or asset["dest"].endswith(".zip")
