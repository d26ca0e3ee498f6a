"""project.yml and the projects under projects/: they run on toy data and a toy model."""

import lzma
import os
import runpy
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import spacy
import srsly
from spacy.cli._util import app
from spacy.tokens import DocBin
from typer.testing import CliRunner
from weasel.util.config import load_project_config

import spacy_elmo.cli  # noqa: F401

from .support.toy import make_options, make_weights, write_model
from .support.toy_pipelines import write_vectors_pipeline
from .support.toy_task_data import write_task_data
from .support.toy_wordnet import write_wordnet

ROOT = Path(__file__).parent.parent
# Commands warn about toy data, and run in this process.
pytestmark = pytest.mark.filterwarnings("ignore")
PROJECTS = sorted((ROOT / "projects").glob("*/project.yml"))
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
projection = true
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
    for name in ("projects", "benchmarks"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("results"))
    for name in ("en", "ko"):
        (tmp_path / f"{name}.cfg").write_text(PRETRAIN.format(lang=name))
    medium = PRETRAIN.replace("cell_width = 6", "cell_width = 12")
    (tmp_path / "medium.cfg").write_text(medium.format(lang="en"))
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
    "--vars.medium_config", "medium.cfg",
]  # fmt: skip


def run(project, names, *arguments, folder="."):
    """Run workflows or commands of a project file in this process; weights are the toy model's."""
    changes = ["--vars.weights", project / "weights", *arguments]
    pairs = zip(changes[::2], changes[1::2], strict=True)
    overrides = {key.removeprefix("--"): str(value) for key, value in pairs}
    config = load_project_config(project / folder, overrides=overrides)
    commands = {command["name"]: command for command in config["commands"]}
    for name in names.split():
        for step in config["workflows"].get(name, [name]):
            for path in commands[step].get("deps", []):
                assert (project / folder / path).exists(), path
            for line in commands[step]["script"]:
                run_line(project / folder, shlex.split(line))


def run_line(folder, words):
    before, modules = os.getcwd(), set(sys.modules)
    os.chdir(folder)
    try:
        if words[:3] == ["python", "-m", "spacy"]:
            result = CliRunner().invoke(app, words[3:])
            assert result.exit_code == 0, result.output
        elif words[1] == "-m":
            subprocess.run([sys.executable, *words[1:]], check=True, capture_output=True)
        else:
            run_script(*words[1:])
    finally:
        os.chdir(before)
        # Another project may have a script of the same name.
        for name in set(sys.modules) - modules:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder.parent)):
                del sys.modules[name]


def run_script(path, *arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [path, *arguments])
        patch.syspath_prepend(Path(path).resolve().parent)
        try:
            # Processes that it starts read it by its whole path.
            runpy.run_path(str(Path(path).resolve()), run_name="__main__")
        except SystemExit as end:
            assert not end.code, (path, arguments)


def read_results(project, pattern):
    return [srsly.read_json(path) for path in sorted((project / "work/results").glob(pattern))]


def check_report(project, *titles):
    text = (project / "work/report.md").read_text("utf-8")
    assert all(title in text for title in titles)
    for part in text.split("](figures/")[1:]:
        assert (project / "work/figures" / part.split(")")[0]).exists()


SEMCOR = """<contextfile><context filename=br-a01><p pnum=1>
<s snum=1>
<wf cmd=ignore pos=DT>the</wf>
<wf cmd=ignore pos=NN>river</wf>
<wf cmd=done pos=NN lemma=bank wnsn=1 lexsn=1:00:00::>bank</wf>
<punc>``</punc>
</s>
<s snum=2>
<wf cmd=ignore pos=PRP>my</wf>
<wf cmd=ignore pos=NN>New_York</wf>
<wf cmd=done pos=NN lemma=bank wnsn=2 lexsn=1:00:01::;1:00:00::>bank</wf>
<punc>&amp;</punc>
</s>
<s snum=3>
<wf cmd=ignore pos=NN>play</wf>
<wf cmd=ignore pos=NN>stick</wf>
</s>
</p></context></contextfile>
"""


@pytest.fixture
def papers(project):
    """The project with toy data for the workflow `paper`, too."""
    wsd = project / "assets/wsd"
    for folder, number in (("brown1", 20), ("brown2", 20), ("brownv", 1)):
        texts = wsd / "semcor30/semcor3.0" / folder / "tagfiles"
        texts.mkdir(parents=True)
        for i in range(number):
            (texts / f"br-{folder[-1]}{i:02}").write_text(SEMCOR, "latin-1")
    write_wordnet(project / "wordnet/dict")
    (wsd / "wordnet30").mkdir()
    with tarfile.open(wsd / "wordnet30/WNdb-3.0.tar.gz", "w:gz") as archive:
        archive.add(project / "wordnet/dict", "dict")
    (project / "assets/vectors").mkdir()
    with zipfile.ZipFile(project / "assets/vectors/glove.6B.zip", "w") as archive:
        words = ("play", "bank", "stick", "river", "game")
        lines = [f"{word} {i} 1.0 {2 * i}" for i, word in enumerate(words)]
        archive.writestr("glove.6B.50d.txt", "\n".join(lines) + "\n")
    (project / "assets/qa").mkdir()
    articles = [
        {"paragraphs": [{"context": text, "qas": [{"question": f"{text.split()[1]} ?"}]}]}
        for text in ["The river is green .", "A ship sank at sea .", "Two eggs and ham ."] * 5
    ]
    srsly.write_json(project / "assets/qa/dev-v1.1.json", {"data": articles})
    return project


@pytest.mark.slow
def test_all_runs_on_toy_data(project):
    command = [sys.executable, "-m", "spacy", "project", "run", "convert", str(project)]
    subprocess.run([*command, "--vars.weights", str(project / "weights")], check=True)
    run(project, "gain report", *QUICK)

    results = read_results(project, "*/gain.json")
    assert [len(row["test"]) for result in results for row in result["rows"]] == [1] * 6
    check_report(project, "UD English EWT", "WNUT 2017", "Sentence polarity")
    vocab = spacy.blank("en").vocab
    corpus = project / "work/corpus"
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
def test_the_paper_runs_on_toy_data(papers):
    run(papers, "convert", *QUICK)
    names = "unpack samples senses probe sense-map neighbors search report"
    quick = ["--vars.seeds", "0", "--vars.max_steps", "2", "--vars.eval_frequency", "1"]
    quick += ["--vars.map_words", "bank", "--vars.map_least", "2", "--vars.shares", "50,100"]
    data = ["--vars.data", papers / "assets", "--vars.tune_articles", "2"]
    run(papers, names, *quick, *data, folder="projects/paper")

    check_report(papers, "SemCor 3.0", "Nearest contexts", "t-SNE", "Semantic search")
    lines = srsly.read_jsonl(papers / "work/senses/train.jsonl")
    sentence = next(line for line in lines if line["id"] == "br-100.s2")
    assert sentence["tokens"] == ["my", "New_York", "bank", "&"]
    keys = ["bank%1:00:01::", "bank%1:00:00::"]
    assert sentence["instances"] == [[2, "bank", "NN", keys]]
    held_out = {line["id"][:6] for line in srsly.read_jsonl(papers / "work/senses/dev.jsonl")}
    assert held_out and all(name.startswith("br-2") for name in held_out)
    assert spacy.load(papers / "work/glove").vocab.has_vector("river")


@pytest.mark.slow
def test_tables_1_and_3_run_on_toy_data(project):
    write_task_data(project / "assets")
    write_vectors_pipeline(project / "vectors")
    quick = ["--vars.seeds", "0", "--vars.steps", "1", "--vars.vectors", project / "vectors"]
    for names, task in (("convert compare", "litbank"), ("places report", "propbank")):
        run(project, names, *quick, "--vars.tasks", task, folder="projects/table1")

    corpora = {path.parent.name for path in (project / "work/corpus").rglob("train.spacy")}
    expected = {"gum", "litbank", "litbank_coref", "ontogum", "propbank", "snli", "squad"}
    assert corpora == {*expected, "squad_unanswered"}
    (table1,) = read_results(project, "table1_*/vectors.json")
    compared = [row["variant"] for row in table1["rows"]]
    assert compared == ["plain", "elmo", "vectors", "elmo_vectors"]
    (table3,) = read_results(project, "table3_*/placement.json")
    assert [row["variant"] for row in table3["rows"]] == ["plain", "input", "output", "both"]
    check_report(project, "LitBank, nested entities", "PropBank on EWT, roles")


TREE = """# newdoc id = d
# sent_id = {id}
# text = Ann likes Oslo.
1\tAnn\tAnn\tPROPN\tNNP\tNumber=Sing\t2\tnsubj\t_\t_
2\tlikes\tlike\tVERB\tVBZ\tTense=Pres\t0\troot\t_\t_
3\tOslo\tOslo\tPROPN\tNNP\tNumber=Sing\t2\tobj\t_\tSpaceAfter=No
4\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_

"""
NAMED = "# sent_id = {id}\n1\tAnn\tI-PER\n2\tlikes\tO\n3\tOslo\tB-LOC\n4\t.\tO\n\n"


@pytest.mark.slow
def test_a_treebank_becomes_a_package(project):
    for split, n in (("train", 40), ("dev", 2), ("test", 2)):
        for end, block in (("conllu", TREE), ("iob2", NAMED)):
            text = "".join(block.format(id=f"{split}-{i}") for i in range(n))
            (project / f"en_ewt-ud-{split}.{end}").write_text(text)
    names = ("treebank", "entities")
    folders = [part for name in names for part in (f"--vars.{name}", project)]
    quick = ["--vars.max_steps", "2", "--vars.eval_frequency", "1", "--vars.packages", "made"]
    run(project, "all", *folders, *quick, folder="projects/pipeline")

    made = project / "projects/pipeline/made/en_elmo_web"
    assert "| XPOS |" in (made / "README.md").read_text()
    assert sum(f.stat().st_size for f in made.rglob("model")) < 12e6
    nlp = spacy.load(next(made.glob("en_elmo_web/en_elmo_web-*")))
    assert nlp.meta["license"] == "CC BY-SA 4.0"
    assert "spacy-elmo" in srsly.read_json(made / "meta.json")["requirements"][0]
    assert {"PER", "LOC"} == {*nlp.get_pipe("ner").labels} and nlp("Ann")[0]._.elmo.any()
    docs = DocBin().from_disk(project / "projects/pipeline/work/corpus/dev.spacy")
    doc = next(docs.get_docs(nlp.vocab))
    assert (doc.text, [e.text for e in doc.ents]) == ("Ann likes Oslo. ", ["Ann", "Oslo"])
    assert [t.head.i for t in doc] == [1, 1, 1, 1]


@pytest.mark.parametrize("folder", [".", *(f"projects/{p.parent.name}" for p in PROJECTS)])
def test_paths_of_projects_are_single_and_results_depend_on_the_weights(folder):
    # A list that begins with a variable alone becomes one text.
    for command in load_project_config(ROOT / folder)["commands"]:
        for path in (*command.get("deps", ()), *command.get("outputs", ())):
            assert not set(path) & set(", []"), (command["name"], path)
    for command in srsly.read_yaml(ROOT / folder / "project.yml")["commands"]:
        if "${vars.weights}" in " ".join(command["script"]):
            assert "${vars.weights}" in command["deps"]


def start_script(path, *arguments):
    """RETURNS (int): the exit code of a script that runs in this process."""
    try:
        run_script(str(ROOT / "projects" / path), *map(str, arguments))
    except AssertionError:
        return 2
    return 0


@pytest.mark.parametrize("script", ["unpack.py", "hold_out.py"])
def test_new_text_replaces_old_text(tmp_path, script, capsys):
    source, output = tmp_path / "source", tmp_path / "out"
    for folder in (source, source / "text", source / "heldout"):
        folder.mkdir()
        (folder / "a.txt").write_text("first\nsecond\n")
        (folder / "b.txt").write_text("old\n")
    assert not start_script(f"pretrain/{script}", source, output)
    for path in source.rglob("b.txt"):
        path.unlink()
    assert not start_script(f"pretrain/{script}", source, output)

    found = sorted(output.rglob("*.txt"))
    assert [path.name for path in found] == ["a.txt", "a.txt"]
    assert "old" not in "".join(path.read_text() for path in found)
    if script == "hold_out.py":
        lines = [line for path in found for line in path.read_text().split()]
        assert sorted(lines) == ["first", "second"]
    (output / "thesis.tex").touch()
    assert start_script(f"pretrain/{script}", source, output) == 2
    assert "thesis.tex" in capsys.readouterr().err and (output / "thesis.tex").exists()


def test_too_few_texts_of_semcor_are_refused(tmp_path, capsys):
    texts = tmp_path / "semcor3.0/brown1/tagfiles"
    texts.mkdir(parents=True)
    (texts / "br-101").write_text(SEMCOR, "latin-1")
    assert start_script("paper/semcor.py", tmp_path, tmp_path / "out", "--limit", "1") == 2
    # In a frame, which may break the line.
    shown = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert "Give at least 60" in shown
    assert not [*(tmp_path / "out").iterdir()]


@pytest.mark.slow
def test_english_models_are_made_compared_and_packed(project, tmp_path_factory):
    for name in ("text", "heldout"):
        (project / "english" / name).mkdir(parents=True)
        (project / "english" / name / "x.txt").write_text("I like ham. You do not!\n" * 30)
    words = project / "words.txt"
    words.write_text("<S>\n</S>\n<UNK>\nham\nzebra\n")
    other = ["--vars.include", words, "--vars.other", "work/en_small/model-best"]
    shutil.copytree(ROOT / "models" / "en_medium", project / "models" / "en_medium")
    start = project / "work/en_small/bundle"

    run(project, "pretrain", *QUICK, *other)
    run(project, "medium", *QUICK, "--vars.start", start, "--vars.words", start / "vocab.txt")

    ours, same = (srsly.read_json(start.parent / f"{n}.json") for n in ("heldout", "heldout_other"))
    assert ours == same and ours["n_sequences"] == 60
    assert "zebra" in (start / "vocab.txt").read_text().split()
    meta = srsly.read_json(start / "meta.json")
    assert meta["name"] == "en_small" and meta["n_tokens_trained"] > 0
    (wheel,) = (project / "work/dist").glob("spacy_elmo_en_medium-*.whl")
    site = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    # In a separate process, which sees what is installed here and the wheel.
    code = "import spacy_elmo; print(spacy_elmo.load_embedder('en_medium').bilm.config.cell_width)"
    path = os.pathsep.join([str(site), *filter(None, sys.path)])
    command, environment = [sys.executable, "-c", code], {**os.environ, "PYTHONPATH": path}
    result = subprocess.run(command, check=True, capture_output=True, env=environment, cwd=site)
    assert result.stdout.split() == [b"12"]
    meta = srsly.read_json(site / "spacy_elmo_en_medium/model/meta.json")
    assert meta["name"] == "en_medium" and "CC BY-SA" in meta["licence"]


@pytest.mark.slow
def test_korean_is_pretrained_tagged_and_rated(project):
    pytest.importorskip("floret")
    (project / "assets/korean/raw_text").mkdir(parents=True)
    lines = [f"나는 달걀 {i} 개를 좋아한다 ." for i in range(400)]
    lines += [f"{word} {i} ." for word in ("배가", "잘한다") for i in range(9)]
    text = "\n".join(lines).encode()
    (project / "assets/korean/raw_text/x.txt.xz").write_bytes(lzma.compress(text))

    tested = project / "assets/korean/ud_korean_gsd/ko_gsd-ud-test.conllu.xz"
    tested.write_bytes(lzma.compress((CONLLU + CONLLU.replace("Eat", "Fry")).encode()))
    (project / "assets/korean/nsmc").mkdir()
    for split in ("train", "dev", "test"):
        reviews = 'id\tdocument\tlabel\n1\t"정말 잘한다\t1\n2\t배가 아프다\t0\n'
        (project / f"assets/korean/nsmc/nsmc-{split}.tsv").write_text(reviews, "utf-8")
    quick = ["--vars.korean_steps", "2", "--vars.korean_frequency", "1"]

    run(project, "pretrain-ko", *QUICK, *quick)

    heldout = (project / "work/korean/heldout/x.txt").read_text("utf-8").splitlines()
    rest = (project / "work/korean/text/x.txt").read_text("utf-8").splitlines()
    assert sorted(heldout + rest) == sorted(lines) and len(heldout) > 0
    check_report(project, "UD Korean GSD", "Korean film reviews", "배가", "잘한다")
    names = ["plain", "elmo", "vectors", "elmo_vectors"]
    for result in read_results(project, "*/vectors.json"):
        assert [row["variant"] for row in result["rows"]] == names
    vocab = spacy.blank("xx").vocab
    rated = list(DocBin().from_disk(project / "work/corpus/nsmc/test.spacy").get_docs(vocab))
    assert [(doc.text, doc.cats["pos"]) for doc in rated] == [
        ('"정말 잘한다', 1.0),
        ("배가 아프다", 0.0),
    ]
    # The other sentence was trained on, too.
    new = list(DocBin().from_disk(project / "work/corpus/ko_gsd/new.spacy").get_docs(vocab))
    assert [doc.text.strip() for doc in new] == ["Fry ham"]
