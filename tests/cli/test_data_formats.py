"""`spacy elmo convert-data --help`: all formats, and the options of one."""

import catalogue
import pytest

from spacy_elmo.cli.data_formats import get_options, get_readers, spell_option
from spacy_elmo.registry import task_readers

from .test_commands import run


def read_help(*arguments):
    return " ".join(run("elmo", "convert-data", *arguments, "--help").split())


def test_help_names_all_formats():
    printed = read_help()
    assert len(get_readers()) > 10
    assert f"One of: {', '.join(get_readers())}" in printed
    assert "--joined" not in printed.partition("Example:")[0]


@pytest.mark.parametrize("format", get_readers())
def test_a_formats_help_has_its_options(format):
    printed, reader = read_help(format), get_readers()[format]

    assert f"{format}: Read " in printed
    for name, default in get_options(reader).items():
        entry = reader.__doc__.partition(f"    {name} (")[2].partition("): ")[2]
        assert spell_option(name) in printed
        assert f"Of {format}: {entry.splitlines()[0].rstrip('.')}" in printed
        assert isinstance(default, bool) or f"[default: {default or '(none)'}]" in printed


def test_a_format_of_another_package_has_a_help(monkeypatch):
    def read_mine(nlp, path, *, most_words: int = 3):
        return iter(())

    monkeypatch.setattr(catalogue, "REGISTRY", dict(catalogue.REGISTRY))
    task_readers.register("mine", func=read_mine)

    printed = read_help("mine", "in.txt", "--most-words", 4)

    assert "mine: " in printed and "--most-words <int> Of mine: [default: 3]" in printed
    assert "litbank_entities, mine, ontogum" in read_help()
    assert "Of mine" not in read_help("sst")
