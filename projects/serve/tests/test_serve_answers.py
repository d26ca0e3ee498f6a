"""Answers of the server are those of the pipeline alone."""

import asyncio
import base64
import random

import numpy as np
import pytest
import spacy
from elmo_service.answers import make_vectors_reader
from elmo_service.offers import find_offers
from toy_service import TEXTS, load_pipeline, open_app, read_metrics

# The toy biLM reads short words only.
pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore:.*WL003")]
LARGE = "a " * 4999


@pytest.fixture(scope="module")
def toy():
    return load_pipeline()


async def post(client, path, **body):
    response = await client.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()["results"]


def check_answer(path, result, doc):
    if path == "/tags":
        fields = ("text", "tag", "pos", "morph", "lemma")
        found = [[token[field] for field in fields] for token in result["tokens"]]
        assert found == [[t.text, t.tag_, t.pos_, str(t.morph), t.lemma_] for t in doc]
        assert all(doc.text[t["start"] : t["end"]] == t["text"] for t in result["tokens"])
    elif path == "/entities":
        found = [(e["text"], e["start"], e["end"], e["label"]) for e in result["entities"]]
        assert found == [(e.text, e.start_char, e.end_char, e.label_) for e in doc.ents]
    else:
        assert [token["text"] for token in result["tokens"]] == [t.text for t in doc]
        vectors = np.array(result["vectors"]).reshape(result["shape"])
        # Other texts of a batch change the last bits of a float32.
        np.testing.assert_allclose(vectors, doc.tensor, atol=1e-5, rtol=0)


async def test_concurrent_requests_share_batches_and_get_their_own_answers(toy):
    nlp = load_pipeline(gate=True)
    sizes = nlp.get_pipe("toy_gate").sizes
    rng = random.Random(0)
    expected = {text: toy(text) for text in TEXTS}
    assert any(doc.ents for doc in expected.values())

    async def ask(client, texts):
        path = rng.choice(["/tags", "/entities", "/vectors"])
        for text, result in zip(texts, await post(client, path, texts=texts), strict=True):
            check_answer(path, result, expected[text])

    async with open_app(nlp, batch_texts=20) as (client, _):
        sizes.clear()
        requests = [rng.choices(TEXTS, k=rng.randint(1, 5)) for _ in range(40)]
        await asyncio.gather(*(ask(client, texts) for texts in requests))
        assert sum(sizes) == sum(map(len, requests))
    assert len(sizes) < 20 and max(sizes) <= 20


async def test_a_mean_and_base64_are_the_same_numbers(toy):
    async with open_app(toy) as (client, _):
        texts = TEXTS[:4]
        plain = await post(client, "/vectors", texts=texts)
        packed = await post(client, "/vectors", texts=texts, encoding="base64")
        means = await post(client, "/vectors", texts=texts, pooling="mean")
    for a, b, mean in zip(plain, packed, means, strict=True):
        numbers = np.frombuffer(base64.b64decode(b["vectors"]), dtype="<f4")
        vectors = np.array(a["vectors"], dtype="float32").reshape(a["shape"])
        np.testing.assert_array_equal(vectors.ravel(), numbers)
        expected = vectors.mean(axis=0) if len(vectors) else np.zeros(8)
        np.testing.assert_allclose(mean["vector"], expected, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*W007", "ignore:.*W008")
async def test_similarity_is_that_of_spacy():
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    pairs = [["I like eggs", "You like ham"], ["I", "I"], ["", "I like eggs"]]
    async with open_app(nlp) as (client, _):
        found = await post(client, "/similarity", pairs=pairs)
    np.testing.assert_allclose(found, [nlp(a).similarity(nlp(b)) for a, b in pairs], atol=1e-5)


async def test_the_front_page_lists_components_and_limits(toy):
    async with open_app(toy, max_texts=3) as (client, _):
        about = (await client.get("/")).json()
    assert about["pipeline"]["offers"] == ["tags", "entities", "vectors", "similarity"]
    assert about["pipeline"]["components"] == toy.pipe_names
    assert about["limits"]["max_texts"] == 3


def test_a_pipeline_without_vectors_offers_the_rest():
    nlp = load_pipeline()
    nlp.add_pipe("doc_cleaner")
    assert find_offers(nlp) == (["tags", "entities"], 0)


@pytest.mark.parametrize("zones", [True, False])
async def test_memory_zones_remove_the_words_of_requests(zones):
    sizes = []
    async with open_app(load_pipeline(), zones=zones) as (client, app):
        for i in range(3):
            await post(client, "/tags", texts=[f"new{i} word{i}", f"other{i}"])
            sizes.append(read_metrics(app)["elmo_vocab_strings",])
    assert sizes[0] == sizes[-1] if zones else sizes[-1] >= sizes[0] + 6


async def test_metrics_count_requests_texts_and_refusals(toy):
    async with open_app(toy) as (client, app):
        for _ in range(3):
            await post(client, "/tags", texts=["Eat ham", "Eat eggs now"])
        await client.post("/tags", json={"texts": 3})
        await client.get("/nowhere")
        page = await client.get("/metrics")
        metrics = read_metrics(app)
    assert page.headers["content-type"].startswith("text/plain")
    assert 'elmo_requests_total{path="/tags",status="200"} 3.0' in page.text
    assert metrics["elmo_requests_total", "/tags", "422"] == 1
    assert metrics["elmo_requests_total", "other", "404"] == 1
    assert metrics["elmo_refusals_total", "EL261"] == 1
    assert metrics["elmo_texts_total",] == 6 and metrics["elmo_tokens_total",] == 15
    assert metrics["elmo_waiting_texts",] == metrics["elmo_dropped_texts_total",] == 0


@pytest.mark.parametrize("number", [-0.0000063184107, -1.17549435e-38, 3.4028235e38, 0])
@pytest.mark.parametrize("encoding", ["json", "base64"])
def test_no_answer_is_longer_than_its_bound(toy, number, encoding):
    docs = [toy.make_doc(text) for text in [*TEXTS, "\x01" * 30 + " \x02" * 900]]
    for doc in docs:
        doc.tensor = np.full((len(doc), 8), number, dtype="float32")
    reader = make_vectors_reader("none", encoding, width=8)

    assert len(reader.read(docs)) <= reader.bound(docs)


async def test_long_answers_are_refused_before_they_are_computed():
    nlp = load_pipeline(gate=True)
    async with open_app(nlp, max_answer_bytes=400_000) as (client, app):
        refused = await client.post("/vectors", json={"texts": [LARGE]})
        # Only the first text, at the start, was read.
        assert refused.status_code == 413 and "EL310" in refused.text
        assert nlp.get_pipe("toy_gate").sizes == [1]
        (found,) = await post(client, "/vectors", texts=[LARGE], pooling="mean")
        assert len(found["vector"]) == 8
        late = await client.post("/tags", json={"texts": [LARGE]})
        assert late.status_code == 413 and "EL310" in late.text
        assert read_metrics(app)["elmo_unread_bytes",] == 0
