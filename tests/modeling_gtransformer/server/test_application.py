"""A whole server: limits, keys, clients that go, and what it keeps to itself."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
from fastapi.testclient import TestClient
from packages import packed

from modeling_gtransformer import Translator
from modeling_gtransformer.files.glossaries import Concept, Glossary
from modeling_gtransformer.runtime.usage_error import UsageError
from modeling_gtransformer.server.application import make_application
from modeling_gtransformer.server.options import ServerOptions


FIELDS = {"q": "the cat", "source": "en", "target": "de"}


def test_limits_of_size(serve, checkpoint, monkeypatch):
    """The server rejects long texts before it splits them, so that they never block the thread of the model."""
    too_large = [
        ("/translate", {"json": {**FIELDS, "q": ["a"] * 3}}, "3 texts or sentences. The maximum is 2."),
        ("/documents", {"json": {"document": ["a"] * 3}}, "3 texts or sentences. The maximum is 2."),
        ("/documents/stream", {"json": {"document": ["a"] * 3}}, "3 texts or sentences. The maximum is 2."),
        ("/translate", {"json": {**FIELDS, "q": "the cat sleeps. it is old."}}, "26 characters. The maximum is 20."),
        ("/translate", {"json": {**FIELDS, "q": ["a" * 11] * 2}}, "22 characters. The maximum is 20."),
        ("/documents", {"json": {"document": ["a" * 11] * 2}}, "22 characters. The maximum is 20."),
        ("/translate_file", {"files": {"file": ("a.html", b"<p>a</p>" * 30)}}, "240 characters. The maximum is 200."),
    ]
    client = serve(checkpoint, max_characters=20, max_texts=2, lists="document")
    with monkeypatch.context() as patch:
        patch.setattr(client.app.state.service.scheduler.pipeline, "prepare", None)
        for route, sent, words in too_large:
            answer = client.post(route, **sent)
            assert answer.status_code == 413 and answer.json()["error"].endswith(words), answer.text
    html = {"file": ("a.html", b"<p>the cat sleeps. it is old.</p>")}
    answer = client.post("/translate_file", files=html)
    assert answer.status_code == 413 and "25 characters" in answer.json()["error"]
    assert client.post("/translate", json={**FIELDS, "q": ["a"] * 2}).status_code == 200


def test_text_of_a_package_is_bounded_before_it_is_unpacked(serve, checkpoint):
    client = serve(checkpoint, max_characters=20)
    document = f'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">{" " * 2_001_000}'
    members = {"word/document.xml": f"{document}</w:document>"}
    answer = client.post("/translate_file", files={"file": ("a.docx", packed(members))})
    assert answer.status_code == 400 and "its text takes more than 1.9 MiB unpacked" in answer.json()["error"]
    members["word/document.xml"] = document[:-2_000] + "</w:document>"
    members["word/media/picture.bmp"] = b"0" * 3_000_000  # is not unpacked
    assert client.post("/translate_file", files={"file": ("a.docx", packed(members))}).status_code == 200


def test_fields_are_looked_at_only_where_they_may_be(serve, checkpoint, tmp_path, monkeypatch):
    """First the key, then how many texts there are, then one after the other until something is wrong."""
    (tmp_path / "keys.txt").write_text("one\n")
    client = serve(checkpoint, max_texts=5, api_keys=str(tmp_path / "keys.txt"))
    for key, texts, status in (("two", 6, 403), (["one"], 6, 403), ("one", 6, 413), ("one", 5, 400)):
        answer = client.post("/translate", json={**FIELDS, "q": [1] * texts, "api_key": key})
        assert answer.status_code == status, answer.text


def test_keys(serve, checkpoint, tmp_path):
    (tmp_path / "keys.txt").write_text("one\n")
    client = serve(checkpoint, api_keys=str(tmp_path / "keys.txt"))
    documents = {"document": "the cat"}
    for route, fields in (("/translate", FIELDS), ("/detect", FIELDS), ("/documents", documents)):
        assert client.post(route, json=fields).status_code == 403
        assert client.post(route, json={**fields, "api_key": "two"}).json() == {"error": "The API key is invalid."}
        assert client.post(route, json={**fields, "api_key": "one"}).status_code == 200
    stream = client.post("/documents/stream", json=documents)
    file = client.post("/translate_file", files={"file": ("a.txt", b"the cat")})
    assert stream.status_code == file.status_code == 403
    assert client.get("/frontend/settings").json()["keyRequired"]


def test_pages_of_other_servers(serve, checkpoint):
    """Their scripts may use this one if it says so, and read also refusals that come before the application."""
    headers = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    client = serve(checkpoint, allow_origins=["https://example.org"], max_bytes=1000)
    asked = client.options("/translate", headers=headers)
    refused = client.post("/translate", content=b"x" * 1001, headers=headers)
    for answer, status in ((asked, 200), (refused, 413)):
        assert answer.status_code == status
        assert answer.headers["access-control-allow-origin"] == "https://example.org"
    assert refused.headers["access-control-expose-headers"] == "Retry-After"
    assert "access-control-allow-origin" not in serve(checkpoint).options("/translate", headers=headers).headers


def test_clients_are_known_by_key_or_address(checkpoint, tmp_path, monkeypatch):
    """A key that is not checked would make a client as many as it likes."""
    (tmp_path / "keys.txt").write_text("one\ntwo\n")
    for keys, seen in ((str(tmp_path / "keys.txt"), ["one", "two"]), (None, ["testclient"] * 2)):
        app = make_application(Translator(checkpoint), ServerOptions(api_keys=keys, page=False))
        limit, clients = app.state.service.clients, []
        monkeypatch.setattr(limit, "request", lambda client, seen=clients: seen.append(client) or nullcontext())
        with TestClient(app) as client:
            for key in ("one", "two"):
                assert client.post("/translate", json={**FIELDS, "api_key": key}).status_code == 200
        assert clients == seen


def test_a_splitter_that_does_not_know_the_language(checkpoint):
    translator = Translator(checkpoint, src_lang="en_XX", splitter="sentencex")
    translator.pipeline.processor.src_lang = "[source]"
    with pytest.raises(UsageError, match="--splitter line"):
        make_application(translator, ServerOptions(page=False))


def test_a_glossary_is_for_its_languages(serve, sentence_level_checkpoint):
    """A request in others has the terms of those, or none."""
    concept = Concept("", {"en": [("cat", "")], "de": [("katze", "")], "fr": [("chien", "")]})
    glossary = Glossary("terms", [concept], names_languages=True)
    model, languages = sentence_level_checkpoint("m2m_100-nllb"), {"src_lang": "eng_Latn", "tgt_lang": "deu_Latn"}
    client = serve(model, glossary=glossary, languages=languages)
    german, french, romanian = (
        client.post("/translate", json={**FIELDS, "target": target}).json()["translatedText"]
        for target in ("de", "fr", "ro")
    )
    assert "katze" in german and "chien" in french
    assert romanian == Translator(model, **languages)("the cat", tgt_lang="ron_Latn")["translation_text"]


@pytest.mark.parametrize("limit, status, seconds", [("max_waiting", 503, "8"), ("max_per_client", 429, "1")])
def test_one_request_too_many(serve, checkpoint, gate, limit, status, seconds):
    """The client may come again: to a busy server after a batch, which takes as long as the last one."""
    client = serve(checkpoint, **{limit: 1})
    waits = gate(client.app.state.service.scheduler.pipeline)
    client.app.state.service.scheduler.last_seconds = 7.2
    with ThreadPoolExecutor() as clients:
        first = clients.submit(client.post, "/translate", json=FIELDS)
        assert waits.arrived.wait(60)
        refused = client.post("/translate", json=FIELDS)
        waits.open.set()
        assert (refused.status_code, refused.headers["retry-after"]) == (status, seconds)
        assert first.result().status_code == 200
    assert client.post("/translate", json=FIELDS).status_code == 200


def test_requests_that_wait_share_a_batch(serve, checkpoint, gate):
    client = serve(checkpoint)
    service = client.app.state.service
    waits = gate(service.scheduler.pipeline)
    with ThreadPoolExecutor() as clients:
        answers = [clients.submit(client.post, "/translate", json=FIELDS)]
        assert waits.arrived.wait(60)
        answers += [clients.submit(client.post, "/translate", json=FIELDS) for _ in range(4)]
        while service.under_way < 5:
            client.get("/health")
        waits.open.set()
    assert [len(batch) for batch in waits.batches] == [1, 4]
    assert {answer.result().status_code for answer in answers} == {200}


def test_nothing_of_a_request_is_logged(serve, checkpoint, caplog, capfd):
    client = serve(checkpoint, max_characters=100)
    capfd.readouterr()
    for q in ("secret cat", "secret " * 50, "secret {name}"):
        client.post("/translate", json={**FIELDS, "q": q})
    assert "secret" not in caplog.text and "secret" not in "".join(capfd.readouterr())


def test_nothing_goes_on_after_a_shutdown(checkpoint):
    app = make_application(Translator(checkpoint), ServerOptions(page=False))

    async def run():
        async with app.router.lifespan_context(app):
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    assert asyncio.run(run()) == 1
    assert TestClient(app).get("/health").status_code == 503  # its thread has ended
