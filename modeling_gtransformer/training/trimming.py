"""Trims a checkpoint to the tokens of a text. Logits of the remaining tokens do not change.

The trimmed checkpoint has the tokens of the text, all special tokens and language codes, and every single character,
so that other words can still be spelled. The command checks that the tokenization of the text does not change before
it writes the output.
"""

import itertools
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

from transformers import PreTrainedConfig, PreTrainedTokenizerBase

from ..configuration_gtransformer import GTransformerConfig
from ..corpora.corpus import read_documents
from ..corpora.corpus_files import files_of, has_columns
from ..modeling_gtransformer import GTransformerForConditionalGeneration
from ..processing_gtransformer import GTransformerProcessor
from ..runtime.atomic_file import atomic_folder
from ..sentence_level_models import ONLY_GROUP
from ..translation_options import option
from .licenses import keep_origin


# Suffixes of configuration fields with token ids.
ID_FIELDS = ("token_id", "suppress_tokens", "words_ids", "sequence_bias")
NewIds = dict[int, int]


@dataclass(frozen=True)
class VocabularyOptions:
    """Options of `gtransformer convert vocabulary`."""

    checkpoint: str = option(
        MISSING, "Folder or Hub name of a G-Transformer or a sentence-level checkpoint.", argument=True
    )
    output: Path = option(MISSING, "New folder for the trimmed checkpoint.", argument=True)
    text: list[str] = option(MISSING, "Text whose tokens remain: .jsonl[.gz|.xz], or one sentence per line.")
    source_column: str = option("source", "Column with the source sentences.")
    target_column: str = option("target", "Column with the target sentences.")


def convert_vocabulary(options: VocabularyOptions) -> None:
    """
    Writes the trimmed checkpoint, and prints its size.

    Raises:
        ValueError: the type of the tokenizer is not supported, or it belongs to another model.
    """
    checkpoint, output = options.checkpoint, options.output
    with atomic_folder(output) as folder:
        texts = read_texts(options.text, [options.source_column, options.target_column])
        processor = GTransformerProcessor.from_pretrained(checkpoint)
        model = GTransformerForConditionalGeneration.from_pretrained(checkpoint, **as_it_translates(checkpoint))

        if model.adapter_base:
            raise ValueError(f"{checkpoint} is an adapter: trim its base {model.adapter_base} before the training.")
        size, parameters = model.config.vocab_size, model.num_parameters()
        vocabulary = Vocabulary(processor.tokenizer)
        kept = tokens_to_keep(model, processor, vocabulary, texts)
        if len(kept) == size:
            print(f"All {size} tokens are needed: there is nothing to trim, so {output} was not written.")
            return
        new_ids = {old: new for new, old in enumerate(kept)}
        processor.save_pretrained(folder)
        vocabulary.write(folder, new_ids)
        check_tokenization(processor, GTransformerProcessor.from_pretrained(folder), new_ids, texts)
        trim_model(model, new_ids)
        # Tensors that the checkpoint lacks are still random: they stay missing, for the training to initialise.
        weights = {name: each for name, each in model.state_dict().items() if name not in model.missing_tensors}
        model.save_pretrained(folder, state_dict=weights)
        keep_origin(folder, checkpoint)
        millions = f"{parameters / 1e6:.1f}M -> {model.num_parameters() / 1e6:.1f}M"
        print(f"{size} -> {len(kept)} tokens, parameters {millions}, in {output}")


def as_it_translates(checkpoint: str) -> dict[str, int]:
    """Returns configuration fields that preserve the translations of a sentence-level checkpoint."""
    config, _ = PreTrainedConfig.get_config_dict(checkpoint)
    is_sentence_level = config.get("model_type") != GTransformerConfig.model_type
    return ONLY_GROUP if is_sentence_level and GTransformerConfig.from_dict(config).template.translates else {}


def read_texts(files: Sequence[str], columns: Sequence[str]) -> list[list[str]]:
    """Reads the sentences of every document: those in the columns, or all lines of a text file."""
    texts = []
    for file in (file for given in files for file in files_of(given)):
        names = columns if has_columns(file) else ["text"]
        texts += [document[name] for document in read_documents([file], names) for name in names]
    return texts


def tokens_to_keep(
    model, processor: GTransformerProcessor, vocabulary: "Vocabulary", texts: Sequence[list[str]]
) -> list[int]:
    """
    Returns the ids to keep, ascending: tokens of the text, special tokens, tokens in the configuration, and pieces
    that spell words.

    Raises:
        ValueError: the tokenizer belongs to another model.
    """
    tokenizer, size = processor.tokenizer, model.config.vocab_size
    if max(tokenizer.get_vocab().values()) >= size:
        raise ValueError(
            f"The tokenizer has {len(tokenizer)} tokens, the model {size}: this tokenizer belongs to another model, "
            "or you must call model.resize_token_embeddings(len(processor.tokenizer)) first."
        )
    needed = {*processor.structural_token_ids, *tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
    # Embeddings may have rows without a token.
    needed |= {token for _, _, value in id_fields(model) for token in ids_in(value)} & {*vocabulary.ids.values()}
    for text in texts:
        for is_target in (False, True):
            needed |= {token for ids in processor.encode_sentences(text, is_target) for token in ids}
    return sorted(vocabulary.with_spelling(needed))


def check_tokenization(
    processor: GTransformerProcessor, trimmed: GTransformerProcessor, new_ids: NewIds, texts: Sequence[list[str]]
) -> None:
    """
    Compares the saved trimmed processor with the original.

    Raises:
        ValueError: a token does not have the id of its embedding, or the tokenization of a sentence changes.
    """
    ids = processor.tokenizer.get_vocab()
    if trimmed.tokenizer.get_vocab() != {token: new_ids[old] for token, old in ids.items() if old in new_ids}:
        raise ValueError(
            f"{type(trimmed.tokenizer).__name__} does not load the remaining tokens: it cannot be trimmed."
        )
    for text, is_target in itertools.product(texts, (False, True)):
        expected = renumber(processor.encode_sentences(text, is_target), new_ids)
        for sentence, *pair in zip(text, expected, trimmed.encode_sentences(text, is_target), strict=True):
            if pair[0] != pair[1]:
                raise ValueError(f"The trimmed tokenizer tokenizes {sentence!r} differently: it cannot be trimmed.")


def trim_model(model, new_ids: NewIds) -> None:
    """Keeps the rows of embeddings and output layer that have a new id."""
    embeddings = (model.model.encoder.embed_tokens, model.model.decoder.embed_tokens, model.lm_head)
    for weight in {layer.weight for layer in embeddings}:  # one if tied
        weight.data = weight.data[[*new_ids]]
    model.final_logits_bias = model.final_logits_bias[:, [*new_ids]]
    if model.generation_config.suppress_tokens:
        kept = [token for token in model.generation_config.suppress_tokens if token in new_ids]
        model.generation_config.suppress_tokens = kept or None
    for config, name, value in id_fields(model):
        setattr(config, name, renumber(value, new_ids))
    model.config.vocab_size = model.config.decoder_vocab_size = len(new_ids)


def id_fields(model) -> list[tuple[Any, str, Any]]:
    """Returns `(configuration, name, value)` of all settings with token ids."""
    configs = (model.config, model.generation_config)
    return [(c, name, value) for c in configs for name, value in c.to_dict().items() if name.endswith(ID_FIELDS)]


def ids_in(value: Any) -> set[int]:
    """Returns the ids in nested lists; floats, as in `sequence_bias`, are not ids."""
    if isinstance(value, list):
        return {token for item in value for token in ids_in(item)}
    return {value} if isinstance(value, int) else set()


def renumber(value: Any, new_ids: NewIds) -> Any:
    """Replaces ids in nested lists; other numbers do not change."""
    if isinstance(value, list):
        return [renumber(item, new_ids) for item in value]
    return new_ids.get(value, value) if isinstance(value, int) else value


class Vocabulary:
    """
    The vocabulary in a `tokenizer.json`, of type Unigram or BPE.

    Raises:
        ValueError: the tokenizer has no such vocabulary.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase):
        backend = getattr(tokenizer, "backend_tokenizer", None)
        self.content: dict[str, Any] = (
            json.loads(backend.to_str()) if backend else {"model": {"type": type(tokenizer).__name__}}
        )
        self.model = self.content["model"]
        if self.model["type"] not in ("Unigram", "BPE"):
            raise ValueError(
                f"Only tokenizer.json of the types Unigram and BPE can be trimmed, not {self.model['type']}."
            )
        self.ids = tokenizer.get_vocab()

    def with_spelling(self, kept: set[int]) -> set[int]:
        """Adds the ids of tokens that spell any word, or that merge into kept tokens."""
        return self._with_characters(kept) if self.model["type"] == "Unigram" else self._with_merged(kept)

    def _with_characters(self, kept: set[int]) -> set[int]:
        """Adds characters and, for models with byte fallback, bytes."""
        scores = [score for _, score in self.model["vocab"]]
        spelling = {f"<0x{byte:02X}>" for byte in range(256)} if self.model["byte_fallback"] else set()
        kept = kept | {i for i, (piece, _) in enumerate(self.model["vocab"]) if len(piece) == 1 or piece in spelling}
        # Scores of unknown characters derive from the lowest score. If it rose, they could displace known pieces.
        return (kept | {scores.index(min(scores)), self.model["unk_id"]}) - {None}

    def _with_merged(self, kept: set[int]) -> set[int]:
        """Adds tokens that merge into kept ones, and the base alphabet, which has no merges."""
        ids = self.model["vocab"]
        parts: dict[int, set[int]] = defaultdict(set)
        for (left, right), merged in self._merges():
            parts[merged] |= {ids[left], ids[right]}
        kept = new = kept | (set(ids.values()) - parts.keys())
        while new:
            new = {part for token in new for part in parts.get(token, ())} - kept
            kept = kept | new
        return kept

    def _merges(self) -> Iterator[tuple[list[str], int]]:
        """Yields the merges of BPE with the ids of their results."""
        prefix = len(self.model["continuing_subword_prefix"] or "")
        for left, right in self.model["merges"]:
            yield [left, right], self.model["vocab"][left + right[prefix:]]

    def write(self, folder: Path, new_ids: NewIds) -> None:
        """Writes the trimmed vocabulary into the folder of a saved tokenizer."""
        content = json.loads(json.dumps(self.content))
        model, template = content["model"], content["post_processor"] or {}
        if model["type"] == "Unigram":
            model["vocab"] = [piece for old, piece in enumerate(model["vocab"]) if old in new_ids]
            model["unk_id"] = renumber(model["unk_id"], new_ids)
        else:
            model["merges"] = [merge for merge, merged in self._merges() if merged in new_ids]
            model["vocab"] = {token: new_ids[old] for token, old in model["vocab"].items() if old in new_ids}
        holders = [*content["added_tokens"], content["padding"] or {}]
        for part in template.get("processors", [template]):
            holders += [part, *part.get("special_tokens", {}).values()]
        for holder in holders:
            for name in {"id", "ids", "pad_id", "cls", "sep"} & holder.keys():
                holder[name] = renumber(holder[name], new_ids)
        (folder / "tokenizer.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
