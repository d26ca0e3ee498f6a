"""The page of `elmo explore` in a real browser."""

import pytest
import spacy

from spacy_elmo.explore.explorer import Explorer, find_embedder, prepare_pipeline
from spacy_elmo.search.search_index import SearchIndex

from ..support.explore_page import CHROMIUM, open_browser, serve_page
from ..support.helpers import DATA, make_nlp

pytest.importorskip("playwright")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
    pytest.mark.filterwarnings("ignore:.*WL003"),
]
TEXT = "my bank\nthe bank in green ."
SENTENCES = ["I like green eggs .", "the river bank in green .", "my money banks in green ."]


@pytest.fixture(scope="module")
def explorer(tmp_path_factory):
    """All that can be shown: layers, surprisal, an index, tags and entities, mixes."""
    nlp = spacy.load(DATA / "toy_pipeline")
    prepare_pipeline(nlp, "toy", "en_small")
    index = SearchIndex.create(
        tmp_path_factory.mktemp("index") / "index",
        find_embedder(nlp),
        layer=0,
        weighting="mean",
        backend="numpy",
        lang="en",
    )
    index.add("some text", [sentence.split() for sentence in SENTENCES])
    return Explorer(nlp, index)


@pytest.fixture(scope="module")
def url(explorer):
    with serve_page(explorer) as url:
        yield url


@pytest.fixture(scope="module")
def browser():
    with open_browser() as browser:
        yield browser


@pytest.fixture
def open_page(browser, url):
    """Opens the page; at the end, nothing may have gone wrong in it but what was refused."""
    problems, pages = [], []

    def open_one(*, width=1280, scheme="light", address=url):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.on("console", lambda message: note(message.type, message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        page.on("request", lambda request: check(request.url, address))
        pages.append(page)
        page.set_default_timeout(10_000)
        page.goto(address)
        wait_until_described(page)
        read(page, "green eggs\nno eggs")
        return page

    def note(kind, text):
        if kind in ("error", "warning") and "the server responded with a status of" not in text:
            problems.append(text)

    def check(requested, address):
        if not requested.startswith(address):
            problems.append(requested)

    yield open_one
    for page in pages:
        page.close()
    assert not problems


def wait_until_described(page):
    page.wait_for_selector("#components:has-text('Components')")


def show_all(page):
    """Click what is shown at a click."""
    page.click(".token >> nth=-1" if page.locator(".token").count() < 5 else ".token >> nth=4")
    page.wait_for_selector("#substitutes dl")
    if page.is_visible("#search"):
        page.click("#search button")
        page.wait_for_selector("#found li")


def read(page, text):
    page.fill("#text", text)
    with page.expect_response("**/api/read"):
        page.click("#form button")
    wait_until_idle(page)


def wait_until_idle(page):
    page.wait_for_selector("main:not(:has(.busy))")


def test_a_text_is_read_and_shown(open_page, explorer):
    page = open_page()
    read(page, TEXT)
    assert page.inner_text("#status") == "Read 7 tokens in 2 lines."

    answer = explorer.compare(TEXT, [1, 3])
    assert page.locator("#heatmaps table").count() == len(answer["layers"])
    headers = page.locator("#heatmaps .card >> nth=0 >> th[scope=col]").all_inner_texts()
    assert "bank (1)" in headers and "bank (2)" in headers
    lines = explorer.read(TEXT)["lines"]
    shown = page.locator("#surprise .token small").all_inner_texts()
    bits = [token["bits"] for line in lines for token in line["tokens"]]
    assert shown == [f"{value:.1f}" for value in bits]
    titles = page.locator("#drawn h3").all_inner_texts()
    assert titles == [section["title"] for section in explorer.read(TEXT)["drawings"]]
    tags = [token.tag_ for line in TEXT.split("\n") for token in explorer.nlp(line)]
    assert all(tag in page.inner_text("#drawn") for tag in tags if tag)
    assert page.locator("#bars .bar-row").count() >= 3 and "γ" in page.inner_text("#bars")


def test_tokens_are_compared_at_a_click(open_page, explorer):
    page = open_page()
    read(page, "green eggs\nno eggs")
    cells = page.locator("#heatmaps .card >> nth=1 >> td:not([aria-hidden])")

    for _ in range(2):
        with page.expect_response("**/api/compare"):
            page.click("#chips button >> nth=0")
    page.click("#chips button >> nth=2")
    wait_until_idle(page)
    page.wait_for_selector("#heatmaps .card:first-child th >> nth=5", state="attached")

    expected = explorer.compare("green eggs\nno eggs", [0, 1, 3])["layers"][1]["cosines"]
    shown = [float(text) for text in cells.all_inner_texts()]
    assert shown == pytest.approx([value for row in expected for value in row], abs=0.0051)


def test_substitutes_and_contexts_come_at_a_click(open_page, explorer):
    page = open_page()
    read(page, "the green bank .")
    assert page.inner_text("#status") == "Read 4 tokens in 1 line."
    assert "Of the 3 sentences of the corpus" in page.inner_text("#contexts-hint")

    page.click(".token >> nth=2")
    page.wait_for_selector("#substitutes dl")
    words = page.locator("#substitutes dt").all_inner_texts()
    assert words == [s["word"] for s in explorer.substitute("the green bank .", 2)["substitutes"]]
    page.select_option("#search-token", label="bank")
    page.select_option("#search-layer", "0")
    page.click("#search button")
    page.wait_for_selector("#found mark")
    assert page.locator("#found mark").first.inner_text() == "bank"
    assert "some text, sentence 2" in page.locator("#found li").first.inner_text()


def test_hostile_text_is_text(open_page):
    page = open_page()
    hostile = "<img src=x onerror=alert(1)> <script>alert(2)</script> \"'&amp; <b>eggs</b> green"
    read(page, hostile)
    show_all(page)

    assert page.locator("main img, main script, main b, main iframe").count() == 0
    assert "onerror" in page.inner_text("#drawn") and "amp" in page.inner_text("#chips")


def test_bad_input_is_told_on_the_page(open_page):
    page = open_page()
    for text, code in ((" \n ", "EL272"), ("x" * 2001, "EL272"), ("x\n" * 21, "EL272")):
        read(page, text)
        assert code in page.inner_text("#problem") and page.is_visible("#problem")
    read(page, "green eggs")
    assert not page.is_visible("#problem")
    for i in range(2):
        with page.expect_response("**/api/compare"):
            page.click(f"#chips button >> nth={i}")
    page.wait_for_selector("#heatmaps .problem")
    assert "Choose 1 to" in page.inner_text("#heatmaps")


def test_a_server_that_has_ended_is_told(browser, explorer):
    with serve_page(explorer) as url:
        page = browser.new_page()
        page.goto(url)
        wait_until_described(page)
    page.click("#form button")
    page.wait_for_selector("#problem:not([hidden])")
    assert "elmo explore" in page.inner_text("#problem")
    page.close()


def test_what_a_pipeline_lacks_is_explained(open_page):
    nlp = make_nlp()
    prepare_pipeline(nlp, "toy")
    with serve_page(Explorer(nlp)) as address:
        page = open_page(address=address)
        assert "elmo_lm" in page.inner_text("#surprisal")
        assert "--index FOLDER" in page.inner_text("#contexts")
        assert not page.is_visible("#search") and not page.is_visible("#drawings")
        assert page.is_visible("#heatmaps table >> nth=0")


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_is_wider_than_the_window(open_page, width):
    page = open_page(width=width)
    read(page, "green eggs and ham " * 4 + "x" * 300 + "\nthe bank in green .")
    show_all(page)

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    read(page, "x" * 2001)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
