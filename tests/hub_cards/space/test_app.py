"""The Space: texts and files there and back, errors in the page, and readers who share a model."""

import io
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from configparser import ConfigParser
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
import yaml
from packaging.requirements import Requirement
from repository import ROOT
from space_fixtures import SPACE

from modeling_gtransformer import Translator


gr = pytest.importorskip("gradio")

TEXT = "the cat sleeps\nit is <b>old</b> & ${1+1} {{value}}\n" + "z" * 150
FILES = {
    "talk.txt": ("the cat\n\n- it is old\n", "- "),
    "talk.md": ("# the *cat*\n\n- it is `old`\n", "`old`"),
    "talk.html": ("<p class='a'>the cat</p><p>it is old</p>", "<p class='a'>"),
    "talk.srt": ("1\n00:00:01,000 --> 00:00:02,000\nthe cat\n", "00:00:01,000 --> 00:00:02,000"),
    "talk.vtt": ("WEBVTT\n\n00:01.000 --> 00:02.000\nthe cat\n", "00:01.000 --> 00:02.000"),
    "talk.po": ('msgid "the cat"\nmsgstr ""\n', 'msgid "the cat"'),
}


def session(name):
    return SimpleNamespace(session_hash=name)


@pytest.fixture
def events(app):
    """Makes the events of a page, whose scheduler is closed after the test."""
    made = []

    def make(checkpoint):
        made.append(app.Events(Translator(checkpoint).pipeline))
        return made[-1]

    yield make
    for each in made:
        each.scheduler.close()


def functions(page):
    """The functions of a page by their names."""
    return {function.fn.__name__: function for function in page.fns.values() if function.fn is not None}


def test_text_and_downloads(events, checkpoint):
    translation, warnings = events(checkpoint).translate(session("a"), TEXT, None, "line", 2)
    assert [pair["source_text"] for pair in translation.pairs] == TEXT.split("\n")
    assert all(pair["confidence"] < 0 for pair in translation.pairs)
    assert any("it is translated in" in warning for warning in warnings)
    files = translation.downloads()
    assert {label: name for label, (name, _) in files.items()} == {
        "Download TXT": "text.de.txt",
        "Download TMX": "text.de.tmx",
        "Download JSONL": "text.de.jsonl",
    }
    document, tmx, jsonl = (content.decode() for _, content in files.values())
    assert document == "\n".join(pair["translation_text"] for pair in translation.pairs)
    assert [json.loads(line) for line in jsonl.splitlines()] == translation.pairs
    assert [seg.text for seg in ElementTree.fromstring(tmx).iter("seg")][::2] == TEXT.split("\n")


@pytest.mark.parametrize("name", FILES)
def test_files_come_back_in_their_format(events, checkpoint, tmp_path, name):
    content, kept = FILES[name]
    (tmp_path / name).write_text(content, newline="")
    translation, _ = events(checkpoint).translate(session("a"), "not this", str(tmp_path / name), "line", 1)
    assert "cat" in translation.pairs[0]["source_text"]
    (new_name, document), *_ = translation.downloads().values()
    assert new_name == f"talk.de{Path(name).suffix}"
    assert kept in document.decode() and document.decode() != content


def test_word_document(events, checkpoint, tmp_path):
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_paragraph("the cat sleeps")
    document.save(tmp_path / "letter.docx")
    translation, _ = events(checkpoint).translate(session("a"), "", str(tmp_path / "letter.docx"), "line", 1)
    (name, content), *_ = translation.downloads().values()
    assert name == "letter.de.docx"
    [paragraph] = docx.Document(io.BytesIO(content)).paragraphs
    assert paragraph.text == translation.pairs[0]["translation_text"]


REFUSED = {
    "talk.pdf": (b"%PDF", "Unsupported format. Supported extensions: .txt"),
    "<b>.txt": (b"\xff\xfe", "it is UTF-16: save it as UTF-8"),
    "nul.txt": (b"the\0cat", "it has NUL characters"),
    "talk.docx": (b"not a zip file", "The document cannot be read: not a Word document"),
    "talk.srt": (b"<b>", "The document cannot be read: no subtitles in it"),
    "empty.txt": (b"\n - \n", "nothing to translate"),
    "long.txt": (b"the cat " * 20, "The document is too large: 160 characters, at most 100."),
    "long.html": (b"<p>the cat</p> " * 20, "The request has 140 characters: at most 100."),
    "gone.txt": (None, "gone.txt is no longer there: choose it again."),
}


def test_documents_that_cannot_be_translated(app, events, checkpoint, tmp_path, monkeypatch):
    """The page shows why, and names no folders."""
    monkeypatch.setattr(app, "MAX_CHARACTERS", 100)
    page = events(checkpoint)
    for name, (content, words) in REFUSED.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(gr.Error) as error:
            page.on_translate(session("a"), "", str(tmp_path / name), "line", 1, "en", "de")
        assert words in error.value.message and str(tmp_path) not in error.value.message
    with pytest.raises(gr.Error, match="nothing to translate"):
        page.on_translate(session("a"), "", None, "line", 1, "en", "de")
    monkeypatch.setattr(app, "read", lambda *_: (tmp_path / "none").read_bytes())
    with pytest.raises(gr.Error, match="Something went wrong") as error:
        page.on_translate(session("a"), "the cat", None, "line", 1, "en", "de")
    assert str(tmp_path) not in error.value.message


def test_size_is_checked_before_anything_is_parsed(events, checkpoint, tmp_path, monkeypatch):
    page = events(checkpoint)
    monkeypatch.setattr(page.pipeline, "prepare", None)
    (tmp_path / "page.html").write_text("<p>a</p>" * 100_000)
    for text, file in (("a" * 400_000, None), ("", str(tmp_path / "page.html"))):
        with pytest.raises(ValueError, match=r"The document is too large: \d+00,000 characters, at most"):
            page.translate(session("a"), text, file, "line", 1)


def test_a_plain_translator_and_its_languages(app, sentence_level_checkpoint):
    pipeline = Translator(sentence_level_checkpoint("m2m_100-nllb")).pipeline
    page = app.build(pipeline)
    menus = [block for block in page.blocks.values() if isinstance(block, gr.Dropdown)]
    for menu in menus[:2]:
        assert menu.visible and {("English", "en"), ("German", "de"), ("French", "fr")} <= {*menu.choices}
    run = functions(page)
    arguments = ["the cat sleeps\nit is old", None, "line", 1, "en", "fr"]
    translation, html, *_ = run["on_translate"].fn(session("a"), *arguments)
    assert [pair["translation_text"] for pair in translation.pairs] == ["die katze schläft", "sie ist alt"]
    assert 'lang="fr"' in html and 'xml:lang="fra-Latn"' in translation.downloads()["Download TMX"][1].decode()
    assert "looked at itself only" in run["on_choose"].fn(session("a"), translation, 0)


def test_what_the_page_says_of_its_model(app, events, checkpoint, sentence_level_checkpoint):
    page = events(checkpoint)
    (Path(checkpoint) / "README.md").write_text("---\nlicense: mit\n---\n")
    text = app.description(page.pipeline, page.languages)
    assert text.startswith("From English to German. Every sentence is translated in the context of its document")
    assert f"Model: `{Path(checkpoint).name}`, licence: mit. Paper: [G-Transformer" in text
    other = events(sentence_level_checkpoint("m2m_100-nllb"))
    text = app.description(other.pipeline, other.languages)
    assert "From a language of your choice to a language of your choice" in text and "without context" in text


def test_what_the_page_gives_its_readers(app, checkpoint, monkeypatch):
    """Over its own server, where Gradio makes other components of what a function gives than in the process."""
    monkeypatch.setenv("GRADIO_ANALYTICS_ENABLED", "False")
    page = app.build(Translator(checkpoint).pipeline)
    try:
        _, address, _ = page.launch(prevent_thread_lock=True, quiet=True)
        client = pytest.importorskip("gradio_client").Client(address, verbose=False)
        arguments = ["the cat\nit is old", None, "line", 1, "en", "de"]
        pairs, document, *others, sentences = client.predict(*arguments, api_name="/on_translate")
        assert "the cat" in pairs and [label for label, _ in sentences["choices"]] == ["1. the cat", "2. it is old"]
        assert len(Path(document["value"]).read_text().splitlines()) == 2
        assert [Path(file["value"]).suffix for file in others] == [".tmx", ".jsonl"]
        assert "looked" in client.predict(0, api_name="/on_choose")
    finally:
        page.close()


def test_cancelling_ends_the_jobs_of_a_reader(app, checkpoint, monkeypatch):
    """With the batch that is being translated, also while the page queues the event."""
    monkeypatch.setattr(app, "BATCH_TOKENS", 20)
    pipeline = Translator(checkpoint).pipeline
    page = app.build(pipeline)
    run, batches, translate_in_steps = functions(page), [], pipeline.translate_in_steps

    def watched(documents, **options):
        for number in translate_in_steps(documents, **options):
            batches.append(number)
            run["on_cancel"].fn(session("ba"[len(batches) > 1]))
            yield number

    monkeypatch.setattr(pipeline, "translate_in_steps", watched)
    text = "the old cat sleeps\n" * 60  # more than one segment
    with pytest.raises(gr.Error, match="was cancelled"):
        run["on_translate"].fn(session("a"), text, None, "line", 1, "en", "de")
    assert len(batches) == 2
    cancels = [function.cancels for function in page.fns.values() if function.cancels]
    assert cancels and run["on_translate"]._id in cancels[0]


def test_readers_share_the_model(events, checkpoint, tmp_path):
    """Two documents with inline markup and an attention view at the same time: each is what it is alone."""
    page = events(checkpoint)
    files = [tmp_path / name for name in ("a.html", "b.html")]
    for file, word in zip(files, ("old", "the cat"), strict=True):
        file.write_text(f"<p>the <b>old</b> cat.</p><p>it is <i>{word}</i>.</p>")

    def translation_of(file):
        return page.translate(session(file.stem), "", str(file), "line", 1)

    alone = [translation_of(file) for file in files]
    shown = page.on_choose(session("c"), alone[0][0], 1)
    with ThreadPoolExecutor(3) as readers:
        results = [readers.submit(translation_of, file) for file in files]
        view = readers.submit(page.on_choose, session("c"), alone[0][0], 1)
    assert [result.result() for result in results] == alone and view.result() == shown


def test_time_is_limited(app, events, checkpoint, monkeypatch):
    monkeypatch.setattr(app, "MAX_SECONDS", 0)
    with pytest.raises(gr.Error, match="was stopped: send less at a time"):
        events(checkpoint).on_translate(session("a"), "the cat", None, "line", 1, "en", "de")


def test_only_splitters_that_are_there(app, events, checkpoint, monkeypatch):
    page = events(checkpoint)
    pytest.importorskip("sentencex")
    assert [value for _, value in app.splitter_menu(page.pipeline, page.languages).choices] == ["sentencex", "line"]
    monkeypatch.setitem(sys.modules, "sentencex", None)
    assert [value for _, value in app.splitter_menu(page.pipeline, page.languages).choices] == ["line"]


def test_without_a_model_the_app_says_so(app, tmp_path, monkeypatch):
    monkeypatch.delenv("GTRANSFORMER_MODEL", raising=False)
    monkeypatch.setattr("sys.argv", ["app.py"])
    with pytest.raises(SystemExit, match="No model: set GTRANSFORMER_MODEL"):
        app.main()
    monkeypatch.setenv("GTRANSFORMER_MODEL", str(tmp_path / "none"))
    with pytest.raises(SystemExit, match="none is a folder that does not exist"):
        app.main()


def test_what_a_space_installs():
    """The card names the app and a Gradio that fits, and versions are those of the package."""
    _, header, _ = (SPACE / "README.md").read_text().split("---\n", 2)
    header = yaml.safe_load(header)
    assert header["sdk"] == "gradio" and (SPACE / header["app_file"]).is_file()
    lines = (SPACE / "requirements.txt").read_text().splitlines()
    requirements = [Requirement(line) for line in lines if not line.startswith("#")]
    package = ConfigParser()
    package.read(ROOT / "setup.cfg")
    extras = package["options.extras_require"]
    known = "\n".join([package["options"]["install_requires"], extras["files"], extras["dev"]]).split("\n")
    assert {str(requirement) for requirement in requirements} <= {str(Requirement(line)) for line in known if line}
    # A page needs no corpora, no encodings to be detected and no words to be compared.
    files = {Requirement(line).name for line in extras["files"].split()}
    unused = {"charset-normalizer", "datasets", "stop-words", "snowballstemmer"}
    assert files - {requirement.name for requirement in requirements} == unused
    [gradio] = [requirement for requirement in requirements if requirement.name == "gradio"]
    assert header["sdk_version"] in gradio.specifier


def test_a_sentence_is_shown_in_its_segment(space, events, checkpoint):
    page = events(checkpoint)
    translation, _ = page.translate(session("a"), "the cat sleeps\n" * 40, None, "line", 1)
    assert len(translation.segments) > 1 and sum(translation.segments) == 40
    first, second = translation.segments[:2]
    assert translation.segment(0) == translation.segment(first - 1) == slice(0, first)
    assert translation.segment(first) == slice(first, first + second)
    view, model, processor = space("attention_view"), page.pipeline.model, page.pipeline.processor
    shown = view.attended_sentences(model, processor, translation.pairs[:first], first - 1)
    assert len(shown.shares["cross"]) == first
    with pytest.raises(ValueError, match="too long for one pass"):
        view.attended_sentences(model, processor, translation.pairs, 0)
