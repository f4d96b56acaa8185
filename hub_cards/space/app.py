"""A page that translates documents with a G-Transformer, sentence by sentence side by side.

    GTRANSFORMER_MODEL=user/name python app.py
    python app.py outputs/mbart25

The model is a folder or a name on the Hub. Where this project's package is not installed, the code of the checkpoint
is run: name one that you trust.
"""

import logging
import os
import sys
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from pathlib import Path
from typing import Any

import gradio as gr
import torch
from attention_view import attended_sentences, attention_html
from gradio.processing_utils import save_bytes_to_cache
from pairs_view import pairs_html
from transformers import pipeline


try:
    from modeling_gtransformer import files
except ModuleNotFoundError:
    files = None  # type: ignore[assignment]  # the code of the checkpoint is run, which reads plain text
ENDINGS = {".txt": "text"} if files is None else files.ENDINGS

# The code of a language that is not known.
UNDETERMINED = "und"
MAX_BYTES = 5_000_000  # of a file
MAX_CHARACTERS = 50_000  # of the sentences of a document
SPLITTERS = {"sentencex": "find the sentences", "line": "every line or paragraph is one sentence"}


@dataclass(frozen=True)
class Translation:
    """
    The translation of the document `name`: `pairs` with their confidence, the numbers of sentences of its `segments`,
    and the document in its own format.
    """

    name: str
    pairs: list[dict[str, Any]]
    segments: list[int]
    document: str | bytes

    def segment(self, sentence: int) -> slice:
        """The segment that a sentence was translated in, both counted from 0."""
        borders = [0, *accumulate(self.segments)]
        after = bisect_right(borders, sentence)
        return slice(borders[after - 1], borders[after])


def load(name: str) -> Any:
    """
    The pipeline of a checkpoint, with its own code if the package is not installed.

    Raises:
        ValueError: it is no G-Transformer.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    translate = pipeline("document-translation", model=name, trust_remote_code=files is None, device=device)
    if translate.model.config.model_type != "gtransformer":
        raise ValueError(f"It is no G-Transformer, but of the type {translate.model.config.model_type!r}.")
    translate.processor.configure(translate.model)
    return translate


def splitters(translate: Any) -> list[str]:
    """Splitters that are installed and know the source language."""
    try:
        translate.preprocess("A.", splitter="sentencex")
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
    format = ENDINGS.get(path.suffix.lower())
    if format is None:
        raise ValueError(f"{path.name} is of no format that can be translated. Known are: {', '.join(ENDINGS)}.")
    if path.stat().st_size > MAX_BYTES:
        raise ValueError(f"{path.name} is too large: at most {MAX_BYTES / 1e6:.0f} MB.")
    content = path.read_bytes()
    if format != "text" and files.FILE_FORMATS[format].binary:
        return content, format
    try:
        return content.decode("utf-8"), format
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name} is no text in UTF-8: {error.reason} at byte {error.start + 1}.") from error


def translate_document(translate: Any, text: str, file: str | None, splitter: str, num_beams: int) -> Translation:
    """
    The translation of a file or, if there is none, of a text.

    Raises:
        ValueError: it has no sentences or too many, or the file cannot be read.
    """
    name = Path(file).name if file else "text.txt"
    document, format = read(file) if file else (text, "text")
    try:
        inputs = translate.preprocess(document, format=format, splitter=splitter)
    except Exception as error:  # a broken file can break its parser anywhere
        raise ValueError(f"{name} cannot be read: {error}") from error
    characters = sum(map(len, inputs["sentences"]))
    if not characters:
        raise ValueError("There is nothing to translate: type a text with words, or choose a file that has some.")
    if characters > MAX_CHARACTERS:
        raise ValueError(f"The document is too large: {characters:,} characters, at most {MAX_CHARACTERS:,}.")
    outputs = translate.forward(inputs, num_beams=int(num_beams), confidence=True)
    result = translate.postprocess(outputs)
    return Translation(name, result["sentences"], outputs["translated"].segments, result["translation_text"])


def downloads(translate: Any, translation: Translation) -> dict[str, tuple[str, bytes]]:
    """Names and contents of files by label: the document and, where the package is installed, the pairs as TMX and
    JSONL."""
    path = Path(translation.name)
    contents = {path.suffix: translation.document}
    if files is not None:
        contents |= {f".{format}": translate.export_pairs(translation.pairs, format) for format in ("tmx", "jsonl")}
    stem = f"{path.stem}.{translate.languages[1] or UNDETERMINED}"
    return {
        f"Download {ending.lstrip('.').upper()}": (
            stem + ending,
            content.encode("utf-8") if isinstance(content, str) else content,
        )
        for ending, content in contents.items()
    }


@contextmanager
def errors_in_words() -> Iterator[None]:
    """Whatever goes wrong is said in the page, until the reader closes it; what was not foreseen is logged, too."""
    try:
        yield
    except Exception as error:
        foreseen = isinstance(error, (ValueError, ImportError))
        message = escape(str(error) or type(error).__name__)
        raise gr.Error(message, duration=None, print_exception=not foreseen) from error


class WarningsInPage(logging.Handler):
    """Says in the page what the code warns of, such as a placeholder that a translation lacks."""

    def emit(self, record: logging.LogRecord) -> None:
        gr.Warning(escape(record.getMessage()), duration=None)


def build(translate: Any) -> gr.Blocks:
    """The page around a pipeline."""
    source, target = (code or UNDETERMINED for code in translate.languages)
    known_splitters = splitters(translate)

    def on_translate(text: str, file: str | None, splitter: str, num_beams: int) -> list[Any]:
        with errors_in_words():
            translation = translate_document(translate, text, file, splitter, num_beams)
            ready = [
                gr.DownloadButton(label, save_bytes_to_cache(content, name, button.GRADIO_CACHE), visible=True)
                for button, (label, (name, content)) in zip(
                    buttons, downloads(translate, translation).items(), strict=files is not None
                )
            ]
        numbers = [(f"{n}. {pair['source_text']}", n - 1) for n, pair in enumerate(translation.pairs, 1)]
        return [
            translation,
            pairs_html(translation.pairs, source, target),
            *ready,
            *buttons[len(ready) :],
            gr.Dropdown(numbers, value=0),
            gr.Column(visible=True),
        ]

    def on_choose(translation: Translation | None, sentence: int) -> str:
        with errors_in_words():
            if translation is None:
                raise ValueError("This translation is no longer kept: translate the document again.")
            segment = translation.segment(sentence)
            pairs, inside = translation.pairs[segment], sentence - segment.start
            attention = attended_sentences(translate.model, translate.processor, pairs, inside)
            sources = [pair["source_text"] for pair in pairs]
            return attention_html(attention, sources, source, segment.start + 1, inside)

    with gr.Blocks(title="Document translation", delete_cache=(3600, 3600)) as page:
        gr.Markdown(
            f"# Document translation\n\nFrom {source} to {target}, a whole document at once; and still every sentence "
            "has a translation of its own."
        )
        with gr.Row():
            text = gr.Textbox(label="Text", lines=8, max_lines=20, scale=2)
            file = gr.File(label="Or a file, which then takes the place of the text", file_types=list(ENDINGS))
        with gr.Row():
            splitter = gr.Radio(
                [(SPLITTERS[name], name) for name in known_splitters], value=known_splitters[0], label="Sentences"
            )
            beams = gr.Slider(
                1, 10, value=translate.model.generation_config.num_beams or 1, step=1, label="Number of beams"
            )
        button = gr.Button("Translate", variant="primary")
        state = gr.State(time_to_live=3600)
        pairs = gr.HTML("<p>The translation will stand here.</p>")
        with gr.Column(visible=False) as results:
            with gr.Row():
                buttons = [gr.DownloadButton() for _ in range(3)]
            gr.Markdown("## What a sentence looked at")
            chooser = gr.Dropdown(label="Sentence")
            attention = gr.HTML()
        # One at a time: looking at the attention changes how the model computes it.
        turn: dict[str, Any] = {"concurrency_id": "model", "concurrency_limit": 1}
        translated = gr.on(
            [button.click, text.submit],
            on_translate,
            [text, file, splitter, beams],
            [state, pairs, *buttons, chooser, results],
            show_progress_on=pairs,
            **turn,
        )
        translated.success(on_choose, [state, chooser], attention, **turn)
        chooser.input(on_choose, [state, chooser], attention, **turn)
    return page


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
        show_error=True,
    )


if __name__ == "__main__":
    main()
