"""`pipeline("document-translation")`: a document in, the same sentences out, translated with each other as context."""

from typing import Any

from transformers import Pipeline

from .segmentation import segment, sentence_cost


class DocumentTranslationPipeline(Pipeline):
    """
    Translates documents of any length, aligned sentence by sentence: a document of `max_tokens` tokens or more is cut
    at sentence borders into instances that are translated separately.

    Inputs are a document as a list of sentences or as text with one sentence per line, or a list of documents (lists
    of sentences). A blank sentence stays blank. Each document gives a dictionary:

    - `translation_text`: the translation, one sentence per line.
    - `sentences`: for each sentence of the document, in order, `source_text` and `translation_text`.

    Keyword arguments, here or when the pipeline is made: `max_tokens` (512, as in the paper), and those of `generate`.

    ```python
    >>> translate = pipeline("document-translation", model="path/to/checkpoint")  # doctest: +SKIP
    >>> translate("The cat sleeps.\\nIt is old.", num_beams=5)["translation_text"]  # doctest: +SKIP
    'Die Katze schläft.\\nSie ist alt.'
    ```"""

    _load_processor = True
    _load_tokenizer = False
    _load_feature_extractor = False
    _load_image_processor = False

    def _sanitize_parameters(self, max_tokens: int | None = None, **generate_kwargs: Any):
        preprocess = {} if max_tokens is None else {"max_tokens": max_tokens}
        return preprocess, generate_kwargs, {}

    def __call__(self, documents: Any, **kwargs: Any):
        """Translate one document (a string or a list of sentences) or several (a list of lists, or an iterator)."""
        if isinstance(documents, list) and all(isinstance(sentence, str) for sentence in documents):
            return super().__call__([documents], **kwargs)[0]
        return super().__call__(documents, **kwargs)

    def preprocess(self, document: str | list[str], max_tokens: int = 512) -> dict[str, Any]:
        sentences = document.replace("\r\n", "\n").split("\n") if isinstance(document, str) else list(document)
        texts = [sentence for sentence in sentences if sentence.strip()]
        encoded = self.processor.encode_sentences(texts)
        instances = [encoded[part] for part in segment([sentence_cost(len(ids)) for ids in encoded], max_tokens)]
        sources = [self.processor.build_source(instance) for instance in instances]
        inputs = self.processor.pad({"input_ids": sources, "attention_mask": [[1] * len(ids) for ids in sources]})
        return {"sentences": sentences, "inputs": inputs if sources else None}

    def _forward(self, model_inputs: dict[str, Any], **generate_kwargs: Any) -> dict[str, Any]:
        inputs = model_inputs["inputs"]
        sequences = [] if inputs is None else self.model.generate(**inputs, **generate_kwargs)
        return {"sentences": model_inputs["sentences"], "sequences": sequences}

    def postprocess(self, model_outputs: dict[str, Any]) -> dict[str, Any]:
        sequences = model_outputs["sequences"]
        translated = (text for document in self.processor.batch_decode_sentences(sequences) for text in document)
        pairs = [
            {"source_text": sentence, "translation_text": next(translated) if sentence.strip() else ""}
            for sentence in model_outputs["sentences"]
        ]
        return {"translation_text": "\n".join(pair["translation_text"] for pair in pairs), "sentences": pairs}
