"""Texts, published data of tasks, and what senses are trained on."""

import gzip
import json
import lzma
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

import spacy
from spacy.language import Language
from spacy.tokens import DocBin

from spacy_elmo.cli.convert_data import _list_labels
from spacy_elmo.experiments.runs import read_docs
from spacy_elmo.registry import task_readers
from spacy_elmo.senses.annotated import read_sentences
from spacy_elmo.senses.wordnet import read_wordnet
from spacy_elmo.text.text_files import zstd
from spacy_elmo.text.texts import TextSource

from ..support.toy_wordnet import make_lines, write_wordnet
from ..tasks.srl.test_role_files import CONLL2005, CONLL2012, PROPBANK
from ..tasks.test_coref_files import COLUMNS, CONLLU
from ..tasks.test_squad import ask
from ..tasks.test_task_data import CONLL, LITBANK, SNLI, SST
from .mutation import bundle, unbundle
from .target import Job, Target, read_folder, write_files

TEXT = "Green eggs and ham.\n\nDo you like them — “Sam”?\n北京\n".encode()
LINES = b'{"text": "Green eggs \\u00e9.", "meta": [1, {"a": null}]}\n\n{"text": "ham"}\n'
# A tokenizer's vocabulary grows with what it meets.
_N_READ = 300


def text(folder: Path) -> Job:
    """Each format and compression that pretraining reads."""
    nlp = spacy.blank("xx")
    docs = DocBin(docs=[nlp.make_doc("green eggs"), nlp.make_doc("ham")]).to_bytes()
    files = {"a.txt": TEXT, "a.jsonl": LINES, "a.spacy": docs, "a.txt.gz": gzip.compress(TEXT)}
    files |= {"a.jsonl.gz": gzip.compress(LINES), "a.txt.xz": lzma.compress(TEXT)}
    files |= {"a.txt.zst": zstd.compress(TEXT)} if zstd else {}

    def run(data: bytes) -> object:
        write_files(folder, unbundle(data))
        return list(TextSource(str(folder), 0).read_texts())

    return Job([bundle({name: content}) for name, content in files.items()], run)


def sense_text(folder: Path) -> Job:
    lines = "".join(f"{json.dumps(line)}\n" for line in make_lines(2)).encode()
    files = {"a.jsonl": lines, "a.jsonl.gz": gzip.compress(lines)}

    def run(data: bytes) -> object:
        write_files(folder, given := unbundle(data))
        return [list(read_sentences(folder / name)) for name in given]

    return Job([bundle({name: content}) for name, content in files.items()], run)


def wordnet(folder: Path) -> Job:
    seed = bundle(read_folder(write_wordnet(folder / "dict")))

    def run(data: bytes) -> object:
        write_files(folder / "dict", unbundle(data))
        return read_wordnet(folder / "dict").find_form("banks", "n")

    return Job([seed], run)


def docs(folder: Path) -> Job:
    """The corpus of an experiment."""
    nlp = spacy.blank("xx")
    seed = DocBin(docs=[nlp.make_doc("green eggs"), nlp.make_doc("ham")]).to_bytes()

    def run(data: bytes) -> object:
        (folder / "x.spacy").write_bytes(data)
        return len(read_docs(folder / "x.spacy"))

    return Job([seed], run)


_SQUAD = {
    "data": [
        {
            "title": "Games",
            "paragraphs": [
                {"context": " In 1896 the games.", "qas": [ask("When?", "1896"), ask("Who?")]},
                {"context": "Held in Athens.", "qas": [ask("Where?", "Athens")]},
            ],
        }
    ]
}
_TABLE = "gold_label\tsentence1\tsentence2\nneutral\tA man.\tHe is.\n"
# By format: contents to start from, and options of the reader to try each input with.
_DATA: Dict[str, Tuple[List[str], List[Dict[str, Any]]]] = {
    "conll2003": ([CONLL], [{}, {"joined": True}]),
    "conll2005": ([CONLL2005], [{}]),
    "conll2012_coref": ([COLUMNS], [{}]),
    "conll2012_roles": ([CONLL2012], [{}, {"joined": True}]),
    "labelled_lines": (["good\tgreen eggs\nbad\tham ham\n"], [{}]),
    "litbank_coref": ([COLUMNS], [{}]),
    "litbank_entities": ([LITBANK], [{}, {"joined": True}]),
    "ontogum": ([CONLLU], [{}]),
    "propbank_spans": ([PROPBANK], [{}, {"joined": True}]),
    "snli": (["".join(f"{json.dumps(line)}\n" for line in SNLI), _TABLE], [{}]),
    "squad": ([json.dumps(_SQUAD)], [{}, {"part": "train", "negatives": 0.5}]),
    "sst": ([SST], [{}, {"binary": True, "phrases": True}]),
}


def _task_data(name: str) -> Target:
    contents, options = _DATA[name]

    def make(folder: Path) -> Job:
        read, path, n_read = task_readers.get(name), folder / "data.txt", 0
        nlp: Language = spacy.blank("en")

        def run(data: bytes) -> object:
            nonlocal nlp, n_read
            n_read += 1
            nlp = spacy.blank("en") if n_read % _N_READ == 0 else nlp
            path.write_bytes(data)
            return [_convert(list(read(nlp, path, **each))) for each in options]

        return Job([content.encode("utf-8") for content in contents], run)

    return make


def _convert(docs: List[Any]) -> int:
    """What `convert-data` does with docs."""
    for doc in docs:
        list(_list_labels(doc))
    return len(DocBin(docs=docs, store_user_data=True).to_bytes())


DATA_TARGETS: Dict[str, Callable[[Path], Job]] = {
    f"data_{name}": _task_data(name) for name in _DATA
}
