"""How much a model depends on context, and how much it gains from it.

Dependence is the conditional cross-mutual information of Fernandes et al. (2021): the gain in log-probability of
target tokens with the true document over other contexts. Worth is the gain of the model over its twin, trained by its
recipe without context. A model can depend on context without gaining from it.

Scores are computed on the tokens of each target sentence and `</s>`, in every context.
"""

import itertools
import math
import random
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..corpora.corpus import read_documents
from ..modeling_gtransformer import GTransformerForConditionalGeneration
from ..processing_gtransformer import GTransformerProcessor
from ..runtime.atomic_file import check_outputs
from ..segmentation import segment
from ..translation_options import option
from .metrics import SEED, ratio_interval
from .report import ModelOptions, write_report
from .sentence_scores import check_positions, load_model, log_probabilities_by_sentence


# Alternatives to the true document.
CONTEXTS = ["shuffled", "other", "none"]
# Closed classes of German words whose choice may depend on an earlier sentence. Case distinguishes "Sie" from "sie",
# except at the start of a sentence.
WORD_CLASSES = {
    "formality": "Sie,Ihnen,Ihr,Ihre,Ihrem,Ihren,Ihrer,Ihres,du,dich,dir,dein,deine,deinem,deinen,deiner,deines,euch,"
    "euer,eure,eurem,euren,eurer,eures,Du,Dich,Dir,Dein,Deine,Euch,Euer,Eure",
    "pronouns": "er,sie,es,ihn,ihm,Er,Es,Ihn,Ihm",
}


@dataclass(frozen=True)
class ContextOptions(ModelOptions):
    """Options of `gtransformer evaluate context`."""

    files: list[str] = option(MISSING, "Documents with their reference translations.", argument=True)
    twin: str | None = option(None, "Model of this recipe without context: measures what context is worth.")
    source_column: str = option("source", "Column with the source sentences.")
    target_column: str = option("target", "Column with the reference translations.")
    contexts: list[str] = option(CONTEXTS, "Contexts to compare the true document with.")
    words: list[str] = option([], "Classes of words: formality, pronouns, or your own as name=word,word,...")
    segment_tokens: int = option(512, "Segments have fewer tokens than this.", 1)
    seed: int = option(1, "Seed of random contexts.")

    def __post_init__(self) -> None:
        if unknown := sorted({*self.contexts} - {*CONTEXTS}):
            raise ValueError(f"contexts must be among {', '.join(CONTEXTS)}, not {', '.join(unknown)}.")
        names = ["all", *(name for name, _ in map(word_class, self.words))]  # the class of all words is predefined
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"words: {', '.join(twice)} is the name of several classes of words.")


def word_class(text: str) -> tuple[str, list[str]]:
    """Parses `name` or `name=word,word`. Raises `ValueError` for an unknown name without words."""
    name, _, words = text.partition("=")
    words = words or WORD_CLASSES.get(name, "")
    if not words:
        known = ", ".join(WORD_CLASSES)
        raise ValueError(f"words: {text!r} is neither one of {known} nor a class name=word,word.")
    return name, words.split(",")


def evaluate_context(options: ContextOptions) -> dict[str, Any]:
    """
    Prints and returns the `gains` of the true document over every other context, `worth`, the gain over the twin if
    any, and the mean number of `sentences` in an input of each context.

    A twin with only group attention reads documents, so that positions are equal. Other twins read single sentences.

    Raises:
        ValueError: a segment or sentence is longer than the model's positions, or the twin has another tokenizer.
    """
    check_outputs([options.json], options.files)
    columns = [options.source_column, options.target_column]
    corpus = read_documents(options.files, columns)
    classes = dict(map(word_class, options.words))
    sources, targets = ([document[column] for document in corpus] for column in columns)
    model, processor = load_model(options.model, options.src_lang, options.tgt_lang)
    documents = encode_corpus(processor, sources, targets, with_words=bool(classes))

    def segments_in(context: str, documents: list[Sentences]) -> list[Sentences]:
        return in_context(context, documents, options.segment_tokens, processor.sentence_tokens, options.seed)

    segments = {context: segments_in(context, documents) for context in ("document", *options.contexts)}
    scores = {
        context: token_log_probabilities(model, processor, cut, options.max_tokens)
        for context, cut in segments.items()
    }
    if options.twin:
        twin, its_processor = load_model(options.twin, options.src_lang, options.tgt_lang)
        its_documents = encode_corpus(its_processor, sources, targets)
        if [p.target for d in its_documents for p in d] != [p.target for d in documents for p in d]:
            raise ValueError(f"{options.twin} is not a twin of {options.model}: it tokenizes references differently.")
        kinds = {kind for stack in ("encoder", "decoder", "cross") for kind in twin.config.attention_types(stack)}
        cut = segments_in("document" if kinds == {"group"} else "none", its_documents)
        scores["twin"] = token_log_probabilities(twin, its_processor, cut, options.max_tokens)
    gains = context_gains(documents, scores, classes)
    sentences = sum(map(len, documents))
    results = {
        "gains": {context: gains[context] for context in options.contexts},
        **({"worth": gains["twin"]} if options.twin else {}),
        "sentences": {context: sentences / len(cut) for context, cut in segments.items()},
    }
    print(_table(results))
    write_report("evaluate context", options, {**results, "corpus": [Path(file).name for file in options.files]})
    return results


def _table(results: dict[str, Any]) -> str:
    lines = ["bits per target token by which the model with the true document is better"]
    rows = {f"than {context}": of_classes for context, of_classes in results["gains"].items()}
    for label, of_classes in (rows | {"than its twin": results.get("worth", {})}).items():
        for name, gain in of_classes.items():
            low, high = gain["interval"]
            line = f"{label:14} {name:12} {gain['gain']:+8.4f}   95 % [{low:+.4f}, {high:+.4f}]"
            lines.append(f"{line}   {gain['tokens']} tokens of {gain['documents']} documents")
    lines += [f"{size:6.1f} sentences together: {context}" for context, size in results["sentences"].items()]
    return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class SentencePair:
    """A sentence pair: numbers of document and sentence, from 0, token ids, and the word of each target token."""

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
    Encodes documents as pairs of token ids.

    Args:
        with_words: whether to find the word of every target token.

    Raises:
        ValueError: a sentence has no tokens, or the tokenizer does not map tokens to their places in the text.
    """
    if with_words and not processor.tokenizer.is_fast:
        raise ValueError("Classes of words need a fast tokenizer, which maps tokens to their places in the text.")
    documents = []
    for document, (source, target) in enumerate(zip(sources, targets, strict=True)):
        read, written = processor.encode_sentences(source), processor.encode_sentences(target, is_target=True)
        words = [
            token_words(processor, text, ids) if with_words else None
            for text, ids in zip(target, written, strict=True)
        ]
        pairs = zip(read, written, words, strict=True)
        documents.append([SentencePair(document, number, *pair) for number, pair in enumerate(pairs)])
    return documents


def token_words(processor: GTransformerProcessor, text: str, ids: list[int]) -> list[str]:
    """
    Returns the word of every token of a sentence: "" for punctuation, and for all tokens of a sentence with the name
    of a structural token, which is not tokenized as one text.
    """
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
    context: str, documents: Sequence[Sentences], segment_tokens: int, template: int, seed: int
) -> list[Sentences]:
    """
    Puts every sentence into one segment, cut as in training.

    Args:
        context: "document": the true document; "shuffled": the sentences of each segment in another order, if it has
            several; "other": sentences of different documents, in segments with the numbers of sentences of the
            document; "none": single sentences.
        template: number of template tokens per sentence.

    Raises:
        ValueError: the context "other" needs several documents.
    """

    def cost(pair: SentencePair) -> int:
        return max(len(pair.source), len(pair.target)) + template

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
    """Makes segments of sentences from different documents. They have the sizes in `sizes`, as far as there are enough
    documents and tokens."""
    if len(documents) < 2:
        raise ValueError("A single document has no sentences of other documents: omit the context 'other'.")
    left = [rng.sample(document, len(document)) for document in documents]
    segments = []
    wanted = itertools.cycle(rng.sample(sizes, len(sizes)))
    while left := [document for document in left if document]:
        mixed: Sentences = []
        tokens = 0
        # Documents with more remaining sentences come first, so that no sentence is alone at the end.
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
    """Computes the log-probabilities of the tokens and `</s>` of every target sentence, in nats, by the numbers of
    document and sentence."""
    documents = [([pair.source for pair in each], [pair.target for pair in each]) for each in segments]
    names = (f"Document {each[0].document + 1} from sentence {each[0].number + 1} on" for each in segments)
    check_positions(model, processor, zip(names, documents, strict=True))
    scores = log_probabilities_by_sentence(model, processor, documents, max_tokens)
    pairs = zip(itertools.chain(*segments), itertools.chain(*scores), strict=True)
    return {(pair.document, pair.number): of_sentence for pair, of_sentence in pairs}


def context_gains(
    documents: Sequence[Sentences],
    log_probabilities: Mapping[str, Mapping[tuple[int, int], list[float]]],
    word_classes: Mapping[str, Sequence[str]],
) -> dict[str, dict[str, dict[str, Any]]]:
    """
    Computes the gain of the true document over other contexts.

    Args:
        log_probabilities: results of [`token_log_probabilities`] by context, including "document".
        word_classes: words by the name of their class.

    Returns:
        By context and class ("all": all tokens): number of `tokens`, number of `documents` with such tokens, `gain` in
        bits per token, and its 95 % bootstrap `interval` over documents. Classes without tokens are omitted.
    """
    classes = {name: frozenset(words) for name, words in word_classes.items()}
    gains: dict[str, dict[str, dict[str, Any]]] = {}
    for context in (name for name in log_probabilities if name != "document"):
        rng = np.random.default_rng(SEED)  # equal draws for all contexts
        sums = {name: np.zeros((len(documents), 2)) for name in ("all", *classes)}
        for pair in itertools.chain(*documents):
            place = pair.document, pair.number
            bits = np.subtract(log_probabilities["document"][place], log_probabilities[context][place]) / math.log(2)
            for name, sum_of in sums.items():
                # </s> belongs to no word.
                of_class = [name == "all" or word in classes[name] for word in (*(pair.words or pair.target), "")]
                sum_of[pair.document] += bits[of_class].sum(), sum(of_class)
        gains[context] = {name: _mean_gain(each, rng) for name, each in sums.items() if each[:, 1].any()}
    return gains


def _mean_gain(sums: np.ndarray, rng: np.random.Generator) -> dict[str, Any]:
    """Computes the gain per token from gains and numbers of tokens by document, `(documents, 2)`."""
    sums = sums[sums[:, 1] > 0]
    gain, interval = ratio_interval(sums, rng)
    return {"tokens": int(sums[:, 1].sum()), "documents": len(sums), "gain": gain, "interval": interval}
