"""Reference of config sections, presets and error codes."""

import re
from typing import Any, Dict

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.errors import Errors, Warnings
from spacy_elmo.pipeline.presets import PRESETS, make_config
from spacy_elmo.pretraining.config import (
    PRETRAINING_PRESETS,
    CorpusSettings,
    TrainingSettings,
    make_pretraining_config,
)

from .objects import ROOT, cell, describe, make_table

_CONFIG = """# Config sections

Sections of a pretraining config, for `python -m spacy elmo pretrain`. Missing values have the
defaults. `python -m spacy elmo init-config pretrain.cfg --pretraining` writes a complete one. Every
value can be overridden on the command line (`--training.max_steps 100`). The sections of a training
config are on the page of [settings](settings.md).
"""
_NLP = """`lang` is a language code. `tokenizer` is a block, by default `spacy.Tokenizer.v1`; it has
to be the same as in the pipeline that will use the biLM."""
_BLOCKS = """### [training.optimizer]

`name` is `"adam"`. Other values are arguments of `torch.optim.Adam`, such as `betas`.

### [training.softmax]

`kind` is a [softmax](extension-points.md#spacy_elmo_softmaxes): "sampled" (the default), "full" or
"adaptive". Other values are its parameters after `width` and `n_words`.

### [training.teachers]

A block `[training.teachers.NAME]` for each teacher. `kind` is a
[teacher](extension-points.md#spacy_elmo_teachers): "static_vectors" or "transformer". Other values
are its settings.
"""
_PRESETS = """# Presets

Output of `python -m spacy elmo init-config --preset NAME`, here for a tagger. Complete it with
`python -m spacy init fill-config` before training. [Which to use](../guides/train.md)."""
_ERRORS = """# Errors and warnings

All messages by code. Names in braces are replaced by values. Warnings are Python's `UserWarning`,
or lines of the logger `spacy_elmo`. The server's codes are in `projects/serve/README.md`."""


def make_config_page() -> str:
    """RETURNS (str): Markdown."""
    paths = [(f"`{key}`", "`null`", cell(text)) for key, text in _read_comments("paths").items()]
    sections = {
        "paths": make_table(("name", "default", "meaning"), paths),
        "nlp": _NLP,
        "bilm": describe(BiLMConfig, methods=False),
        "corpus": describe(CorpusSettings, methods=False),
        "training": describe(TrainingSettings, methods=False),
    }
    parts = [_CONFIG.strip(), *(f"## [{name}]\n\n{text}" for name, text in sections.items())]
    return "\n\n".join([*parts, _BLOCKS])


def make_presets_page() -> str:
    """RETURNS (str): Markdown with the config of each preset."""
    parts = [_PRESETS, "## For training"]
    configs = {name: make_config(name, ["tagger"]) for name in PRESETS}
    parts += [_show(name, config) for name, config in configs.items()]
    parts.append("## For pretraining\n\nWith `--pretraining`:")
    configs = {name: make_pretraining_config(name) for name in PRETRAINING_PRESETS}
    parts += [_show(name, config) for name, config in configs.items()]
    return "\n\n".join(parts) + "\n"


def make_errors_page() -> str:
    """RETURNS (str): Markdown with the template of each message."""
    parts = [_ERRORS]
    for title, table in (("Errors", Errors), ("Warnings", Warnings)):
        parts.append(f"## {title}")
        parts += [f"### {code}\n\n{_quote(text)}" for code, text in list_messages(table).items()]
    return "\n\n".join(parts) + "\n"


def list_messages(table: Any) -> Dict[str, str]:
    """table (Any): `Errors` or `Warnings`. RETURNS (Dict[str, str]): template by code, sorted."""
    # By vars: spaCy's metaclass puts the code before the text when an attribute is read.
    return {code: vars(table)[code] for code in sorted(vars(table)) if re.match(r"[EW]L\d", code)}


def _show(name: str, config: Any) -> str:
    return f"### {name}\n\n```ini\n{config.to_str(interpolate=False).strip()}\n```"


def _quote(text: str) -> str:
    """A template as a quotation: names in braces and code stay code, the rest is escaped."""
    text = re.sub(r"(?<!\{)\{(\w+)[^{}]*\}(?!\})", r"`{\1}`", text)
    pieces = re.split(r"(`[^`]*`)", text.replace("{{", "{").replace("}}", "}"))
    pieces[::2] = [re.sub(r"([*_<>\[\]#|])", r"\\\1", piece) for piece in pieces[::2]]
    return "> " + "".join(pieces).replace("\n", "\n> ")


def _read_comments(section: str) -> Dict[str, str]:
    """Key -> the comment above it in the template of a pretraining config."""
    text = (ROOT / "spacy_elmo" / "configs" / "pretrain.cfg").read_text("utf-8")
    block = text.partition(f"[{section}]\n")[2].partition("\n[")[0]
    found = re.findall(r"^(?:# (.*)\n)?(\w+) = ", block, re.MULTILINE)
    return {key: comment for comment, key in found}
