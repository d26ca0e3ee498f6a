"""SQuAD's JSON, checked: versions 1.1 and 2.0, XQuAD and what looks like them."""

from pathlib import Path
from typing import Any, List, NamedTuple, Optional, Tuple

from ...errors import Errors
from ...files import ContentError, parse_json_object, require_file
from ...text.text_files import BOM, DAMAGED, decode, open_binary

# Of a file, decompressed: SQuAD 2.0 has 42 MB.
_MOST_BYTES = 2_000_000_000


class Question(NamedTuple):
    """id, text (str). answers (Optional[List[Tuple[int, str]]]): first character in the context,
    and text; none for a question without an answer, None if they are not known."""

    id: str
    text: str
    answers: Optional[List[Tuple[int, str]]]


class Paragraph(NamedTuple):
    """title (str): of its article. context (str). questions (List[Question])."""

    title: str
    context: str
    questions: List[Question]


def read_paragraphs(path: Path) -> List[Paragraph]:
    """Read a file in SQuAD's format.

    path (Path): JSON in UTF-8, plain or .gz, .xz, .zst.
    RETURNS (List[Paragraph]): in order; none of an empty file.
    RAISES (ValueError): EL223 if it is of another format, EL103 for a damaged file, EL155 if it is
        not in UTF-8, EL038 for .zst without its package, EL100 if there is no file.
    """
    content = _read(path)
    if not content.strip():
        return []
    try:
        data = parse_json_object(content)
        return [
            _parse_paragraph(article, paragraph, f"data[{i}].paragraphs[{k}]")
            for i, article in enumerate(_get(data, "data", list, "the file"))
            for k, paragraph in enumerate(_get(article, "paragraphs", list, f"data[{i}]"))
        ]
    except ContentError as err:
        raise ValueError(Errors.EL223.format(path=path, problem=err)) from err


def _read(path: Path) -> bytes:
    require_file(path)
    try:
        with open_binary(path) as file:
            content = file.read(_MOST_BYTES)
    except DAMAGED as err:
        raise ValueError(Errors.EL103.format(path=path, error=err)) from err
    if len(content) == _MOST_BYTES:
        problem = f"it has {_MOST_BYTES} bytes or more"
        raise ValueError(Errors.EL223.format(path=path, problem=problem))
    # Some files begin with a mark.
    return decode(content, path, 0).lstrip(BOM).encode("utf-8")


def _parse_paragraph(article: Any, paragraph: Any, place: str) -> Paragraph:
    context = _get(paragraph, "context", str, place)
    questions = [
        _parse_question(question, f"{place}.qas[{i}]")
        for i, question in enumerate(_get(paragraph, "qas", list, place))
    ]
    title = _check_text(str(article.get("title", "")), f"the title of {place}")
    return Paragraph(title, context, questions)


def _parse_question(question: Any, place: str) -> Question:
    text = _get(question, "question", str, place)
    answers: Optional[List[Tuple[int, str]]] = None
    if "answers" in question:
        answers = [
            (
                _get(answer, "answer_start", int, f"{place}.answers[{i}]"),
                _get(answer, "text", str, f"{place}.answers[{i}]"),
            )
            for i, answer in enumerate(_get(question, "answers", list, place))
        ]
    if question.get("is_impossible"):
        answers = []
    return Question(_check_text(str(question.get("id", place)), f"{place}.id"), text, answers)


def _get(record: Any, key: str, kind: type, place: str) -> Any:
    value = record.get(key) if isinstance(record, dict) else None
    if not isinstance(value, kind):
        nouns = {list: "a list", str: "a text", int: "a number"}
        raise ContentError(f"{place} has no '{key}' that is {nouns[kind]}")
    return _check_text(value, f"{place}.{key}") if isinstance(value, str) else value


def _check_text(text: str, place: str) -> str:
    """RETURNS (str): The text. RAISES (ContentError): for half of a surrogate pair, which JSON can
    write, and nothing can store."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as err:
        raise ContentError(f"{place} is no text: it has half of a surrogate pair") from err
    return text
