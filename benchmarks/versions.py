"""Two versions of this project, each in its own checkout and environment, one after the other in
several rounds: whether a change costs time or memory.

usage: python benchmarks/versions.py OLD/.venv/bin/python NEW/.venv/bin/python TEXT
"""

import json
import subprocess
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import typer
from common import describe_machine

# Public names only: the same script runs in both versions.
SCRIPT = r"""
import json, sys, tempfile, time, warnings
started = time.perf_counter()
from spacy_elmo import Elmo, make_config
imported = time.perf_counter() - started
import resource, spacy, srsly
from pathlib import Path
from spacy.cli import app
from spacy.tokens import Doc
from spacy.training import Example
from typer.testing import CliRunner

warnings.simplefilter("ignore")
lines = Path(sys.argv[1]).read_text("utf-8").splitlines()[:4500]

def measure(function, n=3):
    times = []
    for _ in range(n):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return min(times)

nlp = spacy.blank("en")
nlp.add_pipe("elmo")
list(nlp.pipe(lines[:200]))
seconds = {"import": imported}
seconds["nlp.pipe, 1,500 texts"] = measure(lambda: list(nlp.pipe(lines[:1500])))
seconds["150 texts, one at a time"] = measure(lambda: [nlp(line) for line in lines[:150]])

def make_update(preset, n_docs):
    nlp = spacy.util.load_model_from_config(make_config(preset, ["tagger"]), auto_fill=True)
    examples = []
    for doc in map(nlp.make_doc, lines[:n_docs]):
        words, tags = [t.text for t in doc], ["T" + str(len(t) % 9) for t in doc]
        gold = Doc(nlp.vocab, words=words, tags=tags)
        examples.append(Example(Doc(nlp.vocab, words=words), gold))
    optimizer = nlp.initialize(lambda: examples)
    nlp.update(examples, sgd=optimizer)
    return lambda: nlp.update(examples, sgd=optimizer)

seconds["update, word_features"] = measure(make_update("word_features", 120))
seconds["update, fine_tune"] = measure(make_update("fine_tune", 20))
for _ in nlp.pipe(lines):
    pass
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
with tempfile.TemporaryDirectory() as folder:
    spacy.registry.cli.get_all()
    config, output = f"{folder}/pretrain.cfg", f"{folder}/run"
    for words in (
        ["init-config", config, "--pretraining"],
        ["pretrain", config, output, "--paths.train", sys.argv[1], "--training.max_steps", "5",
         "--training.batch_tokens", "2048", "--training.log_frequency", "1"],
    ):
        result = CliRunner().invoke(app, ["elmo", *words])
        assert result.exit_code == 0, result.output
    rates = [line["tokens_per_second"] for line in srsly.read_jsonl(f"{output}/log.jsonl")]
seconds["pretraining, 2,048 tokens"] = 2048 / max(rates)
print(json.dumps({**seconds, "memory, MB": memory}))
"""


def main(
    old: Path = typer.Argument(..., help="Python of the old version's environment"),
    new: Path = typer.Argument(..., help="Python of the new one's"),
    text: Path = typer.Argument(..., help="Text with a sentence in each line, 4,500 or more"),
    rounds: int = typer.Option(5, min=1, help="Rounds, of which the medians count"),
) -> None:
    """Print the medians of both versions, and their ratio."""
    found: dict[Path, list[dict[str, float]]] = {old: [], new: []}
    for turn in range(rounds):
        for python in (old, new) if turn % 2 else (new, old):
            command = [str(python.absolute()), "-c", SCRIPT, str(text.absolute())]
            # Elsewhere: Python would import the package of this folder in both.
            with TemporaryDirectory() as folder:
                done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            done.check_returncode()
            found[python].append(json.loads(done.stdout.splitlines()[-1]))
    print(describe_machine(), f"{rounds} rounds", sep=", ")
    for name in found[new][0]:
        before, after = (median(row[name] for row in found[python]) for python in (old, new))
        print(f"{name:28} {before:9.3f} {after:9.3f}  ratio {after / before:.3f}")


if __name__ == "__main__":
    typer.run(main)
