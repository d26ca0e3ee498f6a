"""displaCy's output as a tree: text stays text, whatever it holds."""

import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy import displacy
from spacy.tokens import Doc, Span

from spacy_elmo.explore.safe_markup import parse_markup

HOSTILE = "<script>alert(1)</script> <img src=x onerror=alert(2)> & \" ' javascript:x &lt;b&gt;"
NLP = spacy.blank("en")


def walk(node):
    yield node
    for child in node["children"] if isinstance(node, dict) else ():
        yield from walk(child)


def read_text(tree):
    return "".join(node for node in walk(tree) if isinstance(node, str))


def find_tags(tree):
    return {node["tag"] for node in walk(tree) if isinstance(node, dict)}


def draw(words, style):
    doc = Doc(NLP.vocab, words=words)
    # displaCy escapes no label.
    doc.ents = [Span(doc, 0, 1, label="A<img src=x onerror=alert(3)>")]
    doc.spans["sc"] = [Span(doc, 0, len(doc), label="C&D")]
    return parse_markup(displacy.render(doc, style=style, jupyter=False))


def test_hostile_text_is_shown_as_it_is():
    tree = draw(HOSTILE.split(), "ent")

    assert HOSTILE.split()[0] in read_text(tree) and "onerror=alert(2)>" in read_text(tree)
    assert "&lt;b&gt;" in read_text(tree)
    assert find_tags(tree) <= {"div", "mark", "span", "br"}
    assert all(
        set(node) == {"tag", "style", "children"} for node in walk(tree) if node != str(node)
    )


@given(st.lists(st.text("<>&\"'ab;:=/!-", min_size=1, max_size=8), min_size=1, max_size=6))
def test_any_words_come_through(words):
    for style in ("ent", "span"):
        shown = read_text(draw(words, style))
        assert all(word in shown for word in words)


def test_markup_that_is_not_displacys_loses_all_but_text():
    tree = parse_markup(
        '<script src="x">alert(1)</script><a href="javascript:x" onclick="y">link</a>'
        '<iframe></iframe><div style="position: fixed; background: url(http://x); top: 3px; '
        'behavior: x; color: #fff">end</p></div></div></div>more<!-- c -->'
    )

    assert find_tags(tree) == {"div", "span"}
    styles = [node["style"] for node in walk(tree) if isinstance(node, dict)]
    assert [style for style in styles if style] == [{"top": "3px", "color": "#fff"}]
    assert "link" in read_text(tree) and "more" in read_text(tree)


def test_what_displacy_draws_keeps_its_look():
    mark = next(n for n in walk(draw(["Ann"], "ent")) if isinstance(n, dict) and n["tag"] == "mark")
    assert mark["style"]["border-radius"] == "0.35em" and mark["style"]["background"][0] == "#"
    widths = {
        node["style"].get("width") for node in walk(draw(["Ann"], "span")) if isinstance(node, dict)
    }
    assert "calc(100% + 2px)" in widths
