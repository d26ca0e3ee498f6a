"""Further test sets of a corpus, and table 1 beside the paper's."""

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_elmo.experiments.figures import plot_samples, plot_scores, plot_updates
from spacy_elmo.experiments.jobs import run_all
from spacy_elmo.experiments.paper_report import make_sections
from spacy_elmo.experiments.paper_table1 import describe_task, make_table1
from spacy_elmo.experiments.report_blocks import Table
from spacy_elmo.experiments.run_settings import RunSettings, read_settings
from spacy_elmo.experiments.runs import FOUND_PREDICATES, Run, load_base, run_one
from spacy_elmo.experiments.subsets import find_further
from spacy_elmo.experiments.summary import (
    count_cut,
    count_rising,
    describe_suite,
    list_further,
    summarise,
)
from spacy_elmo.experiments.variants import choose_variants

from ..support.helpers import ROOT
from ..support.toy_corpora import make_docs
from ..support.toy_roles import make_corpus

PLAIN = Run(choose_variants("gain", 2)[0], 1.0, 0)


def make_settings(corpus):
    return RunSettings(str(corpus), "tagger", max_steps=2, eval_frequency=1)


def test_runs_are_tested_on_further_sets(tagged_corpus, tmp_path):
    (tagged_corpus / "._train.spacy").write_bytes(b"of macOS")
    assert find_further(tagged_corpus) == {}
    # The same docs, so the same score.
    (tagged_corpus / "web.spacy").write_bytes((tagged_corpus / "test.spacy").read_bytes())
    DocBin(docs=make_docs(5, 9), store_user_data=True).to_disk(tagged_corpus / "news.spacy")
    settings, output = make_settings(tagged_corpus), tmp_path / "out"
    (result,) = run_all([PLAIN], settings, output)

    assert list(result["further"]) == ["news", "web"]
    assert result["further"]["web"]["tag_acc"] == result["test"]["tag_acc"]
    assert list(run_all([PLAIN], settings, output)) == [result]
    summary = describe_suite("toy", [PLAIN.variant], [result], read_settings(output))
    (row,) = summary["rows"]
    assert list_further(summary["rows"]) == ["news", "web"] and row["further"]["web"] == row["test"]


@pytest.mark.parametrize("source", ["given", "predicted"])
def test_roles_are_tested_with_found_predicates_too(tmp_path, source):
    vocab = spacy.blank("en").vocab
    for seed, split in enumerate(("train", "dev", "test")):
        path = tmp_path / "corpus" / f"{split}.spacy"
        path.parent.mkdir(exist_ok=True)
        DocBin(docs=make_corpus(vocab, 12, seed)).to_disk(path)
    config = load_base(str(ROOT / "projects/table1/roles.cfg"))
    # At this threshold, none is found.
    config["components"]["elmo_srl"].update(predicates=source, threshold=1.0)
    config.to_disk(tmp_path / "roles.cfg", interpolate=False)
    settings = RunSettings(
        str(tmp_path / "corpus"), "elmo_srl", max_steps=1, eval_frequency=1,
        config=str(tmp_path / "roles.cfg"),
    )  # fmt: skip
    result = run_one(PLAIN, settings, tmp_path, None, lambda progress: None)

    further = result.get("further", {})
    assert list(further) == [FOUND_PREDICATES] * (source == "given")
    if further:
        assert result["test"]["srl_predicate_f"] == 1
        assert further[FOUND_PREDICATES]["srl_predicate_f"] == 0


def test_runs_may_have_different_further_tests():
    base = {"variant": "plain", "share": 1.0, "score": "f", "dev": {"f": 0.5}, "test": {"f": 0.4}}
    base |= {"n_docs": 1, "curve": [], "mixes": []}
    results = [{**base, "seed": 0}, {**base, "seed": 1, "further": {"web": {"f": 0.3}}}]
    rows = summarise([PLAIN.variant], results)

    assert list_further(rows) == ["web"] and rows[0]["further"] == {"web": [30.0]}


@pytest.mark.parametrize("change", ["gone", "new", "other"])
def test_runs_of_other_further_sets_are_not_mixed(tagged_corpus, tmp_path, change):
    path = tagged_corpus / "web.spacy"
    DocBin(docs=make_docs(5, 9)).to_disk(path)
    settings, output = make_settings(tagged_corpus), tmp_path / "out"
    assert list(run_all([], settings, output)) == []
    (output / "plain_1_0.json").write_text("{}")
    if change == "gone":
        path.unlink()
    else:
        name = "news" if change == "new" else "web"
        DocBin(docs=make_docs(4, 3)).to_disk(tagged_corpus / f"{name}.spacy")

    with pytest.raises(ValueError, match="EL065.*test set"):
        list(run_all([], settings, output))


def test_a_further_set_that_cannot_be_read_is_refused_before_anything_is_trained(
    tagged_corpus, tmp_path
):
    (tagged_corpus / "web.spacy").write_bytes(b"x")
    with pytest.raises(ValueError, match="EL148.*web.spacy"):
        list(run_all([PLAIN], make_settings(tagged_corpus), tmp_path / "out"))


def make_result(component, scores, title):
    rows = [
        {
            "variant": variant, "title": variant, "seeds": [0, 1], "n_docs": 3, "dev": values,
            "test": values, "further": {"web": values}, "curve": [], "mixes": [],
        }
        for variant, values in scores.items()
    ]  # fmt: skip
    settings = {"component": component, "max_steps": 1, "eval_frequency": 1, "patience": 0}
    return {
        "experiment": "vectors", "title": title, "score": "f", "rows": rows, "seconds": 1.0,
        "settings": settings, "date": "2020-01-01", "versions": {"spacy": "3"},
    }  # fmt: skip


SCORES = {
    "plain": [40.0, 60.0],
    "elmo": [60.0, 60.0],
    "vectors": [60.0, 60.0],
    "elmo_vectors": [70.0, 70.0],
}


def test_table_1_compares_like_with_like_in_the_papers_order():
    results = [
        make_result("spancat", {"plain": [50.0], "elmo": [40.0]}, "Spans"),
        make_result("ner", SCORES, "Names"),
        make_result("elmo_qa", {"plain": [50.0]}, "Questions"),
        make_result("ner", {"plain": [50.0], "elmo": [60.0]}, "More names"),
    ]
    table = make_table1([describe_task(result) for result in results])

    assert [row[0] for row in table.rows] == [
        "the paper: SQuAD, F1",
        "Names",
        "Names, static vectors",
        "More names",
        "the paper: entities, F1",
        "Spans",
    ]
    assert table.rows[1][1:] == ("50.00", "60.00", "+10.00", "20%", "2")
    assert table.rows[2][1:] == ("60.00", "70.00", "+10.00", "25%", "2")
    assert table.rows[4][1:] == ("90.15", "92.22", "+2.07", "21%", "5")
    assert table.rows[5][1:] == ("50.00", "40.00", "-10.00", "-20%", "2")


@pytest.mark.parametrize("curve, expected", [
    ([(1, [0.1, 0.2]), (2, [0.3, 0.2])], 1), ([(1, [0.1, 0.2]), (2, [0.3, 0.4])], 2),
    ([(0, [0.0]), (1, [0.1])], 0), ([(2, [0.0])], 0), ([(2, [0.1])], 1), ([], 0),
])  # fmt: skip
def test_runs_that_were_stopped_while_they_got_better(curve, expected):
    points = [{"step": step, "scores": scores} for step, scores in curve]
    assert count_rising(points, 2) == expected


@pytest.mark.parametrize("patience, expected", [(0, 0), (1, 1), (2, 2), (3, 3)])
def test_runs_that_patience_did_not_end(patience, expected):
    points = [
        (0, [0.1, 0.1, 0.1]),
        (1, [0.3, 0.2, 0.2]),
        (2, [0.2, 0.3, 0.2]),
        (3, [0.2, 0.2, 0.3]),
    ]
    curve = [{"step": step, "scores": scores} for step, scores in points]
    assert count_cut(curve, 3, patience) == expected


def test_the_report_has_table_1_and_each_further_set(tmp_path):
    result = make_result("ner", SCORES, "Names")
    (section,) = make_sections({tmp_path / "x.json": result}, tmp_path / "figures")
    overview, own = (block for block in section.blocks if isinstance(block, Table))

    assert overview == make_table1([describe_task(result)])
    assert own.header == (
        "",
        "f, dev",
        "test",
        "web",
        "fewer errors, test",
        "times the score",
        "seeds",
    )
    assert [row[4] for row in own.rows] == ["-", "20%", "20%", "25%"]


def test_the_report_has_what_mixes_learned(tmp_path):
    """Of any suite; layers side by side have no shares, and what nobody reads is no task's."""
    result = make_result("ner", SCORES, "Names")
    side_by_side = {"component": "ner", "place": "input", "shares": [1.0] * 3, "gamma": 1.0}
    learned = {"component": "ner", "place": "input", "gamma": 2.0}
    shared = {"component": "elmo", "place": "shared", "shares": [0.2, 0.3, 0.5], "gamma": 1.0}
    by_name = {row["variant"]: row for row in result["rows"]}
    by_name["elmo"]["mixes"] = [[shared, side_by_side]] * 2
    paths = tmp_path / "x.json", tmp_path / "figures"
    assert len(make_sections({paths[0]: result}, paths[1])) == 1

    by_name["elmo_vectors"]["mixes"] = [
        [shared, {**learned, "shares": shares}] for shares in ([0.5, 0.25, 0.25], [0.1, 0.65, 0.25])
    ]
    _, section = make_sections({paths[0]: result}, paths[1])
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    assert table.rows == [("elmo_vectors: input", "0.300", "0.450", "0.250", "2.00")]


@pytest.mark.parametrize("settings", [{}, {"component": []}, 3])
def test_a_result_of_no_component_is_named(tmp_path, settings):
    result = {**make_result("ner", SCORES, "Names"), "settings": settings}
    with pytest.raises(ValueError, match="EL149.*x.json"):
        make_sections({tmp_path / "x.json": result}, tmp_path / "figures")


@pytest.mark.parametrize("plot", [plot_scores, plot_samples, plot_updates])
def test_a_title_is_no_formula(plot, tmp_path):
    curve = [{"step": 0, "scores": [1.0]}, {"step": 2, "scores": [3.0]}]
    row = {"title": "with ELMo", "share": 1.0, "dev": [3.0], "test": [2.0], "curve": curve}
    result = {"title": r"$5_$6 10$\foo$", "score": "tag_acc", "rows": [row]}

    plot(result, tmp_path / "plot.png")

    assert (tmp_path / "plot.png").stat().st_size > 1000
