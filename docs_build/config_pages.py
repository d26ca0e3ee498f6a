# ruff: noqa: E501 - rows of tables
"""Reference of config sections and presets, from settings, templates and their comments."""

from typing import Dict, Tuple

from spacy_elmo.bilm.config import BiLMConfig
from spacy_elmo.pipeline.presets import PRESETS, make_config
from spacy_elmo.pretraining.config import CorpusSettings, TrainingSettings
from spacy_elmo.pretraining.config_files import PRETRAINING_PRESETS, make_pretraining_config
from spacy_elmo.utils import read_template

from .objects import cell, describe_settings
from .sources import ROOT, Sources

_CONFIG_INTRO = """# Config sections

Two kinds of config: one for `python -m spacy train`, with ELMo among its components, and one for
`python -m spacy elmo pretrain`. Both are spaCy's format; every value can be overridden on the command
line (`--training.max_steps 100`), and `${section.key}` is filled in.

## A training config

| section | what stands there | reference |
|---|---|---|
| `[components.elmo]` | `factory = "elmo"` and settings of the component | [elmo](components.md#elmo) |
| `[components.elmo.model]` | the biLM's shape, whether it trains, the shared mix | \
[spacy-elmo.Elmo.v2](architectures.md#spacy-elmoelmov2) |
| `[components.elmo.model.get_spans]` | how docs are cut into sequences | \
[span getters](loaders.md#spacy-elmowindow_spansv1) |
| `[components.NAME.model.tok2vec]` | how a component reads ELMo | \
[spacy-elmo.ElmoListener.v2](architectures.md#spacy-elmoelmolistenerv2), \
[spacy-elmo.ElmoTok2Vec.v2](architectures.md#spacy-elmoelmotok2vecv2) |
| `[initialize.components.elmo.loader]` | where the weights come from | \
[loaders](loaders.md#spacy-elmobundledloaderv2) |
| `[initialize.components.elmo.activation_cache]` | layers of a frozen biLM, kept between epochs | \
[cache](loaders.md#spacy-elmoactivationcachev1) |
| `[corpora.train]`, `[corpora.dev]` | readers that give components their spans | [readers](readers.md) |
| `[training.logger]` | learned mixes, while training | [logger](scorers.md#spacy-elmoweightsloggerv1) |

The whole of each preset is on the page of [presets](presets.md), and [settings](settings.md) has the
short table. All other sections are spaCy's.

## A pretraining config

`python -m spacy elmo init-config pretrain.cfg --pretraining` writes it with all defaults. What a config
leaves out is taken from these.
"""
_PRESETS_INTRO = """# Presets

What `python -m spacy elmo init-config --preset NAME` writes, here for a tagger; each goes through
`python -m spacy init fill-config` before training. [Which to take](../guides/train.md).
"""
_OPTIMIZER = """### [training.optimizer]

| name | type | default | what it is |
|---|---|---|---|
| `name` | `str` | `"adam"` | the only one |
| others | | torch's | arguments of `torch.optim.Adam`, such as `betas` or `weight_decay` |

### [training.softmax]

| name | type | default | what it is |
|---|---|---|---|
| `kind` | `str` | `"sampled"` | a [softmax](extension-points.md#spacy_elmo_softmaxes): "sampled", "full" \
or "adaptive" |
| others | | those of the kind | its settings: the parameters behind `width` and `n_words` |

### [training.teachers]

A block for each teacher below it, with a name of your own:

| name | type | default | what it is |
|---|---|---|---|
| `kind` | `str` | required | a [teacher](extension-points.md#spacy_elmo_teachers): "static_vectors" \
or "transformer" |
| others | | those of the kind | its settings |
"""


def make_config_page(sources: Sources) -> str:
    """sources (Sources): takes note of the files. RETURNS (str): Markdown."""
    paths = [
        "| name | default | what it is |\n|---|---|---|",
        *(f"| `{key}` | `null` | {cell(text)} |" for key, text in _read_comments("paths").items()),
    ]
    nlp = (
        "| name | type | default | what it is |\n|---|---|---|---|\n"
        '| `lang` | `str` | `"en"` | language code, as of `spacy.blank` |\n'
        "| `tokenizer` | block | `spacy.Tokenizer.v1` | the tokenizer, as in the pipeline that will "
        "use the biLM |"
    )
    sections: Tuple[Tuple[str, str], ...] = (
        ("paths", "\n".join(paths)),
        ("nlp", nlp),
        ("bilm", describe_settings(BiLMConfig, sources)),
        ("corpus", describe_settings(CorpusSettings, sources)),
        ("training", describe_settings(TrainingSettings, sources)),
    )
    parts = [_CONFIG_INTRO.strip(), *(f"### [{name}]\n\n{text}" for name, text in sections)]
    return "\n\n".join([*parts, _OPTIMIZER.strip()]) + "\n"


def make_presets_page() -> str:
    """RETURNS (str): Markdown with the config of each preset."""
    parts = [_PRESETS_INTRO.strip(), "## For training"]
    for name in PRESETS:
        text = make_config(name, ["tagger"]).to_str(interpolate=False).strip()
        parts.append(f"### {name}\n\n```ini\n{text}\n```")
    parts.append("## For pretraining\n\nWith `--pretraining`:")
    for name in PRETRAINING_PRESETS:
        text = make_pretraining_config(name).to_str(interpolate=False).strip()
        parts.append(f"### {name}\n\n```ini\n{text}\n```")
    return "\n\n".join(parts) + "\n"


def _read_comments(section: str) -> Dict[str, str]:
    """Key -> the comment above it in the template of a pretraining config."""
    comments: Dict[str, str] = {}
    known = read_template("pretrain")[section]
    path = ROOT / "spacy_elmo" / "configs" / "pretrain.cfg"
    block = path.read_text("utf-8").partition(f"[{section}]\n")[2].partition("\n[")[0]
    lines = block.splitlines()
    for above, line in zip(["", *lines], lines):
        key = line.partition(" = ")[0]
        if key in known:
            comments[key] = above.removeprefix("# ") if above.startswith("#") else ""
    return comments
