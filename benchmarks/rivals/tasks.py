"""The data sets, and how long every row trains on each."""

from typing import NamedTuple

from spacy_elmo.experiments.runs import get_score


class Task(NamedTuple):
    """A data set.

    title (str): for people.
    component (str): factory of the component to train.
    max_steps (int): updates at most.
    patience (int): updates without a better dev score, after which training ends.
    """

    title: str
    component: str
    max_steps: int
    patience: int

    @property
    def score(self) -> str:
        """RETURNS (str): Key of the score that everything is chosen by."""
        return get_score(self.component)


# The first two have their speed measured, too.
TASKS = {
    "ewt": Task("UD English EWT, XPOS", "tagger", 3000, 1000),
    "wnut17": Task("WNUT 2017, entities", "ner", 2000, 800),
    "gum": Task("GUM, named entities", "ner", 2000, 800),
    "uner_ewt": Task("Universal NER on EWT", "ner", 3000, 1000),
}
TIMED = ("ewt", "wnut17")
EVAL_FREQUENCY = 200
