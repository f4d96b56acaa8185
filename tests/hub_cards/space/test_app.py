"""The Space: texts and files there and back, errors in words, with the package and without."""

import io
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from configparser import ConfigParser
from pathlib import Path
from threading import Event, current_thread
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
import yaml
from packaging.requirements import Requirement
from repository import ROOT
from space_fixtures import SPACE
from tiny import watch_implementation
from transformers import pipeline


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


def test_text_and_downloads(app, checkpoint):
    translate = app.load(checkpoint)
    translation = app.translate_document(translate, TEXT, None, "line", 2)
    assert [pair["source_text"] for pair in translation.pairs] == TEXT.split("\n")
    assert all(pair["confidence"] < 0 for pair in translation.pairs)
    files = app.downloads(translation)
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
def test_files_come_back_in_their_format(app, checkpoint, tmp_path, name):
    content, kept = FILES[name]
    (tmp_path / name).write_text(content, newline="")
    translate = app.load(checkpoint)
    translation = app.translate_document(translate, "not this", str(tmp_path / name), "line", 1)
    assert "cat" in translation.pairs[0]["source_text"]
    (new_name, document), *_ = app.downloads(translation).values()
    assert new_name == f"talk.de{Path(name).suffix}"
    assert kept in document.decode() and document.decode() != content


def test_word_document(app, checkpoint, tmp_path):
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_paragraph("the cat sleeps")
    document.save(tmp_path / "letter.docx")
    translate = app.load(checkpoint)
    translation = app.translate_document(translate, "", str(tmp_path / "letter.docx"), "line", 1)
    (name, content), *_ = app.downloads(translation).values()
    assert name == "letter.de.docx"
    [paragraph] = docx.Document(io.BytesIO(content)).paragraphs
    assert paragraph.text == translation.pairs[0]["translation_text"]


BROKEN = {
    "talk.pdf": (b"%PDF", "talk.pdf is of no format that can be translated. Known are: .txt"),
    "<b>.txt": (b"\xff\xfe", "&lt;b&gt;.txt: it is UTF-16: save it as UTF-8."),
    "nul.txt": (b"the\0cat", "nul.txt: it has NUL characters"),
    "talk.docx": (b"not a zip file", "talk.docx cannot be read: not a Word document"),
    "talk.srt": (b"no cues here", "talk.srt cannot be read: no subtitles in it"),
    "empty.txt": (b"\n - \n", "nothing to translate"),
    "long.txt": (b"the cat " * 20, "The document is too large: 160 characters, at most 100."),
    "heavy.txt": (b"the cat " * 200, "heavy.txt is too large"),
}


def test_what_cannot_be_translated_is_said_in_words(app, checkpoint, tmp_path, monkeypatch):
    monkeypatch.setattr(app, "MAX_CHARACTERS", 100)
    monkeypatch.setattr(app, "MAX_BYTES", 1000)
    translate = app.load(checkpoint)
    for name, (content, words) in BROKEN.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(gr.Error) as error, app.errors_in_words():
            app.translate_document(translate, "", str(tmp_path / name), "line", 1)
        assert words in error.value.message
    with pytest.raises(gr.Error, match="nothing to translate"), app.errors_in_words():
        app.translate_document(translate, "", None, "line", 1)


def test_size_is_checked_before_anything_is_parsed(app, checkpoint, tmp_path, monkeypatch):
    translate = app.load(checkpoint)
    monkeypatch.setattr(translate, "preprocess", None)
    (tmp_path / "page.html").write_text("<p>a</p>" * 100_000)
    for text, file in (("a" * 400_000, None), ("", str(tmp_path / "page.html"))):
        with pytest.raises(ValueError, match=r"The document is too large: \d+00,000 characters, at most"):
            app.translate_document(translate, text, file, "line", 1)


def test_errors_do_not_name_folders(app, checkpoint, tmp_path):
    translate = app.load(checkpoint)
    with pytest.raises(gr.Error) as error, app.errors_in_words():
        app.translate_document(translate, "", str(tmp_path / "gone.txt"), "line", 1)
    assert error.value.message == "gone.txt is no longer there: choose it again."
    with pytest.raises(gr.Error) as error, app.errors_in_words():
        (tmp_path / "none").read_bytes()
    assert "Something went wrong" in error.value.message and str(tmp_path) not in error.value.message


def functions(page):
    """The functions of a page by their names."""
    return {function.fn.__name__: function for function in page.fns.values() if function.fn is not None}


def session(name):
    return SimpleNamespace(session_hash=name)


def test_a_plain_translator_and_its_languages(app, sentence_level_checkpoint):
    translate = app.load(sentence_level_checkpoint("m2m_100-nllb"))
    sources, targets = app.choices(translate)
    assert sources == targets and {"eng_Latn", "deu_Latn", "fra_Latn"} <= set(targets)
    assert [menu.visible for menu in app.language_menus(translate)] == [True, True]
    run = functions(app.build(translate))
    text = "the cat sleeps\nit is old"
    arguments = [text, None, "line", 1, "eng_Latn", "fra_Latn"]
    translation, html, *_ = run["on_translate"].fn(session("a"), *arguments)
    assert [pair["translation_text"] for pair in translation.pairs] == ["die katze schläft", "sie ist alt"]
    assert 'lang="fra"' in html and 'xml:lang="fra-Latn"' in app.downloads(translation)["Download TMX"][1].decode()
    assert "looked at itself only" in run["on_choose"].fn(session("a"), translation, 0)
    assert "From a language of your choice to another, sentence by sentence" in app.description(translate)


def test_what_the_page_gives_its_readers(app, checkpoint, monkeypatch):
    """Over its own server, where Gradio makes other components of what a function gives than in the process."""
    monkeypatch.setenv("GRADIO_ANALYTICS_ENABLED", "False")
    page = app.build(app.load(checkpoint))
    try:
        _, address, _ = page.launch(prevent_thread_lock=True, quiet=True)
        client = pytest.importorskip("gradio_client").Client(address, verbose=False)
        arguments = ["the cat\nit is old", None, "line", 1, None, None]
        pairs, document, *others, sentences = client.predict(*arguments, api_name="/on_translate")
        assert "the cat" in pairs and [label for label, _ in sentences["choices"]] == ["1. the cat", "2. it is old"]
        assert len(Path(document["value"]).read_text().splitlines()) == 2
        assert [Path(file["value"]).suffix for file in others] == [".tmx", ".jsonl"]
        assert "looked" in client.predict(0, api_name="/on_choose")
    finally:
        page.close()


def test_where_there_is_no_choice_of_languages(app, checkpoint, sentence_level_checkpoint):
    assert app.choices(app.load(checkpoint)) == ([], [])  # its tokenizer has codes, it was trained for one pair
    assert app.choices(app.load(sentence_level_checkpoint("marian"))) == ([], [])
    many = app.load(sentence_level_checkpoint("marian-many"))
    assert app.choices(many) == ([], ["deu", "fra", "ron"])
    assert app.language_menus(many)[1].value == "deu"


def test_cancelling_stops_the_model(app, checkpoint):
    translate = app.load(checkpoint)
    page = app.build(translate)
    run = functions(page)
    steps = []

    def cancel(*_):
        steps.append(1)
        if len(steps) == 2:
            run["on_cancel"].fn(session("b"))
        if len(steps) == 4:
            run["on_cancel"].fn(session("a"))

    translate.model.model.decoder.register_forward_pre_hook(cancel)
    with pytest.raises(gr.Error, match="was cancelled"):
        run["on_translate"].fn(session("a"), "the cat\n" * 9, None, "line", 1, None, None)
    assert len(steps) == 4
    cancels = [function.cancels for function in page.fns.values() if function.cancels]
    assert cancels and run["on_translate"]._id in cancels[0]  # also while it waits in the queue of the page


@pytest.mark.parametrize("first", ["translation", "attention"])
def test_readers_share_the_model(app, checkpoint, tmp_path, first):
    """Two documents with inline markup, or one and an attention view, batch by batch in two threads: each gets what it
    gets alone, and nobody changes how the model attends."""
    translate = app.load(checkpoint)
    events = app.Events(translate)
    pages = [f"<p>the <b>old</b> cat.</p><p>it is <i>{word}</i>.</p>" for word in ("old", "the cat")]
    files = [tmp_path / name for name in ("a.html", "b.html")]
    for file, page in zip(files, pages, strict=True):
        file.write_text(page)

    def translation_of(file):
        return events.on_translate(session(file.stem), "", str(file), "line", 1, None, None)[0]

    alone = [translation_of(file) for file in files]
    jobs = [lambda: translation_of(files[0]), lambda: translation_of(files[1])]
    if first == "attention":
        alone[0], shown = events.on_choose(session("a"), alone[0], 1), alone[0]
        jobs[0] = lambda: events.on_choose(session("a"), shown, 1)

    begun, passes, encoder = Event(), [], translate.model.model.encoder

    def begin(*_):
        passes.append(current_thread().name[0])
        begun.set()
        while len(passes) == 1 and not events.turns._waiting:
            pass

    encoder.register_forward_pre_hook(begin, prepend=True)
    encoder.register_forward_hook(lambda *_: passes.append(current_thread().name[0]))
    implementation, seen = translate.model.config._attn_implementation, watch_implementation(translate.model)
    with ThreadPoolExecutor(1, "a") as of_a, ThreadPoolExecutor(1, "b") as of_b:
        results = [of_a.submit(jobs[0]), of_b.submit(lambda: begun.wait() and jobs[1]())]
    assert [result.result() for result in results] == alone
    assert passes[:3] == [*"aba"]  # the second begins before the first has computed anything
    assert seen == {implementation} and translate.model.config._attn_implementation == implementation


def test_time_is_limited(app, checkpoint, monkeypatch):
    monkeypatch.setattr(app, "MAX_SECONDS", -1)
    run = functions(app.build(app.load(checkpoint)))
    with pytest.raises(gr.Error, match="was stopped: translate the document in parts"):
        run["on_translate"].fn(session("a"), "the cat", None, "line", 1, None, None)


def test_only_splitters_that_are_there(app, checkpoint, monkeypatch):
    translate = app.load(checkpoint)
    translate.processor.src_lang = None
    assert app.splitters(translate) == ["line"]
    translate.processor.src_lang = "en_XX"
    pytest.importorskip("sentencex")
    assert app.splitters(translate) == ["sentencex", "line"]
    monkeypatch.setitem(sys.modules, "sentencex", None)
    assert app.splitters(translate) == ["line"]


def test_without_a_model_the_app_says_so(app, tmp_path, monkeypatch):
    monkeypatch.delenv("GTRANSFORMER_MODEL", raising=False)
    monkeypatch.setattr("sys.argv", ["app.py"])
    with pytest.raises(SystemExit, match="No model: set GTRANSFORMER_MODEL"):
        app.main()
    monkeypatch.setenv("GTRANSFORMER_MODEL", str(tmp_path / "none"))
    with pytest.raises(SystemExit, match=r"none \(there is no such folder, so from the Hub\) cannot be loaded: "):
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
    # What reads files is there; without what compares words, a page still translates.
    files = {Requirement(line).name for line in extras["files"].split()}
    assert files - {requirement.name for requirement in requirements} == {"stop-words", "snowballstemmer"}
    [gradio] = [requirement for requirement in requirements if requirement.name == "gradio"]
    assert header["sdk_version"] in gradio.specifier


def test_a_sentence_is_shown_in_its_segment(app, space, checkpoint):
    translate = app.load(checkpoint)
    translation = app.translate_document(translate, "the cat sleeps\n" * 40, None, "line", 1)
    assert len(translation.segments) > 1 and sum(translation.segments) == 40
    first, second = translation.segments[:2]
    assert translation.segment(0) == translation.segment(first - 1) == slice(0, first)
    assert translation.segment(first) == slice(first, first + second)
    view = space("attention_view")
    shown = view.attended_sentences(translate.model, translate.processor, translation.pairs[:first], first - 1)
    assert len(shown.shares["cross"]) == first
    with pytest.raises(ValueError, match="too long for one pass"):
        view.attended_sentences(translate.model, translate.processor, translation.pairs, 0)


def test_with_the_code_of_a_checkpoint(checkpoint, run_without_package, tmp_path):
    pipeline("document-translation", model=checkpoint).save_pretrained(tmp_path / "with_code")
    out = run_without_package(
        f"""
import json
import app, attention_view
translate = app.load({str(tmp_path / "with_code")!r})
translation = app.translate_document(translate, "the cat\\nit is", None, "line", 1)
shown = attention_view.attended_sentences(translate.model, translate.processor, translation.pairs, 1)
app.build(translate)
print(json.dumps([len(translation.pairs), len(shown.shares["cross"]), list(app.downloads(translation))]))
""",
        str(SPACE),
    )
    pairs, shares, files = json.loads(out.splitlines()[-1])
    assert pairs == shares == 2 and files == ["Download TXT"]  # other formats need the package


def test_a_long_document_comes_in_several_batches(app, checkpoint, monkeypatch):
    """Between which others have their turn."""
    translate, batches = app.load(checkpoint), []
    monkeypatch.setattr(app, "BATCH_TOKENS", 20)
    translate.model.model.encoder.register_forward_pre_hook(lambda *_: batches.append(1))
    text = "\n".join(["the old cat sleeps"] * 60)  # more than one segment
    segments = app.translate_document(translate, text, None, "line", 1).segments
    assert len(batches) == 2 * len(segments) > 2  # translated and scored
