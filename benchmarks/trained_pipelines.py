"""Trained pipelines on a treebank with entities: accuracy, speed, size, memory and load time.

Accuracy is that of the CoNLL 2018 shared task (Zeman et al. 2018), F1, from gold sentences and
tokens, and from raw paragraphs. Each pipeline runs as installed, in its own processes, in turn with
the others. Needs the extra "bench".
"""

import json
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from importlib.util import find_spec
from io import StringIO
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import typer
from common import describe_machine, print_table

# Labels of OntoNotes; others are not among the three kinds.
KINDS = {"PERSON": "PER", "GPE": "LOC", "LOC": "LOC", "FAC": "LOC", "ORG": "ORG"}
METRICS = ("XPOS", "UPOS", "UFeats", "Lemmas", "UAS", "LAS", "Sentences")
# Those that OntoNotes's schemes share with UD.
COMPARABLE = ("XPOS", "UPOS", "Sentences", "Entities")
FIRST = "Ann Smith left Google for a bank in Oslo."


def write_conllu(docs: Iterable[Any]) -> StringIO:
    """RETURNS (StringIO): Docs in CoNLL-U, without their whitespace tokens."""
    lines = []
    for doc in docs:
        for sent in doc.sents:
            tokens = [token for token in sent if not token.is_space]
            ids = {token.i: i for i, token in enumerate(tokens, 1)}
            for i, token in enumerate(tokens, 1):
                head, dep = ids.get(token.head.i, 0), token.dep_ or "dep"
                if head in (0, i):
                    head, dep = 0, "root"
                pos, tag, feats = token.pos_ or "_", token.tag_ or "_", str(token.morph) or "_"
                lemma = token.lemma_ or "_"
                cells = (i, token.text, lemma, pos, tag, feats, head, dep.lower(), "_", "_")
                lines.append("\t".join(map(str, cells)))
            lines += [""] if tokens else []
    return StringIO("\n".join([*lines, ""]))


def measure_accuracy(nlp: Any, corpus: Path) -> dict[str, dict[str, float]]:
    """RETURNS (dict[str, dict[str, float]]): "gold" and "raw": F1 in percent by metric."""
    from spacy.scorer import Scorer
    from spacy.training import Corpus
    from udtools.udeval import evaluate, load_conllu

    is_ontonotes = "PERSON" in nlp.pipe_labels.get("ner", ())
    found = {}
    for mode in ("gold", "raw"):
        examples = list(Corpus(corpus, gold_preproc=mode == "gold")(nlp))
        docs = list(nlp.pipe(example.predicted for example in examples))
        files = [write_conllu(each) for each in ([eg.reference for eg in examples], docs)]
        scores = evaluate(*(load_conllu(file, "x", defaultdict(int)) for file in files))
        values = {name: 100 * scores[name].f1 for name in METRICS}
        for doc in docs:
            if is_ontonotes:
                named = [ent for ent in doc.ents if ent.label_ in KINDS]
                for ent in named:
                    ent.label_ = KINDS[ent.label_]
                doc.ents = tuple(named)
        values["Entities"] = 100 * (Scorer.score_spans(examples, "ents")["ents_f"] or 0)
        if is_ontonotes:
            values = {name: v if name in COMPARABLE else float("nan") for name, v in values.items()}
        found[mode] = values
    return found


def measure(name: str, corpus: Path, texts: Path, is_first: bool) -> dict[str, Any]:
    """RETURNS (dict[str, Any]): What one process finds: "load" (seconds, with the first text),
    "tokens/s" of each quarter of the texts but the first, "MB" of memory, and in the first turn
    "disk" (MB) and the accuracy."""
    import spacy
    from spacy.tokens import DocBin

    started = time.perf_counter()
    nlp = spacy.load(name)
    nlp(FIRST)
    found: dict[str, Any] = {"load": time.perf_counter() - started}
    vocab = spacy.blank("en").vocab
    paragraphs = [doc.text for doc in DocBin().from_disk(texts).get_docs(vocab)]
    cuts = [len(paragraphs) * i // 4 for i in range(5)]
    rates = []
    for start, end in pairwise(cuts):
        started = time.perf_counter()
        n_tokens = sum(map(len, nlp.pipe(paragraphs[start:end])))
        rates.append(n_tokens / (time.perf_counter() - started))
    found |= {"tokens/s": rates[1:], "MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3}
    if is_first:
        found["disk"] = sum(f.stat().st_size for f in nlp.path.rglob("*") if f.is_file()) / 1e6
        found |= measure_accuracy(nlp, corpus)
    return found


def main(
    corpus: Path = typer.Argument(..., help=".spacy file to score on, such as the dev part"),
    texts: Path = typer.Argument(..., help=".spacy file whose texts are read for speed"),
    pipelines: list[str] = typer.Argument(..., help="Packages or folders; TITLE=FOLDER names one"),
    turns: int = typer.Option(3, help="Processes of each, in turn"),
    output: Path = typer.Option(None, help="JSON file for the results"),
    worker: int = typer.Option(-1, hidden=True),
) -> None:
    """Print accuracy from gold tokens and from raw text, then speed, size, memory and load time."""
    if worker >= 0:
        print("\n" + json.dumps(measure(pipelines[0], corpus, texts, is_first=not worker)))
        return
    # The title ends at the first sign; without one, it is the name.
    named = {each.partition("=")[0]: each.partition("=")[2] or each for each in pipelines}
    found: dict[str, list[dict[str, Any]]] = {title: [] for title in named}
    for turn in range(turns):
        for title, name in named.items():
            command = [sys.executable, __file__, str(corpus), str(texts), name]
            command += ["--worker", str(turn)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            found[title].append(json.loads(done.stdout.splitlines()[-1]))
    print(describe_machine())
    for mode in ("gold", "raw"):
        columns = list(next(iter(found.values()))[0][mode])
        rows = [
            [t, *(f"{v:.1f}" if v == v else "-" for v in each[0][mode].values())]
            for t, each in found.items()
        ]
        print_table([f"{mode} tokens" if mode == "gold" else "raw text", *columns], rows)
        print()
    rows = []
    for title, each in found.items():
        rate = median(rate for turn in each for rate in turn["tokens/s"])
        memory, load = (median(turn[key] for turn in each) for key in ("MB", "load"))
        rows.append(
            [title, f"{rate:,.0f}", f"{each[0]['disk']:.1f}", f"{memory:.0f}", f"{load:.2f}"]
        )
    print_table(["pipeline", "tokens/s", "disk, MB", "memory, MB", "load, s"], rows)
    if output is not None:
        output.write_text(json.dumps({"machine": describe_machine(), "pipelines": found}, indent=1))


if __name__ == "__main__":
    if find_spec("udtools") is None:
        raise SystemExit("The package udtools is not installed: pip install spacy-elmo[bench]")
    typer.run(main)
