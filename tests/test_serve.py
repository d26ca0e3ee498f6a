"""projects/serve: its answers are those of the pipeline alone, whatever else is asked."""

import asyncio
import base64
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .support.helpers import make_nlp
from .support.toy_service import TEXTS, call, compute_cosine, load_pipeline, read_metrics

# The toy biLM reads short words only.
pytestmark = pytest.mark.filterwarnings("ignore:.*WL003")


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
    """Batch mates change nothing but the last bits of a float32."""
    assert [token["text"] for token in result["tokens"]] == [t.text for t in doc]
    assert result["shape"] == list(doc.tensor.shape)
    vectors = np.array(result["vectors"]).reshape(result["shape"])
    np.testing.assert_allclose(vectors, doc.tensor, atol=1e-5, rtol=0)


async def post(client, path, **body):
    response = await client.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()["results"]


def test_each_path_says_what_the_pipeline_says(toy):
    async def use(client, app):
        for path, expect in (("/tags", expect_tags), ("/entities", expect_entities)):
            results = await post(client, path, texts=TEXTS)
            assert results == [expect(toy(text)) for text in TEXTS]
        for result, text in zip(await post(client, "/vectors", texts=TEXTS), TEXTS):
            check_vectors(result, toy(text))

    assert any(toy(text).ents for text in TEXTS) and toy(TEXTS[0])[0].tag_
    call(toy, use)


@settings(max_examples=15)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=4))
def test_any_text_is_read_as_alone(toy, texts):
    async def use(client, app):
        assert await post(client, "/tags", texts=texts) == [expect_tags(toy(t)) for t in texts]

    call(toy, use)


def test_concurrent_requests_share_batches_and_keep_their_own_answers():
    nlp = load_pipeline(gate=True)
    gate = nlp.get_pipe("toy_gate")
    rng = random.Random(0)
    alone = load_pipeline()
    expected = {text: alone(text) for text in TEXTS}

    async def ask(client, texts):
        path = rng.choice(["/tags", "/entities", "/vectors"])
        results = await post(client, path, texts=texts)
        assert len(results) == len(texts)
        for text, result in zip(texts, results):
            if path == "/vectors":
                check_vectors(result, expected[text])
            else:
                expect = expect_tags if path == "/tags" else expect_entities
                assert result == expect(expected[text])

    async def use(client, app):
        gate.sizes.clear()
        requests = [rng.choices(TEXTS, k=rng.randint(1, 5)) for _ in range(60)]
        await asyncio.gather(*(ask(client, texts) for texts in requests))
        assert sum(gate.sizes) == sum(map(len, requests))

    call(nlp, use, batch_texts=20)
    assert len(gate.sizes) < 30 and max(gate.sizes) <= 20


def test_one_at_a_time_is_a_setting():
    nlp = load_pipeline(gate=True)

    async def use(client, app):
        await asyncio.gather(*(post(client, "/tags", texts=["a"]) for _ in range(5)))

    call(nlp, use, batch_texts=1)
    assert nlp.get_pipe("toy_gate").sizes == [1] * 6


def test_a_mean_and_base64_are_the_same_numbers(toy):
    async def use(client, app):
        texts = TEXTS[:4]
        plain = await post(client, "/vectors", texts=texts)
        packed = await post(client, "/vectors", texts=texts, encoding="base64")
        means = await post(client, "/vectors", texts=texts, pooling="mean")
        for a, b, mean in zip(plain, packed, means):
            numbers = np.frombuffer(base64.b64decode(b["vectors"]), dtype="<f4")
            vectors = np.array(a["vectors"], dtype="float32").reshape(a["shape"])
            np.testing.assert_array_equal(vectors.ravel(), numbers)
            expected = vectors.mean(axis=0) if len(vectors) else np.zeros(8)
            np.testing.assert_allclose(mean["vector"], expected, atol=1e-6)

    call(toy, use)


@pytest.mark.filterwarnings("ignore:.*W007", "ignore:.*W008")
def test_similarity_is_spacy_s():
    nlp = make_nlp()
    pairs = [["I like eggs", "You like ham"], ["I", "I"], ["", "I like eggs"]]

    async def use(client, app):
        return await post(client, "/similarity", pairs=pairs)

    expected = [nlp(a).similarity(nlp(b)) for a, b in pairs]
    np.testing.assert_allclose(call(nlp, use), expected, atol=1e-5)
    assert expected[1] > 0.999 and expected[2] == 0


@pytest.mark.parametrize("scale", [1, 1e-30, 1e30])
def test_similarity_is_in_its_range(scale):
    vectors = np.random.default_rng(0).normal(size=(300, 32), scale=scale).astype("float32")
    for vector in vectors:
        for sign in (1, -1):
            cosine = compute_cosine(vector, sign * vector)
            assert -1 <= cosine <= 1 and cosine == pytest.approx(sign)


def test_the_front_page_says_what_is_offered(toy):
    async def use(client, app):
        return (await client.get("/")).json()

    about = call(toy, use, max_texts=3)
    assert about["pipeline"]["offers"] == ["tags", "entities", "vectors", "similarity"]
    assert about["pipeline"]["components"] == toy.pipe_names
    assert about["limits"]["max_texts"] == 3


@pytest.mark.parametrize("zones", [True, False])
def test_the_words_of_requests_are_given_back(zones):
    async def use(client, app):
        sizes = []
        for i in range(3):
            await post(client, "/tags", texts=[f"new{i} word{i}", f"other{i}"])
            sizes.append(read_metrics(app)["elmo_vocab_strings",])
        return sizes

    first, _, last = call(load_pipeline(), use, zones=zones)
    # Each word, and its shape, prefix and suffix as far as they are new.
    assert first == last if zones else last >= first + 6


def test_metrics_count_what_happened(toy):
    async def use(client, app):
        for _ in range(3):
            await post(client, "/tags", texts=["Eat ham", "Eat eggs now"])
        await client.post("/tags", json={"texts": 3})
        await client.get("/nowhere")
        page = await client.get("/metrics")
        assert page.headers["content-type"].startswith("text/plain")
        assert 'elmo_requests_total{path="/tags",status="200"} 3.0' in page.text
        assert "process_resident_memory_bytes" in page.text and "process_open_fds" in page.text
        return read_metrics(app)

    metrics = call(toy, use)
    assert metrics["elmo_requests_total", "/tags", "422"] == 1
    assert metrics["elmo_requests_total", "other", "404"] == 1
    assert metrics["elmo_refusals_total", "EL261"] == 1
    assert metrics["elmo_texts_total",] == 6 and metrics["elmo_tokens_total",] == 15
    assert metrics["elmo_batch_texts_sum",] == 6 and metrics["elmo_batch_texts_count",] == 3
    assert metrics["elmo_request_seconds_count", "/tags"] == 4
    assert metrics["elmo_waiting_texts",] == metrics["elmo_dropped_texts_total",] == 0
