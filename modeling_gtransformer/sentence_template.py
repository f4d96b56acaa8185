"""Sentence templates: the tokens around the words of a sentence, in each pretrained family."""

from collections.abc import Callable
from itertools import pairwise
from typing import Literal, NamedTuple


class TargetTemplate(NamedTuple):
    """
    Ids of the tokens around the words of target sentences. The decoder reads `start`, then prefix, words and `</s>` of
    every sentence. If `start` is also the first token of the prefix, the decoder reads it only once.

    Attributes:
        start: first token of the decoder.
        prefix: tokens that open every sentence.
        eos_id: `</s>`.
        pad: padding.
        end: token after the last sentence; `None` if the last `</s>` ends the document.
    """

    start: int
    prefix: tuple[int, ...]
    eos_id: int
    pad: int
    end: int | None

    @property
    def eos_opens_next(self) -> bool:
        """Whether the decoder reads `</s>` as part of the next sentence, like `start` as part of the first one."""
        return self.prefix[:1] != (self.start,)

    @property
    def head(self) -> int:
        """Number of tokens before the prefix of a sentence."""
        return int(self.eos_opens_next)

    @property
    def tokens(self) -> int:
        """Number of tokens around the words of a sentence."""
        return len(self.prefix) + 1

    def read(self, sentences: list[list[int]]) -> list[int]:
        """Returns the decoder inputs of complete sentences, given as word ids."""
        bodies = [token for words in sentences for token in (*self.prefix, *words, self.eos_id)]
        return [self.start, *bodies] if self.eos_opens_next else bodies

    def starts(self, ids: list[int]) -> list[int]:
        """Returns the positions of the first tokens of sentences, including a last `</s>` if it may open another."""
        if not self.eos_opens_next:
            return [position for position, token in enumerate(ids) if token == self.prefix[0]]
        return [0, *(position for position, token in enumerate(ids) if position and token == self.eos_id)]

    def split(self, ids: list[int]) -> list[list[int]]:
        """Returns the word ids of every sentence, including an incomplete one, in ids with padding on either side."""
        padding = next((position for position, token in enumerate(ids) if token != self.pad), len(ids))
        ids = ids[max(padding - (self.start == self.pad), 0) :]
        added = {*self.prefix, self.eos_id, self.pad, self.end}
        return [[token for token in ids[part] if token not in added] for part in self._parts(ids)]

    def sums(self, ids: list[int], log_probabilities: list[float]) -> list[tuple[float, int]]:
        """Returns the summed log-probability of the words and `</s>` of every sentence in a complete document, and
        their number."""
        added = {*self.prefix, self.pad, self.end}
        scored = [
            [score for token, score in zip(ids[part], log_probabilities[part], strict=True) if token not in added]
            for part in self._parts(ids)
        ]
        return [(sum(scores), len(scores)) for scores in scored]

    def _parts(self, ids: list[int]) -> list[slice]:
        """Slices of the sentences, without those of padding only."""
        ends = pairwise([*self.starts(ids), len(ids)])
        parts = [slice(start + self.head, end + self.head) for start, end in ends]
        return [part for part in parts if {*ids[part]} - {self.pad}]


class SentenceTemplate(NamedTuple):
    """
    The tokens around the words of every sentence, by their roles "bos", "eos", "pad", "src_lang" and "tgt_lang".
    `</s>` closes every sentence.

    Attributes:
        source_prefix: tokens before the words of a source sentence.
        source_suffix: tokens after its `</s>`.
        target_prefix: tokens that open a target sentence.
        start: first token of the decoder, which opens the first sentence. Every `</s>` then belongs to the next
            sentence, and is embedded as `start`. With `None`, the decoder starts with the prefix of the first
            sentence.
        end: token that ends a target document; `None` if the last `</s>` does.
        source_code: token before the words of a source sentence in models with several target languages.
        language_setting: field of the generation config for the target language, if the decoder reads it.
        position_scope: default origin of positions, the start of the "document" or of the "sentence".
        translates: whether sentence-level checkpoints with this template can translate.
    """

    source_prefix: tuple[str, ...] = ()
    source_suffix: tuple[str, ...] = ()
    target_prefix: tuple[str, ...] = ()
    start: str | None = None
    end: str | None = None
    source_code: str | None = None
    language_setting: str | None = None
    position_scope: Literal["document", "sentence"] = "sentence"
    translates: bool = True

    @property
    def eos_opens_next(self) -> bool:
        """Whether the decoder reads `</s>` as part of the next sentence."""
        return self.start is not None

    @property
    def label_end(self) -> str | None:
        """Last token of the labels: `end` or, as in mBART, the first decoder input."""
        return None if self.eos_opens_next else self.end or self.target_prefix[0]

    @property
    def roles(self) -> set[str]:
        """Roles of all tokens except `</s>` and `source_code`."""
        return {*self.source_prefix, *self.source_suffix, *self.target_prefix, *filter(None, [self.label_end])}

    def in_ids(self, id_of: Callable[[str], int]) -> TargetTemplate:
        """Maps the roles around target sentences to ids."""
        prefix = tuple(map(id_of, self.target_prefix))
        return TargetTemplate(
            start=id_of(self.start) if self.start else prefix[0],
            prefix=prefix,
            eos_id=id_of("eos"),
            pad=id_of("pad"),
            end=id_of(self.end) if self.end else None,
        )


# The paper's template, and templates of pretrained models, which format a sentence like a single input.
SENTENCE_TEMPLATES = {
    "paper": SentenceTemplate(
        source_prefix=("bos",),
        target_prefix=("bos",),
        end="tgt_lang",
        language_setting="eos_token_id",
        position_scope="document",
        translates=False,
    ),
    # mBART-25 fine-tuned to translate, PLBart.
    "mbart": SentenceTemplate(
        source_suffix=("src_lang",),
        target_prefix=("tgt_lang",),
        language_setting="decoder_start_token_id",
    ),
    # mBART-50, M2M100, NLLB.
    "mbart50": SentenceTemplate(
        source_prefix=("src_lang",),
        target_prefix=("tgt_lang",),
        start="eos",
        language_setting="forced_bos_token_id",
    ),
    "bart": SentenceTemplate(source_prefix=("bos",), target_prefix=("bos",), start="eos", translates=False),
    # Opus-MT.
    "marian": SentenceTemplate(start="pad", source_code="tgt_lang"),
}


def template_named(name: str) -> SentenceTemplate:
    """
    Looks up a template.

    Raises:
        ValueError: the name is unknown.
    """
    if name not in SENTENCE_TEMPLATES:
        raise ValueError(f"sentence_template must be one of {[*SENTENCE_TEMPLATES]}, not {name!r}.")
    return SENTENCE_TEMPLATES[name]
