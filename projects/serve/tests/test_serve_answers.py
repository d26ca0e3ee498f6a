"""Answers of the server are those of the pipeline alone."""

import asyncio
import base64
import random

import numpy as np
import pytest
import spacy
from elmo_service.answers import compute_cosine, make_vectors_reader
from elmo_service.offers import find_offers
from toy_service import TEXTS, call, load_pipeline, read_metrics

# The toy biLM reads short words only.
pytestmark = pytest.mark.filterwarnings("ignore:.*WL003")
LARGE = "a " * 4999


@pytest.fixture(scope="module")
def toy():
    return load_pipeline()


def expect_tags(doc):
    return {
        "tokens": [
            {
                "text": t.text, "start": t.idx, "end": t.idx + len(t.text), "tag": t.tag_,
                "pos": t.pos_, "morph": str(t.morph), "lemma": t.lemma_,
            }
            for t in doc
        ]
    }  # fmt: skip


def expect_entities(doc):
    return {
        "entities": [
            {"text": e.text, "start": e.start_char, "end": e.end_char, "label": e.label_}
            for e in doc.ents
        ]
    }


def check_vectors(result, doc):
    assert [token["text"] for token in result["tokens"]] == [t.text for t in doc]
    vectors = np.array(result["vectors"]).reshape(result["shape"])
    # Other texts of a batch change the last bits of a float32.
    np.testing.assert_allclose(vectors, doc.tensor, atol=1e-5, rtol=0)


async def post(client, path, **body):
    response = await client.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()["results"]


def test_concurrent_requests_share_batches_and_get_their_own_answers():
    nlp = load_pipeline(gate=True)
    sizes = nlp.get_pipe("toy_gate").sizes
    rng = random.Random(0)
    alone = load_pipeline()
    expected = {text: alone(text) for text in TEXTS}
    assert any(doc.ents for doc in expected.values())

    async def ask(client, texts):
        path = rng.choice(["/tags", "/entities", "/vectors"])
        for text, result in zip(texts, await post(client, path, texts=texts), strict=True):
            if path == "/vectors":
                check_vectors(result, expected[text])
            else:
                expect = expect_tags if path == "/tags" else expect_entities
                assert result == expect(expected[text])

    async def use(client, app):
        sizes.clear()
        requests = [rng.choices(TEXTS, k=rng.randint(1, 5)) for _ in range(60)]
        await asyncio.gather(*(ask(client, texts) for texts in requests))
        assert sum(sizes) == sum(map(len, requests))

    call(nlp, use, batch_texts=20)
    assert len(sizes) < 30 and max(sizes) <= 20


def test_a_mean_and_base64_are_the_same_numbers(toy):
    async def use(client, app):
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

    call(toy, use)


@pytest.mark.filterwarnings("ignore:.*W007", "ignore:.*W008")
def test_similarity_is_that_of_spacy():
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    pairs = [["I like eggs", "You like ham"], ["I", "I"], ["", "I like eggs"]]

    async def use(client, app):
        return await post(client, "/similarity", pairs=pairs)

    expected = [nlp(a).similarity(nlp(b)) for a, b in pairs]
    np.testing.assert_allclose(call(nlp, use), expected, atol=1e-5)
    for scale in (1e-30, 1, 1e30):
        X = np.random.default_rng(0).normal(size=(99, 32), scale=scale).astype("float32")
        assert all(-1 <= compute_cosine(x, sign * x) <= 1 for x in X for sign in (1, -1))


def test_the_front_page_lists_components_and_limits(toy):
    async def use(client, app):
        return (await client.get("/")).json()

    about = call(toy, use, max_texts=3)
    assert about["pipeline"]["offers"] == ["tags", "entities", "vectors", "similarity"]
    assert about["pipeline"]["components"] == toy.pipe_names
    assert about["limits"]["max_texts"] == 3


def test_a_pipeline_without_vectors_offers_the_rest():
    nlp = load_pipeline()
    nlp.add_pipe("doc_cleaner")
    assert find_offers(nlp) == (["tags", "entities"], 0)


@pytest.mark.parametrize("zones", [True, False])
def test_memory_zones_remove_the_words_of_requests(zones):
    async def use(client, app):
        sizes = []
        for i in range(3):
            await post(client, "/tags", texts=[f"new{i} word{i}", f"other{i}"])
            sizes.append(read_metrics(app)["elmo_vocab_strings",])
        return sizes

    first, _, last = call(load_pipeline(), use, zones=zones)
    assert first == last if zones else last >= first + 6


def test_metrics_count_requests_texts_and_refusals(toy):
    async def use(client, app):
        for _ in range(3):
            await post(client, "/tags", texts=["Eat ham", "Eat eggs now"])
        await client.post("/tags", json={"texts": 3})
        await client.get("/nowhere")
        page = await client.get("/metrics")
        assert page.headers["content-type"].startswith("text/plain")
        assert 'elmo_requests_total{path="/tags",status="200"} 3.0' in page.text
        return read_metrics(app)

    metrics = call(toy, use)
    assert metrics["elmo_requests_total", "/tags", "422"] == 1
    assert metrics["elmo_requests_total", "other", "404"] == 1
    assert metrics["elmo_refusals_total", "EL261"] == 1
    assert metrics["elmo_texts_total",] == 6 and metrics["elmo_tokens_total",] == 15
    assert metrics["elmo_waiting_texts",] == metrics["elmo_dropped_texts_total",] == 0


@pytest.mark.parametrize("number", [-0.0000063184107, -1.17549435e-38, 3.4028235e38, 1 / 3, 0])
@pytest.mark.parametrize("encoding", ["json", "base64"])
def test_no_answer_is_longer_than_its_bound(toy, number, encoding):
    docs = [toy.make_doc(text) for text in [*TEXTS, "\x01" * 30 + " \x02" * 900]]
    for doc in docs:
        doc.tensor = np.full((len(doc), 8), number, dtype="float32")
    reader = make_vectors_reader("none", encoding, width=8)

    assert len(reader.read(docs)) <= reader.bound(docs)


def test_long_answers_arrive_whole_or_are_refused_before_they_are_computed():
    nlp = load_pipeline(gate=True)

    async def use(client, app):
        refused = await client.post("/vectors", json={"texts": [LARGE]})
        # Only the first text, at the start, was read.
        assert refused.status_code == 413 and "EL310" in refused.text
        assert nlp.get_pipe("toy_gate").sizes == [1]
        (found,) = await post(client, "/vectors", texts=[LARGE], pooling="mean")
        assert len(found["vector"]) == 8
        late = await client.post("/tags", json={"texts": [LARGE]})
        assert late.status_code == 413 and "EL310" in late.text
        assert read_metrics(app)["elmo_unread_bytes",] == 0

    call(nlp, use, max_answer_bytes=400_000)
