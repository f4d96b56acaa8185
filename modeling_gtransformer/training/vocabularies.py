"""Vocabularies in the files of tokenizers, which can be trimmed to some of their tokens."""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from sentencepiece import sentencepiece_model_pb2
from transformers import PreTrainedTokenizerBase


class Vocabulary(Protocol):
    """Tokens of one language or of both, with their ids."""

    ids: dict[str, int]

    def with_spelling(self, kept: set[int]) -> set[int]:
        """Adds the ids of the tokens that spell any word, and of those from which the kept tokens are merged."""

    def write(self, folder: Path, new_ids: dict[int, int]) -> None:
        """Replaces all tokens in the folder of a saved tokenizer by those that have a new id."""


def vocabularies(tokenizer: PreTrainedTokenizerBase) -> list[Vocabulary]:
    """
    Reads the vocabulary of a tokenizer, or those of its source and its target.

    Raises:
        ValueError: the tokenizer has a type that cannot be trimmed.
    """
    if getattr(tokenizer, "backend_tokenizer", None):
        return [TokenizerFile(tokenizer)]
    if hasattr(tokenizer, "target_encoder"):
        source = SentencePieceFiles(tokenizer.encoder, {"source.spm": tokenizer.spm_source}, "vocab.json")
        target = SentencePieceFiles(
            tokenizer.target_encoder, {"target.spm": tokenizer.spm_target}, "target_vocab.json"
        )
        return [source, target]
    if hasattr(tokenizer, "spm_target"):
        files = {"source.spm": tokenizer.spm_source, "target.spm": tokenizer.spm_target}
        return [SentencePieceFiles(tokenizer.encoder, files, "vocab.json")]
    if hasattr(tokenizer, "encoder") and hasattr(tokenizer, "sp_model"):
        return [SentencePieceFiles(tokenizer.encoder, {"sentencepiece.bpe.model": tokenizer.sp_model}, "vocab.json")]
    raise ValueError(
        "Only tokenizers of the kinds Unigram and BPE, Opus-MT's and M2M100's can be trimmed, this one is a "
        f"{type(tokenizer).__name__}."
    )


class TokenizerFile:
    """The vocabulary in a `tokenizer.json`, of type Unigram or BPE."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase):
        self.content = json.loads(tokenizer.backend_tokenizer.to_str())
        self.model = self.content["model"]
        if self.model["type"] not in ("Unigram", "BPE"):
            raise ValueError(
                f"Only tokenizers of the kinds Unigram and BPE can be trimmed, this one is a {self.model['type']}."
            )
        self.ids = tokenizer.get_vocab()

    def with_spelling(self, kept: set[int]) -> set[int]:
        return self._with_characters(kept) if self.model["type"] == "Unigram" else self._with_merged(kept)

    def _with_characters(self, kept: set[int]) -> set[int]:
        """Adds characters, and bytes if the model falls back to them."""
        scores = [score for _, score in self.model["vocab"]]
        spelling = {f"<0x{byte:02X}>" for byte in range(256)} if self.model["byte_fallback"] else set()
        kept = kept | {i for i, (piece, _) in enumerate(self.model["vocab"]) if len(piece) == 1 or piece in spelling}
        # The lowest score is the measure for unknown characters: if it rose, these could displace known pieces.
        return (kept | {scores.index(min(scores)), self.model["unk_id"]}) - {None}

    def _with_merged(self, kept: set[int]) -> set[int]:
        """Adds the tokens that merge into the kept ones, and the base alphabet, which no merge makes."""
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
        """Yields the merges of BPE, each with the id of the token that it makes."""
        prefix = len(self.model["continuing_subword_prefix"] or "")
        for left, right in self.model["merges"]:
            yield [left, right], self.model["vocab"][left + right[prefix:]]

    def write(self, folder: Path, new_ids: dict[int, int]) -> None:
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


class SentencePieceFiles:
    """The vocabulary of Opus-MT and M2M100: ids in a JSON file, pieces in SentencePiece models.

    Args:
        ids: the id of every token in the JSON file.
        models: SentencePiece processors by the names of their files.
        file: name of the JSON file.
    """

    def __init__(self, ids: dict[str, int], models: dict[str, Any], file: str):
        self.ids, self.models, self.file = ids, models, file

    def with_spelling(self, kept: set[int]) -> set[int]:
        for model in self.models.values():
            pieces = [model.id_to_piece(piece) for piece in range(model.get_piece_size())]
            scores = [model.get_score(piece) for piece in range(model.get_piece_size())]
            # The lowest score is the measure for unknown characters: if it rose, these could displace known pieces.
            spelling = {*filter(lambda piece: len(piece) == 1, pieces), pieces[scores.index(min(scores))]}
            kept = kept | {self.ids[piece] for piece in spelling if piece in self.ids}
        return kept

    def write(self, folder: Path, new_ids: dict[int, int]) -> None:
        ids = {token: new_ids[old] for token, old in self.ids.items() if old in new_ids}
        (folder / self.file).write_text(json.dumps(ids, ensure_ascii=False), encoding="utf-8")
        model_proto = sentencepiece_model_pb2.ModelProto  # type: ignore[attr-defined]
        kinds = (model_proto.SentencePiece.NORMAL, model_proto.SentencePiece.USER_DEFINED)
        for name, model in self.models.items():
            proto = model_proto.FromString(model.serialized_model_proto())
            # A piece without an id was unknown before, and stays unknown.
            pieces = [p for p in proto.pieces if p.type not in kinds or p.piece in ids or p.piece not in self.ids]
            del proto.pieces[:]
            proto.pieces.extend(pieces)
            proto.trainer_spec.vocab_size = len(pieces)
            (folder / name).write_bytes(proto.SerializeToString())
        if self.file == "vocab.json":  # once, even if there are two
            self._write_added(folder, new_ids)

    def _write_added(self, folder: Path, new_ids: dict[int, int]) -> None:
        """Renumbers the tokens that Transformers keeps outside the vocabulary."""
        settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        if "added_tokens_decoder" in settings:
            added = {
                str(renumber(int(old), new_ids)): token for old, token in settings["added_tokens_decoder"].items()
            }
            content = json.dumps({**settings, "added_tokens_decoder": added}, ensure_ascii=False)
            (folder / "tokenizer_config.json").write_text(content, encoding="utf-8")
        if (added_file := folder / "added_tokens.json").exists():
            tokens = json.loads(added_file.read_text(encoding="utf-8"))
            added_file.write_text(json.dumps({token: renumber(old, new_ids) for token, old in tokens.items()}))


def renumber(value: Any, new_ids: dict[int, int]) -> Any:
    """Gives nested lists with the new ids; a number that is not the id of a token stays."""
    if isinstance(value, list):
        return [renumber(item, new_ids) for item in value]
    return new_ids.get(value, value) if isinstance(value, int) else value
