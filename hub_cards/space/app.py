"""A page that translates documents with a G-Transformer, sentence by sentence side by side.

    GTRANSFORMER_MODEL=user/name python app.py
    python app.py outputs/mbart25

The model is a folder or a name on the Hub, of a G-Transformer or of a sentence-level translator such as Opus-MT or
NLLB. Where this project's package is not installed, only a G-Transformer can be used, by the code of the checkpoint:
name one that you trust.
"""

import logging
import os
import re
import sys
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from pathlib import Path
from typing import Any

import gradio as gr
import torch
from attention_view import attended_sentences, attention_html
from gradio.processing_utils import save_bytes_to_cache
from gradio.utils import get_upload_folder
from pairs_view import pairs_html
from transformers import pipeline
from turns import Turns


try:
    from modeling_gtransformer import files
except ModuleNotFoundError:
    files = None  # type: ignore[assignment]  # the code of the checkpoint is run, which reads plain text
ENDINGS = {".txt": "text"} if files is None else files.EXTENSIONS

# The code of a language that is not known.
UNDETERMINED = "und"
MAX_BYTES = 5_000_000  # size of a file
MAX_CHARACTERS = 50_000  # length of a text, or of all sentences of a document
MAX_MARKUP = 500_000  # characters of a file in a text format, with its markup
MAX_SECONDS = 300  # computing time of a document
BATCH_TOKENS = 1024  # tokens of a batch; other jobs get their turn after it
SESSIONS = 16  # jobs that take turns; others wait until one of them is done
PAIRS = ("tmx", "jsonl")  # formats of sentence pairs
SPLITTERS = {"sentencex": "find the sentences", "line": "every line or paragraph is one sentence"}


@dataclass(frozen=True)
class Translation:
    """
    The translation of the document `name`: `pairs` with their confidence, the numbers of sentences of its `segments`,
    the document in its own format, and the codes of its languages.
    """

    name: str
    pairs: list[dict[str, Any]]
    segments: list[int]
    document: str | bytes
    src_lang: str | None
    tgt_lang: str | None

    def segment(self, sentence: int) -> slice:
        """The segment that a sentence was translated in, both counted from 0."""
        borders = [0, *accumulate(self.segments)]
        after = bisect_right(borders, sentence)
        return slice(borders[after - 1], borders[after])


def load(name: str) -> Any:
    """
    The pipeline of a checkpoint, with its own code if the package is not installed.

    Raises:
        ValueError: the checkpoint cannot translate.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return pipeline("document-translation", model=name, trust_remote_code=files is None, device=device)


def choices(translate: Any) -> tuple[list[str], list[str]]:
    """Codes of the source and target languages that a reader can choose; a list is empty where there is no choice."""
    processor = translate.processor
    if processor.tgt_lang and translate.model.config.has_global_attention:
        return [], []  # trained on documents, of these languages
    codes = processor.language_codes
    reads_code = "src_lang" in (*processor.template.source_prefix, *processor.template.source_suffix)
    return (codes if reads_code else []), codes


def language_tag(code: str | None) -> str:
    """The language of a code as HTML names it: `de` of `de_DE`."""
    found = re.search("[a-z]{2,3}", code or "")
    return found[0] if found else UNDETERMINED


def splitters(translate: Any) -> list[str]:
    """Splitters that are installed and know the source language, or one of those that can be chosen."""
    processor = translate.processor
    sources, _ = choices(translate)
    if sources and not processor.src_lang:
        processor = processor.for_languages(sources[0])
    try:
        translate.preprocess("A.", splitter="sentencex", processor=processor)
    except (ImportError, ValueError):
        return ["line"]
    return list(SPLITTERS)


def read(file: str) -> tuple[str | bytes, str]:
    """
    The content of a file, and its format.

    Raises:
        ValueError: the format is unknown, the file too large, or not UTF-8.
    """
    path = Path(file)
    if not path.is_file():
        raise ValueError(f"{path.name} is no longer there: choose it again.")
    format = ENDINGS.get(path.suffix.lower())
    if format is None:
        raise ValueError(f"{path.name} is of no format that can be translated. Known are: {', '.join(ENDINGS)}.")
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"{path.name} is too large: at most {MAX_BYTES / 1e6:.0f} MB.")
    content = path.read_bytes()
    if format != "text" and files.FILE_FORMATS[format].binary:
        return content, format
    if files is not None:
        try:
            return files.decode(content), format
        except ValueError as error:
            raise ValueError(f"{path.name}: {error}.") from error
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name} is no text in UTF-8: {error.reason} at byte {error.start + 1}.") from error
    return text, format


def check_size(document: str | bytes, format: str) -> None:
    """
    Refuses documents that are too large to be read.

    Raises:
        ValueError: the document is too large to be read at all.
    """
    limit = MAX_CHARACTERS if format == "text" else MAX_MARKUP
    if isinstance(document, str) and len(document) > limit:
        raise ValueError(f"The document is too large: {len(document):,} characters, at most {limit:,}.")


def translate_document(
    translate: Any,
    text: str,
    file: str | None,
    splitter: str,
    num_beams: int,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
    turn: AbstractContextManager | None = None,
) -> Translation:
    """
    The translation of a file or, if there is none, of a text.

    Args:
        src_lang, tgt_lang: languages, where the model knows several.
        turn: entered while the model computes.

    Raises:
        ValueError: it has no sentences or too many, or the file cannot be read.
    """
    name = Path(file).name if file else "text.txt"
    document, format = read(file) if file else (text, "text")
    check_size(document, format)
    processor = translate.processor.for_languages(src_lang, tgt_lang)
    try:
        inputs = translate.preprocess(document, format=format, splitter=splitter, processor=processor)
    except Exception as error:  # a broken file can break its parser anywhere
        raise ValueError(f"{name} cannot be read: {error}") from error
    characters = sum(map(len, inputs["sentences"]))
    if not characters:
        raise ValueError("There is nothing to translate: type a text with words, or choose a file that has some.")
    if characters > MAX_CHARACTERS:
        raise ValueError(f"The document is too large: {characters:,} characters, at most {MAX_CHARACTERS:,}.")
    settings = {"num_beams": int(num_beams), "confidence": True, "max_tokens": BATCH_TOKENS, "name": name}
    with turn or nullcontext():
        outputs = translate.forward(inputs, processor=processor, **settings)
    result = translate.postprocess(outputs)
    languages = processor.src_lang, processor.tgt_lang
    return Translation(name, result["sentences"], result["segments"], result["translation_text"], *languages)


def downloads(translation: Translation) -> dict[str, tuple[str, bytes]]:
    """Names and contents of files by label: the document and, where the package is installed, the pairs as TMX and
    JSONL."""
    path = Path(translation.name)
    contents = {path.suffix: translation.document}
    if files is not None:
        languages = translation.src_lang or UNDETERMINED, translation.tgt_lang or UNDETERMINED
        contents |= {f".{format}": files.ALIGNED_FORMATS[format](translation.pairs, *languages) for format in PAIRS}
    stem = f"{path.stem}.{language_tag(translation.tgt_lang)}"
    return {
        f"Download {ending.lstrip('.').upper()}": (
            stem + ending,
            content.encode("utf-8") if isinstance(content, str) else content,
        )
        for ending, content in contents.items()
    }


@contextmanager
def errors_in_words() -> Iterator[None]:
    """Shows errors in the page until the reader closes them. Unexpected ones get a general message and are logged, as
    their own message may name folders of this machine."""
    try:
        yield
    except Exception as error:
        foreseen = isinstance(error, (ValueError, ImportError)) and not isinstance(error, OSError)
        words = str(error) if foreseen else "Something went wrong here: try again, or another document."
        raise gr.Error(escape(words), duration=None, print_exception=not foreseen) from error


class WarningsInPage(logging.Handler):
    """Says in the page what the code warns of, such as a placeholder that a translation lacks."""

    def emit(self, record: logging.LogRecord) -> None:
        gr.Warning(escape(record.getMessage()), duration=None)


class Events:
    """What happens when a reader does something in the page; all readers share one pipeline."""

    def __init__(self, translate: Any):
        self.translate = translate
        self.turns = Turns(MAX_SECONDS)
        self.turns.watch(translate.model)

    def on_translate(
        self,
        request: gr.Request,
        text: str,
        file: str | None,
        splitter: str,
        num_beams: int,
        src_lang: str | None,
        tgt_lang: str | None,
    ) -> list[Any]:
        """Gives the translation, its pairs, the buttons, the sentences to choose from, and shows the results."""
        with errors_in_words():
            turn = self.turns.job(request.session_hash or "")
            translation = translate_document(self.translate, text, file, splitter, num_beams, src_lang, tgt_lang, turn)
            buttons = [download_button(label, *named) for label, named in downloads(translation).items()]
        numbers = [(f"{n}. {pair['source_text']}", n - 1) for n, pair in enumerate(translation.pairs, 1)]
        tags = language_tag(translation.src_lang), language_tag(translation.tgt_lang)
        pairs = pairs_html(translation.pairs, *tags)
        return [translation, pairs, *buttons, gr.Dropdown(numbers, value=0), gr.Column(visible=True)]

    def on_choose(self, request: gr.Request, translation: Translation | None, sentence: int) -> str:
        """Gives what a sentence looked at."""
        with errors_in_words(), self.turns.job(request.session_hash or ""):
            return attention_of(self.translate, translation, sentence)

    def on_cancel(self, request: gr.Request) -> None:
        """Ends the job of a reader who cancels it or leaves."""
        self.turns.cancel(request.session_hash or "")


def download_button(label: str, name: str, content: bytes) -> gr.DownloadButton:
    """A button for a file, which lies where Gradio may serve it from."""
    file = save_bytes_to_cache(content, name, get_upload_folder())
    return gr.DownloadButton(label, file)


def build(translate: Any) -> gr.Blocks:
    """The page around a pipeline."""
    with gr.Blocks(title="Document translation", delete_cache=(3600, 3600)) as page:
        gr.Markdown(f"# Document translation\n\n{description(translate)}")
        with gr.Row():
            text = gr.Textbox(label="Text", lines=8, max_lines=20, max_length=MAX_CHARACTERS, scale=2)
            file = gr.File(label="Or a file, which then takes the place of the text", file_types=list(ENDINGS))
        with gr.Row():
            languages = language_menus(translate)
            splitter = splitter_menu(translate)
            beams = gr.Slider(
                1, 10, value=translate.model.generation_config.num_beams or 1, step=1, label="Number of beams"
            )
        with gr.Row():
            button = gr.Button("Translate", variant="primary")
            cancel = gr.Button("Cancel")
        state = gr.State(time_to_live=3600)
        pairs = gr.HTML("<p>The translation will stand here.</p>")
        with gr.Column(visible=False) as results:
            with gr.Row():
                buttons = [gr.DownloadButton() for _ in ("document", *(PAIRS if files else ()))]
            gr.Markdown("## What a sentence looked at")
            chooser = gr.Dropdown(label="Sentence")
            attention = gr.HTML()
        events = Events(translate)
        shared: dict[str, Any] = {"concurrency_id": "model", "concurrency_limit": SESSIONS}
        translated = gr.on(
            [button.click, text.submit],
            events.on_translate,
            [text, file, splitter, beams, *languages],
            [state, pairs, *buttons, chooser, results],
            show_progress_on=pairs,
            **shared,
        )
        translated.success(events.on_choose, [state, chooser], attention, **shared)
        chooser.input(events.on_choose, [state, chooser], attention, **shared)
        cancel.click(events.on_cancel, cancels=[translated], queue=False)
        page.unload(events.on_cancel)
    return page


def description(translate: Any) -> str:
    """What the model of the page does."""
    sources, targets = choices(translate)
    source, target = (language_tag(code) for code in (translate.processor.src_lang, translate.processor.tgt_lang))
    names = f"From {'a language of your choice' if sources else source} to {'another' if targets else target}"
    if translate.model.config.has_global_attention:
        return f"{names}, a whole document at once; and still every sentence has a translation of its own."
    return f"{names}, sentence by sentence: none is lost, and none sees the others."


def language_menus(translate: Any) -> list[gr.Dropdown]:
    """Menus of the source and the target language, hidden where there is no choice."""
    own = translate.processor.src_lang, translate.processor.tgt_lang
    return [
        gr.Dropdown(codes, value=code if code in codes else next(iter(codes), None), label=label, visible=bool(codes))
        for label, codes, code in zip(("From", "To"), choices(translate), own, strict=True)
    ]


def splitter_menu(translate: Any) -> gr.Radio:
    known = splitters(translate)
    return gr.Radio([(SPLITTERS[name], name) for name in known], value=known[0], label="Sentences")


def attention_of(translate: Any, translation: Translation | None, sentence: int) -> str:
    """What a sentence of a translation looked at, as HTML."""
    if translation is None:
        raise ValueError("This translation is no longer kept: translate the document again.")
    if not translate.model.config.has_global_attention:
        return "<p>Every sentence looked at itself only.</p>"
    segment = translation.segment(sentence)
    pairs, inside = translation.pairs[segment], sentence - segment.start
    attention = attended_sentences(translate.model, translate.processor, pairs, inside)
    sources = [pair["source_text"] for pair in pairs]
    return attention_html(attention, sources, language_tag(translation.src_lang), segment.start + 1, inside)


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("GTRANSFORMER_MODEL")
    if not name:
        sys.exit("No model: set GTRANSFORMER_MODEL, or give a folder or a name on the Hub as argument.")
    try:
        translate = load(name)
    except Exception as error:
        place = "" if Path(name).is_dir() else " (there is no such folder, so from the Hub)"
        sys.exit(f"The model {name}{place} cannot be loaded: {error}")
    logging.getLogger(type(translate).__module__.rpartition(".")[0]).addHandler(WarningsInPage())
    build(translate).launch(
        theme=gr.themes.Default(primary_hue="indigo"),
        css_paths=Path(__file__).with_name("style.css"),
        max_file_size=MAX_BYTES,
        show_error=False,  # what is not ours to say may name folders of this machine
    )


if __name__ == "__main__":
    main()
