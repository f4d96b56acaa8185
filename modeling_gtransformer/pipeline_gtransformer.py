"""`pipeline("document-translation")`: a document in, the same sentences out, translated with each other as context."""

from typing import Any

from transformers import Pipeline

from .document_translation import translate_documents


class DocumentTranslationPipeline(Pipeline):
    """
    Translates documents of any length, aligned sentence by sentence: a document of `segment_tokens` tokens or more is
    cut at sentence borders into segments that are translated separately.

    Inputs are a document as a list of sentences or as text with one sentence per line, or a list of documents (lists
    of sentences). A blank sentence stays blank. Each document gives a dictionary:

    - `translation_text`: the translation, one sentence per line.
    - `sentences`: for each sentence of the document, in order, `source_text` and `translation_text`.

    Keyword arguments, here or when the pipeline is made: `segment_tokens` (512, as in the paper, or the model's
    positions), `max_tokens` (4096, the source tokens in a batch of segments), and those of `generate`, among them
    `num_beams` and `parallel_sentences`.

    ```python
    >>> translate = pipeline("document-translation", model="path/to/checkpoint")  # doctest: +SKIP
    >>> translate("The cat sleeps.\\nIt is old.", num_beams=5)["translation_text"]  # doctest: +SKIP
    'Die Katze schläft.\\nSie ist alt.'
    ```"""

    _load_processor = True
    _load_tokenizer = False
    _load_feature_extractor = False
    _load_image_processor = False

    def _sanitize_parameters(self, **translate_kwargs: Any):
        return {}, translate_kwargs, {}

    def __call__(self, documents: Any, batch_size: int | None = None, **kwargs: Any):
        """Translate one document (a string or a list of sentences) or several (a list of lists, or an iterator)."""
        if (batch_size or self._batch_size or 1) > 1:
            raise ValueError("Batches are made of segments, by number of tokens: use max_tokens, not batch_size.")
        if isinstance(documents, list) and all(isinstance(sentence, str) for sentence in documents):
            return super().__call__([documents], **kwargs)[0]
        return super().__call__(documents, **kwargs)

    def preprocess(self, document: str | list[str]) -> dict[str, list[str]]:
        if isinstance(document, str):
            document = document.replace("\r\n", "\n").split("\n")
        return {"sentences": list(document)}

    def _forward(self, model_inputs: dict[str, list[str]], **translate_kwargs: Any) -> dict[str, Any]:
        texts = [sentence for sentence in model_inputs["sentences"] if sentence.strip()]
        [(translations, _)] = translate_documents(self.model, self.processor, [texts], **translate_kwargs)
        return {**model_inputs, "translations": translations}

    def postprocess(self, model_outputs: dict[str, Any]) -> dict[str, Any]:
        translated = iter(model_outputs["translations"])
        pairs = [
            {"source_text": sentence, "translation_text": next(translated) if sentence.strip() else ""}
            for sentence in model_outputs["sentences"]
        ]
        return {"translation_text": "\n".join(pair["translation_text"] for pair in pairs), "sentences": pairs}
