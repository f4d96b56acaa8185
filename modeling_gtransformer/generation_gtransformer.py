"""Generation of documents, always with one target sentence per source sentence (paper, section 4.3).

Shape legend: B documents, R rows (documents times beams or samples), T tokens, G source sentences, V vocabulary.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import GenerationConfig
from transformers.generation import (
    GenerationMixin,
    LogitsProcessorList,
    StoppingCriteriaList,
)
from transformers.masking_utils import create_causal_mask
from transformers.utils import logging

from .cache_gtransformer import CACHE_NAME, CACHE_NAMES, DocumentCache
from .document_decoding import decode_greedily, search_documents
from .framed_decoder import FramedDecoder, Sources
from .group_attention import group_mask
from .group_tags import (
    is_contiguous,
    read_group_tags,
    sentence_lengths,
    sentence_positions,
    sentence_progress,
)
from .independent_sentences import decode_independently
from .packed_weights import packed_weights
from .parallel_generation import ParallelDecoder, ParallelDocumentsOutput, other_than_neutral
from .sentence_template import TargetTemplate
from .target_sentences import (
    DocumentLengthCriteria,
    GroupTagLogitsProcessor,
    LengthPlan,
    SentenceCountCriteria,
    plan_lengths,
    spare_sentence_ends,
)


logger = logging.get_logger(__name__)

# Decoding settings of the paper's experiments; a target sentence has at most a * (words of its source) + b words.
SENTENCE_LIMITS = {
    "align_sentences": True,
    "parallel_sentences": None,
    "max_length_a": 1.2,
    "max_length_b": 10,
    "min_length": 1,
    "pack_weights": True,
}

# The `max_length` that Transformers' Seq2SeqTrainer leaves in a model's generation config: a limit that nobody chose.
SEQ2SEQ_TRAINER_LENGTH = 20

# Greedy search decodes sentences side by side for at most this many documents, as more of them fill a step on their
# own, and only if the longest document is at least this many times as long as the longest sentence.
PARALLEL_DOCUMENTS, PARALLEL_SENTENCES = 4, 3


def _ranking(config: GenerationConfig) -> tuple[float, bool]:
    """Length penalty and early stopping of a beam search."""
    return 1.0 if config.length_penalty is None else config.length_penalty, bool(config.early_stopping)


@dataclass
class Request:
    """
    A prepared call of `generate` for documents.

    Attributes:
        limits: the processor that keeps the sentences aligned.
        inputs: the source, if it was passed as the argument `inputs`.
        source_tags: group tags of the source, `(B, S)`.
        arguments: keyword arguments of `generate` of Transformers.
    """

    config: GenerationConfig
    limits: GroupTagLogitsProcessor
    plan: LengthPlan
    inputs: Tensor | None
    source_tags: Tensor
    arguments: dict[str, Any]

    @property
    def prompt(self) -> Tensor:
        """The ids that the target documents begin with, `(B, P)`."""
        given = self.arguments.get("decoder_input_ids")
        return (
            self.source_tags.new_full((len(self.source_tags), 1), self.limits.template.start)
            if given is None
            else given
        )

    @property
    def has_finished_documents(self) -> bool:
        """Whether the prompt already has all sentences of a document."""
        number, words = sentence_progress(self.prompt, self.limits.template)
        sentences = self.plan.sentences.to(number.device)
        return bool(((number > sentences) & (words == -len(self.limits.template.prefix))).any())

    @property
    def watchers(self) -> list[Callable[[Tensor], None]]:
        """The `watch` methods of the logits processors that have one, such as [`SentenceStreamer`]: these processors
        leave the scores as they are."""
        given = self.arguments.get("logits_processor") or []
        return [processor.watch for processor in given if hasattr(processor, "watch")]

    @property
    def special(self) -> list[str]:
        """Settings and arguments that make a token depend on more than the model and its document."""
        given = self.arguments.get("logits_processor") or []
        watched = {"logits_processor": None} if len(self.watchers) == len(given) else {}
        return other_than_neutral(self.config, {**self.arguments, **watched})

    def search(self, decoder: FramedDecoder, prompts: Tensor) -> list[list[int]]:
        """Decodes documents that begin with prompts `(B, P)`, token by token."""
        if self.config.num_beams in (None, 1):
            return decode_greedily(decoder, prompts)
        return search_documents(decoder, prompts, self.config.num_beams, *_ranking(self.config))


class GTransformerGenerationMixin(GenerationMixin):
    """`generate` for documents. It comes before Transformers' `GenerationMixin` among the base classes, and leaves
    to it whatever its own loops do not support."""

    # The `forward` whose work the loops do without calling it.
    known_forward: ClassVar[Callable]

    def document_generation_config(self, generation_config: GenerationConfig) -> GenerationConfig:
        """
        Adapts the generation config of a sentence-level translator to documents: without the limits of a single
        sentence, and with the target language where the template has it. A config made for documents stays as it is.
        """
        setting = self.config.template.language_setting
        is_sentence_level = getattr(generation_config, "align_sentences", None) is None
        # Transformers would not save the fields of documents with a config that was derived from the model's.
        config = GenerationConfig.from_dict(generation_config.to_dict() | {"_from_model_config": False})
        config = self._with_sentence_limits(config)
        # mBART is told the target language by the code that it starts with.
        language = config.forced_bos_token_id or config.decoder_start_token_id
        if language in (self.config.bos_token_id, self.config.eos_token_id, self.config.pad_token_id):
            language = None
        if is_sentence_level or config.eos_token_id in (self.config.eos_token_id, [self.config.eos_token_id]):
            config.eos_token_id = self.config.eos_token_id
        if is_sentence_level:
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
        return config

    def adjust_generation_fn(self, *args, **kwargs):
        """Called by `from_pretrained` to load the generation config of a checkpoint."""
        # Transformers would also write changed fields of the model's configuration into the generation config.
        own = set(self.config.to_dict()) - set(GenerationConfig().to_dict())
        super().adjust_generation_fn(*args, **{name: value for name, value in kwargs.items() if name not in own})
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
        Translates documents. Works like `generate` of Transformers (greedy search, beam search, sampling, ...), except
        that every document gets exactly as many target sentences as it has source sentences.

        The generation config or keyword arguments may set limits per sentence: `max_length_a` and `max_length_b` (at
        most `int(a * n + b)` words for a source sentence of n words) and `min_length` (words). `align_sentences=False`
        generates freely, as the paper does for its plain Transformer on documents: a document then has as many
        sentences as the model writes before it ends the document, and no more tokens than it could have otherwise.
        Without `max_length` or `max_new_tokens` a document may be as long as its sentences. If it runs out of room,
        because of these or at the model's last position, its last sentences are cut short so that all have a place,
        and a warning names the document. `max_time` and custom stopping criteria cut documents off wherever they
        apply. A `max_length` of 20 in the model's own generation config, which Transformers' `Seq2SeqTrainer` leaves
        behind, is ignored.

        Greedy and beam search run in loops of our own, which find what those of Transformers find; everything else,
        such as sampling or `return_dict_in_generate`, is left to Transformers. Meanwhile, linear layers and gates in
        float32 on a CPU multiply by packed copies of their weights, which take as much memory again;
        `pack_weights=False` does without them.

        Where sentences are independent of each other (`config.independent_sentences`), they are translated side by
        side, each with its own beam, unless `parallel_sentences=False`. Elsewhere the sentences of up to four
        documents are decoded side by side if the search is greedy and no sentence is longer than a third of the
        longest document. This gives the same result (up to rounding, as in another batch) in few steps if the model is
        sure of its words; if it is not, the rest follows token by token. `parallel_sentences=True` always does this,
        also with `num_beams`: every sentence then gets its own beam, in the context of the others' greedy
        translations. In this mode `return_dict_in_generate` gives a [`ParallelDocumentsOutput`], and settings that
        make a token depend on more than the model and its document, such as sampling or a repetition penalty, raise an
        error.

        Args:
            inputs: source documents such as `<s> w w </s> <s> w </s>`, `(B, S)`. A row without sentences is not a
                document and is generated freely.

        Raises:
            ValueError: the model has too few positions for all sentences, or an argument contradicts the alignment.
        """
        if any(isinstance(processor, GroupTagLogitsProcessor) for processor in logits_processor or []):
            # An assistant model drafts within the template of the model that it assists.
            return super().generate(inputs, generation_config, logits_processor, **kwargs)
        if kwargs.get("decoder_group_tags") is not None:
            raise ValueError("decoder_group_tags follow from the generated tokens: generate() takes none.")
        own = vars(self.generation_config)
        if own["max_length"] == SEQ2SEQ_TRAINER_LENGTH:
            own = {**own, "max_length": None}
        sources = (kwargs, vars(generation_config or GenerationConfig()), own)
        limited = any(source.get(name) is not None for source in sources for name in ("max_length", "max_new_tokens"))

        kwargs = self._with_language(generation_config, kwargs)
        config, model_kwargs = self._merged_config(generation_config, kwargs)
        source_tags = self._source_group_tags(inputs, model_kwargs) if self._aligns_sentences(config) else None
        if config.parallel_sentences and (source_tags is None or not source_tags.any(dim=1).all()):
            raise ValueError("parallel_sentences needs sentences, marked by <s> and </s>, in every source document.")
        with packed_weights(self, config.pack_weights):
            if source_tags is None or not source_tags.any():
                if self._aligns_sentences(config):
                    logger.warning_once("The source marks no sentences with <s> and </s>: generating freely.")
                elif not limited:
                    kwargs |= self._room_for_free_documents(config, inputs, model_kwargs)
                return super().generate(inputs, generation_config, logits_processor, **kwargs)
            model_kwargs |= self._started_prompt(config, source_tags, model_kwargs)
            limits, plan = self._limits(config, source_tags, model_kwargs.get("decoder_input_ids"), limited)
            model_kwargs["logits_processor"] = logits_processor
            request = Request(config, limits, plan, inputs, source_tags, model_kwargs)
            outputs = self._way_of_decoding(request)(request)
        if config.max_length < plan.most:
            self._report_cut(outputs if isinstance(outputs, Tensor) else outputs.sequences, config, len(source_tags))
        return outputs

    def _way_of_decoding(self, request: Request) -> Callable[[Request], Any]:
        """
        Returns the fastest method that gives what is asked for.

        Raises:
            ValueError: an argument contradicts `parallel_sentences`.
        """
        plan, parallel, special = request.plan, request.config.parallel_sentences, request.special
        if self._forward_hooks or self._forward_pre_hooks or type(self).forward is not type(self).known_forward:
            special = [*special, "hooks of the model, or a forward of its own"]
        if parallel and special:
            raise ValueError(f"parallel_sentences cannot be combined with {', '.join(special)}.")
        if parallel and self.config._attn_implementation not in ("eager", "sdpa"):
            raise ValueError("parallel_sentences needs the attn_implementation 'sdpa' or 'eager'.")
        is_open = plan.least <= plan.room and not request.has_finished_documents
        if not special and is_open and self._can_use_document_cache(request):
            is_whole = plan.room >= plan.most and request.prompt.shape[1] == 1
            if self.config.independent_sentences and is_whole and parallel is not False:
                return self._decode_independent_sentences
            pays = parallel is None and is_whole and self._pays_side_by_side(request)
            if not parallel and not pays:
                return self._decode_documents
            return self._decode_in_parallel
        return self._decode_in_parallel if parallel else self._decode_with_transformers

    @staticmethod
    def _pays_side_by_side(request: Request) -> bool:
        """Tells whether there are so few documents that decoding their sentences side by side is likely faster."""
        lengths = sentence_lengths(request.source_tags)
        return (
            request.config.num_beams in (None, 1)
            and len(lengths) <= PARALLEL_DOCUMENTS
            and int(lengths.sum(dim=1).max()) >= PARALLEL_SENTENCES * int(lengths.max())
            and not request.watchers  # which wait for the first sentences
        )

    def _decode_with_transformers(self, request: Request):
        """Decodes as Transformers does, which is the reference and can do everything."""
        config, limits, arguments = request.config, request.limits, request.arguments
        if self._can_use_document_cache(request):
            longest = limits.longest_sentence(request.prompt)
            arguments[CACHE_NAME] = DocumentCache(longest, len(request.source_tags))
        source_ids = arguments.get("input_ids") if request.inputs is None else request.inputs
        # Transformers applies custom processors after its own bans and before temperature, top-k and top-p.
        given = arguments.pop("logits_processor") or []
        given = spare_sentence_ends(config, given, source_ids, self.config.eos_token_id)
        processors = LogitsProcessorList([*given, limits])
        if limits.template.end is None:
            ends = SentenceCountCriteria(request.plan.sentences, limits.template)
            arguments["stopping_criteria"] = StoppingCriteriaList([*(arguments.get("stopping_criteria") or []), ends])
            # No token ends a document, and Transformers would stop at its first `</s>`. Padding comes after the end.
            config.eos_token_id = self.config.pad_token_id
            # Transformers allows the token that ends a document, and only that, in this list.
            banned = [words for words in config.bad_words_ids or [] if words != [self.config.eos_token_id]]
            config.bad_words_ids = banned or None
        return super().generate(request.inputs, config, processors, **arguments)

    def _decode_documents(self, request: Request) -> Tensor:
        """Decodes documents side by side, token by token."""
        return self._padded(request, request.search(self._framed_decoder(request), request.prompt))

    def _decode_independent_sentences(self, request: Request) -> Tensor:
        """Decodes all sentences side by side, each with its own beam."""
        decoder = self._framed_decoder(request)
        return self._ended(request, decode_independently(decoder, request.config.num_beams or 1, request.search))

    def _decode_in_parallel(self, request: Request) -> Tensor | ParallelDocumentsOutput:
        """Decodes the sentences of every document side by side, in rounds, each in the context of the others'
        translations."""
        config, prompt = request.config, request.prompt
        if not read_group_tags(prompt, self.config, is_target=True).all():
            raise ValueError("parallel_sentences needs decoder_input_ids of sentences, `<s> w w </s> <s> w`, only.")
        if (request.plan.opened > request.plan.sentences).any():
            raise ValueError("parallel_sentences needs decoder_input_ids of no more sentences than the source has.")
        if config.max_length <= prompt.shape[1]:
            raise ValueError(f"decoder_input_ids have {prompt.shape[1]} tokens, max_length is {config.max_length}.")
        templated = self._framed_decoder(request)
        decoder = ParallelDecoder(templated, gives_up=not config.parallel_sentences)
        documents, rounds = decoder.decode(prompt)
        if config.num_beams not in (None, 1):
            documents = decoder.search(prompt, documents, config.num_beams, *_ranking(config))
        sequences = self._ended(request, documents)
        if not config.return_dict_in_generate:
            return sequences
        return ParallelDocumentsOutput(sequences=sequences, rounds=torch.tensor(rounds), steps=templated.steps)

    def _framed_decoder(self, request: Request) -> FramedDecoder:
        """The decoder over the encoded source."""
        arguments, tags = request.arguments, request.source_tags
        encoder_outputs = arguments.get("encoder_outputs")
        source = {name: arguments.get(name) for name in ("input_ids", "inputs_embeds", "attention_mask")}
        if source["inputs_embeds"] is None and request.inputs is not None:
            source["input_ids"] = request.inputs
        if encoder_outputs is None:
            encoder_outputs = self.get_encoder()(**source, group_tags=arguments.get("group_tags"))
        mask = torch.ones_like(tags) if source["attention_mask"] is None else source["attention_mask"]
        # The layers of a model may be on several devices.
        sources = Sources(encoder_outputs[0].to(tags.device), mask, tags)
        known = range(self.config.decoder_vocab_size)
        suppressed = [token for token in request.config.suppress_tokens or [] if token in known]
        suppressed = torch.tensor(suppressed, dtype=torch.long, device=tags.device)
        return FramedDecoder(self, request.limits, suppressed, sources, request.watchers)

    def _ended(self, request: Request, documents: list[list[int]]) -> Tensor:
        """Appends the token that ends documents, and pads these to `(B, T)`."""
        end = [] if request.limits.template.end is None else [request.limits.template.end]
        return self._padded(request, [[*document, *end] for document in documents])[:, : request.config.max_length]

    def _padded(self, request: Request, documents: list[list[int]]) -> Tensor:
        rows = [torch.tensor(document) for document in documents]
        padded = pad_sequence(rows, batch_first=True, padding_value=self.config.pad_token_id)
        return padded.to(request.source_tags.device)  # an offloaded model has its weights on no device

    def _with_language(self, generation_config: GenerationConfig | None, kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call. If its target language is not the model's own, it is no longer suppressed, and the
        model's own is instead."""
        setting = self.config.template.language_setting
        given = kwargs.get(setting) or getattr(generation_config, setting or "", None)
        own = getattr(self.generation_config, setting or "", None)
        own = own if isinstance(own, int) else None
        if "suppress_tokens" not in kwargs and isinstance(given, int) and given != own:
            suppressed = (generation_config or self.generation_config).suppress_tokens
            if suppressed:
                kwargs = {**kwargs, "suppress_tokens": sorted({*suppressed, own} - {given, None})}
        if kwargs.get("num_beams") == 1:
            # Transformers would warn of these settings of a beam search.
            kwargs = {"early_stopping": False, "length_penalty": 1.0, **kwargs}
        return kwargs

    def _merged_config(
        self, generation_config: GenerationConfig | None, kwargs: dict[str, Any]
    ) -> tuple[GenerationConfig, dict[str, Any]]:
        """Merges the config of a call with its keyword arguments, which come first, and with the model's own config,
        which comes last; returns it with the arguments that remain."""
        config = copy.deepcopy(generation_config or GenerationConfig())
        config.update(**self.generation_config.to_dict(), defaults_only=True, allow_custom_entries=True)
        model_kwargs = config.update(**kwargs)
        return self._with_sentence_limits(config), model_kwargs

    def _report_cut(self, sequences: Tensor, config: GenerationConfig, documents: int) -> None:
        """Warns of documents that used up their room, so that their last sentences may be cut short."""
        tokens = (sequences != self.config.pad_token_id).sum(dim=1)
        tokens += self.config.decoder_start_token_id == self.config.pad_token_id
        full = tokens >= config.max_length
        if full.any():
            cut = sorted({int(row) * documents // len(sequences) for row in full.nonzero()[:, 0]})
            logger.warning(
                f"Documents {cut} of the batch reached {config.max_length} tokens (max_length, max_new_tokens or the "
                "model's positions): their last sentences may be cut short. Translate them in parts."
            )

    def _can_use_document_cache(self, request: Request) -> bool:
        """Tells whether a [`DocumentCache`] can be used: no argument asks for another cache, for going back in it, or
        for attention weights over the whole document, and every source sentence is in one piece."""
        config, tags = request.config, request.source_tags
        asked = (*CACHE_NAMES, "assistant_model", "decoder_attention_mask", "custom_generate")
        other = [config.cache_implementation, config.prompt_lookup_num_tokens, config.return_dict_in_generate]
        other += [config.assistant_early_exit]
        return (
            config.use_cache is not False
            and self.config._attn_implementation in ("eager", "sdpa")
            and not any(other)
            and all(request.arguments.get(name) is None for name in asked)
            and bool((tags > 0).any(dim=1).all())
            and is_contiguous(tags)
        )

    def _aligns_sentences(self, config: GenerationConfig) -> bool:
        needed = [self.config.eos_token_id]
        needed += [self.config.bos_token_id] if "bos" in self.config.template.target_prefix else []
        return config.align_sentences and None not in needed

    @staticmethod
    def _with_sentence_limits(config: GenerationConfig) -> GenerationConfig:
        """Fills in the fields of the config that are specific to documents."""
        for name, default in SENTENCE_LIMITS.items():
            if getattr(config, name, None) is None:
                setattr(config, name, default)
        return config

    def _source_group_tags(self, inputs: Tensor | None, model_kwargs: dict) -> Tensor | None:
        """Tags `(B, S)` of the source: those passed, those that the encoder gives, or read off the ids; 0 for
        padding."""
        encoder_outputs, mask = model_kwargs.get("encoder_outputs"), model_kwargs.get("attention_mask")
        tags = model_kwargs.get("group_tags")
        if tags is None and encoder_outputs is not None:
            tags = getattr(encoder_outputs, "group_tags", None)
        input_ids = inputs if inputs is not None else model_kwargs.get("input_ids")
        if tags is None and input_ids is not None and input_ids.dim() == 2:
            tags = read_group_tags(input_ids, self.config, is_target=False, attention_mask=mask)
        return tags if tags is None or mask is None or mask.shape != tags.shape else tags * mask.bool()

    def _started_prompt(
        self, config: GenerationConfig, source_tags: Tensor, model_kwargs: dict[str, Any]
    ) -> dict[str, Tensor]:
        """
        Puts the token that starts a document before prompts that lack it, as Transformers does.

        Raises:
            ValueError: there are not as many prompts as documents.
        """
        prompt, mask = model_kwargs.get("decoder_input_ids"), model_kwargs.get("decoder_attention_mask")
        if prompt is None:
            return {}
        if len(prompt) != len(source_tags):
            raise ValueError(f"decoder_input_ids have {len(prompt)} rows, but there are {len(source_tags)} documents.")
        start = self._target_template(config).start
        if start is None or (prompt[:, :1] == start).any():
            return {}
        started = {"decoder_input_ids": torch.cat([prompt.new_full((len(prompt), 1), start), prompt], dim=1)}
        if mask is not None and mask.dim() == 2:
            started["decoder_attention_mask"] = torch.cat([mask.new_ones(len(mask), 1), mask], dim=1)
        return started

    def _limits(
        self, config: GenerationConfig, source_tags: Tensor, prompt: Tensor | None, limited: bool
    ) -> tuple[GroupTagLogitsProcessor, LengthPlan]:
        """Returns the processor that keeps the sentences aligned and the plan that it follows; sets in the config how
        long documents may become, what starts them and what ends them."""
        self._refuse_contradictions(config)
        target = self._target_template(config)
        plan = plan_lengths(config, source_tags, prompt, self.config, target, limited)
        self._check(plan, prompt)
        longest = plan.room if plan.room >= plan.least else plan.most
        config.max_length, config.min_length = plan.room, None
        config.max_new_tokens = config.min_new_tokens = None
        config.decoder_start_token_id = target.start
        return GroupTagLogitsProcessor(plan.token_limits, plan.min_length, longest, target), plan

    def _room_for_free_documents(
        self, config: GenerationConfig, inputs: Tensor | None, model_kwargs: dict
    ) -> dict[str, Any]:
        """Arguments of `generate` with which an unaligned document may be as long as an aligned one."""
        if config.align_sentences or self.config.template.end is None:
            return {}
        source_tags = self._source_group_tags(inputs, model_kwargs)
        if source_tags is None or not source_tags.any():
            return {}
        template, prompt = self._target_template(config), model_kwargs.get("decoder_input_ids")
        plan = plan_lengths(config, source_tags, prompt, self.config, template, limited=False)
        ends = DocumentLengthCriteria(plan.longest)
        given = model_kwargs.get("stopping_criteria") or []
        return {"max_length": plan.room, "stopping_criteria": StoppingCriteriaList([*given, ends])}

    def _target_template(self, config: GenerationConfig) -> TargetTemplate:
        """
        The ids around the words of target sentences.

        Raises:
            ValueError: the target language is unknown.
        """
        setting = self.config.template.language_setting

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

        return self.config.template.in_ids(id_of)

    def _check(self, plan: LengthPlan, prompt: Tensor | None) -> None:
        """
        Warns of a prompt or a limit that does not fit the sentences.

        Raises:
            ValueError: the model has too few positions for all sentences, or the prompt ends with padding.
        """
        if (plan.opened > plan.sentences.clamp(min=1)).any():
            logger.warning("decoder_input_ids open more sentences than the source has: the extra ones have no source.")
        if prompt is not None:
            closed = (prompt == self.config.eos_token_id).sum(dim=1)
            if ((prompt[:, -1] == self.config.pad_token_id) & (prompt.shape[1] > 1) & (closed < plan.sentences)).any():
                raise ValueError("decoder_input_ids end with padding: continue prefixes of equal length together.")
        if plan.room >= plan.least:
            return
        sentences = int(plan.sentences.max())
        if plan.room == plan.positions:
            raise ValueError(
                f"A document of {sentences} sentences needs at least {plan.least} tokens, but the model has only "
                f"{plan.room} positions: split the document at sentence boundaries."
            )
        logger.warning(
            f"{plan.room} tokens (max_length or max_new_tokens) are too few for {sentences} sentences, which take at "
            f"least {plan.least}: the translation will be cut off."
        )

    def _refuse_contradictions(self, config: GenerationConfig) -> None:
        for name in ("forced_bos_token_id", "forced_eos_token_id"):
            if getattr(config, name, None) is not None and name != self.config.template.language_setting:
                raise ValueError(
                    f"{name} contradicts the alignment of sentences: leave it out, or align_sentences=False."
                )
        if self.config.eos_token_id in (config.suppress_tokens or []):
            raise ValueError("suppress_tokens contains </s>, without which no sentence can end.")
        if config.min_new_tokens is not None:
            logger.warning_once(
                "min_new_tokens has no effect, as the source says how many sentences there are: use min_length."
            )
        if config.exponential_decay_length_penalty is not None:
            logger.warning_once(
                "exponential_decay_length_penalty has no effect, as the source says where a document ends."
            )

    def _end_of_document(self, config: GenerationConfig) -> int:
        """The token that ends a document: that of the config or, if it is unknown or ends a sentence, padding. Of
        several tokens, those that end a sentence do not count: Transformers' trainer adds the tokenizer's."""
        given = config.eos_token_id if isinstance(config.eos_token_id, list) else [config.eos_token_id]
        ends = [each for each in given if each not in (None, self.config.bos_token_id, self.config.eos_token_id)]
        end = config.eos_token_id = next(iter(ends), None)
        if end is None:
            logger.warning_once(
                "generation_config.eos_token_id is not the token that ends a document (the target language code): "
                "documents will end with padding. processor.configure(model) sets it."
            )
            end = config.eos_token_id = self.config.pad_token_id
        # A negative id asks Transformers never to stop early.
        return end if 0 <= end < self.config.decoder_vocab_size else self.config.pad_token_id

    def prepare_inputs_for_generation(self, input_ids: Tensor, **kwargs: Any) -> dict:
        """Adds the group tags of the whole prefix `(R, T)`, of which the model itself reads only the new tokens."""
        inputs = super().prepare_inputs_for_generation(input_ids, **kwargs)
        new_tokens = inputs["decoder_input_ids"].shape[1]
        prefix_mask = kwargs.get("decoder_attention_mask")
        if prefix_mask is not None and prefix_mask.shape != input_ids.shape:
            prefix_mask = None
        tags = read_group_tags(input_ids, self.config, is_target=True, attention_mask=prefix_mask)
        cache, mask = inputs.get(CACHE_NAME), inputs.get("decoder_attention_mask")
        if cache is not None and cache.is_compileable:
            # Shapes that grow with the prefix would make a compiled model compile again at every step.
            # A clone has the same strides at every step even if there is one row.
            query_tags = tags[:, -new_tokens:].clone(memory_format=torch.contiguous_format)
            if mask is None or mask.dim() != 4:
                shape = torch.empty((*query_tags.shape, 0), dtype=self.dtype, device=query_tags.device)
                cache = getattr(cache, "self_attention_cache", cache)
                mask = create_causal_mask(self.config, shape, mask, cache, allow_is_causal_skip=False)
            inputs["decoder_attention_mask"] = {"global": mask, "group": group_mask(mask, query_tags, tags)}
            if self.config.position_scope == "sentence":
                positions = sentence_positions(tags)[:, -new_tokens:]
                inputs["decoder_position_ids"] = positions.clone(memory_format=torch.contiguous_format)
            tags = query_tags
        inputs["decoder_group_tags"] = tags
        return inputs
