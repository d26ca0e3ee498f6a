"""Make this folder: a pipeline of all task components as version 0.1.0 saved it, and what it said.

Run from the root of that version's source tree: `python -m tests.data.tasks_0_1_0.make OUTPUT`.
Never made anew: it stands for what users have on their disks.
"""

import sys
from pathlib import Path
from typing import Any, Dict, List

import srsly
from spacy.tokens import Doc, DocBin

from tests.support.helpers import make_nlp
from tests.support.toy_roles import LISTENER, add_srl, make_corpus
from tests.support.toy_roles import make_examples as make_role_examples
from tests.support.toy_tasks import MODELS, make_examples, make_gold

TASKS = ("elmo_coref", "elmo_entailment", "elmo_qa", "textcat", "ner")
_N_UPDATES = 60


def make_pipeline() -> Any:
    # This language has the smallest tokenizer.
    nlp = make_nlp(lang="xx")
    for name in TASKS:
        width = {} if name == "ner" else {"width": 4}
        nlp.add_pipe(name, config={"model": {**MODELS[name], **width}})
    add_srl(nlp, {**LISTENER, "output": "all"}, width=8, depth=1)
    examples = {name: make_examples(nlp, make_gold(nlp, name)) for name in TASKS}
    examples["elmo_srl"] = make_role_examples(make_corpus(nlp.vocab))
    for name, each in examples.items():
        with nlp.select_pipes(enable=["elmo", name]):
            optimizer = nlp.initialize(lambda each=each: each)
            optimizer.learn_rate = 0.02
            for _ in range(_N_UPDATES):
                nlp.update(each, sgd=optimizer, drop=0.0)
    return nlp, [eg.predicted for each in examples.values() for eg in each[:3]]


def read(doc: Doc) -> Dict[str, Any]:
    """What the components say, in JSON's types."""
    answer = doc._.qa_answer
    return {
        "tokens": [token.text for token in doc],
        "ents": [[ent.start, ent.end, ent.label_] for ent in doc.ents],
        "cats": {label: round(value, 5) for label, value in sorted(doc.cats.items())},
        "entailment": doc._.entailment,
        "answer": [answer.text, round(answer.probability, 5)] if answer else None,
        "chains": [[[m.start, m.end] for m in chain] for chain in doc._.coref_chains],
        "frames": [
            [[p.start, p.end], [[label, span.start, span.end] for label, span in arguments]]
            for p, arguments in doc._.elmo_srl
        ],
    }


def read_docs(nlp: Any, folder: Path) -> List[Dict[str, Any]]:
    """Read what a pipeline says of the folder's docs."""
    docs = DocBin().from_disk(folder / "docs.spacy").get_docs(nlp.vocab)
    return [read(doc) for doc in nlp.pipe(docs)]


def main(output: Path) -> None:
    nlp, docs = make_pipeline()
    output.mkdir(parents=True, exist_ok=True)
    nlp.to_disk(output / "pipeline")
    DocBin(docs=docs).to_disk(output / "docs.spacy")
    srsly.write_json(output / "expected.json", read_docs(nlp, output))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
