"""Train senses from sense-annotated sentences, and measure each layer."""

from dataclasses import replace
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Sequence, Tuple

from numpy.typing import NDArray
from spacy.util import minibatch

from ..errors import Errors
from ..inference.embedder import Embedder
from .annotated import Instance, SenseSentence
from .inventory import PARTS_OF_SPEECH, Inventory
from .sense_model import AVERAGE, Centroids, Layer, SenseModel, Sums, choose_layer, no_sense_of

_N_SENTENCES = 512
# One doc in ten is held out to choose the layer and the prior.
_HELD_OUT = 10
_PRIORS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


class _Seen(NamedTuple):
    """A word with a sense, the senses that it can have, its layers, shape (n_layers, width), and
    its first word."""

    instance: Instance
    candidates: List[str]
    layers: NDArray
    form: str


class _Embedded(NamedTuple):
    """A sentence, its layers, shape (n_layers, n_tokens, width), and its words with a sense that
    the inventory has."""

    sentence: SenseSentence
    layers: NDArray
    seen: List[_Seen]


def require_docs(sentences: Iterable[SenseSentence]) -> None:
    """Read all sentences, and check that they are of enough docs to train on."""
    docs = {sentence.doc for sentence in sentences}
    if len(docs) < _HELD_OUT:
        raise ValueError(Errors.EL058.format(n_docs=len(docs)))


def train_senses(
    embedder: Embedder,
    inventory: Inventory,
    sentences: Iterable[SenseSentence],
    test: Iterable[SenseSentence] = (),
) -> Tuple[Centroids, Dict[str, Any]]:
    """Average the vectors of each sense. A tenth of the docs chooses the layer and the weight of
    the prior, and is then trained on, too. RETURNS the means of the best layer, and accuracies (see
    `_measure`): "chosen" given lemmas and parts of speech, "forms" without them, as the component
    without a tagger, on the words that have a sense, parts of several words left out."""
    config = embedder.bilm.config
    options: List[Layer] = [*range(config.n_layers), AVERAGE]
    sums = Sums(config.n_layers, config.width)
    held_out: List[_Embedded] = []
    docs: Dict[str, int] = {}
    for each in _embed(embedder, inventory, sentences):
        number = docs.setdefault(each.sentence.doc, len(docs))
        if number % _HELD_OUT == _HELD_OUT - 1:
            held_out.append(each)
        else:
            _add(sums, inventory, each)
    instances = [instance for each in held_out for instance in each.seen]
    if not sums.rows or not instances:
        raise ValueError(Errors.EL058.format(n_docs=len(docs)))
    layer, prior = _choose(sums, instances, options)
    tune = _measure(sums, inventory, instances, options, sums.make(layer, prior))
    for each in held_out:
        _add(sums, inventory, each)
    best = sums.make(layer, prior)
    tested = [seen for each in _embed(embedder, inventory, test) for seen in each.seen]
    return best, {
        "layer": layer,
        "prior": prior,
        "tune": tune,
        "test": _measure(sums, inventory, tested, options, best) if tested else {},
        "n_senses": len(best.counts),
    }


def _embed(
    embedder: Embedder, inventory: Inventory, sentences: Iterable[SenseSentence]
) -> Iterator[_Embedded]:
    for part in minibatch(sentences, _N_SENTENCES):
        arrays = embedder.embed([sentence.words for sentence in part])
        for sentence, layers in zip(part, arrays):
            yield _Embedded(sentence, layers, list(_find_instances(inventory, sentence, layers)))


def _find_instances(
    inventory: Inventory, sentence: SenseSentence, layers: NDArray
) -> Iterator[_Seen]:
    """Words with a sense that the inventory has: texts may be marked with those of another
    version."""
    for instance in sentence.instances:
        keys = tuple(key for key in instance.keys if key in inventory.glosses)
        if keys:
            vectors = layers[:, instance.start : instance.end].mean(axis=1)
            candidates = [key for key, _ in inventory.find(instance.lemma, instance.pos)]
            form = sentence.words[instance.start]
            yield _Seen(instance._replace(keys=keys), candidates, vectors, form)


def _add(sums: Sums, inventory: Inventory, embedded: _Embedded) -> None:
    sentence, layers, seen = embedded
    for each in seen:
        for key in each.instance.keys:
            sums.add(key, each.layers)
    # Open-class words without a mark have no sense: auxiliaries, particles, names.
    marked = {i for place in sentence.instances for i in range(place.start, place.end)}
    for i, word in enumerate(sentence.words):
        if i not in marked and any(inventory.find_form(word, pos) for pos in PARTS_OF_SPEECH):
            sums.add(no_sense_of(word), layers[:, i])


def _choose(
    sums: Sums, instances: Sequence[_Seen], options: Sequence[Layer]
) -> Tuple[Layer, float]:
    scores = {}
    for i, layer in enumerate(options):
        centroids = sums.make(layer, 0.0)
        for prior in _PRIORS:
            scores[i, -prior] = _score(replace(centroids, prior=prior), instances)
    # Ties go to the higher layer and the smaller prior.
    i, prior = max(scores, key=lambda pair: (scores[pair], pair))
    return options[i], -prior


def _measure(
    sums: Sums,
    inventory: Inventory,
    instances: Sequence[_Seen],
    options: Sequence[Layer],
    chosen: Centroids,
) -> Dict[str, Any]:
    """Shares of right senses: "first" (the inventory's first sense), "frequent" (the most frequent
    of training), "layers" (of each option, the nearest centroid without a prior), "chosen" and
    "forms" (see `train_senses`); "n_instances", "seen" (share that has a centroid)."""
    right_first = right_frequent = n_seen = 0
    for instance, candidates, *_ in instances:
        first = next(iter(candidates), "")
        right_first += first in instance.keys
        counts = {key: sums.counts[sums.rows[key]] for key in candidates if key in sums.rows}
        n_seen += bool(counts)
        # `max` keeps the first of equals, which is the inventory's order.
        frequent = max(counts, key=lambda key: counts[key]) if counts else first
        right_frequent += frequent in instance.keys
    model = SenseModel(inventory, chosen)
    single = [seen for seen in instances if seen.instance.end - seen.instance.start == 1]
    right_forms = sum(model.choose(s.form, s.layers) in s.instance.keys for s in single)
    return {
        "n_instances": len(instances),
        "seen": n_seen / len(instances),
        "first": right_first / len(instances),
        "frequent": right_frequent / len(instances),
        "layers": {str(layer): _score(sums.make(layer, 0.0), instances) for layer in options},
        "chosen": _score(chosen, instances),
        "forms": right_forms / max(1, len(single)),
    }


def _score(centroids: Centroids, instances: Sequence[_Seen]) -> float:
    n_right = 0
    for instance, candidates, layers, _ in instances:
        if candidates:
            vector = choose_layer(layers, centroids.layer)
            n_right += centroids.choose(vector, candidates) in instance.keys
    return n_right / len(instances)
