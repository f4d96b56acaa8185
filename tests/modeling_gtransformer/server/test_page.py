"""The page of a server: texts and files there and back, errors in words, and readers under the server's limits."""

import asyncio
import json
import sys
from contextlib import aclosing
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import httpx
import pytest
from fastapi.testclient import TestClient
from packages import unpacked, word_document
from server_fixtures import elements, text_of

from modeling_gtransformer import Translator
from modeling_gtransformer.server.application import make_application
from modeling_gtransformer.server.attention_view import attended_sentences
from modeling_gtransformer.server.options import ServerOptions


gr = pytest.importorskip("gradio")
gradio_client = pytest.importorskip("gradio_client")

from modeling_gtransformer.server.page import Page, description, splitter_menu  # noqa: E402


TEXT = "the cat sleeps\nit is <b>old</b> & ${1+1} {{value}}\n" + "z" * 150


def reader(name):
    return SimpleNamespace(session_hash=name, client=SimpleNamespace(host=name))


@pytest.fixture
def open_page(serve):
    """Makes a page around a running service."""

    def make(checkpoint, **options):
        return Page(serve(checkpoint, **options).app.state.service)

    return make


async def everything(page, name, text, file=None, splitter="line", num_beams=1, languages=("en", "de")):
    """What a reader sees of a translation: HTML that grows, its files, and the translation."""
    steps = page.translate(reader(name), text, file, *languages, splitter, num_beams)
    _, *streamed, shown = [step async for step in steps]
    files = [Path(shown[button].value["path"]) for button in page.downloads]
    return [*(step[page.pairs] for step in streamed), files, shown[page.translation]]


def translation_of(*arguments, **options):
    return asyncio.run(everything(*arguments, **options))[-1]


def attention_of(page, translation, sentence):
    return asyncio.run(page.show_attention(reader("a"), translation, sentence))


def test_text_and_downloads(open_page, checkpoint):
    *streamed, files, translation = asyncio.run(everything(open_page(checkpoint), "a", TEXT, num_beams=2))
    assert len(streamed) == 3 and all(new.startswith(old) for old, new in pairwise(streamed))
    sources, targets = (elements(f"{streamed[-1]}</ol>", side) for side in ("source", "target"))
    assert [text_of(source) for source in sources] == TEXT.split("\n")
    assert [text_of(target) for target in targets] == [pair["translation_text"] for pair in translation.pairs]
    assert [pair["source_text"] for pair in translation.pairs] == TEXT.split("\n")
    assert all(pair["confidence"] < 0 for pair in translation.pairs)
    assert any("It was translated in" in warning for warning in translation.warnings)
    assert [file.name for file in files] == ["text.de.txt", "text.de.tmx", "text.de.jsonl"]
    document, tmx, jsonl = (file.read_text() for file in files)
    assert translation.document == ""  # would stay in memory
    assert document == "\n".join(pair["translation_text"] for pair in translation.pairs)
    assert [json.loads(line) for line in jsonl.splitlines()] == translation.pairs
    assert [seg.text for seg in ElementTree.fromstring(tmx).iter("seg")][::2] == TEXT.split("\n")


def test_files_come_back_in_their_format(open_page, checkpoint, tmp_path):
    page = open_page(checkpoint)
    (tmp_path / "talk.docx").write_bytes(word_document("<w:p><w:r><w:t>the cat</w:t></w:r></w:p>"))
    (tmp_path / "talk.html").write_text("<p class='a'>the cat</p>")
    for name, kept in (("talk.docx", "<w:p><w:r><w:t"), ("talk.html", "<p class='a'>")):
        *_, files, translation = asyncio.run(everything(page, "a", "not this", str(tmp_path / name)))
        assert translation.pairs[0]["source_text"] == "the cat"
        assert files[0].name == f"talk.de{Path(name).suffix}"
        document = files[0].read_bytes()
        after = unpacked(document)["word/document.xml"] if name == "talk.docx" else document.decode()
        assert kept in after and "the cat" not in after


REFUSED = {
    "talk.pdf": (b"%PDF", "Unsupported format. Supported extensions: .txt"),
    "<b>.txt": (b"\xff\xfe", "it is UTF-16: save it as UTF-8"),
    "talk.docx": (b"not a zip file", "The document cannot be translated: not a Word document"),
    "empty.txt": (b"\n - \n", "The input has no text"),
    "long.txt": (b"the cat " * 20, "The request has 160 characters. The maximum is 100."),
    "gone.txt": (None, "The server no longer stores gone.txt: choose it again."),
}


def test_documents_that_cannot_be_translated(open_page, checkpoint, tmp_path, monkeypatch):
    """The page shows why, and names no folders."""
    page = open_page(checkpoint, max_characters=100)
    for name, (content, words) in REFUSED.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(gr.Error) as error:
            translation_of(page, "a", "", str(tmp_path / name))
        assert words in error.value.message and str(tmp_path) not in error.value.message
    with pytest.raises(gr.Error, match="The input has no text"):
        translation_of(page, "a", "")
    with pytest.raises(gr.Error, match="no longer stores this translation: translate the document again"):
        attention_of(page, None, 0)
    monkeypatch.setattr(page.service, "start", lambda *_, **options: (tmp_path / "none").read_bytes())
    with pytest.raises(gr.Error, match="An unexpected error") as error:
        translation_of(page, "a", "the cat")
    assert str(tmp_path) not in error.value.message


def test_readers_have_the_limits_of_the_server(open_page, checkpoint):
    page = open_page(checkpoint, max_per_client=1)

    async def read():
        return await asyncio.gather(*(everything(page, name, "the cat") for name in "aab"), return_exceptions=True)

    first, second, other = asyncio.run(read())
    assert "1 concurrent requests" in second.message and first[-1] == other[-1]


def test_a_sentence_level_translator_and_its_languages(open_page, sentence_level_checkpoint):
    page = open_page(sentence_level_checkpoint("m2m_100-nllb"))
    for menu in (page.source, page.target):
        assert menu.visible and {("English", "en"), ("German", "de"), ("French", "fr")} <= {*menu.choices}
    streamed, *_, translation = asyncio.run(everything(page, "a", "the cat sleeps\nit is old", languages=("en", "fr")))
    assert [pair["translation_text"] for pair in translation.pairs] == ["die katze schläft", "sie ist alt"]
    assert 'lang="fr"' in streamed and 'xml:lang="fra-Latn"' in translation.downloads()["Download TMX"][1].decode()
    assert "attends only to itself" in attention_of(page, translation, 0)


def test_the_description_of_the_model(open_page, checkpoint, sentence_level_checkpoint):
    (Path(checkpoint) / "README.md").write_text("---\nlicense: mit\n---\n")
    text = description(open_page(checkpoint).service)
    assert text.startswith("Translates a text or a file from English to German")
    assert "sentence by sentence, in the context of its document" in text
    assert f"Model: `{Path(checkpoint).name}`. Licence: mit. Paper: [G-Transformer" in text
    text = description(open_page(sentence_level_checkpoint("m2m_100-nllb")).service)
    assert "from a language of your choice to a language of your choice" in text and "without context" in text


def test_the_page_of_a_server(listen, checkpoint):
    """What its readers get over HTTP, beside the routes of the server."""
    server, address = listen(checkpoint, page=True)
    client = gradio_client.Client(address, verbose=False)
    pairs, document, *others, sentences, _ = client.predict(
        "the cat\nit is old", None, "en", "de", "line", 1, api_name="/translate"
    )
    assert len(elements(pairs, "confidence")) == 2
    assert [label for label, _ in sentences["choices"]] == ["1. the cat", "2. it is old"]
    assert len(Path(document["value"]).read_text().splitlines()) == 2
    assert [Path(file["value"]).suffix for file in others] == [".tmx", ".jsonl"]
    assert "global cross-attention" in client.predict(0, api_name="/attention")
    text = server.config.app.state.service.monitor.text().decode()
    assert "gtransformer_batch_requests_count 1.0" in text and "gtransformer_waiting_requests 0.0" in text
    client.close()


def test_a_page_needs_a_key_where_the_server_does(listen, checkpoint, tmp_path):
    (tmp_path / "keys.txt").write_text("one\n")
    _, address = listen(checkpoint, page=True, api_keys=str(tmp_path / "keys.txt"))
    for auth in (None, ("reader", "two")):
        with pytest.raises(Exception, match=r"auth|credentials|Could not"):
            gradio_client.Client(address, auth=auth, verbose=False)
    for path in ("upload", "queue/join", "call/translate"):
        assert httpx.post(f"{address}/gradio_api/{path}", json={"data": []}).status_code == 401
    client = gradio_client.Client(address, auth=("reader", "one"), verbose=False)
    pairs, *_ = client.predict("the cat", None, "en", "de", "line", 1, api_name="/translate")
    assert len(elements(pairs, "pair")) == 1
    client.close()


@pytest.mark.parametrize("page", [True, False])
def test_paths_and_methods_with_and_without_the_page(checkpoint, page):
    """The routes of the server come first, and all other paths are errors in JSON."""
    with TestClient(make_application(Translator(checkpoint), ServerOptions(page=page))) as client:
        assert ("Translates a text or a file from English to German" in client.get("/").text) == page
        assert client.get("/health").json() == {"status": "ok"} and "swagger" in client.get("/docs").text
        for method, path, status, error in (
            ("GET", "/none", 404, "Not Found"),
            ("POST", "/suggest", 404, "Not Found"),
            ("GET", "/translate", 405, "Method Not Allowed"),
            ("POST", "/health", 405, "Method Not Allowed"),
            ("DELETE", "/documents", 405, "Method Not Allowed"),
        ):
            answer = client.request(method, path)
            assert (answer.status_code, answer.json()) == (status, {"error": error})


def test_cancelling_ends_the_jobs_of_a_reader(open_page, checkpoint, gate):
    """A reader who cancels or leaves, or whose request Gradio cancels: the jobs of the others go on."""
    page = open_page(checkpoint)
    waits = gate(page.service.scheduler.pipeline)

    async def read():
        readers = [asyncio.create_task(everything(page, name, "the cat")) for name in "abc"]
        await asyncio.to_thread(waits.arrived.wait)
        await page.readers.cancel(reader("a"))
        readers[2].cancel()
        waits.open.set()
        return await asyncio.gather(*readers, return_exceptions=True)

    first, other, third = asyncio.run(read())
    assert "was cancelled" in first.message and isinstance(third, asyncio.CancelledError)
    assert [pair["source_text"] for pair in other[-1].pairs] == ["the cat"]
    assert page.service.under_way == 0
    cancels = [function.cancels for function in page.blocks.fns.values() if function.cancels]
    [translate] = [number for number, function in page.blocks.fns.items() if function.name == "translate"]
    assert cancels == [[translate]]


def test_a_stream_that_is_closed_ends_its_job(open_page, checkpoint):
    page = open_page(checkpoint)

    async def read():
        steps = page.translate(reader("a"), "the cat sleeps\n" * 200, None, "en", "de", "line", 1)
        async with aclosing(steps):
            async for step in steps:
                if page.pairs in step:
                    break
        await asyncio.sleep(0)
        return page.service.under_way

    assert asyncio.run(read()) == 0


def test_only_splitters_that_are_there(open_page, checkpoint, monkeypatch):
    service = open_page(checkpoint).service
    pytest.importorskip("sentencex")
    assert [value for _, value in splitter_menu(service).choices] == ["sentencex", "line"]
    monkeypatch.setitem(sys.modules, "sentencex", None)
    menu = splitter_menu(service)
    assert [value for _, value in menu.choices] == ["line"] and menu.value == "line"


def test_a_sentence_is_shown_in_its_segment(open_page, checkpoint):
    page = open_page(checkpoint)
    translation = translation_of(page, "a", "the cat sleeps\n" * 40)
    assert len(translation.segments) > 1 and sum(translation.segments) == 40
    first, second = translation.segments[:2]
    assert translation.segment(0) == translation.segment(first - 1) == slice(0, first)
    assert translation.segment(first) == slice(first, first + second)
    pipeline = page.service.scheduler.pipeline
    shown = attended_sentences(pipeline.model, pipeline.processor, translation.pairs[:first], first - 1)
    assert len(shown.shares["cross"]) == first
    view = attention_of(page, translation, first + 1)  # the second sentence of the second segment
    [bars, *_] = elements(view, "bars")
    labels = [text_of(bar) for bar in bars.iter("li")]
    assert [label.partition(".")[0] for label in labels] == [str(first + n) for n in range(1, second + 1)]
    assert ["(the sentence itself)" in label for label in labels] == [n == 1 for n in range(second)]
    with pytest.raises(ValueError, match="too long for one pass"):
        attended_sentences(pipeline.model, pipeline.processor, translation.pairs, 0)
