"""Folders and configs: indexes, runs, results, caches, vectors."""

import logging
from pathlib import Path
from typing import Dict

import spacy

from spacy_elmo.experiments.runs import Run, RunSettings, make_run_config
from spacy_elmo.experiments.variants import choose_variants
from spacy_elmo.files import DIGESTS_FILE, digest, write_digests
from spacy_elmo.inference.activation_cache import LayerFile
from spacy_elmo.pipeline.presets import make_config
from spacy_elmo.pretraining.config import RunConfig
from spacy_elmo.pretraining.config_files import load_config, make_pretraining_config
from spacy_elmo.pretraining.log import read_log
from spacy_elmo.pretraining.run import pretrain
from spacy_elmo.pretraining.teachers import read_vector_table
from spacy_elmo.search.index_files import SUFFIXES
from spacy_elmo.search.search_index import SearchIndex
from spacy_elmo.text.static_vectors import read_static_vectors

from ..search.test_search_index import SENTENCES, create
from ..support.pipelines import add_vectors
from ..support.runs import train, write_config, write_texts
from ..support.toy_embedder import ToyEmbedder
from .mutation import bundle, unbundle
from .target import Job, read_folder, write_files

_META = "index.json"


def seal(content: bytes) -> bytes:
    """JSON with its digest before it, as `write_checked_json` writes it."""
    body = content.lstrip().removeprefix(b"{").removeprefix(b"\n")
    return b'{\n  "digest": "%s",\n%s' % (digest(body).encode(), body)


def _unseal(content: bytes) -> bytes:
    return b"{\n" + content.split(b"\n", 2)[2]


def search_index(folder: Path) -> Job:
    """Files with the names that their digests give them, whatever is in them."""
    seeds = []
    for weighting in ("mean", "sif", "whitened"):
        index = create(folder / weighting, ToyEmbedder(), weighting=weighting)
        index.add("a", SENTENCES * 3)
        index.add("b", [["tea"], ["green", "tea"]], origin="0" * 32)
        files = read_folder(folder / weighting)
        files = {
            name: files[name] for name in files if name.split(".")[0].count("-") or name == _META
        }
        seeds.append(bundle({**files, _META: _unseal(files[_META])}))

    def run(data: bytes) -> object:
        (folder / "x").mkdir(exist_ok=True)
        write_files(folder / "x", _name_by_digests(unbundle(data)))
        return SearchIndex.open(folder / "x", ToyEmbedder()).search(["ham"], n=3)

    return Job(seeds, run)


def _name_by_digests(files: Dict[str, bytes]) -> Dict[str, bytes]:
    meta, named = files.pop(_META, b"{}"), {}
    for name, content in files.items():
        kind, _, old = name.split(".")[0].partition("-")
        new = digest(content)
        meta = meta.replace(old.encode(), new.encode())
        named[f"{kind}-{new}{SUFFIXES.get(kind, '')}"] = content
    return {**named, _META: seal(meta)}


def activation_store(folder: Path) -> Job:
    """SQLite: what comes back is what was put there, or nothing."""
    items = {bytes([i]) * 16: bytes(range(i, i + 40)) for i in range(20)}
    LayerFile(folder / "seed.db", 10**6).put(list(items.items()))

    def run(data: bytes) -> object:
        write_files(folder / "x", {"x.db": data})
        store = LayerFile(folder / "x" / "x.db", 10**6)
        found = store.get(list(items))
        assert found.items() <= items.items(), "layers of something else"
        store.put(list(items.items())[:3])
        assert store.get(list(items)).items() <= items.items(), "layers of something else"
        return len(found)

    (folder / "x").mkdir()
    return Job([(folder / "seed.db").read_bytes()], run)


def vectors(folder: Path) -> Job:
    """A pipeline's table of static vectors, for both of its readers."""
    nlp = spacy.blank("xx")
    add_vectors(nlp)
    (folder / "seed").mkdir()
    nlp.vocab.to_disk(folder / "seed" / "vocab")
    seed = bundle(read_folder(folder / "seed"))

    def run(data: bytes) -> object:
        write_files(folder / "x", unbundle(data))
        try:
            read_vector_table(str(folder / "x")).find(["ham"])
        finally:
            read_static_vectors(folder / "x" / "vocab")

    (folder / "x").mkdir()
    return Job([seed], run)


def pretraining_config(folder: Path) -> Job:
    texts = write_texts(folder / "texts")
    path = write_config(folder, texts, paths={"train": "x.txt", "dev": None})
    published = make_pretraining_config("kim_5m")
    published["paths"].update({"train": "x.txt", "dev": "y.txt"})
    seeds = [path.read_bytes(), published.to_bytes()]

    def run(data: bytes) -> object:
        path.write_bytes(data)
        return RunConfig.check(load_config(path))

    return Job(seeds, run)


def task_config(folder: Path) -> Job:
    """The config that `experiment` compares variants of."""
    path = folder / "config.cfg"
    run_ = Run(choose_variants("gain", 2)[1], 1.0, 0)
    settings = RunSettings(component="tagger", corpus=str(folder), config=str(path))

    def run(data: bytes) -> object:
        path.write_bytes(data)
        return make_run_config(run_, settings)

    return Job([make_config("word_features", ["tagger", "ner"]).to_bytes()], run)


def run_folder(folder: Path) -> Job:
    """A run is resumed for a step."""
    texts = write_texts(folder / "texts")
    train(folder, texts, "seed", stop_at=3)
    config = load_config(folder / "pretrain.cfg")
    files = read_folder(folder / "seed", without=(DIGESTS_FILE,))
    logging.getLogger("spacy_elmo").setLevel(logging.CRITICAL)

    def run(data: bytes) -> object:
        given = unbundle(data)
        if any(name not in files for name in given):
            return None
        write_files(folder / "x", given)
        for step in (folder / "x").glob("checkpoints/*"):
            write_digests(step)
        if "log.jsonl" in given:
            read_log(folder / "x")
        steps: list = []
        return pretrain(config, folder / "x", resume=True, should_stop=lambda: not steps.append(1))

    (folder / "x").mkdir()
    return Job([bundle(_unsealed(files))], run)


def _unsealed(files: Dict[str, bytes]) -> Dict[str, bytes]:
    """Without digests: as older versions wrote, which is read, too."""
    return {
        name: _unseal(content) if content.startswith(b'{\n  "digest"') else content
        for name, content in files.items()
    }
