"""Generation of documents: one target sentence per source sentence, always (paper, section 4.3).

Shape legend: B documents, R rows (documents times beams or samples), T tokens, G source sentences, V vocabulary.
"""

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import GenerationConfig
from transformers.generation import (
    EosTokenCriteria,
    GenerationMixin,
    LogitsProcessor,
    LogitsProcessorList,
    StoppingCriteria,
    StoppingCriteriaList,
    SuppressTokensLogitsProcessor,
)
from transformers.masking_utils import create_causal_mask
from transformers.utils import logging

from .cache_gtransformer import DocumentCache
from .configuration_gtransformer import TargetFrame
from .decoding_batch import FramedDecoder
from .group_attention import group_mask
from .group_tags import (
    in_one_piece,
    is_ended,
    read_group_tags,
    sentence_lengths,
    sentence_positions,
    sentence_progress,
)
from .parallel_generation import ParallelDecoder, ParallelDocumentsOutput, refuse_what_is_sequential


logger = logging.get_logger(__name__)

# Decoding settings of the paper's experiments; words of a target sentence: at most a * (words of the source) + b.
SENTENCE_LIMITS = {
    "align_sentences": True,
    "parallel_sentences": False,
    "max_length_a": 1.2,
    "max_length_b": 10,
    "min_length": 1,
}


class GroupTagLogitsProcessor(LogitsProcessor):
    """
    Keeps the target aligned to the source: every sentence is opened by the prefix of the frame, then come words, then
    `</s>`, then the next sentence or, after as many as the source has, the end of the document, then padding. Within a
    sentence words and `</s>` keep their scores, not renormalised; a token that must come scores 0. A pure function of
    the prefix, so it needs no state that would have to follow the beams.

    Args:
        word_limits: most words of each target sentence, `(B, G)`. A row of the batch without source sentences (all
            zero) is generated freely.
        min_length: fewest words of a sentence.
        max_length: most tokens of the document, the first one included. Sentences are closed early enough for all that
            follow to get `min_length` words.
        frame: the tokens around the words of every sentence.
    """

    def __init__(self, word_limits: Tensor, min_length: int, max_length: int, frame: TargetFrame):
        self.word_limits = word_limits
        self.min_length = min_length
        self.max_length = max_length
        self.frame = frame
        end = frame.pad if frame.end is None else frame.end
        self.forced = torch.tensor([end, *frame.prefix], device=word_limits.device)
        banned = {frame.start, *frame.prefix, frame.pad, frame.end} - {frame.closer, None}
        self.banned = sorted(token for token in banned if token is not None)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Mask scores `(R, V)` of the token that follows the prefixes `(R, T)`."""
        # The rows of a document stand side by side.
        documents = torch.arange(len(self.word_limits), device=input_ids.device)
        documents = documents.repeat_interleave(len(input_ids) // len(documents))
        return self.mask(
            scores, documents, *sentence_progress(input_ids, self.frame), input_ids.shape[1], input_ids[:, -1]
        )

    def mask(
        self, scores: Tensor, documents: Tensor, number: Tensor, words: Tensor, length: Tensor | int, last: Tensor
    ) -> Tensor:
        """
        Mask scores `(R, V)` of a token by what is before it.

        Args:
            documents: the document of the batch that it belongs to, `(R,)`.
            number, words: where it stands, as [`sentence_progress`] tells, `(R,)`.
            length: tokens of the document so far, `(R,)`.
            last: the token before it, `(R,)`.
        """
        frame, limits = self.frame, self.word_limits.to(scores.device)[documents]
        sentences = (limits > 0).sum(dim=1)
        limit = limits.gather(1, (number - 1).clamp(0, limits.shape[1] - 1)[:, None])[:, 0]
        later = (sentences - number).clamp(min=0)

        finished = (number > sentences) & (words == -len(frame.prefix))
        inside = (words >= 0) & ~finished
        # After one more word `</s>`, the later sentences and the end of the document must still fit.
        needed = 1 + later * (self.min_length + frame.tokens) + (frame.end is not None)
        no_room = self.max_length - length - 1 < needed
        close = inside & (words >= self.min_length) & ((words >= limit) | no_room)

        # The tokens of the prefix in their order or, behind the last sentence, the end.
        forced = self.forced.to(scores.device)[
            torch.where(finished, 0, (1 + len(frame.prefix) + words).clamp(min=0, max=len(frame.prefix)))
        ]
        forced = torch.where(finished & is_ended(last, frame), frame.pad, forced)
        forced = torch.where(close, frame.closer, forced)[:, None]
        is_document = (sentences > 0)[:, None]
        is_forced = (~inside | close)[:, None] & is_document

        masked = scores.clone()
        for token in self.banned:
            masked[:, token].masked_fill_(is_document[:, 0], -torch.inf)
        masked[:, frame.closer].masked_fill_(is_document[:, 0] & (words < self.min_length), -torch.inf)
        masked = masked.masked_fill(is_forced, -torch.inf)
        return masked.scatter(1, forced, masked.gather(1, forced).masked_fill(is_forced, 0.0))


class SentenceCountCriteria(StoppingCriteria):
    """
    Ends documents that have as many sentences as their sources, where no token of its own ends them.

    Args:
        sentences: number of sentences of each document, `(B,)`; 0 for one that its first `</s>` ends.
    """

    def __init__(self, sentences: Tensor, frame: TargetFrame):
        self.sentences, self.frame = sentences.clamp(min=1), frame
        # By this attribute Transformers knows that finished rows are to be padded.
        self.eos_token_id = torch.tensor([frame.closer])

    def __call__(self, input_ids: Tensor, scores: Tensor, **kwargs: Any) -> Tensor:
        """Tells which of the prefixes `(R, T)` are at their end, `(R,)`, bool."""
        sentences = self.sentences.to(input_ids.device).repeat_interleave(len(input_ids) // len(self.sentences))
        return sentence_progress(input_ids, self.frame)[0] > sentences


@dataclass(frozen=True)
class LengthPlan:
    """
    Lengths of the target documents of a batch, in tokens from the first `<s>` on.

    Attributes:
        word_limits: most words of each target sentence, `(B, G)`; 0 beyond the last one.
        min_length: fewest words of a sentence.
        sentences: of each document, `(B,)`.
        opened: sentences that the prompt opens, `(B,)`; at least the first.
        least: what the shortest translations take.
        most: what the longest take.
        positions: what the model can count; `None` if any number.
        room: what there is: `most`, or less where the caller or the positions limit it.
    """

    word_limits: Tensor
    min_length: int
    sentences: Tensor
    opened: Tensor
    least: int
    most: int
    positions: int | None
    room: int


def _opened(prompt: Tensor, frame: TargetFrame) -> Tensor:
    """Number of sentences that prompts `(B, P)` open, at least one, `(B,)`."""
    number, words = sentence_progress(prompt, frame)
    return (number - (words == -len(frame.prefix)).long() * (number > 1)).clamp(min=1)


def plan_lengths(
    config: GenerationConfig,
    source_tags: Tensor,
    prompt: Tensor | None,
    model_config: Any,
    frame: TargetFrame,
    limited: bool,
) -> LengthPlan:
    """
    Plan target documents for sources with tags `(B, S)`.

    Args:
        config: with the limits per sentence, and `max_length` or `max_new_tokens`.
        prompt: `decoder_input_ids` `(B, P)`.
        frame: the tokens around the words of target sentences.
        limited: whether the caller gave `max_length` or `max_new_tokens`.

    Raises:
        ValueError: the tags leave out a sentence.
    """
    lengths = sentence_lengths(source_tags)
    present = lengths > 0
    if (present[:, 1:] & ~present[:, :-1]).any():
        raise ValueError("group_tags must number the sentences of a document 1, 2, 3, ... without gaps.")
    sentences, min_length = present.sum(dim=1), max(config.min_length, 1)
    source_frame = len(model_config.frame.source_prefix) + 1 + len(model_config.frame.source_suffix)
    words = (lengths - source_frame).clamp(min=0).double() * config.max_length_a + config.max_length_b
    word_limits = words.long().clamp(min=min_length) * present
    positions = model_config.max_position_embeddings if model_config.position_embedding_type == "learned" else None
    if positions is not None and model_config.position_scope == "sentence":
        word_limits = word_limits.clamp(max=positions - frame.head - len(frame.prefix))
        positions = None

    prompt_length, opened = 1, torch.ones_like(sentences)
    if prompt is not None:
        prompt_length, opened = prompt.shape[1], _opened(prompt, frame)
    later = (sentences - opened).clamp(min=0)
    least = prompt_length + int((later * (min_length + frame.tokens)).max()) + min_length + 1
    least += frame.end is not None
    if prompt is None and frame.closer_opens:
        least += len(frame.prefix)
    most = prompt_length + int((word_limits + frame.tokens * present).sum(dim=1).max())

    room = most
    if limited:
        room = config.max_length if config.max_new_tokens is None else prompt_length + config.max_new_tokens
    if positions is not None:
        room = min(room, positions)
    return LengthPlan(word_limits, min_length, sentences, opened, least, most, positions, room)


class GTransformerGenerationMixin(GenerationMixin):
    """`generate` for documents. Stands before Transformers' own mixin, which does all the searching."""

    def document_generation_config(self, generation_config: GenerationConfig) -> GenerationConfig:
        """
        The generation config of a plain translator, made right for documents: without limits of a single sentence, and
        with the target language where the frame has it. One made for documents stays as it is.
        """
        setting = self.config.frame.language_setting
        is_plain = getattr(generation_config, "align_sentences", None) is None
        config = self._with_sentence_limits(copy.deepcopy(generation_config))
        # mBART is told the target language by the code that it starts with.
        language = config.forced_bos_token_id or config.decoder_start_token_id
        if language in (self.config.bos_token_id, self.config.eos_token_id, self.config.pad_token_id):
            language = None
        if is_plain or config.eos_token_id in (self.config.eos_token_id, [self.config.eos_token_id]):
            config.eos_token_id = self.config.eos_token_id
        if is_plain:
            config.max_length, config.min_length = None, SENTENCE_LIMITS["min_length"]
            if config.bad_words_ids == [[self.config.pad_token_id]]:  # padding is never a word here
                config.bad_words_ids = None
            if setting is not None:
                setattr(config, setting, language)
        if setting != "forced_bos_token_id":
            config.forced_bos_token_id = None
        config.forced_eos_token_id = None
        if setting != "decoder_start_token_id":
            config.decoder_start_token_id = self.config.decoder_start_token_id
        # Transformers would not save the fields above with a config that was derived from the model's.
        config._from_model_config = False
        return config

    def adjust_generation_fn(self, *args, **kwargs):
        """Called by `from_pretrained` to load the generation config of a checkpoint."""
        super().adjust_generation_fn(*args, **kwargs)
        self.generation_config: GenerationConfig = self.document_generation_config(self.generation_config)

    @torch.no_grad()
    def generate(
        self,
        inputs: Tensor | None = None,
        generation_config: GenerationConfig | None = None,
        logits_processor: LogitsProcessorList | None = None,
        **kwargs: Any,
    ):
        """
        Translate documents. Works as `generate` of Transformers (greedy search, beam search, sampling, ...); besides,
        every document gets exactly as many target sentences as it has source sentences.

        The generation config, or keyword arguments, may say per sentence: `max_length_a` and `max_length_b` (at most
        `int(a * n + b)` words for a source sentence of n words), `min_length` (words), and `align_sentences=False` to
        generate freely, as the paper does for its plain Transformer on documents. Without `max_length` or
        `max_new_tokens` a document may be as long as its sentences. If it runs out of room, with these or at the
        model's last position, its last sentences are cut short so that all have a place, and a warning names it.
        `max_time` and stopping criteria of your own cut documents off wherever they strike.

        `parallel_sentences=True` decodes the sentences of a document side by side. Greedily the result is the same (up
        to rounding, as in another batch), in few steps if the model is sure of its words. With `num_beams` every
        sentence gets a beam of its own, in the context of the others' greedy translations. `return_dict_in_generate`
        gives a [`ParallelDocumentsOutput`]. Settings by which a token depends on more than the model and its document,
        such as sampling or a repetition penalty, are refused.

        Args:
            inputs: source documents such as `<s> w w </s> <s> w </s>`, `(B, S)`. A row without sentences is no
                document and is generated freely.

        Raises:
            ValueError: the model has too few positions for all sentences, or an argument contradicts the alignment.
        """
        if any(isinstance(processor, GroupTagLogitsProcessor) for processor in logits_processor or []):
            # An assistant model drafts within the frame of the model that it assists.
            return super().generate(inputs, generation_config, logits_processor, **kwargs)
        if kwargs.get("decoder_group_tags") is not None:
            raise ValueError("decoder_group_tags follow the generated tokens: generate() takes none.")
        sources = (kwargs, vars(generation_config or GenerationConfig()), vars(self.generation_config))
        limited = any(source.get(name) is not None for source in sources for name in ("max_length", "max_new_tokens"))

        config, model_kwargs = self._prepare_generation_config(generation_config, **kwargs)
        config = self._with_sentence_limits(config)
        source_tags = self._source_group_tags(inputs, model_kwargs) if self._aligns_sentences(config) else None
        if config.parallel_sentences and (source_tags is None or not source_tags.any(dim=1).all()):
            raise ValueError("parallel_sentences needs sentences, marked by <s> and </s>, in every source document.")
        if source_tags is None or not source_tags.any():
            if self._aligns_sentences(config):
                logger.warning_once("The source marks no sentences with <s> and </s>: it is generated freely.")
            return super().generate(inputs, generation_config, logits_processor, **kwargs)

        frame, plan = self._frame(config, source_tags, model_kwargs.get("decoder_input_ids"), limited)
        if config.parallel_sentences:
            refuse_what_is_sequential(config, model_kwargs | {"logits_processor": logits_processor})
            outputs = self._generate_in_parallel(config, frame, inputs, source_tags, model_kwargs)
            if config.max_length < plan.most:
                self._report_cut(outputs.sequences, config, len(source_tags))
            return outputs if config.return_dict_in_generate else outputs.sequences
        if self._can_use_document_cache(config, model_kwargs, source_tags):
            prompt = model_kwargs.get("decoder_input_ids")
            longest = int(plan.word_limits.max()) + frame.frame.head + frame.frame.tokens
            longest = max(longest, 0 if prompt is None else prompt.shape[1] + 1)
            model_kwargs["past_key_values"] = DocumentCache(longest, len(source_tags))
        # Transformers applies given processors after its own bans and before temperature, top-k and top-p.
        processors = LogitsProcessorList([*(logits_processor or []), frame])
        if frame.frame.end is None:
            given = model_kwargs.get("stopping_criteria") or []
            ends = SentenceCountCriteria(plan.sentences, frame.frame)
            model_kwargs["stopping_criteria"] = StoppingCriteriaList([*given, ends])
        outputs = super().generate(inputs, config, processors, **model_kwargs)
        if config.max_length < plan.most:
            self._report_cut(outputs if isinstance(outputs, Tensor) else outputs.sequences, config, len(source_tags))
        return outputs

    def _prepare_generation_config(self, generation_config: GenerationConfig | None, **kwargs: Any):
        """As Transformers prepares it. Another target language than that of the model is no longer suppressed, but
        that of the model is."""
        setting = self.config.frame.language_setting
        given = kwargs.get(setting) or getattr(generation_config, setting or "", None)
        own = getattr(self.generation_config, setting or "", None)
        own = own if isinstance(own, int) else None
        if "suppress_tokens" not in kwargs and isinstance(given, int) and given != own:
            suppressed = (generation_config or self.generation_config).suppress_tokens
            if suppressed:
                kwargs["suppress_tokens"] = sorted({*suppressed, own} - {given, None})
        return super()._prepare_generation_config(generation_config, **kwargs)

    def _get_stopping_criteria(self, *args: Any, **kwargs: Any) -> StoppingCriteriaList:
        """Those of Transformers; a `</s>` in the middle of a document is no end."""
        criteria = super()._get_stopping_criteria(*args, **kwargs)
        if not any(isinstance(each, SentenceCountCriteria) for each in criteria):
            return criteria
        return StoppingCriteriaList([each for each in criteria if not isinstance(each, EosTokenCriteria)])

    def _generate_in_parallel(
        self,
        config: GenerationConfig,
        frame: GroupTagLogitsProcessor,
        inputs: Tensor | None,
        source_tags: Tensor,
        model_kwargs: dict,
    ) -> ParallelDocumentsOutput:
        if self.config._attn_implementation not in ("eager", "sdpa"):
            raise ValueError("parallel_sentences needs the attn_implementation 'sdpa' or 'eager'.")
        encoder_outputs, prompt = model_kwargs.get("encoder_outputs"), model_kwargs.get("decoder_input_ids")
        source = {name: model_kwargs.get(name) for name in ("input_ids", "inputs_embeds", "attention_mask")}
        if source["inputs_embeds"] is None and inputs is not None:
            source["input_ids"] = inputs
        if encoder_outputs is None:
            encoder_outputs = self.get_encoder()(**source, group_tags=model_kwargs.get("group_tags"))
        mask = torch.ones_like(source_tags) if source["attention_mask"] is None else source["attention_mask"]
        if prompt is None:
            prompt = source_tags.new_full((len(source_tags), 1), frame.frame.start)
        if not read_group_tags(prompt, self.config, is_target=True).all():
            raise ValueError("parallel_sentences needs decoder_input_ids of sentences, `<s> w w </s> <s> w`, only.")
        if config.max_length <= prompt.shape[1]:
            raise ValueError(f"decoder_input_ids have {prompt.shape[1]} tokens, max_length is {config.max_length}.")
        processors = LogitsProcessorList()
        if config.suppress_tokens:
            processors.append(SuppressTokensLogitsProcessor(config.suppress_tokens, device=source_tags.device))
        framed = FramedDecoder(self, frame, processors, encoder_outputs[0], mask, source_tags)
        decoder = ParallelDecoder(framed)
        documents, rounds = decoder.decode(prompt)
        if config.num_beams not in (None, 1):
            penalty, early = config.length_penalty, config.early_stopping
            documents = decoder.search(
                prompt, documents, config.num_beams, 1.0 if penalty is None else penalty, bool(early)
            )
        end = [] if frame.frame.end is None else [frame.frame.end]
        ended = [torch.tensor([*document, *end]) for document in documents]
        sequences = pad_sequence(ended, batch_first=True, padding_value=self.config.pad_token_id)
        return ParallelDocumentsOutput(
            sequences=sequences[:, : config.max_length].to(source_tags.device),
            rounds=torch.tensor(rounds),
            steps=framed.steps,
        )

    def _report_cut(self, sequences: Tensor, config: GenerationConfig, documents: int) -> None:
        """Sentences are cut short to the last token of room, never before."""
        tokens = (sequences != self.config.pad_token_id).sum(dim=1)
        tokens += self.config.decoder_start_token_id == self.config.pad_token_id
        full = tokens >= config.max_length
        if full.any():
            cut = sorted({int(row) * documents // len(sequences) for row in full.nonzero()[:, 0]})
            logger.warning(
                f"Documents {cut} of the batch reached {config.max_length} tokens (max_length, max_new_tokens or the "
                "model's positions): their last sentences may be cut short. Translate them in parts."
            )

    def _can_use_document_cache(self, config: GenerationConfig, model_kwargs: dict, source_tags: Tensor) -> bool:
        """Tells whether a [`DocumentCache`] serves: no argument asks for another cache, for going back in it, or for
        weights over the whole document, and every source sentence is in one piece."""
        asked = ("past_key_values", "assistant_model", "decoder_attention_mask", "custom_generate")
        other = (config.cache_implementation, config.prompt_lookup_num_tokens, config.return_dict_in_generate)
        return (
            config.use_cache
            and self.config._attn_implementation in ("eager", "sdpa")
            and not any(other)
            and all(model_kwargs.get(name) is None for name in asked)
            and bool((source_tags > 0).any(dim=1).all())
            and in_one_piece(source_tags)
        )

    def _aligns_sentences(self, config: GenerationConfig) -> bool:
        needed = [self.config.eos_token_id]
        needed += [self.config.bos_token_id] if "bos" in self.config.frame.target_prefix else []
        return config.align_sentences and None not in needed

    @staticmethod
    def _with_sentence_limits(config: GenerationConfig) -> GenerationConfig:
        """The config, in which all fields of documents have a value."""
        for name, default in SENTENCE_LIMITS.items():
            if getattr(config, name, None) is None:
                setattr(config, name, default)
        return config

    def _source_group_tags(self, inputs: Tensor | None, model_kwargs: dict) -> Tensor | None:
        """Tags `(B, S)` of the source, given, encoded or read off the ids; 0 for padding."""
        encoder_outputs, mask = model_kwargs.get("encoder_outputs"), model_kwargs.get("attention_mask")
        tags = model_kwargs.get("group_tags")
        if tags is None and encoder_outputs is not None:
            tags = getattr(encoder_outputs, "group_tags", None)
        input_ids = inputs if inputs is not None else model_kwargs.get("input_ids")
        if tags is None and input_ids is not None and input_ids.dim() == 2:
            tags = read_group_tags(input_ids, self.config, is_target=False, attention_mask=mask)
        return tags if tags is None or mask is None or mask.shape != tags.shape else tags * mask.bool()

    def _frame(
        self, config: GenerationConfig, source_tags: Tensor, prompt: Tensor | None, limited: bool
    ) -> tuple[GroupTagLogitsProcessor, LengthPlan]:
        """The processor that keeps the sentences in their places, and the plan that it follows; the config is told how
        long documents become, and what ends them."""
        self._refuse_contradictions(config)
        target = self._target_frame(config)
        plan = plan_lengths(config, source_tags, prompt, self.config, target, limited)
        self._check(plan, prompt)
        longest = plan.room if plan.room >= plan.least else plan.most
        config.max_length, config.min_length = plan.room, None
        config.max_new_tokens = config.min_new_tokens = None
        config.decoder_start_token_id = target.start
        return GroupTagLogitsProcessor(plan.word_limits, plan.min_length, longest, target), plan

    def _target_frame(self, config: GenerationConfig) -> TargetFrame:
        """
        The ids around the words of target sentences.

        Raises:
            ValueError: the target language is not known.
        """
        setting = self.config.frame.language_setting

        def id_of(role: str) -> int:
            if role != "tgt_lang":
                return getattr(self.config, f"{role}_token_id")
            if setting == "eos_token_id":
                return self._end_of_document(config)
            language = getattr(config, setting)
            if language is None:
                raise ValueError(
                    f"The generation config has no {setting}, which is the target language: "
                    "processor.configure(model) sets it, and generate() takes it."
                )
            return language

        return self.config.frame.in_ids(id_of)

    def _check(self, plan: LengthPlan, prompt: Tensor | None) -> None:
        """
        Warn of a prompt or a limit that does not fit the sentences.

        Raises:
            ValueError: the model has too few positions for all sentences, or the prompt ends with padding.
        """
        if (plan.opened > plan.sentences.clamp(min=1)).any():
            logger.warning("decoder_input_ids open more sentences than the source has: those find nothing there.")
        if prompt is not None:
            closed = (prompt == self.config.eos_token_id).sum(dim=1)
            if ((prompt[:, -1] == self.config.pad_token_id) & (prompt.shape[1] > 1) & (closed < plan.sentences)).any():
                raise ValueError("decoder_input_ids end with padding: continue prefixes of equal length together.")
        if plan.room >= plan.least:
            return
        sentences = int(plan.sentences.max())
        if plan.room == plan.positions:
            raise ValueError(
                f"A document of {sentences} sentences needs at least {plan.least} tokens, the model has only "
                f"{plan.room} positions: split the document at sentence borders."
            )
        logger.warning(
            f"{plan.room} tokens (max_length or max_new_tokens) are too few for {sentences} sentences, which take at "
            f"least {plan.least}: the translation will be cut off."
        )

    def _refuse_contradictions(self, config: GenerationConfig) -> None:
        for name in ("forced_bos_token_id", "forced_eos_token_id"):
            if getattr(config, name, None) is not None and name != self.config.frame.language_setting:
                raise ValueError(
                    f"{name} contradicts the alignment of sentences: leave it out, or align_sentences=False."
                )
        if self.config.eos_token_id in (config.suppress_tokens or []):
            raise ValueError("suppress_tokens holds </s>, without which no sentence can end.")
        if config.min_new_tokens is not None:
            logger.warning_once(
                "min_new_tokens has no effect, the source says how many sentences come: use min_length."
            )

    def _end_of_document(self, config: GenerationConfig) -> int:
        """The token that ends a document: that of the config or, where this is unknown or ends a sentence, padding."""
        end = config.eos_token_id[0] if isinstance(config.eos_token_id, list) else config.eos_token_id
        if end in (None, self.config.bos_token_id, self.config.eos_token_id):
            logger.warning_once(
                "generation_config.eos_token_id is not the token that ends a document (the target language code): "
                "documents will end with padding. processor.configure(model) sets it."
            )
            end = config.eos_token_id = self.config.pad_token_id
        # A negative id asks Transformers never to stop early.
        return end if 0 <= end < self.config.decoder_vocab_size else self.config.pad_token_id

    def prepare_inputs_for_generation(self, input_ids: Tensor, **kwargs: Any) -> dict:
        """Add the group tags of the whole prefix `(R, T)`, of which the model itself sees only the new tokens."""
        inputs = super().prepare_inputs_for_generation(input_ids, **kwargs)
        new_tokens = inputs["decoder_input_ids"].shape[1]
        prefix_mask = kwargs.get("decoder_attention_mask")
        if prefix_mask is not None and prefix_mask.shape != input_ids.shape:
            prefix_mask = None
        tags = read_group_tags(input_ids, self.config, is_target=True, attention_mask=prefix_mask)
        cache, mask = inputs.get("past_key_values"), inputs.get("decoder_attention_mask")
        if cache is not None and cache.is_compileable:
            # Shapes that grow with the prefix would make a compiled model compile again at every step.
            query_tags = tags[:, -new_tokens:].contiguous()
            if mask is None or mask.dim() != 4:
                shape = torch.empty((*query_tags.shape, 0), dtype=self.dtype, device=query_tags.device)
                cache = getattr(cache, "self_attention_cache", cache)
                mask = create_causal_mask(self.config, shape, mask, cache, allow_is_causal_skip=False)
            inputs["decoder_attention_mask"] = {"global": mask, "group": group_mask(mask, query_tags, tags)}
            if self.config.position_scope == "sentence":
                inputs["decoder_position_ids"] = sentence_positions(tags)[:, -new_tokens:].contiguous()
            tags = query_tags
        inputs["decoder_group_tags"] = tags
        return inputs
