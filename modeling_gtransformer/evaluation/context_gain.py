"""How much a model uses context: the conditional cross-mutual information of Fernandes et al. (2021), as the gain
in log-probability of the target's tokens with the true document against other contexts.

Every target sentence is scored by the same tokens, its words and `</s>`, whatever stands around it.
"""

import itertools
import math
import random
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from transformers.utils.logging import tqdm

from ..modeling_gtransformer import GTransformerForConditionalGeneration
from ..processing_gtransformer import GTransformerProcessor
from ..segmentation import longest_first_batches, segment
from ..token_scores import label_log_probabilities
from .bootstrap import ratio_interval
from .metrics import SEED


# Contexts that the true document is compared with.
CONTEXTS = ("shuffled", "other", "none")
# Closed classes of German words whose choice may depend on an earlier sentence. Case tells "Sie" from "sie", but not
# at the beginning of a sentence.
WORD_CLASSES = {
    "address": "Sie,Ihnen,Ihr,Ihre,Ihrem,Ihren,Ihrer,Ihres,du,dich,dir,dein,deine,deinem,deinen,deiner,deines,euch,"
    "euer,eure,eurem,euren,eurer,eures,Du,Dich,Dir,Dein,Deine,Euch,Euer,Eure",
    "pronouns": "er,sie,es,ihn,ihm,Er,Es,Ihn,Ihm",
}


@dataclass(frozen=True, eq=False)
class SentencePair:
    """A sentence of a document, from 0: word ids of both sides, and the word that each target token belongs to."""

    document: int
    number: int
    source: list[int]
    target: list[int]
    words: list[str] | None = None


Sentences = list[SentencePair]


def encode_corpus(
    processor: GTransformerProcessor,
    sources: Sequence[list[str]],
    targets: Sequence[list[str]],
    with_words: bool = False,
) -> list[Sentences]:
    """
    Documents as pairs of word ids.

    Args:
        with_words: whether to find out which word every target token is of.

    Raises:
        ValueError: a sentence has no tokens, or the tokenizer does not know where its tokens are in the text.
    """
    if with_words and not processor.tokenizer.is_fast:
        raise ValueError("Classes of words need a tokenizer that knows where its tokens are in the text (a fast one).")
    documents = []
    for document, (source, target) in enumerate(zip(sources, targets, strict=True)):
        read, written = processor.encode_sentences(source), processor.encode_sentences(target, is_target=True)
        words = [
            token_words(processor, text, ids) if with_words else None
            for text, ids in zip(target, written, strict=True)
        ]
        numbers = range(len(target))
        documents.append(list(map(SentencePair, [document] * len(target), numbers, read, written, words)))
    return documents


def token_words(processor: GTransformerProcessor, text: str, ids: list[int]) -> list[str]:
    """For every token of a sentence the word that it is part of; "" for punctuation, and for all tokens of a sentence
    that is not tokenized in one piece, as it holds the name of a structural token."""
    text = unicodedata.normalize(processor.normalization, text) if processor.normalization else text
    text = text.strip()
    encoded = processor.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    if encoded["input_ids"] != ids:
        return [""] * len(ids)
    words = [(match.start(), match.end(), match[0]) for match in re.finditer(r"\w+", text)]
    return [
        next((word for first, last, word in words if start < last and end > first), "")
        for start, end in encoded["offset_mapping"]
    ]


def in_context(
    context: str, documents: Sequence[Sentences], segment_tokens: int, frame: int, seed: int
) -> list[Sentences]:
    """
    Every sentence once, in segments as training cuts them.

    Args:
        context: "document": the true one; "shuffled": the sentences of each segment in another order, if it has
            several; "other": every sentence among those of other documents, one of each, in segments of as many
            sentences; "none": sentences alone.
        frame: tokens that are added to the words of a sentence.

    Raises:
        ValueError: there is a single document, which has no others.
    """

    def cost(pair: SentencePair) -> int:
        return max(len(pair.source), len(pair.target)) + frame

    if context == "none":
        return [[pair] for document in documents for pair in document]
    segments = [d[part] for d in documents for part in segment(list(map(cost, d)), segment_tokens)]
    rng = random.Random(seed)
    if context == "other":
        return _among_others(documents, list(map(len, segments)), segment_tokens, cost, rng)
    return segments if context == "document" else [_in_another_order(each, rng) for each in segments]


def _in_another_order(sentences: Sentences, rng: random.Random) -> Sentences:
    shuffled = list(sentences)
    while len(sentences) > 1 and shuffled == list(sentences):
        rng.shuffle(shuffled)
    return shuffled


def _among_others(
    documents: Sequence[Sentences],
    sizes: list[int],
    segment_tokens: int,
    cost: Callable[[SentencePair], int],
    rng: random.Random,
) -> list[Sentences]:
    """Segments of one sentence of each document; of as many sentences as `sizes` says, as long as there are documents
    and tokens enough."""
    if len(documents) < 2:
        raise ValueError("A single document has no sentences of other documents: leave out the context 'other'.")
    left = [rng.sample(document, len(document)) for document in documents]
    segments = []
    wanted = itertools.cycle(rng.sample(sizes, len(sizes)))
    while left := [document for document in left if document]:
        mixed: Sentences = []
        tokens = 0
        # The longest ones first, so that none is left alone in the end.
        longest_first = sorted(left, key=lambda each: (len(each), rng.random()), reverse=True)
        for document in longest_first[: next(wanted)]:
            if mixed and tokens + cost(document[-1]) >= segment_tokens:
                break
            tokens += cost(document[-1])
            mixed.append(document.pop())
        segments.append(rng.sample(mixed, len(mixed)))
    return segments


def token_log_probabilities(
    model: GTransformerForConditionalGeneration,
    processor: GTransformerProcessor,
    segments: Sequence[Sentences],
    max_tokens: int = 4096,
) -> dict[tuple[int, int], list[float]]:
    """Log-probabilities of the words and `</s>` of every target sentence, in nats, by the numbers of document and
    sentence."""
    rows = [_inputs(processor, each) for each in segments]
    lengths = [max(len(row["input_ids"]), len(row["labels"])) for row in rows]
    if max(lengths) > (most := model.config.max_document_tokens):
        raise ValueError(f"A segment has {max(lengths)} tokens, the model {most} positions: lower segment_tokens.")
    pairs = ((max(len(pair.source), len(pair.target)), pair) for segment in segments for pair in segment)
    words, longest = max(pairs, key=itemgetter(0))
    if (tokens := words + processor.sentence_tokens) > (most := model.config.max_sentence_tokens):
        place = f"Sentence {longest.number + 1} of document {longest.document + 1}"
        raise ValueError(f"{place} has {tokens} tokens, the model {most} positions: split it.")
    scores: dict[tuple[int, int], list[float]] = {}
    with tqdm(total=len(rows), desc="Scoring", unit=" segments") as bar:
        for batch in longest_first_batches(lengths, max_tokens):
            data = {name: [rows[index][name] for index in batch] for name in rows[0]}
            padded = {name: values.to(model.device) for name, values in processor.pad(data).items()}
            found = label_log_probabilities(model, **padded).tolist()
            for index, row in zip(batch, found, strict=True):
                for pair, places in zip(segments[index], _places(processor, segments[index]), strict=True):
                    scores[pair.document, pair.number] = row[places]
            bar.update(len(batch))
    return scores


def _inputs(processor: GTransformerProcessor, segment: Sentences) -> dict[str, list[int]]:
    """Model inputs; labels are -100 for the tokens of the frame, which are given."""
    source = processor.build_source([pair.source for pair in segment])
    target = processor.build_target([pair.target for pair in segment])
    labels = [-100] * (len(target) - 1)
    for places in _places(processor, segment):
        labels[places] = target[1:][places]
    return {
        "input_ids": source,
        "attention_mask": [1] * len(source),
        "decoder_input_ids": target[:-1],
        "labels": labels,
    }


def _places(processor: GTransformerProcessor, segment: Sentences) -> list[slice]:
    """Where the labels of each sentence are: its words and `</s>`."""
    frame = processor.target_frame
    places, start = [], frame.head - 1
    for pair in segment:
        start += len(frame.prefix)
        places.append(slice(start, start + len(pair.target) + 1))
        start += len(pair.target) + 1
    return places


def context_gains(
    documents: Sequence[Sentences],
    log_probabilities: Mapping[str, Mapping[tuple[int, int], list[float]]],
    word_classes: Mapping[str, Sequence[str]],
) -> dict[str, dict[str, dict[str, Any]]]:
    """
    Gain of the true document over the other contexts.

    Args:
        log_probabilities: by context, "document" among them, what [`token_log_probabilities`] gives.
        word_classes: words, by the name of their class.

    Returns:
        By context and by class ("all": all tokens): `tokens`, `documents` that have some, `gain` in bits per token and
        its 95 % `interval` by bootstrap over documents. A class that no document has is left out.
    """
    classes = {name: frozenset(words) for name, words in word_classes.items()}
    gains: dict[str, dict[str, dict[str, Any]]] = {}
    for context in (name for name in log_probabilities if name != "document"):
        rng = np.random.default_rng(SEED)  # the same draws for every context
        sums = {name: np.zeros((len(documents), 2)) for name in ("all", *classes)}
        for pair in (pair for document in documents for pair in document):
            place = pair.document, pair.number
            bits = np.subtract(log_probabilities["document"][place], log_probabilities[context][place]) / math.log(2)
            for name, sum_of in sums.items():
                # </s> is of no word.
                of_class = [name == "all" or word in classes[name] for word in (*(pair.words or pair.target), "")]
                sum_of[pair.document] += bits[of_class].sum(), sum(of_class)
        gains[context] = {name: _mean_gain(each, rng) for name, each in sums.items() if each[:, 1].any()}
    return gains


def _mean_gain(sums: np.ndarray, rng: np.random.Generator) -> dict[str, Any]:
    """The gain per token, of documents with these gains and tokens, `(documents, 2)`."""
    sums = sums[sums[:, 1] > 0]
    gain, interval = ratio_interval(sums, rng)
    return {"tokens": int(sums[:, 1].sum()), "documents": len(sums), "gain": gain, "interval": interval}
