"""The code of README and docs/ runs as it stands, configs train, links lead somewhere."""

import inspect
import re
import shlex
import shutil

import pytest
import spacy
import srsly
from spacy.cli import app
from spacy.tokens import DocBin, Span
from spacy.training import Example
from thinc.api import Config, get_current_ops, set_current_ops
from typer.main import get_command
from typer.testing import CliRunner

from docs_build.configs import list_messages
from spacy_elmo.cli import elmo_cli
from spacy_elmo.errors import Errors, Warnings
from spacy_elmo.pipeline.architectures import build_elmo_v2
from spacy_elmo.pipeline.elmo import make_elmo
from spacy_elmo.pipeline.presets import PRESETS
from spacy_elmo.registry import task_readers
from spacy_elmo.tasks.qa.answers import set_gold

from .acceptance.test_names import NAMES
from .support.helpers import ROOT
from .support.pages import (
    MADE,
    PAGES,
    SERVER,
    blocks,
    blocks_in_order,
    find_anchors,
    find_links,
    read_page,
)
from .support.toy import make_options, make_weights, write_model
from .support.toy_corpora import make_docs
from .support.toy_pipelines import write_trained_pipeline, write_vectors_pipeline
from .support.toy_task_data import make_squad
from .support.toy_wordnet import make_lines, write_wordnet

TASKS, CORPORA = "docs/tasks.md", "docs/guides/large-corpora.md"
PYTHON = [page for page in PAGES if blocks(page, "python") and page not in (CORPORA, SERVER)]
COMMANDS = [page for page in PAGES if blocks(page, "bash") and page not in (CORPORA, SERVER)]
LANGUAGES = {"", "text", "ini", "python", "python skip", "python theirs", "bash", "bash skip",
             "bash curl"}  # fmt: skip
PRINTED = {
    "README.md": ["(9, 512)"],
    "docs/tour.md": ["(3, 3, 512)"],
    TASKS: [
        "'entailment': ",
        "gave [('ARG0', Ann), ('ARG2', Bob), ('ARG1', the book)]",
        "['Sam', 'he']",
    ],
}
# Options that shorten a command.
SHORTER = {
    "experiment": ["--max-steps", "2", "--seeds", "0"],
    "pretrain": [
        *("--training.max_steps", "2", "--training.batch_tokens", "200"),
        *("--corpus.buffer_tokens", "1000"),
    ],
    "train": ["--training.max_steps", "2", "--training.eval_frequency", "1"],
}
TASK_DATA = {
    "eng.train": "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\n",
    "train.txt": "(3 (2 It) (4 (2 is) (4 good)))\n",
    "dev-v1.1.json": make_squad("Sam gave Ann ham."),
    "xquad.en.json": make_squad("Ann gave Sam ham."),
    "ontogum-train.conllu": "1\tSam\tSam\tPROPN\tNNP\t_\t0\troot\t_\tEntity=(1)\n",
    "snli_1.0_train.jsonl": '{"sentence1": "a", "sentence2": "b", "gold_label": "neutral"}\n',
}


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """The files that the pages name."""
    folder = tmp_path_factory.mktemp("pages")
    options = make_options()
    write_model(folder / "path/to/weights", options, make_weights(options))
    lines = {"": "I like green eggs. The Bank does not!\n", "korean": "항구에 배가 들어왔다 .\n"}
    for place, line in lines.items():
        for name in ("text", "heldout"):
            (folder / place / name).mkdir(parents=True)
            (folder / place / name / "x.txt").write_text(line * 30, "utf-8")
    (folder / "sentences.txt").write_text("I like green eggs .\n" * 30)
    write_trained_pipeline(folder / "en_core_web_sm")
    write_vectors_pipeline(folder / "en_core_web_md")
    write_wordnet(folder / "wordnet/dict")
    for name in ("semcor", "held_out"):
        srsly.write_jsonl(folder / f"{name}.jsonl", make_lines())
    (folder / "corpus").mkdir()
    for i, name in enumerate(("train", "dev", "test")):
        DocBin(docs=make_docs(20, i)).to_disk(folder / f"corpus/{name}.spacy")
        shutil.copy(folder / f"corpus/{name}.spacy", folder)
    for name, content in TASK_DATA.items():
        (folder / name).write_text(content)
    return folder


@pytest.fixture
def folder(files, tmp_path, monkeypatch):
    """A working directory with these files."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def ops():
    """A page may change Thinc's operations."""
    before = get_current_ops()
    yield
    set_current_ops(before)


def test_blocks_have_known_languages():
    found = {language for page in PAGES for language, _ in blocks_in_order(page)}
    assert found <= LANGUAGES


@pytest.mark.parametrize("page", PYTHON)
def test_python_blocks_run_one_after_the_other(page, folder, capsys):
    names = {}
    for code in blocks(page, "python"):
        exec(code, names)

    printed = capsys.readouterr().out
    assert all(text in printed for text in PRINTED.get(page, []))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", COMMANDS)
def test_commands_run_one_after_the_other(page, folder):
    names = {}
    for language, code in blocks_in_order(page):
        if language in ("python", "python skip") and "output_ner" not in code:
            exec(code, names)
        for command in code.replace("\\\n", " ").splitlines() if language == "bash" else ():
            run_command(command)


def run_command(command):
    program, *words = shlex.split(command)
    if program == "make":
        assert words in (["demo"], ["test"])  # .ci/run runs them
    elif program not in ("pip", "export"):  # extras are installed for the tests
        assert [program, *words[:2]] == ["python", "-m", "spacy"]
        words = words[2:]
        # Of an option that is given twice, the last one counts.
        words += SHORTER.get(words[1] if words[0] == "elmo" else words[0], [])
        if "--pretraining" in words and "--weights" not in words:
            words += ["--preset", "toy"]
        spacy.registry.cli.get_all()
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0, (command, result.output, result.exception)


def annotate(nlp, name):
    """A doc with gold annotations for a component."""
    component = nlp.get_pipe(name)
    if name == "elmo_entailment":
        doc = component.make_pair(nlp, "A man sleeps.", "A man runs.")
        doc.cats = {"entailment": 0.0, "contradiction": 1.0}
    elif name == "elmo_qa":
        doc = component.make_pair(nlp, "Who sleeps?", "A man sleeps.")
        set_gold(doc, [doc[4:5]])
    else:
        doc = nlp.make_doc("Ann sleeps . She snores .")
        doc.spans["coref_clusters_1"] = [doc[0:1], doc[3:4]]
        doc.spans["srl_1"] = [Span(doc, 1, 2, label="V"), Span(doc, 0, 1, label="ARG0")]
        doc.ents = [Span(doc, 0, 1, label="PERSON")]
        doc.cats = {"A": 1.0, "B": 0.0}
    return doc


CONFIGS = [(page, code) for page in PAGES for code in blocks(page, "ini") if "[nlp]" in code]


@pytest.mark.filterwarnings("ignore:.*WL040")  # one question, which has an answer
@pytest.mark.parametrize(("page", "code"), CONFIGS)
def test_configs_train_a_step(page, code):
    config = Config().from_str(code)
    nlp = spacy.util.load_model_from_config(config, auto_fill=True, validate=True)
    (name,) = (name for name in nlp.pipe_names if name not in ("elmo", "sentencizer"))

    gold = annotate(nlp, name)
    examples = [Example(gold.copy(), gold)]
    optimizer = nlp.initialize(lambda: examples)
    losses = nlp.update(examples, sgd=optimizer)

    assert losses[name] > 0
    assert nlp.get_pipe("elmo").listening_components == [name]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    docs, here = ROOT / "docs", (ROOT / page).parent
    for link in find_links(page):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (here / path).resolve() if path else ROOT / page
        in_docs = docs in target.parents
        if in_docs and target.relative_to(docs).as_posix().startswith(MADE):
            continue
        assert target.exists(), link
        assert in_docs or not page.startswith("docs/"), f"{link} is not on the site"
        if anchor:
            assert anchor in find_anchors(target.relative_to(ROOT).as_posix()), link


def test_readme_is_short():
    assert len(read_page("README.md").splitlines()) <= 110


@pytest.mark.parametrize("function", [build_elmo_v2, make_elmo])
def test_settings_are_in_the_tables(function):
    settings = set(inspect.signature(function).parameters) - {"nlp", "name", "model"}
    page = read_page("docs/reference/settings.md")

    assert {name for name in settings if f"`{name}`" not in page} == set()


def test_names_are_mentioned():
    text = "".join(map(read_page, PAGES))
    names = [*PRESETS, *NAMES["spacy_architectures"], *NAMES["spacy_misc"], *task_readers.get_all()]
    assert [name for name in names if name.removeprefix("spacy-elmo.") not in text] == []


def test_codes_on_the_pages_and_in_docstrings_exist():
    text = "".join(read_page(page) for page in PAGES if page != SERVER)
    text += "".join(path.read_text("utf-8") for path in ROOT.glob("spacy_elmo/**/*.py"))
    codes = {*list_messages(Errors), *list_messages(Warnings)}
    assert set(re.findall(r"\b[EW]L\d{3}\b", text)) - codes == set()


def test_commands_and_options_on_the_pages_exist():
    text = "".join(read_page(page).replace("\\\n", " ") for page in PAGES)
    used = re.findall(r"spacy elmo ([a-z][a-z-]+)([^`\n]*)", text)
    commands = get_command(elmo_cli).commands
    for name, rest in used:
        known = {option for p in commands[name].params for option in (*p.opts, *p.secondary_opts)}
        options = re.findall(r"(?<=\s)--[a-z][\w.-]*", rest)
        if name != "convert-data":  # whose formats have their own options
            assert [o for o in options if o not in known and "." not in o] == [], (name, rest)
    assert len(used) > 50


@pytest.mark.filterwarnings("ignore")
def test_vectors_of_large_corpora_are_read_by_other_libraries(capsys, tmp_path, monkeypatch):
    for library in ("pandas", "polars", "duckdb", "datasets", "faiss", "pyarrow"):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    spacy.registry.cli.get_all()
    (tmp_path / "text").mkdir()
    lines = ["A ship sank in a storm.", "The ship sailed through the storm.", "Green eggs."]
    lines += [f"Line {i} says that {i * i} is a number." for i in range(30)]
    (tmp_path / "text/a.txt").write_text("\n".join(lines))
    names, printed = {}, ""
    for language, code in blocks_in_order(CORPORA):
        if language == "python":
            exec(code, names)
        elif language == "bash":
            for command in code.splitlines():
                result = CliRunner().invoke(app, shlex.split(command)[3:])
                assert result.exit_code == 0, result.output
                printed += result.output

    shown = capsys.readouterr().out
    assert "(32, 512)\n" in shown and "\n(512,)\n" in shown
    assert "[('A ship sank in a storm.', 1.0" in shown
    assert names["rows"][0, 0] == 0 and names["scores"][0, 0] == pytest.approx(1, abs=1e-3)
    assert "ship" in printed
