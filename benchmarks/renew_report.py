"""The sections of docs/experiments.md whose runs are all in benchmarks/results, made anew from
them: nothing is trained."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import typer

from spacy_elmo.experiments.paper_report import make_sections
from spacy_elmo.experiments.report_markdown import to_markdown
from spacy_elmo.experiments.run_settings import read_settings
from spacy_elmo.experiments.summary import describe_suite
from spacy_elmo.experiments.variants import choose_variants
from spacy_elmo.files import read_checked_json, write_file

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
# LSTM layers of the biLM of all runs.
DEPTH = 2


class Compared(NamedTuple):
    """suite (str): what is compared. folder (str): of the runs. title (str): of the data."""

    suite: str
    folder: str
    title: str


QUESTIONS, PAIRS = "SQuAD, a part of its dev set", "SNLI, small"
ROLES, TAGS = "PropBank on EWT, roles", "UD English EWT, XPOS"
NAMES = "WNUT 2017, entities"
# In the order of the report.
ALL = (
    Compared("vectors", "table1/table1_squad", QUESTIONS),
    Compared("vectors", "table1/table1_snli", PAIRS),
    Compared("vectors", "table1/table1_propbank", ROLES),
    Compared("vectors", "table1/table1_ontogum", "OntoGUM, coreference"),
    Compared("vectors", "table1/table1_litbank_coref", "LitBank, coreference"),
    Compared("vectors", "table1/table1_wnut17", NAMES),
    Compared("vectors", "table1/table1_gum", "GUM, named entities"),
    Compared("vectors", "table1/table1_litbank", "LitBank, nested entities"),
    Compared("vectors", "table1/table1_polarity", "Sentence polarity"),
    Compared("vectors", "korean/nsmc", "Korean film reviews"),
    Compared("vectors", "korean/ko_gsd", "UD Korean GSD, XPOS"),
    Compared("weighting", "paper/ewt", TAGS),
    Compared("weighting", "paper/wnut17", NAMES),
    Compared("samples", "paper/ewt", TAGS),
    Compared("samples", "paper/wnut17", NAMES),
    Compared("placement", "paper/ewt", TAGS),
    Compared("placement", "paper/wnut17", NAMES),
    Compared("placement", "table1/table3_snli", PAIRS),
    Compared("placement", "table1/table3_propbank", ROLES),
    Compared("placement", "table1/table3_squad", QUESTIONS),
)
# What other commands have written as the report reads it.
WRITTEN = ("paper/search.json",)


def main(
    report: Path = typer.Argument(ROOT / "docs" / "experiments.md", help="Report to change"),
) -> None:
    """Replace sections of a report; their pictures go into the folder figures beside it."""
    figures = report.parent / "figures"
    found = {}
    for i, compared in enumerate(ALL):
        result = summarise(compared)
        if result is None:
            print(f"Left out, as runs are missing: {compared.title} ({compared.folder})")
        else:
            found[Path(f"{i:02d}.json")] = result
    for path in (RESULTS / name for name in WRITTEN):
        found[path] = read_checked_json(path)
    markdown = to_markdown("", make_sections(found, figures), report.parent)
    text = report.read_text("utf-8")
    renewed = replace_sections(text, markdown)
    write_file(report, renewed.encode("utf-8"))
    for gone in find_figures(text) - find_figures(renewed):
        (figures / gone).unlink(missing_ok=True)


def summarise(compared: Compared) -> dict[str, Any] | None:
    """RETURNS (dict[str, Any] | None): As `experiment` writes it, of the seeds that all variants
    have (in `samples`, with all parts of the training docs); None if there is none."""
    folder = RESULTS / compared.folder
    if not folder.is_dir():
        return None
    variants = choose_variants(compared.suite, DEPTH)
    runs = [read_checked_json(p) for p in sorted(folder.glob("*.json")) if p.stem != "settings"]
    # Parts of the training docs are compared by one suite alone.
    shares = {run["share"] for run in runs} if compared.suite == "samples" else {1.0}
    groups = {(each.name, share): set[int]() for each in variants for share in shares}
    for run in runs:
        groups.get((run["variant"], run["share"]), set()).add(run["seed"])
    seeds = set.intersection(*groups.values())
    chosen = [r for r in runs if (r["variant"], r["share"]) in groups and r["seed"] in seeds]
    if not chosen:
        return None
    summary = describe_suite(compared.title, variants, chosen, read_settings(folder))
    return {"experiment": compared.suite, **summary}


def replace_sections(text: str, renewed: str) -> str:
    """RETURNS (str): The text with its sections replaced by those of the same title."""
    new = {section.splitlines()[0]: section for section in split_sections(renewed)[1:]}
    head, *sections = split_sections(text)
    kept = [new.get(section.splitlines()[0], section).rstrip("\n") for section in sections]
    return "\n\n".join([head.rstrip("\n"), *kept]) + "\n"


def split_sections(text: str) -> list[str]:
    """RETURNS (list[str]): What is before the first section, then each section."""
    return re.split(r"(?m)^(?=## )", text)


def find_figures(text: str) -> set[str]:
    """RETURNS (set[str]): names of the pictures that a report shows."""
    return set(re.findall(r"\]\(figures/([^)]+)\)", text))


if __name__ == "__main__":
    typer.run(main)
