"""A page that translates documents with a G-Transformer, source and translation sentence by sentence.

    GTRANSFORMER_MODEL=user/name python app.py
    python app.py outputs/mbart25

The model is a folder or a name on the Hub, of a G-Transformer or of a sentence-level translator such as Opus-MT or
NLLB. The page needs this project's package.
"""

import os
import sys
from bisect import bisect_right
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from pathlib import Path
from typing import Any

import gradio as gr
from attention_view import attended_sentences, attention_html
from gradio.processing_utils import save_bytes_to_cache
from gradio.utils import get_upload_folder
from huggingface_hub import ModelCard
from pairs_view import pairs_html

from modeling_gtransformer import DocumentTranslationPipeline, Translator
from modeling_gtransformer.files import ALIGNED_FORMATS, EXTENSIONS
from modeling_gtransformer.pipeline_gtransformer import NamedDocument
from modeling_gtransformer.runtime.usage_error import UsageError
from modeling_gtransformer.server.api_error import as_api_error
from modeling_gtransformer.server.document_files import content_of, translated_name
from modeling_gtransformer.server.request_languages import Languages, Pair, name_of
from modeling_gtransformer.server.scheduler import Call, Job, Scheduler


MAX_BYTES = 5_000_000  # size of a file
MAX_CHARACTERS = 50_000  # length of a text, or of all sentences of a document
MAX_MARKUP = 500_000  # characters of a file in a text format, with its markup
MAX_SECONDS = 300  # computing time of a document
BATCH_TOKENS = 1024  # tokens of a batch; other readers get their turn after it
SESSIONS = 16  # readers who take turns; others wait until one of them is done
PAIRS = ("tmx", "jsonl")  # formats of sentence pairs
SPLITTERS = {"sentencex": "find the sentences", "line": "every line or paragraph is one sentence"}
EXAMPLE = "Hello, how can I help you?\nI would like to order a pizza.\nWhat kind of pizza would you like?"
PAPER = "[G-Transformer for Document-level Machine Translation](https://aclanthology.org/2021.acl-long.267)"


@dataclass(frozen=True)
class Translation:
    """
    The translation of the document `name`: `pairs` with their confidence, the numbers of sentences of its `segments`,
    the document in its own format, and its languages.
    """

    name: str
    pairs: list[dict[str, Any]]
    segments: list[int]
    document: str | bytes
    languages: Pair

    def segment(self, sentence: int) -> slice:
        """The segment that a sentence was translated in, both counted from 0."""
        boundaries = [0, *accumulate(self.segments)]
        after = bisect_right(boundaries, sentence)
        return slice(boundaries[after - 1], boundaries[after])

    def downloads(self) -> dict[str, tuple[str, bytes]]:
        """Names and contents of files by label: the document, and the pairs as TMX and JSONL."""
        contents = {Path(self.name).suffix: self.document}
        codes = (self.languages.src_lang or self.languages.source, self.languages.tgt_lang or self.languages.target)
        contents |= {f".{format}": ALIGNED_FORMATS[format](self.pairs, *codes) for format in PAIRS}
        return {
            f"Download {extension.lstrip('.').upper()}": (
                translated_name(str(Path(self.name).with_suffix(extension)), self.languages.target),
                content.encode("utf-8") if isinstance(content, str) else content,
            )
            for extension, content in contents.items()
        }


def read(text: str, file: str | None) -> tuple[str, str | bytes, str]:
    """
    Returns name, content and format of a file or, if there is none, of a text.

    Raises:
        ApiError, ValueError: the format is unknown, or the file too large, or not UTF-8.
    """
    name, format = "text.txt", "text"
    document: str | bytes = text
    if file is not None:
        name = Path(file).name
        if not Path(file).is_file():
            raise ValueError(f"{name} is no longer there: choose it again.")
        document, format = content_of(name, Path(file).read_bytes())
    limit = MAX_CHARACTERS if format == "text" else MAX_MARKUP
    if isinstance(document, str) and len(document) > limit:
        raise ValueError(f"The document is too large: {len(document):,} characters, at most {limit:,}.")
    return name, document, format


@contextmanager
def errors_in_page() -> Iterator[None]:
    """Shows errors in the page until the reader closes them, without the details of unexpected ones."""
    try:
        yield
    except CancelledError as error:
        raise gr.Error("The translation was cancelled.", print_exception=False) from error
    except Exception as error:
        message = as_api_error(error).message
        raise gr.Error(escape(message), duration=None, print_exception=False) from error


class Events:
    """What happens when a reader does something in the page; all readers share one model."""

    def __init__(self, pipeline: DocumentTranslationPipeline):
        self.pipeline, self.languages = pipeline, Languages(pipeline)
        self.scheduler = Scheduler(pipeline, BATCH_TOKENS, MAX_CHARACTERS, MAX_SECONDS)
        self.scheduler.start()
        self._owners: dict[Future[Any], str | None] = {}

    def on_translate(self, request: gr.Request, *inputs: Any) -> list[Any]:
        """Returns the translation, its pairs, the buttons, the sentences to choose from, and shows the results."""
        with errors_in_page():
            translation, warnings = self.translate(request, *inputs)
            buttons = [download_button(label, *named) for label, named in translation.downloads().items()]
        for warning in warnings:
            gr.Warning(escape(warning), duration=None)
        numbers = [(f"{n}. {pair['source_text']}", n - 1) for n, pair in enumerate(translation.pairs, 1)]
        pairs = pairs_html(translation.pairs, translation.languages.source, translation.languages.target)
        return [translation, pairs, *buttons, gr.Dropdown(numbers, value=0), gr.Column(visible=True)]

    def translate(
        self,
        request: gr.Request,
        text: str,
        file: str | None,
        splitter: str,
        num_beams: int,
        source: str | None = None,
        target: str | None = None,
    ) -> tuple[Translation, list[str]]:
        """
        Returns the translation of a file or, if there is none, of a text, and its warnings.

        Raises:
            ApiError, ValueError: the document has no sentences or too many, or cannot be read.
            CancelledError: the reader cancels it.
        """
        languages = self.languages.pair(source or self.languages.own_source, target, [])
        name, document, format = read(text, file)
        options = {"splitter": splitter, "num_beams": int(num_beams), "confidence": True, "max_tokens": BATCH_TOKENS}
        options |= {"src_lang": languages.src_lang, "tgt_lang": languages.tgt_lang}
        [result] = self.run(request, Job([document], options, format))
        if not any(pair["source_text"].strip() for pair in result["sentences"]):
            raise ValueError("There is nothing to translate: type a text with words, or choose a file that has some.")
        content = result["translation_text"]
        return Translation(name, result["sentences"], result["segments"], content, languages), result["warnings"]

    def run(self, request: gr.Request, job: Job | Call) -> Any:
        """Returns the result of a reader's job."""
        result = self.scheduler.submit(job)
        self._owners[result] = request.session_hash
        try:
            return result.result()
        finally:
            del self._owners[result]

    def on_choose(self, request: gr.Request, translation: Translation | None, sentence: int) -> str:
        """Returns what a sentence looked at."""
        with errors_in_page():
            return self.run(request, Call(lambda: attention_of(self.pipeline, translation, sentence)))

    def on_cancel(self, request: gr.Request) -> None:
        """Ends the jobs of a reader who cancels them or leaves."""
        for result, owner in list(self._owners.items()):
            if owner == request.session_hash:
                result.cancel()


def attention_of(pipeline: DocumentTranslationPipeline, translation: Translation | None, sentence: int) -> str:
    """What a sentence of a translation looked at, as HTML."""
    if translation is None:
        raise ValueError("This translation is no longer kept: translate the document again.")
    if not pipeline.model.config.has_global_attention:
        return "<p>Every sentence looked at itself only.</p>"
    segment = translation.segment(sentence)
    pairs, inside = translation.pairs[segment], sentence - segment.start
    attention = attended_sentences(pipeline.model, pipeline.processor, pairs, inside)
    sources = [pair["source_text"] for pair in pairs]
    return attention_html(attention, sources, translation.languages.source, segment.start + 1, inside)


def download_button(label: str, name: str, content: bytes) -> gr.DownloadButton:
    """A button for a file, which lies where Gradio may serve it from."""
    return gr.DownloadButton(label, save_bytes_to_cache(content, name, get_upload_folder()))


def build(pipeline: DocumentTranslationPipeline) -> gr.Blocks:
    """The page around a pipeline."""
    events = Events(pipeline)
    with gr.Blocks(title="Document translation", delete_cache=(3600, 3600)) as page:
        gr.Markdown(f"# Document translation\n\n{description(pipeline, events.languages)}")
        with gr.Row():
            text = gr.Textbox(label="Text", lines=8, max_lines=20, max_length=MAX_CHARACTERS, scale=2)
            file = gr.File(label="Or a file, which then takes the place of the text", file_types=list(EXTENSIONS))
        with gr.Row():
            source = language_menu("From", events.languages.sources, events.languages.own_source)
            target = language_menu("To", events.languages.targets, events.languages.own_target)
            splitter = splitter_menu(pipeline, events.languages)
            beams = gr.Slider(
                1, 10, value=pipeline.model.generation_config.num_beams or 1, step=1, label="Number of beams"
            )
        with gr.Row():
            button = gr.Button("Translate", variant="primary")
            example = gr.Button("Example", visible=events.languages.own_source == "en")
            cancel = gr.Button("Cancel")
        state = gr.State(time_to_live=3600)
        pairs = gr.HTML("<p>The translation will appear here.</p>")
        with gr.Column(visible=False) as results:
            with gr.Row():
                buttons = [gr.DownloadButton() for _ in ("document", *PAIRS)]
            with gr.Accordion("Attention of a sentence", open=False):
                chooser = gr.Dropdown(label="Sentence")
                attention = gr.HTML()
        shared: dict[str, Any] = {"concurrency_id": "model", "concurrency_limit": SESSIONS}
        translated = gr.on(
            [button.click, text.submit],
            events.on_translate,
            [text, file, splitter, beams, source, target],
            [state, pairs, *buttons, chooser, results],
            show_progress_on=pairs,
            **shared,
        )
        translated.success(events.on_choose, [state, chooser], attention, **shared)
        chooser.input(events.on_choose, [state, chooser], attention, **shared)
        example.click(lambda: EXAMPLE, None, text)
        cancel.click(events.on_cancel, cancels=[translated], queue=False)
        page.unload(events.on_cancel)
    return page


def description(pipeline: DocumentTranslationPipeline, languages: Languages) -> str:
    """The model of the page: what it does, its name, licence and paper."""
    source, target = (
        "a language of your choice" if len(known) > 1 else name_of(own)
        for known, own in ((languages.sources, languages.own_source), (languages.targets, languages.own_target))
    )
    name = pipeline.model.name_or_path
    on_hub = not Path(name).is_dir()
    model = f"[{name}](https://huggingface.co/{name})" if on_hub else f"`{Path(name).name}`"
    try:
        license = ModelCard.load(name if on_hub else Path(name, "README.md"), ignore_metadata_errors=True).data.license
    except (OSError, ValueError):
        license = None
    context = (
        "Every sentence is translated in the context of its document"
        if (pipeline.model.config.has_global_attention)
        else "Every sentence is translated without context"
    )
    return (
        f"From {source} to {target}. {context}, and has a translation of its own. "
        f"Model: {model}, licence: {license or 'see its card'}. Paper: {PAPER} (Bao et al., ACL 2021)."
    )


def language_menu(label: str, codes: dict[str, str | None], own: str) -> gr.Dropdown:
    """A menu of languages by their names, hidden where there is no choice."""
    names = sorted((name_of(code), code) for code in codes)
    return gr.Dropdown(names, value=own, label=label, visible=len(codes) > 1)


def splitter_menu(pipeline: DocumentTranslationPipeline, languages: Languages) -> gr.Radio:
    """A menu of the splitters that are installed and know the source language, or one of those to choose from."""
    known = list(SPLITTERS)
    try:
        src_lang = languages.sources[languages.own_source]
        pipeline.prepare(NamedDocument("", "A."), splitter="sentencex", src_lang=src_lang)
    except (ImportError, ValueError):
        known.remove("sentencex")
    return gr.Radio([(SPLITTERS[name], name) for name in known], value=known[0], label="Sentences")


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("GTRANSFORMER_MODEL")
    if not name:
        sys.exit("No model: set GTRANSFORMER_MODEL, or give a folder or a name on the Hub as argument.")
    try:
        pipeline = Translator(name).pipeline
    except UsageError as error:
        sys.exit(str(error))
    build(pipeline).launch(
        theme=gr.themes.Default(primary_hue="indigo"),
        css_paths=Path(__file__).with_name("style.css"),
        max_file_size=MAX_BYTES,
        show_error=False,  # messages of other errors may name folders of this machine
    )


if __name__ == "__main__":
    main()
