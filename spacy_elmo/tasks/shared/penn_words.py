"""Words as the Penn Treebank writes them, and data that was made of it."""

# What its brackets are written with, as they are those of the trees.
_BRACKETS = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
}
# OntoNotes has "/." and "/?" of spoken text, too.
_MARKS = {"/.": ".", "/?": "?", "/-": "-"}


def unescape(word: str) -> str:
    r"""word (str): as it is written in the trees. RETURNS (str): As it was in the text: "-LRB-" is
    "(", "1\/2" is "1/2", OntoNotes's "/." is "."."""
    known = _BRACKETS.get(word) or _MARKS.get(word)
    return known or word.replace(r"\/", "/").replace(r"\*", "*")
