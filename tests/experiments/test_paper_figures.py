"""What the report says of the paper."""

import re

import pytest

from spacy_elmo.experiments.paper_figures import describe_paper
from spacy_elmo.experiments.paper_report import _TITLES

from ..support.helpers import ROOT

OURS = {"sense_map", "search"}


@pytest.mark.parametrize("kind", _TITLES)
def test_what_is_of_the_paper_says_where_it_stands(kind):
    text = describe_paper(kind)
    is_placed = re.match(r"The paper: (Table|Figure) \d\b", text) is not None
    assert is_placed == (kind not in OURS)
    assert text.startswith("Not in the paper: ") == (kind in OURS)


def test_the_report_among_the_docs_says_the_same():
    text = (ROOT / "docs" / "experiments.md").read_text("utf-8")
    for kind, title in _TITLES.items():
        if f"\n## {title}\n" in text:
            assert f"\n## {title}\n\n{describe_paper(kind)}\n" in text
