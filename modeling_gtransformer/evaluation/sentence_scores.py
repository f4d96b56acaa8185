"""Log-probabilities of given target sentences in context."""

from collections.abc import Iterable, Sequence

from transformers.utils.logging import tqdm

from ..document_loss import label_log_probabilities
from ..modeling_gtransformer import GTransformerForConditionalGeneration
from ..processing_gtransformer import GTransformerProcessor
from ..runtime.translator import Translator
from ..segmentation import longest_first_batches


Sentences = list[list[int]]
# Token ids of the source sentences and of the target sentences.
EncodedDocument = tuple[Sentences, Sentences]


def load_model(
    name: str, src_lang: str | None = None, tgt_lang: str | None = None
) -> tuple[GTransformerForConditionalGeneration, GTransformerProcessor]:
    """Loads a G-Transformer or a sentence-level model, and its processor for these languages."""
    translate = Translator(name, src_lang, tgt_lang).pipeline
    return translate.model.eval(), translate.processor


def check_positions(
    model: GTransformerForConditionalGeneration,
    processor: GTransformerProcessor,
    documents: Iterable[tuple[str, EncodedDocument]],
) -> None:
    """
    Checks that named documents fit the positions of a model.

    Raises:
        ValueError: a document, or a sentence of a model with positions per sentence, is too long.
    """
    for name, (source, target) in documents:
        tokens = max(len(processor.build_source(source)), len(processor.build_target(target)) - 1)
        if tokens > (limit := model.config.max_document_tokens):
            raise ValueError(f"{name} has {tokens} tokens, the model {limit} positions: use less context.")
        tokens = max(map(len, [*source, *target])) + processor.sentence_tokens
        if tokens > (limit := model.config.max_sentence_tokens):
            raise ValueError(f"{name} has a sentence of {tokens} tokens, the model {limit} positions: split it.")


def log_probabilities_by_sentence(
    model: GTransformerForConditionalGeneration,
    processor: GTransformerProcessor,
    documents: Sequence[EncodedDocument],
    max_tokens: int = 4096,
    progress: bool = True,
) -> list[list[list[float]]]:
    """
    Computes the log-probabilities of the tokens and `</s>` of every target sentence of every document, in nats, given
    the other tokens of the template.
    """
    rows = [_inputs(processor, *document) for document in documents]
    lengths = [max(len(row["input_ids"]), len(row["labels"])) for row in rows]
    scores: list[list[list[float]]] = [[] for _ in rows]
    with tqdm(total=len(rows), desc="Scoring", unit=" segments", disable=not progress) as bar:
        for batch in longest_first_batches(lengths, max_tokens):
            data = {name: [rows[index][name] for index in batch] for name in rows[0]}
            padded = {name: values.to(model.device) for name, values in processor.pad(data).items()}
            for index, row in zip(batch, label_log_probabilities(model, **padded).tolist(), strict=True):
                scores[index] = [row[places] for places in _places(processor, documents[index][1])]
            bar.update(len(batch))
    return scores


def _inputs(processor: GTransformerProcessor, source: Sentences, target: Sentences) -> dict[str, list[int]]:
    """Makes model inputs; labels of template tokens are -100."""
    input_ids, target_ids = processor.build_source(source), processor.build_target(target)
    labels = [-100] * (len(target_ids) - 1)
    for places in _places(processor, target):
        labels[places] = target_ids[1:][places]
    mask = [1] * len(input_ids)
    return {"input_ids": input_ids, "attention_mask": mask, "decoder_input_ids": target_ids[:-1], "labels": labels}


def _places(processor: GTransformerProcessor, target: Sentences) -> list[slice]:
    """Returns the labels of each sentence: its tokens and `</s>`."""
    template = processor.target_template
    places, start = [], template.head - 1
    for words in target:
        start += len(template.prefix)
        places.append(slice(start, start + len(words) + 1))
        start += len(words) + 1
    return places
