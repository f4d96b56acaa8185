"""The page of a server: translates texts and files, and shows pairs of sentences."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr
from fastapi import FastAPI, HTTPException, Request, Response
from gradio.processing_utils import save_bytes_to_cache
from gradio.routes import App
from gradio.utils import get_upload_folder
from huggingface_hub import ModelCard
from starlette.routing import Match, Mount

from ..files import EXTENSIONS
from ..pipeline_gtransformer import NamedDocument
from .api_error import error_response
from .page_events import PAIRS, Readers, Translation, attention_of, errors_on_page, read
from .pairs_view import pair_html, pairs_html
from .protocol import PairFields
from .request_languages import name_of
from .scheduler import Job
from .service import Service


SECONDS = 3600  # storage of files and translations
SPLITTERS = {"sentencex": "split running text", "line": "one sentence per line or paragraph"}
EXAMPLE = "The cat sleeps.\nIt is old.\nI have a dog, too.\nIt likes to play in the garden."
BUTTON: dict[str, Any] = {"size": "md", "min_width": 90}
PAPER = "[G-Transformer for Document-level Machine Translation](https://aclanthology.org/2021.acl-long.267)"


def mount_page(app: FastAPI, service: Service) -> Callable[[], None]:
    """
    Mounts the page of a service at `/`, after the routes of an application. If the service has API keys, readers log
    in with a key as password.

    Returns:
        A function that closes the connections of open pages, which otherwise block shutdown.
    """
    keys = service.keys
    gr.mount_gradio_app(
        app,
        Page(service).blocks,
        "/",
        auth=(lambda user, key: keys.is_valid(key)) if keys.required else None,
        auth_message="Enter any username, and an API key of this server as password.",
        theme=gr.themes.Default(primary_hue="indigo"),
        css_paths=Path(__file__).with_name("page.css"),
        footer_links=["gradio", "settings"],
        max_file_size=service.options.max_bytes,
        show_error=False,  # unexpected errors may contain paths of the server
    )
    mounted = app.routes[-1]
    assert isinstance(mounted, Mount) and isinstance(mounted.app, App)

    def answer(request: Request, error: Exception) -> Response:
        """Answers like the router without the page: with status 405 for known paths, else 404."""
        matches = [route.matches(request.scope)[0] for route in app.routes if route is not mounted]
        return error_response(request, HTTPException(405) if Match.PARTIAL in matches else error)

    mounted.app.add_exception_handler(404, answer)
    return mounted.app.stop_event.set


class Page:
    """The page of a service, with components of Gradio. The limits of clients apply to readers."""

    def __init__(self, service: Service):
        self.service, self.readers = service, Readers()
        self.blocks = gr.Blocks(title="Document translation", analytics_enabled=False, delete_cache=(SECONDS, SECONDS))
        with self.blocks:
            gr.Markdown(f"# Document translation\n\n{description(service)}")
            self._add_inputs()
            self._add_results()
            self._connect()

    def _add_inputs(self) -> None:
        languages, options = self.service.languages, self.service.options
        side: dict[str, Any] = {"min_width": 320}  # wraps on a phone
        with gr.Row():
            self.text = gr.Textbox(
                label="Text", lines=8, max_lines=20, max_length=options.max_characters, scale=2, **side
            )
            with gr.Column(**side):
                self.file = gr.File(label="File (replaces the text)", file_types=[*EXTENSIONS], height=200)
        with gr.Row():
            self.source = language_menu("From", languages.sources, languages.own_source)
            self.target = language_menu("To", languages.targets, languages.own_target)
        with gr.Row():
            self.button = gr.Button("Translate", variant="primary", **BUTTON)
            self.example = gr.Button("Example", visible=languages.own_source == "en", **BUTTON)
            self.cancel = gr.Button("Cancel", **BUTTON)
        with gr.Accordion("Options", open=False), gr.Row():
            self.splitter = splitter_menu(self.service)
            own = options.num_beams or self.service.scheduler.pipeline.model.generation_config.num_beams or 1
            self.beams = gr.Slider(1, max(10, own), value=own, step=1, label="Number of beams")

    def _add_results(self) -> None:
        self.translation = gr.State(time_to_live=SECONDS)
        self.pairs = gr.HTML("<p>The translation will appear here.</p>")
        with gr.Column(visible=False) as self.results:
            with gr.Row():
                self.downloads = [gr.DownloadButton(**BUTTON) for _ in ("document", *PAIRS)]
            with gr.Accordion("Attention of a sentence", open=False) as self.details:
                self.sentence = gr.Dropdown(label="Sentence")
                self.attention = gr.HTML()

    def _connect(self) -> None:
        unlimited: dict[str, Any] = {"concurrency_limit": None}  # the service has its own limits
        translated = gr.on(
            [self.button.click, self.text.submit],
            self.translate,
            [self.text, self.file, self.source, self.target, self.splitter, self.beams],
            [self.translation, self.pairs, *self.downloads, self.sentence, self.results, self.details, self.attention],
            show_progress_on=self.pairs,
            **unlimited,
        )
        gr.on(
            [self.details.expand, self.sentence.input],
            self.show_attention,
            [self.translation, self.sentence],
            self.attention,
            api_name="attention",
            **unlimited,
        )
        self.example.click(lambda: EXAMPLE, None, self.text)
        self.cancel.click(self.readers.cancel, cancels=[translated], queue=False)
        self.blocks.unload(self.readers.cancel)

    async def translate(
        self, request: gr.Request, text: str, file: str | None, source: str, target: str, splitter: str, beams: int
    ) -> AsyncIterator[dict[Any, Any]]:
        """Shows sentences as soon as they are final, and at the end all sentences with confidence."""
        yield {self.results: gr.Column(visible=False), self.details: gr.Accordion(open=False), self.attention: ""}
        with errors_on_page():
            name, document, format = read(text, file)
            fields = PairFields(source=source, target=target)
            options = {"splitter": splitter, "num_beams": int(beams), "confidence": True}
            sentences, task = self.service.start(request, fields, document, format, **options)
            html = '<p role="status">Translating …</p><ol class="pairs">'
            with self.readers.owned(request, task):
                while (pair := await sentences.get()) is not None:
                    html += pair_html(pair, source, target)
                    yield {self.pairs: html}
                languages, [result] = await task
            pairs, content = result["sentences"], result["translation_text"]
            if not any(pair["source_text"].strip() for pair in pairs):
                raise ValueError("The input has no text: type one, or choose another file.")
            yield self._shown(Translation(name, pairs, result["segments"], content, languages, result["warnings"]))

    def _shown(self, translation: Translation) -> dict[Any, Any]:
        for warning in translation.warnings:
            gr.Warning(escape(warning), duration=None)
        buttons = [
            gr.DownloadButton(label, save_bytes_to_cache(content, name, get_upload_folder()))
            for label, (name, content) in translation.downloads().items()
        ]
        numbers = [(f"{n}. {pair['source_text']}", n - 1) for n, pair in enumerate(translation.pairs, 1)]
        return {
            self.translation: replace(translation, document=""),  # it would stay in memory for an hour
            self.pairs: pairs_html(translation.pairs, translation.languages.source, translation.languages.target),
            **dict(zip(self.downloads, buttons, strict=True)),
            self.sentence: gr.Dropdown(numbers, value=0),
            self.results: gr.Column(visible=True),
        }

    async def show_attention(self, request: gr.Request, translation: Translation | None, sentence: int) -> str:
        with errors_on_page():
            job = Job(call=lambda: attention_of(self.service.scheduler.pipeline, translation, sentence))
            task = asyncio.create_task(self.service.run(request, job))
            with self.readers.owned(request, task):
                return await task


def description(service: Service) -> str:
    """Describes the model: languages, name, licence and paper."""
    languages, model = service.languages, service.scheduler.pipeline.model
    source, target = (
        "a language of your choice" if len(codes) > 1 else name_of(own)
        for codes, own in ((languages.sources, languages.own_source), (languages.targets, languages.own_target))
    )
    name = model.name_or_path
    on_hub = not Path(name).is_dir()
    link = f"[{name}](https://huggingface.co/{name})" if on_hub else f"`{Path(name).name}`"
    try:
        license = ModelCard.load(name if on_hub else Path(name, "README.md"), ignore_metadata_errors=True).data.license
    except (OSError, ValueError):
        license = None
    context = "in the context of its document" if model.config.has_global_attention else "without context"
    return (
        f"Translates a text or a file from {source} to {target}, sentence by sentence, {context}. Check the "
        "translation: fluent output can be wrong.\n\n"
        f"Model: {link}. Licence: {license or 'see its card'}. Paper: {PAPER} (Bao et al., ACL 2021)."
    )


def language_menu(label: str, codes: dict[str, str | None], own: str) -> gr.Dropdown:
    """Makes a menu of languages by name, hidden if it has one entry."""
    names = sorted((name_of(code), code) for code in codes)
    return gr.Dropdown(names, value=own, label=label, visible=len(codes) > 1)


def splitter_menu(service: Service) -> gr.Radio:
    """Makes a menu of splitters that are installed and support the default source language."""
    known, languages = list(SPLITTERS), service.languages
    try:
        src_lang = languages.sources[languages.own_source]
        service.scheduler.pipeline.prepare(NamedDocument("", "A."), splitter="sentencex", src_lang=src_lang)
    except (ImportError, ValueError):
        known.remove("sentencex")
    own = service.options.splitter
    return gr.Radio(
        [(SPLITTERS[name], name) for name in known], value=own if own in known else known[0], label="Sentences"
    )
