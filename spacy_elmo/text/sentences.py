"""Sentence ends by words alone. No annotation is read."""

from typing import Iterator, List, Sequence

# Sentence-final in many scripts (the list of spaCy's sentencizer, which is not
# imported: this is used without spaCy); what may still follow belongs to the sentence.
FINAL = frozenset(
    "!.?։؟۔܀܁܂߹।॥၊။።፧፨᙮᜵᜶᠃᠉᥄᥅᪨᪩᪪᪫᭚᭛᭞᭟᰻᰼᱾᱿‼‽⁇⁈⁉⸮⸼꓿꘎꘏꛳꛷꡶꡷꣎꣏꤯꧈꧉꩝꩞꩟꫰꫱꯫﹒﹖﹗！．？𐩖𐩗𑁇𑁈𑂾𑂿𑃀𑃁𑅁𑅂𑅃𑇅𑇆𑇍𑇞𑇟𑈸𑈹𑈻𑈼𑊩𑑋𑑌𑗂𑗃𑗉𑗊𑗋𑗌𑗍𑗎𑗏𑗐𑗑𑗒𑗓𑗔𑗕𑗖𑗗𑙁𑙂𑜼𑜽𑜾𑩂𑩃𑪛𑪜𑱁𑱂𖩮𖩯𖫵𖬷𖬸𖭄𛲟𝪈｡。"
)
CLOSING = frozenset("\"'”’»)]}›」』）】")


def ends_sentence(word: str) -> bool:
    """word (str): a token's text. RETURNS (bool): Whether a sentence may end after it:
    sentence-final punctuation, or whitespace with a line break."""
    if word.isspace():
        return "\n" in word
    return all(char in FINAL for char in word)


def find_cut(words: Sequence[str], first: int, end: int) -> int:
    """Find the last good place to cut before a limit.

    words (Sequence[str]): texts of tokens.
    first (int): the first token after which may be cut.
    end (int): the limit, at most `len(words)`.
    RETURNS (int): the position after the last sentence end in words[first:end], what
        closes the sentence included; `end` if there is none.
    """
    for i in range(end - 1, first - 1, -1):
        if ends_sentence(words[i]):
            return _find_end(words, i, end)
    return end


def cut_windows(words: Sequence[str], window: int) -> Iterator[Sequence[str]]:
    """Cut at the last sentence end in the second half of each window if there is one,
    else where it is full.

    words (Sequence[str]): texts of tokens.
    window (int): most tokens of a window; at least 2.
    YIELDS (Sequence[str]): the windows, which cover the words.
    """
    start = 0
    while start < len(words):
        end = min(start + window, len(words))
        if end < len(words):
            end = find_cut(words, start + window // 2, end)
        yield words[start:end]
        start = end


def cut_sentences(words: Sequence[str]) -> Iterator[List[str]]:
    """Cut after sentence-final punctuation, unless a lower-case word follows.

    words (Sequence[str]): texts of tokens.
    YIELDS (List[str]): the sentences, which cover the words.
    """
    start = i = 0
    while i < len(words):
        i += 1
        if ends_sentence(words[i - 1]):
            i = _find_end(words, i - 1, len(words))
            if i < len(words) and (words[i][:1].islower() or ends_sentence(words[i])):
                continue
            yield list(words[start:i])
            start = i
    if start < len(words):
        yield list(words[start:])


def _find_end(words: Sequence[str], i: int, end: int) -> int:
    """RETURNS (int): The position after word i, which ends a sentence, and what closes it. Behind
    a line break nothing does: the mark that may stand there opens the next sentence."""
    is_break = words[i].isspace()
    i += 1
    while i < end and not is_break and words[i] in CLOSING:
        i += 1
    return i
