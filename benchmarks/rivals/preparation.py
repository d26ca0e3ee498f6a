"""Inputs that have to be made before the runs: each once."""

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import spacy
import srsly
import torch
import typer
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training.pretrain import pretrain
from spacy.util import load_model_from_config
from spacy.vocab import Vocab
from thinc.api import Config, NumpyOps, set_current_ops
from tqdm import tqdm

from spacy_elmo.files import atomic_file, atomic_folder, read_json_object, write_json
from spacy_elmo.text.corpus import cutter_maker, read_sequences
from spacy_elmo.text.languages import TOKENIZER

from .rows import DEPTHS, MADE, MEDIUM, hash_files, make_pretraining_block
from .runs import SCRIPT, limit_threads

# Folder of `spacy pretrain` among the inputs.
PRETRAINING = "pretraining"
# As spaCy's own floret vectors of English: parts of four and five characters.
FLORET = ("--minn", "4", "--maxn", "5", "--min-count", "10")
FLORET_SCRIPT = SCRIPT.parents[1] / "projects/pretrain/floret_vectors.py"
TRANSFORMER = {
    "@architectures": "spacy-transformers.TransformerModel.v3",
    "tokenizer_config": {"use_fast": True},
    "get_spans": {
        "@span_getters": "spacy-transformers.strided_spans.v1",
        "window": 128,
        "stride": 96,
    },
}


def prepare_all(
    text: Path,
    transformer: str,
    vectors: str,
    medium: str,
    output: Path,
    *,
    minutes: float,
    epochs: int,
) -> None:
    """Make each part that is not there and can be made.

    text (Path): folder with English text.
    transformer (str): folder with MiniLM-L6; "" for none.
    vectors (str): pipeline with static vectors; "" for none.
    medium (str): folder with the larger biLM; "" for none.
    output (Path): folder to write.
    minutes (float): processor time of `spacy pretrain`.
    epochs (int): of floret.
    """
    sentences = output / "text.txt"
    parts: dict[str, Callable[[Path], None]] = {}
    sources = {"text": text}
    if vectors:
        sources["vectors"] = find_pipeline(vectors)
        parts["vectors"] = partial(copy_vectors, sources["vectors"])
    if medium:
        sources["medium"] = Path(medium)
        parts[MEDIUM] = partial(copy_bilm, sources["medium"])
    if transformer and find_spec("spacy_transformers"):
        sources["transformer"] = Path(transformer)
        for depth in DEPTHS:
            parts[f"minilm_{depth}"] = partial(cut_transformer, Path(transformer), depth)
    parts[sentences.name] = partial(write_text, text)
    parts["pretrained"] = partial(pretrain_tok2vec, sentences, minutes)
    if find_spec("floret"):
        parts["floret"] = partial(train_floret, text, epochs)
    digests = {name: hash_files(source) for name, source in sources.items()}
    _note_options(output / MADE, {"minutes": minutes, "epochs": epochs, **digests})
    for name, make in parts.items():
        if not (output / name).exists():
            print(f"{time.strftime('%H:%M:%S')} {name}", flush=True)
            make(output / name)
    made = {**read_json_object(output / MADE), "words": read_progress(output)}
    write_json(output / MADE, made)


def _note_options(path: Path, options: dict[str, float | str]) -> None:
    """Write the options and sources of the inputs before they are made. RAISES
    (typer.BadParameter): if existing ones were made with other options."""
    before = read_json_object(path) if path.exists() else options
    for name, value in options.items():
        # Older folders have no digests of the sources.
        if before.get(name, value) != value:
            # Folders are compared by their digests.
            is_digest = isinstance(value, str)
            was = f"another --{name}" if is_digest else f"--{name} {before[name]:g}, not {value:g}"
            raise typer.BadParameter(
                f"{path.parent} was made with {was}. Give that, or another folder"
            )
    write_json(path, {**before, **options})


def find_pipeline(name: str) -> Path:
    """name (str): of a pipeline, or its folder. RETURNS (Path): its folder. RAISES
    (typer.BadParameter): if it does not exist."""
    try:
        path = spacy.load(name).path
    except (OSError, ValueError) as err:
        raise typer.BadParameter(f"--vectors {name}: {err}") from err
    assert path is not None
    return path


def read_progress(inputs: Path) -> int:
    """RETURNS (int): words that `spacy pretrain` has read."""
    lines = list(srsly.read_jsonl(inputs / PRETRAINING / "log.jsonl"))
    return lines[-1]["nr_word"]


def copy_vectors(source: Path, output: Path) -> None:
    """Write a pipeline with a pipeline's vectors and nothing else."""
    nlp = spacy.blank("en", vocab=Vocab().from_disk(source / "vocab"))
    with atomic_folder(output) as folder:
        nlp.to_disk(folder)


def copy_bilm(source: Path, output: Path) -> None:
    """Write a folder with a biLM's files."""
    with atomic_folder(output) as folder:
        shutil.copytree(source, folder, dirs_exist_ok=True)


def write_text(source: Path, path: Path) -> None:
    """Write all sentences of a text, tokenized, in a random order that is the same each time.

    source (Path): folder with text.
    path (Path): file to write, a line for each.
    """
    sequences = read_sequences(str(source), cutter_maker("en", TOKENIZER))
    lines = [f"{' '.join(words)}\n" for words in tqdm(sequences)]
    random.Random(0).shuffle(lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(lines)


def train_floret(text: Path, epochs: int, output: Path) -> None:
    """Write a pipeline with floret vectors of a text.

    text (Path): folder with text.
    epochs (int): passes over it.
    output (Path): folder to write.
    """
    command = [sys.executable, str(FLORET_SCRIPT), str(text), str(output)]
    subprocess.run([*command, "--epochs", str(epochs), *FLORET], check=True)


def cut_transformer(source: Path, depth: int, output: Path) -> None:
    """Write a pipeline with a transformer's first layers: spacy-transformers' listeners read
    the last one that there is."""
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(source)
    model.encoder.layer = model.encoder.layer[:depth]
    model.config.num_hidden_layers = depth
    with TemporaryDirectory() as folder, atomic_folder(output) as pipeline:
        model.save_pretrained(folder)
        AutoTokenizer.from_pretrained(source).save_pretrained(folder)
        nlp = spacy.blank("en")
        nlp.add_pipe("transformer", config={"model": {**TRANSFORMER, "name": folder}})
        nlp.initialize()
        nlp.to_disk(pipeline)


def pretrain_tok2vec(text: Path, minutes: float, output: Path) -> None:
    """Write the weights of `spacy pretrain`, in a separate process."""
    folder = output.with_name(PRETRAINING)
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, str(SCRIPT), "pretrain", str(text), str(folder), str(minutes)]
    subprocess.run(command, check=True, env=limit_threads())
    (folder / WEIGHTS).rename(output)


# What spaCy calls the last weights.
WEIGHTS = "model-last.bin"
READER = "rivals.TimedTexts.v1"


def run_pretraining(plain: Config, text: Path, output: Path, minutes: float) -> None:
    """Pretrain a tok2vec from lines of words until the time is over, with spaCy's own loop.

    plain (Config): of a pipeline with a tagger, whose tok2vec is pretrained.
    text (Path): sentences, in a random order.
    output (Path): folder for spaCy's files; the weights are in `WEIGHTS`.
    minutes (float): processor time.
    """
    torch.set_num_threads(1)
    set_current_ops(NumpyOps(use_blis=False))
    spacy.registry.readers(READER, func=lambda: make_reader(text, minutes * 60))
    model = plain["components"]["tagger"]["model"]["tok2vec"]
    config = Config(plain)
    config["components"] = {"tok2vec": {"factory": "tok2vec", "model": model}}
    config["nlp"]["pipeline"] = ["tok2vec"]
    config["pretraining"] = make_pretraining_block()
    config["corpora"]["pretrain"] = {"@readers": READER}
    output.mkdir(parents=True, exist_ok=True)
    filled = load_model_from_config(config, auto_fill=True).config
    pretrain(filled.interpolate(), output, silent=False)


def make_reader(text: Path, seconds: float) -> Callable[[Language], Iterator[Doc]]:
    """RETURNS (Callable[[Language], Iterator[Doc]]): Reads docs until the time is over."""

    def read(nlp: Language) -> Iterator[Doc]:
        end = time.process_time() + seconds
        with text.open(encoding="utf-8") as lines:
            for line in lines:
                if time.process_time() > end:
                    return
                if words := line.split():
                    yield Doc(nlp.vocab, words=words)

    return read
