"""The Space: every sentence beside its translation, readable by all, and errors in words."""

import importlib
import io
import json
import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
import yaml
from transformers import pipeline

from modeling_gtransformer.training.attention_recording import recorded_attention


gr = pytest.importorskip("gradio")

SPACE = Path(__file__).resolve().parents[3] / "hub_cards" / "space"
TEXT = "the cat sleeps\nit is <b>old</b> & ${1+1} {{value}}\n" + "z" * 150
FILES = {
    "talk.txt": ("the cat\n\n- it is old\n", "- "),
    "talk.md": ("# the *cat*\n\n- it is `old`\n", "`old`"),
    "talk.html": ("<p class='a'>the cat</p><p>it is old</p>", "<p class='a'>"),
    "talk.srt": ("1\n00:00:01,000 --> 00:00:02,000\nthe cat\n", "00:00:01,000 --> 00:00:02,000"),
    "talk.vtt": ("WEBVTT\n\n00:01.000 --> 00:02.000\nthe cat\n", "00:01.000 --> 00:02.000"),
    "talk.po": ('msgid "the cat"\nmsgstr ""\n', 'msgid "the cat"'),
}


@pytest.fixture
def space(monkeypatch):
    """Imports a module of the Space as it lies there, beside the others."""
    monkeypatch.setenv("GRADIO_ANALYTICS_ENABLED", "False")
    monkeypatch.syspath_prepend(str(SPACE))
    return importlib.import_module


@pytest.fixture
def app(space):
    return space("app")


def elements(html, name):
    """Those of a class, of HTML that is well-formed."""
    return [e for e in ElementTree.fromstring(f"<div>{html}</div>").iter() if e.get("class") == name]


def text_of(element):
    return "".join(element.itertext())


def test_pairs(space):
    texts = ["the cat", "<script>alert('&amp;\"')</script>", "it"]
    pairs = [
        {"source_text": text, "translation_text": text[::-1], "confidence": -number / 2}
        for number, text in enumerate(texts)
    ]
    html = space("pairs_view").pairs_html(pairs, "en", "de")
    assert len(elements(html, "pair")) == 3
    sources, targets = (elements(html, side) for side in ("source", "target"))
    assert [text_of(source) for source in sources] == texts
    assert [target.text for target in targets] == [text[::-1] for text in texts]
    # The colour says what text and tooltip say, too.
    assert [text_of(target)[len(target.text) :] for target in targets] == [
        "0.00 nats, 100%",
        "−0.50 nats, 61%",
        "−1.00 nats, 37%",
    ]
    assert [target.get("style") for target in targets] == ["--doubt: 0.0%", "--doubt: 39.3%", "--doubt: 63.2%"]
    assert "−0.50 nats" in targets[1].get("title")
    assert {(e.get("lang"), e.get("tabindex")) for e in sources + targets} == {("en", "0"), ("de", "0")}


def test_text_and_downloads(app, checkpoint):
    translate = app.load(checkpoint())
    translation = app.translate_document(translate, TEXT, None, "line", 2)
    assert [pair["source_text"] for pair in translation.pairs] == TEXT.split("\n")
    assert all(pair["confidence"] < 0 for pair in translation.pairs)
    files = app.downloads(translate, translation)
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
    translate = app.load(checkpoint())
    translation = app.translate_document(translate, "not this", str(tmp_path / name), "line", 1)
    assert "cat" in translation.pairs[0]["source_text"]
    (new_name, document), *_ = app.downloads(translate, translation).values()
    assert new_name == f"talk.de{Path(name).suffix}"
    assert kept in document.decode() and document.decode() != content


def test_word_document(app, checkpoint, tmp_path):
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_paragraph("the cat sleeps")
    document.save(tmp_path / "letter.docx")
    translate = app.load(checkpoint())
    translation = app.translate_document(translate, "", str(tmp_path / "letter.docx"), "line", 1)
    (name, content), *_ = app.downloads(translate, translation).values()
    assert name == "letter.de.docx"
    [paragraph] = docx.Document(io.BytesIO(content)).paragraphs
    assert paragraph.text == translation.pairs[0]["translation_text"]


BROKEN = {
    "talk.pdf": (b"%PDF", "talk.pdf is of no format that can be translated. Known are: .txt"),
    "<b>.txt": (b"\xff\xfe", "&lt;b&gt;.txt is no text in UTF-8: invalid start byte at byte 1"),
    "talk.docx": (b"not a zip file", "talk.docx cannot be read: no Word document"),
    "talk.srt": (b"no cues here", "talk.srt cannot be read: no subtitles in it"),
    "empty.txt": (b"\n - \n", "nothing to translate"),
    "long.txt": (b"the cat " * 20, "The document is too large: 159 characters, at most 100."),
    "heavy.txt": (b"the cat " * 200, "heavy.txt is too large"),
}


def test_what_cannot_be_translated_is_said_in_words(app, checkpoint, tmp_path, monkeypatch):
    monkeypatch.setattr(app, "MAX_CHARACTERS", 100)
    monkeypatch.setattr(app, "MAX_BYTES", 1000)
    translate = app.load(checkpoint())
    for name, (content, words) in BROKEN.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(gr.Error) as error, app.errors_in_words():
            app.translate_document(translate, "", str(tmp_path / name), "line", 1)
        assert words in error.value.message
    with pytest.raises(gr.Error, match="nothing to translate"), app.errors_in_words():
        app.translate_document(translate, "", None, "line", 1)


def test_only_splitters_that_are_there(app, checkpoint, monkeypatch):
    translate = app.load(checkpoint())
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


def test_the_card_of_the_space_names_the_app():
    _, header, _ = (SPACE / "README.md").read_text().split("---\n", 2)
    header = yaml.safe_load(header)
    assert header["sdk"] == "gradio" and (SPACE / header["app_file"]).is_file()


@pytest.mark.parametrize(
    "types", [{}, {"encoder_global_layers": 1, "cross_attention_types": ["group", "global"]}], ids=["default", "mixed"]
)
def test_attention_of_a_sentence(app, space, checkpoint, processor, types):
    translate = app.load(checkpoint(**types))
    pairs = app.translate_document(translate, "the cat\nit is old\nsie", None, "line", 1).pairs
    pairs[0]["translation_text"] = ""  # a translation without words
    implementation = translate.model.config._attn_implementation
    shown = space("attention_view").attended_sentences(translate.model, translate.processor, pairs, 1)
    assert translate.model.config._attn_implementation == implementation

    words = [processor.encode_sentences([pair["translation_text"]])[0] for pair in pairs[1:]]
    ids = {
        "encoder": processor([pair["source_text"] for pair in pairs], return_tensors="pt")["input_ids"],
        "decoder": torch.tensor([processor.build_source([[], *words])]),
    }
    ids["cross"] = ids["decoder"]
    with torch.inference_mode(), recorded_attention(translate.model) as sublayers:
        translate.model(input_ids=ids["encoder"], decoder_input_ids=ids["decoder"])
    begins = ids["encoder"][0].eq(processor.bos_token_id).nonzero()[:, 0].tolist()
    for stack in ("encoder", "decoder", "cross"):
        start, stop = ids[stack][0].eq(processor.bos_token_id).nonzero()[1:, 0].tolist()
        layers = [layer for layer in sublayers if layer.stack == stack and "global" in layer.weights]
        if stack in ("encoder", "cross"):
            mean = torch.stack([layer.weights["global"][0, start:stop].mean(0) for layer in layers]).mean(0)
            expected = [part.sum().item() for part in mean.tensor_split(begins[1:])]
            assert shown.shares[stack] == pytest.approx(expected, rel=1e-4) and sum(expected) == pytest.approx(1)
        gates = [layer.gate[0, start:stop].mean().item() for layer in layers if layer.gate is not None]
        assert bool(gates) == (stack in shown.gates)
        if gates:
            assert shown.gates[stack] == pytest.approx(sum(gates) / len(gates), rel=1e-4)

    html = space("attention_view").attention_html(shown, ["a", "<b>", "c"], "en", 5, 1)
    labels = [text_of(item[0]) for item in ElementTree.fromstring(f"<div>{html}</div>").iter("li")]
    assert labels[:3] == ["5. a", "6. <b> (the sentence itself)", "7. c"]
    shares = [text_of(share) for share in elements(html, "share")]
    assert shares[:3] == [f"{share:.1%}" for share in shown.shares["cross"]]
    assert len(shares) == 6 + len(shown.gates)


def test_a_model_without_global_attention(app, space, checkpoint):
    none = dict.fromkeys(("encoder_global_layers", "decoder_global_layers", "cross_global_layers"), 0)
    translate = app.load(checkpoint(**none))
    pairs = app.translate_document(translate, "the cat\nit is", None, "line", 1).pairs
    view = space("attention_view")
    shown = view.attended_sentences(translate.model, translate.processor, pairs, 0)
    assert not shown.shares and not shown.gates
    assert "no global attention" in view.attention_html(shown, ["the cat", "it is"], "en", 1, 0)


def test_a_sentence_is_shown_in_its_segment(app, space, checkpoint):
    translate = app.load(checkpoint())
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
    pipeline("document-translation", model=checkpoint()).save_pretrained(tmp_path / "with_code")
    out = run_without_package(
        f"""
import json
import app, attention_view
translate = app.load({str(tmp_path / "with_code")!r})
translation = app.translate_document(translate, "the cat\\nit is", None, "line", 1)
shown = attention_view.attended_sentences(translate.model, translate.processor, translation.pairs, 1)
app.build(translate)
print(json.dumps([len(translation.pairs), len(shown.shares["cross"]), list(app.downloads(translate, translation))]))
""",
        str(SPACE),
    )
    pairs, shares, files = json.loads(out.splitlines()[-1])
    assert pairs == shares == 2 and files == ["Download TXT"]  # other formats need the package


# Of every sentence, the contrast of its text and its background as WCAG defines it.
CONTRASTS = """
const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
const luminance = color => {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = color;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map(value => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
return [...document.querySelectorAll(".pair p, .pair .confidence")].map(element => {
  const behind = getComputedStyle(element.closest("p")).backgroundColor;
  const [low, high] = [getComputedStyle(element).color, behind].map(luminance).sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
});
"""


def test_in_a_browser(space, checkpoint, tmp_path):
    pytest.importorskip("selenium", reason="the driver package selenium is not installed")
    screenshot = space("screenshot")
    for programs in (screenshot.BROWSERS, ("chromedriver",)):
        if not any(map(shutil.which, programs)):
            pytest.skip(f"{programs[0]} is not installed")
    with screenshot.running_app(checkpoint()) as address, screenshot.chromium(1100) as browser:

        def find(selector):
            return browser.find_elements("css selector", selector)

        def shadows():
            return [(source.value_of_css_property("box-shadow") != "none") for source in find(".pair p")]

        screenshot.translate_text(browser, address, TEXT)
        assert [source.text for source in find(".pair .source")] == TEXT.split("\n")
        assert len(find(".pair .target .confidence")) == 3 and len(find(".bars")) == 3
        assert not find(".pair b")
        warning = "it is translated in"
        wait = screenshot.WebDriverWait(browser, 60)
        wait.until(lambda _: warning in browser.find_element("tag name", "body").text)
        downloads = [link.text for link in find("a[download], button") if link.text.startswith("Download")]
        assert downloads == ["Download TXT", "Download TMX", "Download JSONL"]

        # With the keyboard: a sentence lights up with its translation, and no other pair does.
        assert not any(shadows())
        browser.execute_script("arguments[0].focus()", find(".pair .source")[0])
        assert shadows() == [True, True, False, False, False, False]
        for _ in range(2):
            browser.switch_to.active_element.send_keys("\ue004")  # tab
        assert browser.switch_to.active_element == find(".pair .source")[1]
        assert shadows() == [False, False, True, True, False, False]
        assert min(browser.execute_script(CONTRASTS)) >= 4.5

        (tmp_path / "broken.docx").write_text("not a Word document")
        find("input[type=file]")[0].send_keys(str(tmp_path / "broken.docx"))
        wait.until(lambda _: "broken" in browser.find_element("tag name", "body").text)
        screenshot.press(browser, "Translate")
        words = "broken.docx cannot be read: no Word document"
        wait.until(lambda _: words in browser.find_element("tag name", "body").text)
        assert "Traceback" not in browser.page_source

        screenshot.translate_text(browser, address, TEXT, dark=True)
        assert find("body.dark")
        assert min(browser.execute_script(CONTRASTS)) >= 4.5

        screenshot.resize(browser, 360)
        source, target = find(".pair p")[:2]
        wait.until(lambda _: target.location["y"] > source.location["y"])
        widths = "return [document.documentElement, ...document.querySelectorAll('.pair p')].map(e => e.scrollWidth)"
        assert max(browser.execute_script(widths)) <= 360
