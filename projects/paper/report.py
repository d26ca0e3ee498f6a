"""Write a report on the results in a folder: tables and pictures beside the figures of Peters et
al. 2018. It reads the runs of `elmo experiment`, and the JSON files of `elmo train-senses`,
`elmo neighbors`, probe.py, sense_map.py and benchmarks/search.py."""

import json
from collections import defaultdict
from pathlib import Path
from statistics import mean
from textwrap import shorten
from typing import Any

import typer

from spacy_elmo.drawing import COLORS, Figure, save_figure
from spacy_elmo.experiments.contexts import name_layers
from spacy_elmo.experiments.plots import plot_samples, plot_scores, plot_updates, plot_weights
from spacy_elmo.experiments.results import describe_suite, format_scores
from spacy_elmo.experiments.variants import choose_variants, find_baseline
from spacy_elmo.utils import mark_word

# Title of each section, and the paper's figures.
SECTIONS = {
    "vectors": (
        "With ELMo and without, beside static vectors",
        "Table 1; its baselines have GloVe.",
    ),
    "gain": (
        "With ELMo and without",
        "Table 1, baseline and ELMo, test: SQuAD F1 81.1 and 85.8, SNLI accuracy 88.0 and 88.7, "
        "SRL F1 81.4 and 84.6, coreference F1 67.2 and 70.4, NER F1 90.15 and 92.22, SST-5 "
        "accuracy 51.4 and 54.7.",
    ),
    "weighting": (
        "How to weigh the layers",
        "Table 2, dev: baseline, last layer, all layers with λ = 1, with λ = 0.001: SQuAD 80.8, "
        "84.7, 85.0, 85.2; SNLI 88.1, 89.1, 89.3, 89.5; SRL 81.6, 84.1, 84.6, 84.8.",
    ),
    "placement": (
        "Where to put ELMo",
        "Table 3, dev: at the input, at input and output, at the output: SQuAD 85.1, 85.6, 84.8; "
        "SNLI 88.9, 89.5, 88.7; SRL 84.7, 84.3, 80.9.",
    ),
    "samples": (
        "Parts of the training docs",
        "Figure 1: with ELMo, SRL on 1 % of the training set is as good as the baseline on 10 %.",
    ),
    "weights": (
        "Learned mixes",
        "Figure 2: at the input the tasks favour the first LSTM layer; at the output the weights "
        "are balanced.",
    ),
    "senses": (
        "Word senses",
        "Table 5, F1: WordNet's first sense 65.9, first biLM layer 67.4, second 69.0.",
    ),
    "probe": (
        "Parts of speech from one layer",
        "Table 6, accuracy on the Penn Treebank: first biLM layer 97.3, second 96.8.",
    ),
    "sense_map": ("Contexts by sense", "Not in the paper: t-SNE of a word's vectors."),
    "neighbors": ("Nearest contexts", "Table 4."),
    "search": ("Semantic search", "Not in the paper: SQuAD's questions and paragraphs."),
}
# Rows of the paper's table 1, by the component that does the task here: baseline, with ELMo.
TABLE1 = {
    "elmo_qa": ("SQuAD, F1", 81.1, 85.8),
    "elmo_entailment": ("SNLI, accuracy", 88.0, 88.7),
    "elmo_srl": ("semantic roles, F1", 81.4, 84.6),
    "elmo_coref": ("coreference, F1", 67.2, 70.4),
    "ner": ("entities, F1", 90.15, 92.22),
    "textcat": ("sentiment, accuracy", 51.4, 54.7),
}
# LSTM layers of the biLM of all runs.
DEPTH = 2
Result = dict[str, Any]


def main(
    results: Path = typer.Argument(..., help="Folder with results, at any depth"),
    output: Path = typer.Argument(..., help="Markdown file to write; its pictures go to figures/"),
    title: str = typer.Option("Experiments", help="Heading"),
) -> None:
    """Write OUTPUT."""
    found = read_results(results)
    if not any(found.values()):
        raise typer.BadParameter(f"there is no result in {results}")
    report = Report(output)
    for kind, (heading, paper) in SECTIONS.items():
        if found[kind]:
            report.add(f"## {heading}", f"The paper: {paper}")
            if kind == "vectors":
                report.add_table1(found[kind])
            for result in found[kind]:
                report.add(f"### {result['title']}")
                getattr(report, f"add_{MAKERS.get(kind, kind)}")(result)
    output.write_text("\n\n".join([f"# {title}", *report.blocks]) + "\n", "utf-8")
    print(f"Wrote {output}")


# Suites whose sections have the same form.
MAKERS = {"vectors": "scores", "gain": "scores", "weighting": "scores", "placement": "scores"}


def read_results(folder: Path) -> dict[str, list[Result]]:
    """RETURNS (dict[str, list[Result]]): results by section. Runs of a folder are summarised for
    each suite of which the folder has all variants."""
    found: dict[str, list[Result]] = defaultdict(list)
    runs: dict[Path, list[Result]] = defaultdict(list)
    titles: dict[Path, str] = {}
    for path in sorted(folder.rglob("*.json")):
        content = json.loads(path.read_text("utf-8"))
        if not isinstance(content, dict):
            continue
        if "variant" in content and "curve" in content:
            runs[path.parent].append(content)
        elif "rows" in content and content.get("experiment"):
            titles[path.parent] = content["title"]
        elif content.get("experiment") in SECTIONS:
            found[content["experiment"]].append(content)
    for path, group in runs.items():
        title = titles.get(path, path.name)
        for suite in ("gain", "vectors", "weighting", "placement", "samples"):
            summary = summarise(suite, group, title)
            # `vectors` has the rows of `gain`, too.
            if summary and not (suite == "gain" and summarise("vectors", group, title)):
                found[suite].append(summary)
        mixes = list_mixes(describe_suite(title, list_variants(), group))
        if mixes:
            found["weights"].append({"title": title, "mixes": mixes})
    return found


def list_variants() -> list[Any]:
    """RETURNS (list[Any]): all variants, each once."""
    suites = ("vectors", "weighting", "placement")
    return list({v.name: v for suite in suites for v in choose_variants(suite, DEPTH)}.values())


def summarise(suite: str, runs: list[Result], title: str) -> Result | None:
    """RETURNS (Result | None): as `elmo experiment` writes it, of the seeds that all variants (in
    `samples`, with each share of the docs) have; None without such seeds."""
    variants = choose_variants(suite, DEPTH)
    shares = {run["share"] for run in runs} if suite == "samples" else {1.0}
    if suite == "samples" and len(shares) < 2:
        return None
    groups = {(variant.name, share): set[int]() for variant in variants for share in shares}
    for run in runs:
        groups.get((run["variant"], run["share"]), set()).add(run["seed"])
    seeds = set.intersection(*groups.values())
    chosen = [r for r in runs if (r["variant"], r["share"]) in groups and r["seed"] in seeds]
    return describe_suite(title, variants, chosen) if chosen else None


def list_mixes(summary: Result) -> list[Result]:
    """RETURNS (list[Result]): fields of `LayerWeights`, means of seeds, of each learned mix."""
    mixes = []
    for row in summary["rows"]:
        by_seed = [[mix for mix in seed if is_learned(mix)] for seed in row["mixes"]]
        for i, mix in enumerate(by_seed[0] if by_seed and row["share"] == 1 else []):
            shares = [mean(s) for s in zip(*(seed[i]["shares"] for seed in by_seed))]
            gamma = mean(seed[i]["gamma"] for seed in by_seed)
            place = f"{row['title']}: {mix['place']}"
            mixes.append({**mix, "place": place, "shares": shares, "gamma": gamma})
    return mixes


def is_learned(mix: Result) -> bool:
    """RETURNS (bool): not of layers side by side, each of which has the share 1."""
    return mix["place"] in ("input", "output") and sum(mix["shares"]) < 1.5


class Report:
    """Blocks of Markdown; pictures are written as they are added."""

    def __init__(self, output: Path) -> None:
        self.blocks: list[str] = []
        self.output = output
        self._n_pictures = 0

    def add(self, *texts: str) -> None:
        """Add paragraphs."""
        self.blocks += texts

    def add_table(self, header: list[str], rows: list[list[str]]) -> None:
        """Add a table."""
        cells = [header, ["---"] * len(header), *rows]
        escaped = [[" ".join(cell.replace("|", "\\|").split()) for cell in row] for row in cells]
        self.add("\n".join(f"| {' | '.join(row)} |" for row in escaped))

    def add_picture(self, kind: str, caption: str) -> Path:
        """RETURNS (Path): file to draw into."""
        self._n_pictures += 1
        path = self.output.parent / "figures" / f"{kind}_{self._n_pictures}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        self.add(f"![{caption}](figures/{path.name})")
        return path

    def add_table1(self, results: list[Result]) -> None:
        """All tasks, each followed by the paper's row."""
        header = ["", "baseline", "+ ELMo", "difference", "fewer errors", "seeds"]
        rows = []
        for result in results:
            by_name = {row["variant"]: row for row in result["rows"]}
            split = "test" if result["rows"][0]["test"] else "dev"
            for name, note in ("elmo", ""), ("elmo_vectors", ", static vectors"):
                with_elmo, baseline = by_name[name], by_name[find_baseline(name)]
                gain = format_gain(mean(baseline[split]), mean(with_elmo[split]))
                rows.append([f"{result['title']}{note}", *gain, str(len(with_elmo["seeds"]))])
            paper = TABLE1.get(result["settings"].get("component"))
            if paper:
                rows.append([f"the paper: {paper[0]}", *format_gain(*paper[1:]), ""])
        self.add_table(header, rows)

    def add_scores(self, result: Result) -> None:
        """Scores of variants, compared with the one without ELMo."""
        rows = result["rows"]
        split = "test" if rows[0]["test"] else "dev"
        further = list(rows[0].get("further", ()))
        by_name = {row["variant"]: row for row in rows}
        header = [
            "",
            f"{result['score']}, dev",
            "test",
            *further,
            f"fewer errors, {split}",
            "seeds",
        ]
        cells = []
        for row in rows:
            baseline = by_name.get(find_baseline(row["variant"]), rows[0])
            fewer = format_gain(mean(baseline[split]), mean(row[split]))[-1]
            scores = [row["dev"], row["test"], *(row["further"][name] for name in further)]
            shown = [format_scores(values) for values in scores]
            fewer = "-" if row is baseline else fewer
            cells.append([row["title"], *shown, fewer, str(len(row["seeds"]))])
        self.add_table(header, cells)
        plot_scores(result, self.add_picture("scores", f"{result['title']}: mean, and each seed"))

    def add_samples(self, result: Result) -> None:
        """Scores by the share of the training docs."""
        split = "test" if result["rows"][0]["test"] else "dev"
        titles = list(dict.fromkeys(row["title"] for row in result["rows"]))
        by_place = {(row["title"], row["share"]): row for row in result["rows"]}
        cells = [
            [f"{100 * share:g}%", *(format_scores(by_place[t, share][split]) for t in titles)]
            for share in sorted({row["share"] for row in result["rows"]})
        ]
        self.add_table(["training docs", *(f"{title}, {split}" for title in titles)], cells)
        plot_samples(result, self.add_picture("samples", "Scores by training docs"))
        plot_updates(result, self.add_picture("updates", "Dev scores by updates, all docs"))

    def add_weights(self, result: Result) -> None:
        """Learned mixes."""
        header = ["", *name_layers(len(result["mixes"][0]["shares"])), "γ"]
        rows = [
            [m["place"], *(f"{share:.3f}" for share in m["shares"]), f"{m['gamma']:.2f}"]
            for m in result["mixes"]
        ]
        self.add_table(header, rows)
        title = f"{result['title']}: share of each layer"
        plot_weights(result["mixes"], self.add_picture("weights", "Mean of the seeds"), title)

    def add_senses(self, result: Result) -> None:
        """Accuracy of word senses, by layer."""
        splits = [split for split in ("tune", "test") if result[split]]
        layers = result[splits[-1]]["layers"]
        names = [*name_layers(len(layers) - 1), "average"]
        keys = {"first sense": "first", "most frequent": "frequent", "chosen": "chosen"}
        rows = [
            *([name, *(f"{100 * result[s][k]:.1f}" for s in splits)] for name, k in keys.items()),
            *(
                [name, *(f"{100 * result[s]['layers'][k]:.1f}" for s in splits)]
                for name, k in zip(names, layers)
            ),
        ]
        self.add_table(["right senses, %", *splits], rows)
        last = result[splits[-1]]
        scores = {name: [100 * value] for name, value in zip(names, layers.values())}
        baselines = {name: 100 * last[keys[name]] for name in ("first sense", "most frequent")}
        path = self.add_picture("senses", "Nearest mean vector, by layer")
        plot_layers(scores, baselines, f"right senses, % ({splits[-1]})", path)

    def add_probe(self, result: Result) -> None:
        """Accuracy of a linear classifier, by layer."""
        splits = result["splits"]
        names = name_layers(len(result["layers"]))
        rows = [["word alone", *(f"{result['frequent'][s]:.2f}" for s in splits)]]
        for name, scores in zip(names, result["layers"]):
            rows.append([name, *(format_scores(scores[split]) for split in splits)])
        self.add_table(["layer", *splits], rows)
        last = splits[-1]
        by_layer = {name: scores[last] for name, scores in zip(names, result["layers"])}
        path = self.add_picture("probe", f"Linear classifier of {result['attr']} on one layer")
        plot_layers(by_layer, {"word alone": result["frequent"][last]}, "accuracy, %", path)

    def add_sense_map(self, result: Result) -> None:
        """Contexts of a word, coloured by sense."""
        names = name_layers(len(result["neighbors"]))
        rows = [[name, f"{100 * s:.1f}"] for name, s in zip(names, result["neighbors"])]
        rows.append(["the most frequent sense for all", f"{100 * result['most_frequent']:.1f}"])
        self.add_table(["nearest other context has the same sense", "%"], rows)
        plot_senses(result, self.add_picture("sense_map", f"t-SNE of {names[result['layer']]}"))

    def add_neighbors(self, result: Result) -> None:
        """Nearest contexts."""
        if result["static"]:
            words = ", ".join(f"{word} {cosine:.2f}" for word, cosine in result["static"])
            self.add(f"Nearest words by static vectors: {words}.")
        for query in result["queries"]:
            rows = [[f"{c['similarity']:.2f}", show_context(c)] for c in query["contexts"]]
            self.add_table(["cosine", show_context(query)], rows)

    def add_search(self, result: Result) -> None:
        """Semantic search and BM25."""
        header = ["", "first", "among 5", "among 10", "mean reciprocal rank"]
        rows = [
            [name, *(f"{result[key][k]:.3f}" for k in ("at_1", "at_5", "at_10", "mrr"))]
            for name, key in (("BM25", "bm25"), ("ELMo", "elmo"))
        ]
        self.add_table(header, rows)


def format_gain(baseline: float, with_elmo: float) -> list[str]:
    """RETURNS (list[str]): both scores, their difference, and the share of errors removed."""
    fewer = f"{(with_elmo - baseline) / (100 - baseline):.0%}" if baseline < 100 else "-"
    return [f"{baseline:.2f}", f"{with_elmo:.2f}", f"{with_elmo - baseline:+.2f}", fewer]


def show_context(token: Result) -> str:
    """RETURNS (str): a token with ten words on each side."""
    return mark_word(token["words"], token["position"], n_around=10)


def plot_layers(
    scores: dict[str, list[float]], baselines: dict[str, float], label: str, path: Path
) -> None:
    """Draw the score of each layer, a dot for each seed and a diamond for the mean, and baselines
    as lines."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes: Any = figure.add_subplot()
    for place, values in enumerate(scores.values()):
        axes.scatter(place, mean(values), color=COLORS[0], marker="D", s=60)
        axes.scatter([place] * len(values), values, color=COLORS[0], s=12)
        offset = {"xytext": (9, -3), "textcoords": "offset points"}
        axes.annotate(f"{mean(values):.1f}", (place, mean(values)), **offset)
    for i, (name, value) in enumerate(baselines.items()):
        axes.axhline(value, color=COLORS[i + 1], linestyle="--", label=f"{name}: {value:.1f}")
    axes.set_xticks(range(len(scores)), list(scores))
    axes.margins(x=0.2)
    axes.grid(axis="y", alpha=0.3)
    axes.set_ylabel(label)
    axes.legend()
    save_figure(figure, path)


def plot_senses(result: Result, path: Path) -> None:
    """Draw contexts of a word by their vectors, a colour and a shape for each sense."""
    figure = Figure(figsize=(9, 5.6), layout="constrained")
    axes: Any = figure.add_subplot()
    for i, sense in enumerate(result["senses"]):
        points = [p for p, k in zip(result["points"], result["sense_of_point"]) if k == i]
        gloss = shorten(sense["gloss"], 60, placeholder=" …").replace("$", r"\$")
        style = {"color": COLORS[i % len(COLORS)], "marker": "osD^vPX*"[i % 8], "linewidths": 0}
        axes.scatter(*zip(*points), s=34, alpha=0.8, label=f"{gloss} ({sense['count']})", **style)
    axes.set_title(f"{len(result['points'])} contexts of “{result['lemma']}”", parse_math=False)
    axes.set(xticks=[], yticks=[])
    figure.legend(loc="outside lower left", ncols=2, fontsize=9, frameon=False)
    save_figure(figure, path)


if __name__ == "__main__":
    typer.run(main)
