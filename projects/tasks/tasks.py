"""The tasks: which component learns them, and how they are scored."""

from typing import NamedTuple


class Task(NamedTuple):
    """One task.

    lang (str): language code.
    component (str): spaCy's factory.
    title (str): what it is called in the table.
    key (str): the key of its score.
    score (str): what that is called.
    """

    lang: str
    component: str
    title: str
    key: str
    score: str


TASKS = {
    "ewt": Task("en", "tagger", "UD English EWT, XPOS", "tag_acc", "accuracy"),
    "wnut17": Task("en", "ner", "WNUT 2017, entities", "ents_f", "F1"),
    "polarity": Task("en", "textcat", "sentence polarity", "cats_score", "macro F1"),
    "ko_gsd": Task("ko", "tagger", "UD Korean GSD, XPOS", "tag_acc", "accuracy"),
}
ENGLISH = "ewt,wnut17,polarity"


def choose(names: str) -> dict[str, Task]:
    """names (str): names with commas between. RETURNS (dict[str, Task]): their tasks."""
    return {name: TASKS[name] for name in names.split(",")}
