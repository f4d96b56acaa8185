"""Trims a checkpoint to the tokens of a text: a smaller output layer, with the same logits for the remaining tokens.

The trimmed checkpoint has the tokens of the text, all special tokens and language codes, and every single character,
however rare, so that words that are not in the text can still be spelled. Before anything appears in the output, the
command checks that the given text is still cut into the same pieces.
"""

import itertools
from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

from transformers import PreTrainedConfig

from ..configuration_gtransformer import GTransformerConfig
from ..corpora.corpus import read_documents
from ..corpora.corpus_files import files_of, has_columns
from ..modeling_gtransformer import GTransformerForConditionalGeneration
from ..processing_gtransformer import GTransformerProcessor
from ..runtime.atomic_file import atomic_folder
from ..sentence_level_models import ONLY_GROUP
from ..translation_options import option
from .licenses import keep_origin
from .vocabularies import Vocabulary, renumber, vocabularies


# Ends of the names of configuration fields that hold token ids.
ID_FIELDS = ("token_id", "suppress_tokens", "words_ids", "sequence_bias")


@dataclass(frozen=True)
class VocabularyOptions:
    """Options of `gtransformer convert vocabulary`."""

    checkpoint: str = option(
        MISSING, "Folder or Hub name of a G-Transformer or a sentence-level checkpoint.", argument=True
    )
    output: Path = option(MISSING, "New folder for the trimmed checkpoint.", argument=True)
    text: list[str] = option(MISSING, "Text whose tokens remain: .jsonl[.gz|.xz], or one sentence per line.")
    source_column: str = option("source", "Column that holds the source sentences.")
    target_column: str = option("target", "Column that holds the target sentences.")


def convert_vocabulary(options: VocabularyOptions) -> None:
    """
    Writes the trimmed checkpoint, and prints what became smaller.

    Raises:
        ValueError: the tokenizer has a type that cannot be trimmed, or belongs to another model.
    """
    with atomic_folder(options.output) as folder:
        print(_trim(options, folder))


def _trim(args: VocabularyOptions, folder: Path) -> str:
    texts = read_texts(args.text, [args.source_column, args.target_column])
    processor = GTransformerProcessor.from_pretrained(args.checkpoint)
    model = GTransformerForConditionalGeneration.from_pretrained(args.checkpoint, **as_it_translates(args.checkpoint))

    sizes, parameters = (model.config.vocab_size, model.config.decoder_vocab_size), model.num_parameters()
    parts = vocabularies(processor.tokenizer)
    kept = tokens_to_keep(model, processor, parts, texts)
    if [len(ids) for ids in kept] == [*sizes[: len(kept)]]:
        return f"All {sizes[0]} tokens are needed: there is nothing to trim, so {args.output} was not written."
    new_ids = [{old: new for new, old in enumerate(ids)} for ids in kept]
    processor.save_pretrained(folder)
    for vocabulary, ids in zip(parts, new_ids, strict=True):
        vocabulary.write(folder, ids)
    check_tokenization(processor, GTransformerProcessor.from_pretrained(folder), new_ids, texts)
    trim_model(model, new_ids)
    model.save_pretrained(folder)
    keep_origin(folder, args.checkpoint)
    tokens = " and ".join(f"{size} -> {len(ids)}" for size, ids in zip(sizes, kept, strict=False))
    millions = f"{parameters / 1e6:.1f}M -> {model.num_parameters() / 1e6:.1f}M"
    return f"{tokens} tokens, parameters {millions}, in {args.output}"


def as_it_translates(checkpoint: str) -> dict[str, int]:
    """Gives the configuration fields with which a sentence-level translator still translates as before."""
    config, _ = PreTrainedConfig.get_config_dict(checkpoint)
    is_sentence_level = config.get("model_type") != GTransformerConfig.model_type
    return ONLY_GROUP if is_sentence_level and GTransformerConfig.from_dict(config).template.translates else {}


def read_texts(files: Sequence[str], columns: Sequence[str]) -> list[list[str]]:
    """Reads the sentences of every document: those in the columns, or all of a text file, aligned or not."""
    texts = []
    for file in (file for given in files for file in files_of(given)):
        names = columns if has_columns(file) else ["text"]
        texts += [document[name] for document in read_documents([file], names) for name in names]
    return texts


def tokens_to_keep(
    model, processor: GTransformerProcessor, parts: Sequence[Vocabulary], texts: Sequence[list[str]]
) -> list[list[int]]:
    """
    Collects the ids to keep in each vocabulary, ascending: those of the text, of everything that is not a word or that
    a configuration names, and of the pieces that spell words.

    Raises:
        ValueError: the tokenizer belongs to another model.
    """
    tokenizer, size = processor.tokenizer, model.config.vocab_size
    if max(tokenizer.get_vocab().values()) >= size:
        raise ValueError(
            f"The tokenizer has {len(tokenizer)} tokens, the model {size}: this tokenizer belongs to another model, "
            "or model.resize_token_embeddings(len(processor.tokenizer)) was forgotten."
        )
    needed = {*processor.structural_token_ids, *tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
    named = {token for _, _, value in id_fields(model) for token in ids_in(value)}
    kept = []
    for vocabulary, sides in zip(parts, [[False], [True]] if len(parts) > 1 else [[False, True]], strict=True):
        # The model may have embeddings that belong to no token.
        words = needed | (named & {*vocabulary.ids.values()})
        for text in texts:
            words |= {token for side in sides for ids in processor.encode_sentences(text, side) for token in ids}
        kept.append(sorted(vocabulary.with_spelling(words)))
    return with_one_padding(kept, processor.pad_token_id)


def with_one_padding(kept: list[list[int]], pad: int) -> list[list[int]]:
    """Adds ids to one of the vocabularies until padding has the same new id in both."""
    before = max(ids.index(pad) for ids in kept)
    filled = []
    for ids in kept:
        others = iter(sorted({*range(pad)} - {*ids}))
        filled.append(sorted([*ids, *itertools.islice(others, before - ids.index(pad))]))
    return filled


def check_tokenization(
    processor: GTransformerProcessor,
    trimmed: GTransformerProcessor,
    new_ids: Sequence[dict[int, int]],
    texts: Sequence[list[str]],
) -> None:
    """
    Compares the trimmed processor, as it was saved, with the original.

    Raises:
        ValueError: the id of a token is not that of its embedding, or a sentence is cut into other pieces.
    """
    parts = zip(vocabularies(processor.tokenizer), vocabularies(trimmed.tokenizer), new_ids, strict=True)
    for vocabulary, other, kept in parts:
        if other.ids != {token: kept[old] for token, old in vocabulary.ids.items() if old in kept}:
            raise ValueError(
                f"{type(trimmed.tokenizer).__name__} does not load the remaining tokens: it cannot be trimmed."
            )
    for text, is_target in itertools.product(texts, (False, True)):
        expected = renumber(processor.encode_sentences(text, is_target), new_ids[-1 if is_target else 0])
        for sentence, *ids in zip(text, expected, trimmed.encode_sentences(text, is_target), strict=True):
            if ids[0] != ids[1]:
                raise ValueError(f"The trimmed tokenizer cuts {sentence!r} into other pieces: it cannot be trimmed.")


def trim_model(model, new_ids: Sequence[dict[int, int]]) -> None:
    """Keeps only the rows of embeddings and output layer that have a new id, in a model that is yet to be saved."""
    source, target, stacks = new_ids[0], new_ids[-1], model.model
    rows = {stacks.encoder.embed_tokens.weight: source, stacks.decoder.embed_tokens.weight: target}
    rows[model.lm_head.weight] = target
    for weight, ids in rows.items():  # one vocabulary, unless the configuration unties them
        weight.data = weight.data[[*ids]]
    model.final_logits_bias = model.final_logits_bias[:, [*target]]
    if model.generation_config.suppress_tokens:
        kept = [token for token in model.generation_config.suppress_tokens if token in target]
        model.generation_config.suppress_tokens = kept or None
    for config, name, value in id_fields(model):
        setattr(config, name, renumber(value, target))
    model.config.vocab_size, model.config.decoder_vocab_size = len(source), len(target)


def id_fields(model) -> list[tuple[Any, str, Any]]:
    """Yields `(configuration, name, value)` of all the model's settings that hold token ids."""
    configs = (model.config, model.generation_config)
    return [(c, name, value) for c in configs for name, value in c.to_dict().items() if name.endswith(ID_FIELDS)]


def ids_in(value: Any) -> set[int]:
    """Yields the ids in nested lists of ids; a float, as in `sequence_bias`, is not an id."""
    if isinstance(value, list):
        return {token for item in value for token in ids_in(item)}
    return {value} if isinstance(value, int) else set()
