"""Trim a checkpoint to the tokens of one's own text: a smaller output layer, the same logits for what is left.

    python train/trim_vocabulary.py outputs/mbart25 outputs/mbart25.small --text train.jsonl news.de \
        --source_column en --target_column de

Keeps the tokens of the text, all special tokens and language codes, and every single character, however rare, so that
words that the text does not have can still be spelled. The given text keeps its pieces: this is checked before
anything appears in the output.
"""

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from modeling_gtransformer import GTransformerForConditionalGeneration, GTransformerProcessor
from modeling_gtransformer.training.corpus import JSON_LINES, read_documents


# How the names of those fields of a configuration end that hold token ids.
ID_FIELDS = ("token_id", "suppress_tokens", "words_ids", "sequence_bias")


def main(argv: list[str]) -> None:
    args = parse_arguments(argv)
    output = Path(args.output)
    if output.is_file() or (output.is_dir() and any(output.iterdir())):
        raise FileExistsError(f"{output} exists and is no empty folder: give another one.")
    texts = read_texts(args.text, [args.source_column, args.target_column])
    processor = GTransformerProcessor.from_pretrained(args.checkpoint)
    model = GTransformerForConditionalGeneration.from_pretrained(args.checkpoint)

    size, parameters = model.config.vocab_size, model.num_parameters()
    kept = tokens_to_keep(model, processor, texts)
    if len(kept) == size:
        print(f"All {size} tokens are needed: there is nothing to trim, and {output} is not written.")
        return
    new_ids = {old: new for new, old in enumerate(kept)}
    output.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=output.parent, prefix=f"{output.name}.partial.") as folder:
        partial = Path(folder, "checkpoint")
        processor.save_pretrained(partial)
        content = json.dumps(trim_tokenizer(processor.tokenizer, new_ids), ensure_ascii=False)
        (partial / "tokenizer.json").write_text(content, encoding="utf-8")
        check_tokenization(processor, GTransformerProcessor.from_pretrained(partial), new_ids, texts)
        trim_model(model, new_ids)
        model.save_pretrained(partial)
        os.replace(partial, output)
    millions = f"{parameters / 1e6:.1f}M -> {model.num_parameters() / 1e6:.1f}M"
    print(f"{size} -> {len(kept)} tokens, parameters {millions}, in {output}")


def read_texts(files: Sequence[str], columns: Sequence[str]) -> list[list[str]]:
    """The sentences of every document: of JSON lines those in the columns, of text files all, aligned or not."""
    texts = []
    for file in files:
        names = columns if file.endswith(JSON_LINES) else ["text"]
        texts += [document[name] for document in read_documents([file], names) for name in names]
    return texts


def tokens_to_keep(model, processor: GTransformerProcessor, texts: Sequence[list[str]]) -> list[int]:
    """
    The ids, ascending, of the text, of all that is no word or that a configuration names, and of what spells words.

    Raises:
        ValueError: the tokenizer belongs to another model, or has a vocabulary of another kind than Unigram and BPE.
    """
    tokenizer, size = processor.tokenizer, model.config.vocab_size
    if max(tokenizer.get_vocab().values()) >= size:
        raise ValueError(
            f"The tokenizer has {len(tokenizer)} tokens, the model {size}: this tokenizer belongs to another model, "
            "or model.resize_token_embeddings(len(processor.tokenizer)) was forgotten."
        )
    vocabulary = tokenizer_json(tokenizer)["model"]
    kept = {token for text in texts for words in processor.encode_sentences(text) for token in words}
    kept |= {*processor.structural_token_ids, *tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
    known = {*tokenizer.get_vocab().values()}  # the model may have rows without a token
    kept |= {token for _, _, value in id_fields(model) for token in ids_in(value) if token in known}
    return sorted({"Unigram": with_characters, "BPE": with_merged}[vocabulary["type"]](vocabulary, kept))


def tokenizer_json(tokenizer) -> dict[str, Any]:
    """Content of the tokenizer's `tokenizer.json`."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    content = json.loads(backend.to_str()) if backend else {"model": {"type": type(tokenizer).__name__}}
    if (kind := content["model"]["type"]) not in ("Unigram", "BPE"):
        raise ValueError(f"Only tokenizers of the kinds Unigram and BPE can be trimmed, this one is a {kind}.")
    return content


def with_characters(vocabulary: dict[str, Any], kept: set[int]) -> set[int]:
    """Add to the ids of a Unigram vocabulary those that spell any word: characters, and bytes if it falls back."""
    scores = [score for _, score in vocabulary["vocab"]]
    spelling = {f"<0x{byte:02X}>" for byte in range(256)} if vocabulary["byte_fallback"] else set()
    kept = kept | {i for i, (piece, _) in enumerate(vocabulary["vocab"]) if len(piece) == 1 or piece in spelling}
    # The lowest score is the measure for unknown characters: if it rose, these could displace known pieces.
    return (kept | {scores.index(min(scores)), vocabulary["unk_id"]}) - {None}


def with_merged(vocabulary: dict[str, Any], kept: set[int]) -> set[int]:
    """Add to the ids of a BPE vocabulary those that merge into them, and the base alphabet, which no merge makes."""
    ids = vocabulary["vocab"]
    parts: dict[int, set[int]] = defaultdict(set)
    for (left, right), merged in merges(vocabulary):
        parts[merged] |= {ids[left], ids[right]}
    kept = new = kept | (set(ids.values()) - parts.keys())
    while new:
        new = {part for token in new for part in parts.get(token, ())} - kept
        kept = kept | new
    return kept


def merges(vocabulary: dict[str, Any]) -> Iterator[tuple[list[str], int]]:
    """The merges of a BPE vocabulary, each with the id of what it makes."""
    prefix = len(vocabulary["continuing_subword_prefix"] or "")
    for left, right in vocabulary["merges"]:
        yield [left, right], vocabulary["vocab"][left + right[prefix:]]


def trim_tokenizer(tokenizer, new_ids: dict[int, int]) -> dict[str, Any]:
    """A `tokenizer.json` with those tokens only that have a new id."""
    content = tokenizer_json(tokenizer)
    vocabulary, template = content["model"], content["post_processor"] or {}
    if vocabulary["type"] == "Unigram":
        vocabulary["vocab"] = [piece for old, piece in enumerate(vocabulary["vocab"]) if old in new_ids]
        vocabulary["unk_id"] = renumber(vocabulary["unk_id"], new_ids)
    else:
        vocabulary["merges"] = [merge for merge, merged in merges(vocabulary) if merged in new_ids]
        vocabulary["vocab"] = {token: new_ids[old] for token, old in vocabulary["vocab"].items() if old in new_ids}
    holders = [*content["added_tokens"], content["padding"] or {}]
    for part in template.get("processors", [template]):
        holders += [part, *part.get("special_tokens", {}).values()]
    for holder in holders:
        for name in {"id", "ids", "pad_id", "cls", "sep"} & holder.keys():
            holder[name] = renumber(holder[name], new_ids)
    return content


def check_tokenization(
    processor: GTransformerProcessor,
    trimmed: GTransformerProcessor,
    new_ids: dict[int, int],
    texts: Sequence[list[str]],
) -> None:
    """
    Compares the trimmed processor, as it was saved, with the original.

    Raises:
        ValueError: a token has another id than its embedding, or a sentence has become other pieces.
    """
    vocabulary = processor.tokenizer.get_vocab()
    if trimmed.tokenizer.get_vocab() != {token: new_ids[old] for token, old in vocabulary.items() if old in new_ids}:
        raise ValueError(f"{type(trimmed.tokenizer).__name__} does not load what is left of it: it cannot be trimmed.")
    for text in texts:
        expected, pieces = renumber(processor.encode_sentences(text), new_ids), trimmed.encode_sentences(text)
        for sentence, *ids in zip(text, expected, pieces, strict=True):
            if ids[0] != ids[1]:
                raise ValueError(f"The trimmed tokenizer cuts {sentence!r} into other pieces: it cannot be trimmed.")


def trim_model(model, new_ids: dict[int, int]) -> None:
    """Leaves the rows of embeddings and output layer that have a new id, in a model that is yet to be saved."""
    rows, stacks = torch.tensor([*new_ids]), model.model
    tables = (stacks.encoder.embed_tokens, stacks.decoder.embed_tokens, model.lm_head)
    for weight in {table.weight for table in tables}:  # a single one unless the configuration unties them
        weight.data = weight.data[rows]
    model.final_logits_bias = model.final_logits_bias[:, rows]
    if model.generation_config.suppress_tokens:
        kept = [token for token in model.generation_config.suppress_tokens if token in new_ids]
        model.generation_config.suppress_tokens = kept or None
    for config, name, value in id_fields(model):
        setattr(config, name, renumber(value, new_ids))
    model.config.vocab_size = len(new_ids)


def id_fields(model) -> list[tuple[Any, str, Any]]:
    """`(configuration, name, value)` of all the model's settings that hold token ids."""
    configs = (model.config, model.generation_config)
    return [(c, name, value) for c in configs for name, value in c.to_dict().items() if name.endswith(ID_FIELDS)]


def ids_in(value: Any) -> set[int]:
    """The ids in nested lists of ids; a float, as in `sequence_bias`, is none."""
    if isinstance(value, list):
        return {token for item in value for token in ids_in(item)}
    return {value} if isinstance(value, int) else set()


def renumber(value: Any, new_ids: dict[int, int]) -> Any:
    """Nested lists of ids with the new ids; a number that is no id of a token stays."""
    if isinstance(value, list):
        return [renumber(item, new_ids) for item in value]
    return new_ids.get(value, value) if isinstance(value, int) else value


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", help="Folder or Hub name of a G-Transformer or a plain mBART.")
    parser.add_argument("output", help="New folder for the trimmed checkpoint.")
    parser.add_argument(
        "--text",
        nargs="+",
        required=True,
        help="Text whose words are kept: .jsonl[.gz|.xz], or one sentence per line.",
    )
    parser.add_argument("--source_column", default="source", help="Column that holds the source sentences.")
    parser.add_argument("--target_column", default="target", help="Column that holds the target sentences.")
    return parser.parse_args(argv)


if __name__ == "__main__":
    main(sys.argv[1:])
