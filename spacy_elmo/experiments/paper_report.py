"""Sections of the report: a function for each kind of experiment."""

import re
import zlib
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from typing import Any, Callable, Dict, Iterator, List, Mapping

import srsly

from ..drawing import require_matplotlib
from ..errors import Errors
from ..utils import mark_word
from .figures import (
    name_layers,
    plot_layers,
    plot_samples,
    plot_scores,
    plot_senses,
    plot_updates,
)
from .heat_maps import plot_weights
from .paper_figures import describe_paper
from .paper_table1 import compare, describe_task, make_table1
from .report_blocks import Block, Heading, Picture, Section, Table, Text, require_texts
from .results import Result
from .summary import count_cut, count_rising, find_passing, format_scores, list_further
from .tables import PROBE_BASELINES, SENSE_BASELINES, name_options, tabulate_probe, tabulate_senses
from .variants import find_baseline

_TITLES = {
    "gain": "With ELMo and without",
    "vectors": "With ELMo and without, beside static vectors",
    "weighting": "How to weigh the layers",
    "placement": "Where to put ELMo",
    "weights": "What the tasks take from the layers",
    "samples": "How much data it saves",
    "senses": "What the layers know: word senses",
    "probe": "What the layers know: parts of speech",
    "sense_map": "Contexts of a word by their senses",
    "neighbors": "Senses of a word by its contexts",
    "search": "Semantic search",
}
_PLACES = ("input", "output")
# Suites that do not compare mixes: what theirs take from the layers is what tasks take.
_WITH_MIXES = ("gain", "vectors", "placement")
# Raised by a result that is incomplete or has other types.
_INCOMPLETE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
# Words of a context to show on each side.
_N_AROUND = 8


def make_sections(results: Mapping[Path, Result], folder: Path) -> List[Section]:
    """Make the report's sections, in the order of the paper.

    results (Mapping[Path, Result]): from `read_results`.
    folder (Path): for the pictures.
    RETURNS (List[Section]): of the experiments that there are.
    RAISES (ValueError): EL062 without matplotlib, EL149 for a result that lacks something.
    RAISES (OSError): if a picture cannot be written.
    """
    require_matplotlib()
    folder.mkdir(parents=True, exist_ok=True)
    sections = []
    for kind, title in _TITLES.items():
        paths = [path for path, result in results.items() if _is_shown(kind, path, result)]
        if paths:
            blocks: List[Block] = [Text(describe_paper(kind))]
            if kind == "vectors":
                blocks.append(_join_tasks({path: results[path] for path in paths}))
            for path in paths:
                blocks += _make_blocks(kind, path, results[path], folder)
            sections.append(Section(title, blocks))
    return sections


def _is_shown(kind: str, path: Path, result: Result) -> bool:
    """RETURNS (bool): Whether the section of this kind has the result."""
    if kind != "weights":
        return result["experiment"] == kind
    # What mixes learned is part of the runs that compare something else.
    with _naming(path):
        return result["experiment"] in _WITH_MIXES and bool(_list_mixes(result))


def _join_tasks(results: Mapping[Path, Result]) -> Table:
    tasks = []
    for path, result in results.items():
        with _naming(path):
            tasks.append(describe_task(result))
    return make_table1(tasks)


def _make_blocks(kind: str, path: Path, result: Result, folder: Path) -> List[Block]:
    with _naming(path):
        blocks = _MAKERS[kind](result, folder)
        blocks = [Heading(result["title"]), *blocks, Text(_describe(result))]
        require_texts(blocks)
    return blocks


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """RAISES (ValueError): EL149 with the path for a result that lacks something."""
    try:
        yield
    except _INCOMPLETE as err:
        error = f"{type(err).__name__}: {err}"
        raise ValueError(Errors.EL149.format(path=path, error=error)) from err


def _describe(result: Result) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    settings = result.get("settings", {})
    notes = [f"{result['date']}", versions]
    if settings:
        notes.append(
            f"{settings['max_steps']} updates at most, evaluation every "
            f"{settings['eval_frequency']}, patience {settings['patience']}"
        )
    weights_hash = result.get("biLM", settings.get("biLM"))
    if weights_hash:
        notes.append(f"biLM {weights_hash}")
    if "seconds" in result:
        notes.append(f"{result['seconds']:,.0f} s")
    return f"({'; '.join(notes)})"


def _make_name(result: Result, kind: str) -> str:
    """Of a picture: those of results with the same title differ by their content."""
    words = re.findall("[a-z0-9]+", result["title"].lower())
    number = zlib.crc32(srsly.json_dumps(result, sort_keys=True).encode("utf-8"))
    return f"{'_'.join([kind, *words])[:80]}_{number:08x}.png"


def _make_scores(result: Result, folder: Path) -> List[Block]:
    path = folder / _make_name(result, result["experiment"])
    plot_scores(result, path)
    rows = result["rows"]
    split = "test" if rows[0]["test"] else "dev"
    further = list_further(rows)
    by_name = {row["variant"]: row for row in rows}
    header = (
        "", f"{result['score']}, dev", "test", *further, f"fewer errors, {split}",
        "times the score", "seeds"
    )  # fmt: skip
    cells = []
    for row in rows:
        baseline = by_name.get(find_baseline(row["variant"]), rows[0])
        gain = compare(mean(row[split]), mean(baseline[split]))
        if row is baseline:
            gain = ("-", "-")
        scores = (row["dev"], row["test"], *(row["further"][name] for name in further))
        shown = (format_scores(values) for values in scores)
        cells.append((row["title"], *shown, *gain, str(len(row["seeds"]))))
    blocks: List[Block] = [Table(header, cells)]
    blocks.append(Picture(path, f"{result['title']}: mean, and each seed"))
    settings = result.get("settings", {})
    if settings.get("max_steps"):
        blocks += _tell_ends(rows, settings["max_steps"], settings.get("patience", 0))
    return blocks


def _tell_ends(rows: List[Dict[str, Any]], max_steps: int, patience: int) -> List[Block]:
    """RETURNS (List[Block]): What is to be known of runs that had their best score late."""
    cut = [(row, count_cut(row["curve"], max_steps, patience)) for row in rows]
    rising = [(row, count_rising(row["curve"], max_steps)) for row in rows]
    leads = (
        ("Ended by the last update allowed, not by patience", cut),
        ("Still better at the last update allowed", rising),
    )
    texts = []
    for lead, counts in leads:
        found = [f"{row['title']} ({n} of {len(row['seeds'])})" for row, n in counts if n]
        if found:
            texts.append(f"{lead}: {'; '.join(found)}.")
    return [Text(" ".join(texts))] if texts else []


def _make_samples(result: Result, folder: Path) -> List[Block]:
    samples = folder / _make_name(result, "samples")
    updates = folder / _make_name(result, "updates")
    plot_samples(result, samples)
    plot_updates(result, updates)
    titles = list(dict.fromkeys(row["title"] for row in result["rows"]))
    shares = sorted({row["share"] for row in result["rows"]})
    by_place = {(row["title"], row["share"]): row for row in result["rows"]}
    split = "test" if result["rows"][0]["test"] else "dev"
    cells = [
        (
            f"{100 * share:g}%",
            f"{by_place[titles[0], share]['n_docs']:,.0f}",
            *(format_scores(by_place[title, share][split]) for title in titles),
        )
        for share in shares
    ]
    without, with_elmo = (by_place[title, shares[-1]] for title in titles)
    best = max(mean(line["scores"]) for line in without["curve"])
    best_step = next(line["step"] for line in without["curve"] if mean(line["scores"]) == best)
    most = result["settings"]["max_steps"]
    passing = find_passing(with_elmo["curve"], best)
    passed = f"after {passing} updates" if passing >= 0 else "never"
    return [
        Table(("training docs", "docs", *(f"{title}, {split}" for title in titles)), cells),
        Picture(samples, f"{result['title']}: scores by training docs, with the seeds' spread"),
        Text(
            f"On {100 * shares[-1]:g}% of the docs and within {most} updates, the best mean dev "
            f"score without ELMo is {best:.2f}, after {best_step} updates; with ELMo it is passed "
            f"{passed}."
        ),
        Picture(updates, f"{result['title']}: dev scores by updates, with the seeds' spread"),
    ]


def _list_mixes(result: Result) -> List[Dict[str, Any]]:
    """RETURNS (List[Dict[str, Any]]): Fields of `LayerWeights`, means of seeds, of each mix that
    was learned; layers side by side have no shares."""
    mixes = []
    for row in result["rows"]:
        by_seed = [[mix for mix in seed if _is_learned(mix)] for seed in row["mixes"]]
        for i, mix in enumerate(by_seed[0] if by_seed else []):
            shares = [mean(s) for s in zip(*(seed[i]["shares"] for seed in by_seed))]
            gamma = mean(seed[i]["gamma"] for seed in by_seed)
            place = f"{row['title']}: {mix['place']}"
            mixes.append({**mix, "place": place, "shares": shares, "gamma": gamma})
    return mixes


def _is_learned(mix: Dict[str, Any]) -> bool:
    return mix["place"] in _PLACES and sum(mix["shares"]) < 1.5


def _make_weights(result: Result, folder: Path) -> List[Block]:
    mixes = _list_mixes(result)
    path = folder / _make_name(result, "weights")
    plot_weights(mixes, path)
    header = ("", *name_layers(len(mixes[0]["shares"])), "γ")
    rows = [
        (mix["place"], *(f"{s:.3f}" for s in mix["shares"]), f"{mix['gamma']:.2f}") for mix in mixes
    ]
    return [Table(header, rows), Picture(path, f"{result['title']}: mean of the seeds")]


def _make_senses(result: Result, folder: Path) -> List[Block]:
    cells = tabulate_senses(result)
    splits = cells.header[1:]
    layers = result[splits[-1]]["layers"]
    path = folder / _make_name(result, "senses")
    last = splits[-1]
    plot_layers(
        dict(zip(name_options(layers), ([100 * value] for value in layers.values()))),
        {name: 100 * result[last][key] for name, key in SENSE_BASELINES.items()},
        f"right senses, % ({last})",
        path,
    )
    sizes = ", ".join(f"{result[s]['n_instances']:,} in {s}" for s in splits)
    return [
        Table(*cells),
        Picture(path, f"{result['title']}: nearest mean vector, by layer"),
        Text(
            f"Words with a sense: {sizes}. Lemmas and parts of speech are given, but for the "
            "last line, which is what elmo_senses does with nothing before it. On SemCor, "
            "WordNet's first sense has seen the answers (its order comes from counts on SemCor "
            "itself), and names count with their class: person, group or location."
        ),
    ]


def _make_probe(result: Result, folder: Path) -> List[Block]:
    names = name_layers(len(result["layers"]))
    path = folder / _make_name(result, "probe")
    last = result["splits"][-1]
    plot_layers(
        {name: scores[last] for name, scores in zip(names, result["layers"])},
        {name: result[key][last] for name, key in PROBE_BASELINES.items()},
        f"accuracy, % ({last})",
        path,
    )
    caption = f"{result['title']}: linear classifier of {result['attr']} on one layer"
    return [Table(*tabulate_probe(result)), Picture(path, caption)]


def _make_sense_map(result: Result, folder: Path) -> List[Block]:
    path = folder / _make_name(result, "sense_map")
    plot_senses(result, path)
    shares = result["neighbors"]
    names = name_layers(len(shares))
    header = ("the nearest other context has the same sense", "share")
    rows = [(name, f"{100 * share:.1f}") for name, share in zip(names, shares)]
    rows.append(("the most frequent sense for all", f"{100 * result['most_frequent']:.1f}"))
    caption = f"{result['title']}: t-SNE of {names[result['layer']]}"
    return [Table(header, rows), Picture(path, caption)]


def _make_neighbors(result: Result, _: Path) -> List[Block]:
    blocks: List[Block] = []
    if result["static"]:
        words = ", ".join(f"{word} {cosine:.2f}" for word, cosine in result["static"])
        blocks.append(Text(f"Nearest words by static vectors: {words}."))
    for query in result["queries"]:
        rows = [(f"{context['similarity']:.2f}", _mark(context)) for context in query["contexts"]]
        blocks.append(Table(("cosine", _mark(query)), rows))
    return blocks


def _mark(token: Dict[str, Any]) -> str:
    return mark_word(token["words"], token["position"], n_around=_N_AROUND)


def _make_search(result: Result, folder: Path) -> List[Block]:
    header = ("", "first", "among 5", "among 10", "mean reciprocal rank")
    keys = ("at_1", "at_5", "at_10", "mrr")
    chosen = ", ".join(f"{key} {value}" for key, value in result["chosen"].items())
    rows = [
        (name, *(f"{result[key][k]:.3f}" for k in keys))
        for name, key in (("BM25", "bm25"), (f"ELMo ({chosen})", "elmo"))
    ]
    return [
        Text(
            f"{result['n_questions']:,} questions, {result['n_paragraphs']:,} paragraphs: where "
            "the right one is. Settings were chosen on other articles."
        ),
        Table(header, rows),
    ]


_MAKERS: Dict[str, Callable[[Result, Path], List[Block]]] = {
    "gain": _make_scores,
    "vectors": _make_scores,
    "weighting": _make_scores,
    "placement": _make_scores,
    "weights": _make_weights,
    "samples": _make_samples,
    "senses": _make_senses,
    "probe": _make_probe,
    "sense_map": _make_sense_map,
    "neighbors": _make_neighbors,
    "search": _make_search,
}
