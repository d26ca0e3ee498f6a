"""Data of all tasks of `projects/table1`, as published, a few lines of each."""

import json
from pathlib import Path
from typing import Dict

_CONLL = "Ham\tB-object\neggs\tO\n\nSam\tB-person\nand\tO\nAnn\tB-person\n\n"
_NESTED = "the\tB-PER\tO\nmother\tI-PER\tO\nof\tI-PER\tO\nAnna\tI-PER\tB-PER\n\nHe\tB-PER\tO\n"
_PAIRS = "".join(
    json.dumps({"sentence1": "A man.", "sentence2": text, "gold_label": label}) + "\n"
    for text, label in (("A dog.", "contradiction"), ("He is.", "entailment"), ("It.", "neutral"))
)
_ROLES = (
    "0\tBush\tPROPN\tNNP\t-\t-\t(ARG0*)\n1\tcame\tVERB\tVBD\tcome\tcome.01\t(V*)\n"
    "2\tin\tADP\tIN\t-\t-\t(ARG2*)\n\n"
)
_CHAINS = "".join(
    f"{i}\t{word}\t{word}\t{pos}\t{tag}\t_\t{head}\t{dep}\t_\t{misc}\n"
    for i, word, pos, tag, head, dep, misc in (
        (1, "Sam", "PROPN", "NNP", 2, "nsubj", "Entity=(1)"),
        (2, "says", "VERB", "VBZ", 0, "root", "_"),
        (3, "he", "PRON", "PRP", 4, "nsubj", "Entity=(1)"),
        (4, "ate", "VERB", "VBD", 2, "ccomp", "_"),
    )
)
_COLUMNS = (
    "#begin document (one); part 0\none\t0\t0\tSam\t_\t(1)\none\t0\t1\the\t_\t(1)\n#end document\n"
)


def write_task_data(folder: Path) -> None:
    """folder (Path): to write to, laid out like the published data."""
    splits = ("train", "dev", "test")
    files: Dict[str, str] = {
        "entailment/mnli_dev_matched/mnli-dev-matched.jsonl": _PAIRS,
        "qa/squad11_dev_rebuilt/dev-v1.1.rebuilt.json": make_squad(),
        "qa/xquad_en/xquad.en.json": make_squad(),
    }
    for split in splits:
        files[f"ner/gum_named/gum-named-{split}.conll"] = _CONLL
        files[f"ner/litbank_entities/litbank-entities-{split}.tsv"] = _NESTED
        files[f"entailment/snli/small/{split}.jsonl"] = _PAIRS
        files[f"srl/propbank_ewt_spans/ewt-propbank-{split}.gold_conll"] = _ROLES
        files[f"coref/ontogum/ontogum-{split}.conllu"] = _CHAINS
        files[f"coref/litbank/litbank-{split}.conll"] = _COLUMNS
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")


def make_squad(context: str = "Sam gave Ann ham.") -> str:
    """context (str): which begins with three letters. RETURNS (str): Articles enough for each part
    to have some."""
    answer = {"answer_start": 0, "text": context[:3]}
    asked = {"id": "x", "question": "Who?", "answers": [answer]}
    articles = [
        {"title": f"{i}", "paragraphs": [{"context": context, "qas": [asked]}]} for i in range(20)
    ]
    return json.dumps({"data": articles})
