"""The routes of a server: the protocol of LibreTranslate, and documents with their sentences."""

import asyncio
import json
import shutil

import pytest
from packages import unpacked, word_document
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from transformers import pipeline

from modeling_gtransformer.server.protocol import TranslateFields
from modeling_gtransformer.server.routes import server_sent_events


URLENCODED = {"content-type": "application/x-www-form-urlencoded"}
TEXT = "the cat sleeps.\nit is old.\n\n- the cat"


@pytest.fixture
def client(serve, checkpoint):
    return serve(checkpoint)


@pytest.fixture
def expected(checkpoint):
    translate = pipeline("document-translation", model=checkpoint, splitter="sentencex")
    return lambda text, **options: translate(text, **options)["translation_text"]


def test_a_text_in_the_forms_in_which_clients_send_it(client, expected):
    """Subtitle Edit sends JSON, Weblate also an empty key, and deep-translator all fields in the query string."""
    text = f"{TEXT}\n12 € 😀"
    fields = {"q": text, "source": "en", "target": "de", "format": "text", "unknown": "x"}
    encoded = json.dumps(fields).encode()
    head, tail = 'Content-Disposition: form-data; name="', "\r\n"
    parts = "".join(f'--x{tail}{head}{name}"{tail * 2}{value}{tail}' for name, value in fields.items())
    for sent in (
        {"json": {**fields, "api_key": ""}},
        {"content": encoded},
        {"content": encoded, "headers": {"content-type": "text/plain"}},
        {"content": encoded, "headers": {"content-type": "application/json; charset=utf-8"}},
        {"data": fields},
        # curl -d encodes nothing.
        {"content": "&".join(map("=".join, fields.items())).encode(), "headers": URLENCODED},
        {"files": {name: (None, value) for name, value in fields.items()}},
        {"content": f"{parts}--x--{tail}".encode(), "headers": {"content-type": "Multipart/Form-Data; boundary=x"}},
        {"params": fields},
    ):
        answer = client.post("/translate", **sent)
        assert answer.status_code == 200 and answer.json() == {"translatedText": expected(text)}


def test_nothing_to_translate(client):
    for q in ("", [], ["", " \n"], "12"):
        answer = client.post("/translate", json={"q": q, "source": "en", "target": "de"})
        assert answer.json() == {"translatedText": q}


def test_html_keeps_its_tags(client, expected):
    html = '<p id="a">the <b>cat</b></p>'
    fields = {"q": html, "source": "en", "target": "de", "format": "html"}
    translated = client.post("/translate", json=fields).json()["translatedText"]
    assert translated == expected(html, format="html") and translated.startswith('<p id="a">')


def test_a_list_is_separate_texts_or_a_document(serve, checkpoint, client, expected):
    texts = ["the cat sleeps. it is old.", "", "the cat"]
    fields = {"q": texts, "source": "en", "target": "de", "alternatives": 2}
    answer = client.post("/translate", json=fields).json()
    assert answer["translatedText"] == [expected(text, num_beams=3) for text in texts]
    assert [len(others) for others in answer["alternatives"]] == [2, 0, 2]
    as_form = client.post("/translate", data=fields)
    assert as_form.json() == answer
    document = serve(checkpoint, lists="document").post("/translate", json=fields).json()
    assert document == {"translatedText": expected(texts).split("\n"), "alternatives": [[], [], []]}


def test_alternatives_are_the_next_best_hypotheses(client, checkpoint, serve, sentence_level_checkpoint):
    fields = {"q": "the cat sleeps\n12", "source": "en", "target": "de", "alternatives": 2}
    answer = client.post("/translate", json=fields).json()
    assert answer == client.post("/translate", json={**fields, "alternatives": 2}).json()
    pipe = pipeline("document-translation", model=checkpoint)
    inputs = pipe.processor(["the cat sleeps"], return_tensors="pt")
    best = pipe.model.generate(**inputs, num_beams=3, num_return_sequences=3)
    texts = [f"{sentence}\n12" for [sentence] in pipe.processor.batch_decode_sentences(best)]
    assert [answer["translatedText"], *answer["alternatives"]] == texts and len(set(texts)) == 3
    assert client.post("/translate", json={**fields, "format": "html"}).json()["alternatives"] == []
    assert "alternatives" not in client.post("/translate", json={**fields, "alternatives": 0}).json()
    refused = client.post("/translate", json={**fields, "alternatives": 10})
    assert refused.status_code == 400 and "alternatives: " in refused.json()["error"]
    other = serve(sentence_level_checkpoint("m2m_100-nllb")).post("/translate", json=fields).json()
    assert other["translatedText"] == "die katze schläft\n12" and len(other["alternatives"]) == 2


def test_the_only_source_is_detected(client):
    fields = {"q": ["the cat", "it is"], "source": "auto", "target": "de"}
    detected = {"language": "en", "confidence": 100.0}
    assert client.post("/translate", json=fields).json()["detectedLanguage"] == [detected] * 2
    assert client.post("/detect", data={"q": "the cat"}).json() == [detected]


def test_warnings_of_a_translation(serve, checkpoint, tmp_path, capfd):
    """The glossary's term is there, and the model was surer on the texts of its training. The log learns nothing."""
    folder = shutil.copytree(checkpoint, tmp_path / "unsure")
    config = json.loads((folder / "processor_config.json").read_text())
    (folder / "processor_config.json").write_text(json.dumps({**config, "typical_confidence": 9.0}))
    client = serve(str(folder), glossary={"cat": "Катя"})
    capfd.readouterr()
    fields = {"q": "it is. the cat", "source": "en", "target": "de"}
    answer = client.post("/translate", json=fields).json()
    [warning] = answer["warnings"]
    assert "Катя" in answer["translatedText"] and warning.startswith("Document 1: ") and capfd.readouterr() == ("", "")


def test_documents(client, checkpoint):
    expected = pipeline("document-translation", model=checkpoint)(TEXT, splitter="sentencex", confidence=True)
    answer = client.post("/documents", json={"document": TEXT, "source": "en", "target": "de"}).json()
    for sentence in answer["sentences"] + expected["sentences"]:
        sentence["confidence"] = round(sentence["confidence"], 4)
    assert answer == {**expected, "source": "en", "target": "de", "warnings": []}
    sentences = client.post("/documents", json={"document": ["the cat", "", "it is"], "confidence": False}).json()
    assert [sentence["source_text"] for sentence in sentences["sentences"]] == ["the cat", "", "it is"]
    assert {sentence["confidence"] for sentence in sentences["sentences"]} == {None}


def events_of(answer):
    blocks = [block.split("\n") for block in answer.text.split("\n\n") if block]
    return [(kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for kind, data in blocks]


def test_sentences_as_they_are_certain(client):
    document = {"document": ["the cat", "", "it is", "the cat sleeps"]}
    answer = client.post("/documents/stream", json=document)
    assert answer.headers["content-type"].startswith("text/event-stream")
    *sentences, (kind, whole) = events_of(answer)
    assert kind == "document" and whole == client.post("/documents", json=document).json()
    told = [(event["source_text"], event["translation_text"]) for _, event in sentences]
    pairs = [(sentence["source_text"], sentence["translation_text"]) for sentence in whole["sentences"]]
    assert told == [pair for pair in pairs if pair[0]] and {kind for kind, _ in sentences} == {"sentence"}


def test_an_error_in_place_of_a_stream(client):
    answer = client.post("/documents/stream", json={"document": "the cat", "format": "docx"})
    assert answer.status_code == 400 and "takes bytes" in answer.json()["error"]


def test_an_error_in_the_middle_of_a_stream():
    async def read():
        sentences, task = asyncio.Queue(), asyncio.get_running_loop().create_future()
        sentences.put_nowait(None)
        task.set_exception(HTTPException(504, "too long"))
        return [line async for line in server_sent_events({"translation_text": "ä"}, sentences, task)]

    sentence, error = asyncio.run(read())
    assert sentence == 'event: sentence\ndata: {"translation_text": "ä"}\n\n'
    assert error == 'event: error\ndata: {"error": "too long"}\n\n'


FILES = {
    "a.html": "<p>the <b>cat</b></p>\n",
    "Straße.SRT": "1\n00:00:01,000 --> 00:00:02,000\nthe cat\n",
    "a.docx": word_document("<w:p><w:r><w:t>the cat</w:t></w:r></w:p>"),
}


@pytest.mark.parametrize("name", FILES)
def test_files(client, expected, name):
    fields = {"source": "en", "target": "de"}
    answer = client.post("/translate_file", data=fields, files={"file": (f"folder/{name}", FILES[name])})
    assert answer.status_code == 200, answer.text
    url = answer.json()["translatedFileUrl"]
    assert url.startswith("http://testserver/download_file/")
    result = client.get(url)
    assert result.headers["content-disposition"].startswith("attachment; filename*=utf-8''")
    _, _, ending = name.partition(".")
    assert result.headers["content-disposition"].endswith(f".de.{ending}") and "folder" not in url
    if ending == "docx":
        assert f">{expected('the cat')}<" in unpacked(result.content)["word/document.xml"]
    else:
        formats = {"html": "html", "SRT": "subtitles"}
        assert result.content.decode() == expected(FILES[name], format=formats[ending])
    assert client.get(url.replace("/download_file/", "/download_file/x")).status_code == 404


def test_addresses_of_files(client):
    """What the client sends gets into them as it must, or not at all."""
    for target, name, ending in (
        ("de", "100% a?b#c.txt", "100%25%20a%3Fb%23c.de.txt"),
        ("de-x/../y", "a.txt", "a.de.txt"),
    ):
        files = {"file": (name, b"the cat")}
        url = client.post("/translate_file", data={"target": target}, files=files).json()["translatedFileUrl"]
        assert url.endswith(f"/{ending}") and client.get(url).status_code == 200
    assert client.post("/documents", json={"document": "the cat", "target": "DE-x"}).json()["target"] == "de"


def test_what_a_page_must_know(client):
    settings = client.get("/frontend/settings").json()
    assert (
        settings["charLimit"] == 100_000
        and not settings["keyRequired"]
        and ".docx" in settings["supportedFilesFormat"]
    )
    german = {"code": "de", "name": "German"}
    assert settings["language"] == {"source": {"code": "en", "name": "English"}, "target": german}


def test_health_and_metrics(client):
    assert client.get("/health").json() == {"status": "ok"}
    client.post("/translate", json={"q": "the cat", "source": "en", "target": "de"})
    client.get("/none")
    metrics = client.get("/metrics").text
    for labels in ('route="/translate",status="200"', 'route="other",status="404"'):
        assert f"gtransformer_requests_total{{{labels}}} 1.0" in metrics
    assert 'gtransformer_request_seconds_count{route="/translate"} 1.0' in metrics
    assert "gtransformer_batch_requests_count 1.0" in metrics and "gtransformer_waiting_requests 0.0" in metrics


REFUSED = {
    "no JSON": ({"content": b"{"}, 400, "neither a form nor JSON"),
    "a list": ({"json": ["the cat"]}, 400, "must be a JSON object"),
    "no form": ({"content": b"--y", "headers": {"content-type": "multipart/form-data; boundary=x"}}, 400, ""),
    "no boundary": ({"content": b"", "headers": {"content-type": "multipart/form-data"}}, 400, ""),
    "many fields": ({"content": b"q=a&" * 3000, "headers": URLENCODED}, 400, "The form is invalid"),
    "nothing": ({"content": b""}, 400, "neither a form nor JSON"),
    "a long number": ({"content": b"1" * 5000}, 400, "neither a form nor JSON"),
    "half a character": ({"content": b'{"q": ["a", "\\ud800"]}'}, 400, "unpaired surrogate"),
    "deep": ({"content": b"[" * 100_000}, 400, "nested too deeply"),
    "no text": ({"json": {"source": "en", "target": "de"}}, 400, "q: Field required"),
    "a number": ({"json": {"q": 5, "source": "en", "target": "de"}}, 400, "q: "),
    "source": ({"json": {"q": "a", "source": "xx", "target": "de"}}, 400, "Cannot translate from 'xx'"),
    "target": ({"json": {"q": "a", "source": "en", "target": "en"}}, 400, "Supported languages: de"),
    "format": ({"json": {"q": "a", "source": "en", "target": "de", "format": "docx"}}, 400, "format: "),
    "ending": ({"files": {"file": ("a.exe", b"x")}}, 400, "Unsupported format. Supported extensions: .txt"),
    "no ending": ({"files": {"file": (".txt", b"x")}}, 400, "Supported extensions: .txt"),
    "not UTF-8": ({"content": b"\xff"}, 400, "neither a form nor JSON"),
    "a file that is not UTF-8": ({"files": {"file": ("a.txt", b"\xff")}}, 400, "not UTF-8"),
    "no archive": ({"files": {"file": ("a.docx", b"x")}}, 400, "The document cannot be translated"),
    "no file": ({"data": {"file": "x"}}, 400, "file: "),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(client, case):
    sent, status, words = REFUSED[case]
    is_file = "files" in sent or case == "no file"
    answer = client.post("/translate_file" if is_file else "/translate", **sent)
    assert answer.status_code == status, answer.text
    assert [*answer.json()] == ["error"] and words in answer.json()["error"]


def test_only_the_first_problem_of_a_list_is_looked_for():
    with pytest.raises(ValidationError) as error:
        TranslateFields.model_validate({"q": [1] * 1000})
    assert error.value.error_count() == 2  # it is no text, and no list of texts


def test_the_description_has_every_route(client):
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/translate", "/detect", "/languages", "/translate_file", "/frontend/settings", "/documents"} <= {*paths}
    content = paths["/translate"]["post"]["requestBody"]["content"]
    schema = content["application/json"]["schema"]
    assert {"q", "source", "target", "format", "api_key"} <= {*schema["properties"]} and schema["required"] == ["q"]
    content = paths["/translate_file"]["post"]["requestBody"]["content"]
    assert [*content] == ["multipart/form-data"]
    assert content["multipart/form-data"]["schema"]["properties"]["file"]["format"] == "binary"
    assert client.get("/docs").status_code == 200
