"""Texts -> sequences of words: tokenizing, sentence ends, windows, worker processes. No annotation
is read."""

import re
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Callable, Deque, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from spacy.tokenizer import Tokenizer
from spacy.tokens import Doc

from ..errors import Errors
from ..utils import end_with_parent, require_known, require_least

CUTS = ("sentences", "lines", "windows")

# Sentence-final in many scripts: the list of spaCy's sentencizer.
FINAL = frozenset(
    "!.?։؟۔܀܁܂߹।॥၊။።፧፨᙮᜵᜶᠃᠉᥄᥅᪨᪩᪪᪫᭚᭛᭞᭟᰻᰼᱾᱿‼‽⁇⁈⁉⸮⸼꓿꘎꘏꛳꛷꡶꡷꣎꣏꤯꧈꧉꩝꩞꩟꫰꫱꯫﹒﹖﹗！．？𐩖𐩗𑁇𑁈𑂾𑂿𑃀𑃁𑅁𑅂𑅃𑇅𑇆𑇍𑇞𑇟𑈸𑈹𑈻𑈼𑊩𑑋𑑌𑗂𑗃𑗉𑗊𑗋𑗌𑗍𑗎𑗏𑗐𑗑𑗒𑗓𑗔𑗕𑗖𑗗𑙁𑙂𑜼𑜽𑜾𑩂𑩃𑪛𑪜𑱁𑱂𖩮𖩯𖫵𖬷𖬸𖭄𛲟𝪈｡。"
)
# May follow sentence-final punctuation, and belongs to the sentence.
CLOSING = frozenset("\"'”’»)]}›」』）】")

# Pending chunks for each worker: enough that none has to wait, few enough for memory.
_CHUNKS_AHEAD = 8
# Words that a tokenizer may know, about 100 bytes each.
_MAX_WORDS = 100_000
# Texts between spaces whose tokens a tokenizer may remember. With spaCy's 10,000, a fourth of a
# text is split again and again.
_MAX_CACHE = 1_000_000

# spaCy's tokenizer splits a run of punctuation off a word one mark at a time, in a time that grows
# with the square of their number: half a minute for 10,000 "=". Longer runs are cut.
_MAX_RUN = 500
_RUNS = re.compile(rf"(?:[^\w\s]|_){{{_MAX_RUN + 1},}}")
# SudachiPy, the tokenizer of Japanese, refuses longer texts.
_MAX_BYTES = 49_149
_MAX_CHARS = _MAX_BYTES // 4  # of 4 bytes at most
# Where a long text is cut, the best first: behind a line break, a sentence, a space.
_SENTENCE_END = f"[{re.escape(''.join(sorted(FINAL)))}]+[{re.escape(''.join(sorted(CLOSING)))}]*"
_PLACES = [re.compile(place) for place in (r"\n", _SENTENCE_END, r"\s")]


class Chunk(NamedTuple):
    """Texts that follow each other in a file, and the number of chunks before them over all
    epochs."""

    texts: List[str]
    number: int


@dataclass
class Cutter:
    """Turn texts that follow each other into sequences with the tokens that the component reads,
    without whitespace, of at most `max_tokens`. A sentence ends at a line break, too. A share of
    the chunks, `window_share`, is cut into windows, which join sentences and texts; the others into
    "sentences", "lines" or "windows". The tokenizer remembers every word: after many new ones
    `make_tokenizer` makes it again, so that memory stays bounded."""

    make_tokenizer: Callable[[], Any]
    max_tokens: int = 128
    window_share: float = 0.0
    cut: str = "sentences"
    seed: int = 0

    def __post_init__(self) -> None:
        require_known("cut", self.cut, CUTS)
        require_least("max_tokens", self.max_tokens, 2)
        self.tokenizer = self._start_tokenizer()

    def __call__(self, texts: Sequence[str], number: int) -> List[List[str]]:
        """Cut the texts of a chunk, an empty one is a break; its number decides how. Each sequence
        has at least one word."""
        docs = [make_doc(self.tokenizer, text) for text in texts]
        # Tokenizers of other packages may have no vocab; their docs do.
        if docs and len(docs[-1].vocab) > _MAX_WORDS:
            self.tokenizer = self._start_tokenizer()
        cut = self.cut
        if np.random.default_rng([self.seed, 3, number]).random() < self.window_share:
            cut = "windows"
        sequences: List[List[str]] = [[]]
        for doc in docs:
            if cut == "sentences":
                words = [token.text for token in doc if not token.is_space or "\n" in token.text]
                for sentence in cut_sentences(words):
                    sequences.append([word for word in sentence if not word.isspace()])
                continue
            words = _get_words(doc)
            if cut == "windows" and words:
                sequences[-1].extend(words)
            else:
                sequences.append(words)
        return [list(part) for words in sequences for part in cut_windows(words, self.max_tokens)]

    def _start_tokenizer(self) -> Any:
        tokenizer = self.make_tokenizer()
        if hasattr(tokenizer, "max_cache_size"):
            tokenizer.max_cache_size = _MAX_CACHE
        return tokenizer


def cut_all(
    chunks: Iterator[Tuple[Chunk, Any]],
    make_cutter: Callable[[], Cutter],
    n_workers: int,
) -> Iterator[Tuple[List[List[str]], Any]]:
    """Cut a stream of chunks, each with a position that is handed on, in order. RAISES
    (ValueError): EL328 if one of the worker processes (none: this process cuts) ends."""
    if n_workers == 0:
        cutter = make_cutter()
        for chunk, position in chunks:
            yield cutter(chunk.texts, chunk.number), position
        return
    # Spawned, without torch's threads and the parent's memory.
    pool = ProcessPoolExecutor(n_workers, get_context("spawn"), initializer=end_with_parent)
    pending: Deque[Tuple[Future[List[List[str]]], Any]] = deque()
    try:
        for chunk, position in chunks:
            pending.append((pool.submit(_cut_in_worker, make_cutter, chunk), position))
            if len(pending) >= n_workers * _CHUNKS_AHEAD:
                future, earlier = pending.popleft()
                yield future.result(), earlier
        for future, position in pending:
            yield future.result(), position
    except BrokenProcessPool as err:
        raise ValueError(Errors.EL328) from err
    finally:
        pool.shutdown(cancel_futures=True)


# Of a worker process.
_cutter: Optional[Cutter] = None


def _cut_in_worker(make_cutter: Callable[[], Cutter], chunk: Chunk) -> List[List[str]]:
    global _cutter
    if _cutter is None:
        _cutter = make_cutter()
    return _cutter(chunk.texts, chunk.number)


def split_words(tokenizer: Callable[[str], Doc], text: str) -> List[str]:
    """Tokenize a text, without whitespace."""
    return _get_words(make_doc(tokenizer, text))


def _get_words(doc: Doc) -> List[str]:
    return [token.text for token in doc if not token.is_space]


def _ends_sentence(word: str) -> bool:
    # Sentence-final punctuation, or whitespace with a line break.
    return "\n" in word if word.isspace() else all(char in FINAL for char in word)


def cut_windows(words: Sequence[str], window: int) -> Iterator[Sequence[str]]:
    """Cut into windows of at most `window` words (at least 2): at the last sentence end in the
    second half of each if there is one, else where it is full."""
    start = 0
    while start < len(words):
        end = min(start + window, len(words))
        if end < len(words):
            for i in range(end - 1, start + window // 2 - 1, -1):
                if _ends_sentence(words[i]):
                    end = _include_closing(words, i, end)
                    break
        yield words[start:end]
        start = end


def cut_sentences(words: Sequence[str]) -> Iterator[List[str]]:
    """Cut after sentence-final punctuation, unless a lower-case word follows."""
    start = i = 0
    while i < len(words):
        i += 1
        if _ends_sentence(words[i - 1]):
            i = _include_closing(words, i - 1, len(words))
            if i < len(words) and (words[i][:1].islower() or _ends_sentence(words[i])):
                continue
            yield list(words[start:i])
            start = i
    if start < len(words):
        yield list(words[start:])


def _include_closing(words: Sequence[str], i: int, end: int) -> int:
    """Find the position after word i, which ends a sentence, and the marks that close it. A mark
    behind a line break opens the next sentence."""
    is_break = words[i].isspace()
    i += 1
    while i < end and not is_break and words[i] in CLOSING:
        i += 1
    return i


def make_doc(tokenize: Callable[[str], Doc], text: str) -> Doc:
    """Tokenize a text by a tokenizer or a pipeline's `make_doc`, in a time that grows with its
    length: a run of more than 500 punctuation marks is tokenized in parts; and, unless the
    tokenizer is spaCy's own, a text above 49,149 bytes (`cut_long`), without user data."""
    # `make_doc` is a method of the pipeline, which has the tokenizer.
    owner = getattr(tokenize, "__self__", None)
    if len(text) > getattr(owner, "max_length", len(text)):
        return tokenize(text)
    parts = cut_runs(text)
    if not isinstance(getattr(owner, "tokenizer", tokenize), Tokenizer):
        parts = [piece for part in parts for piece in cut_long(part)]
    if len(parts) == 1:
        return tokenize(text)
    docs = [tokenize(part) for part in parts]
    for each in docs:
        each.user_data.clear()  # its offsets are those of the part
    doc = Doc.from_docs(docs, ensure_whitespace=False)
    assert doc is not None
    return doc


def cut_runs(text: str) -> List[str]:
    """Cut a run of more than 500 punctuation marks every 500 marks."""
    starts = [0]
    for run in _RUNS.finditer(text):
        starts += range(run.start() + _MAX_RUN, run.end(), _MAX_RUN)
    return [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)])]


def cut_long(text: str) -> List[str]:
    """Cut a text of more than 49,149 bytes behind a line break, else a sentence, else a space, else
    anywhere."""
    if len(text) <= _MAX_CHARS or len(text.encode("utf-8", "surrogatepass")) <= _MAX_BYTES:
        return [text]
    parts = []
    start = 0
    while len(text) - start > _MAX_CHARS:
        full = start + _MAX_CHARS
        for place in _PLACES:
            found = [match.end() for match in place.finditer(text, start + _MAX_CHARS // 2, full)]
            # A match at the end may continue there.
            if ends := [each for each in found if each < full]:
                break
        end = ends[-1] if ends else full
        parts.append(text[start:end])
        start = end
    return [*parts, text[start:]]
