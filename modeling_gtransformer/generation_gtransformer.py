"""Generation of documents, always with one target sentence per source sentence (paper, section 4.3).

Shape legend: B documents, R rows (documents times beams or samples), T tokens, G source sentences, V vocabulary.
"""

import copy
import functools
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import GenerationConfig
from transformers.generation import (
    EosTokenCriteria,
    GenerationMixin,
    GenerationMode,
    LogitsProcessorList,
    MaxLengthCriteria,
    StoppingCriteriaList,
)
from transformers.utils import ModelOutput, logging

from .cache_gtransformer import CACHE_NAME, CACHE_NAMES, DocumentCache
from .decoding import (
    NEUTRAL_PROCESSORS,
    TOKEN_PROCESSORS,
    Ranking,
    Sources,
    TemplateDecoder,
    Written,
    decode_documents,
    decode_independently,
)
from .group_attention import group_mask
from .group_tags import (
    document_positions,
    is_contiguous,
    last_in_sentence,
    progress_after,
    read_group_tags,
    sentence_lengths,
    sentence_positions,
)
from .jacobi_decoding import JacobiDecoder
from .packed_weights import packed_weights
from .sentence_template import TargetTemplate
from .target_sentences import (
    DocumentLengthCriteria,
    GroupTagLogitsProcessor,
    LengthPlan,
    SentenceCountCriteria,
    SentenceEndsSpared,
    SentenceScoreRecorder,
    SentenceStreamer,
    plan_lengths,
    spare_sentence_ends,
)


logger = logging.get_logger(__name__)

# Decoding settings of the paper's experiments; a target sentence has at most a * (tokens of its source) + b tokens.
SENTENCE_LIMITS = {
    "align_sentences": True,
    "parallel_sentences": None,
    "max_length_a": 1.2,
    "max_length_b": 10,
    "min_length": 1,
    "pack_weights": True,
}

# The `max_length` that Transformers' Seq2SeqTrainer leaves in a model's generation config: an artefact, ignored.
SEQ2SEQ_TRAINER_LENGTH = 20

# Greedy search drafts sentences in parallel if the longest document is at least this many times as long as the longest
# sentence, for up to this many documents: more of them fill a step of a CPU on their own. A GPU gained with 16 and
# was not tried with more.
PARALLEL_SENTENCES, PARALLEL_DOCUMENTS, PARALLEL_DOCUMENTS_OF_A_GPU = 3, 12, 16

# Modes, arguments of `generate` and stopping criteria that the engine supports.
ENGINE_MODES = (GenerationMode.GREEDY_SEARCH, GenerationMode.BEAM_SEARCH)
ENGINE_ARGUMENTS = {
    "input_ids",
    "inputs_embeds",
    "attention_mask",
    "group_tags",
    "encoder_outputs",
    "decoder_input_ids",
    "labels",
    "prefix_allowed_tokens_fn",
    "stopping_criteria",
}
ENGINE_CRITERIA = (MaxLengthCriteria, EosTokenCriteria, SentenceCountCriteria)


@dataclass
class DocumentsOutput(ModelOutput):
    """
    Output of `generate(parallel_sentences=True, return_dict_in_generate=True)`.

    Args:
        sequences: documents `(B, T)`.
        rounds: how often sentences of each document were decoded greedily, `(B,)`; 1 if all drafts were
            finished at once and verified.
        steps: number of decoding steps of all rounds together, and of what was decoded token by token after them.
    """

    sequences: torch.LongTensor | None = None
    rounds: torch.LongTensor | None = None
    steps: int | None = None


@dataclass
class GenerateCall:
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
        start = self.limits.template.start
        return self.source_tags.new_full((len(self.source_tags), 1), start) if given is None else given

    def is_regular(self, config: Any) -> bool:
        """Whether every document of the prompt is incomplete, and the group tag and the position of its last token are
        those that the template gives to the beginning of a document."""
        template, prompt = self.limits.template, self.prompt
        opened, place = last_in_sentence(prompt, template)
        number, words = progress_after(prompt[:, -1], opened, place, template)
        # A sentence that the source lacks goes on only where a token ends the document.
        is_open = (words != -len(template.prefix)) & (template.end is not None)
        is_complete = (number > self.plan.sentences.to(number.device)) & ~is_open
        tags = read_group_tags(prompt, config, is_target=True)
        is_counted = (tags[:, -1] == opened) & (sentence_positions(tags)[:, -1] == place)
        return bool((is_counted & ~is_complete).all())

    @property
    def is_whole(self) -> bool:
        """Whether documents are translated from their beginning, with a budget for all their tokens."""
        return self.plan.budget >= self.plan.max_length and self.prompt.shape[1] == 1

    @property
    def beyond_the_engine(self) -> list[str]:
        """Settings and arguments that the engine leaves to Transformers."""
        config = self.config
        given = {name: value for name, value in self.arguments.items() if not (value is None or value is False)}
        mode = config.get_generation_mode(given.get("assistant_model"))
        names = {*given} - ENGINE_ARGUMENTS
        names |= {mode.value} if mode not in ENGINE_MODES else set()
        names |= {"num_return_sequences"} if config.num_return_sequences not in (None, 1) else set()
        names |= {"cache_implementation"} if config.cache_implementation is not None else set()
        # As a search for any better hypothesis, however long, it would need another bound.
        never = config.early_stopping == "never" and mode == GenerationMode.BEAM_SEARCH
        return sorted(names | ({"early_stopping"} if never else set()))

    @property
    def few_documents(self) -> bool:
        """Whether there are so few documents for the device that drafting sentences in parallel is likely faster."""
        lengths = sentence_lengths(self.source_tags)
        is_long = int(lengths.sum(dim=1).max()) >= PARALLEL_SENTENCES * int(lengths.max())
        most = PARALLEL_DOCUMENTS if lengths.device.type == "cpu" else PARALLEL_DOCUMENTS_OF_A_GPU
        return self.config.num_beams in (None, 1) and len(lengths) <= most and is_long


class GTransformerGenerationMixin(GenerationMixin):
    """`generate` for documents. It comes before Transformers' `GenerationMixin` among the base classes, and leaves
    to it the searches that our loops do not support."""

    # The `forward` that the engine reimplements; an override falls back to Transformers.
    known_forward: ClassVar[Callable]

    def document_generation_config(self, generation_config: GenerationConfig) -> GenerationConfig:
        """
        Adapts the generation config of a sentence-level model to documents: without the limits of a single
        sentence, and with the target language where the template has it. A config made for documents is not changed.
        """
        setting = self.config.template.language_setting
        is_sentence_level = getattr(generation_config, "align_sentences", None) is None
        # Transformers would not save the fields of documents with a config that was derived from the model's.
        config = GenerationConfig.from_dict(generation_config.to_dict() | {"_from_model_config": False})
        config = self._with_sentence_limits(config)
        # mBART's target starts with the code of its language.
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
        Translates documents as `generate` of Transformers does (greedy search, beam search, sampling, ...), with one
        target sentence per source sentence (paper, section 4.3).

        **Limits.** Keyword arguments or the generation config set limits per sentence: `max_length_a` and
        `max_length_b` (at most `int(a * n + b)` tokens for a source sentence of n tokens) and `min_length` (tokens);
        the tokens of the template do not count.
        `max_length` and `max_new_tokens` bound the document, which otherwise may be as long as its sentences. If this
        bound or the model's last position is too low, the last sentences are shortened so that all have a place, and
        a warning names the document. `max_time` and custom stopping criteria cut documents off anywhere. A
        `max_length` of 20 in the model's own generation config is an artefact of `Seq2SeqTrainer` and is ignored.

        **Free decoding.** With `align_sentences=False`, the model chooses the number of sentences, as the paper's
        Transformer on documents does, within the number of tokens that aligned sentences could have.

        **Engine.** Greedy and beam search run in this package, find the results of Transformers' loops, and apply the
        logits processors that Transformers builds from the settings. Sampling, assisted generation, several return
        sequences, other caches, other stopping criteria and `return_dict_in_generate` run in Transformers. On a CPU,
        float32 linear layers and gates may use packed copies of their weights, which double their memory;
        `pack_weights=False` turns this off.

        **Parallel sentences.** Independent sentences (`config.independent_sentences`) are decoded in parallel, with
        separate beams, unless `parallel_sentences=False`. Otherwise, greedy search uses Jacobi decoding
        ([`modeling_gtransformer.jacobi_decoding`]) for up to twelve documents, on a GPU 16, if no sentence is longer
        than a third of the longest document. The result is that of token-by-token decoding, up to rounding; if too
        many drafts are wrong, decoding continues token by token. `parallel_sentences=True` always decodes in parallel.
        With `num_beams`, every sentence then has its own beam, in the context of the greedy translations of the other
        sentences. In this mode, `return_dict_in_generate` returns a [`DocumentsOutput`], and settings that make a
        token depend on more than the model and its document, such as sampling or a repetition penalty, raise an
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
                    kwargs |= self._budget_of_free_documents(config, inputs, model_kwargs)
                return super().generate(inputs, generation_config, logits_processor, **kwargs)
            model_kwargs |= self._started_prompt(config, source_tags, model_kwargs)
            if model_kwargs.get("encoder_outputs") is not None:
                # Transformers would drop the ids that these tags may come from.
                model_kwargs["group_tags"] = source_tags
            limits, plan = self._limits(config, source_tags, model_kwargs.get("decoder_input_ids"), limited)
            call = GenerateCall(config, limits, plan, inputs, source_tags, model_kwargs)
            outputs = self._decode(call, logits_processor or [])
        if config.max_length < plan.max_length:
            self._report_cut(outputs if isinstance(outputs, Tensor) else outputs.sequences, config, len(source_tags))
        return outputs

    def _decode(self, call: GenerateCall, logits_processor: LogitsProcessorList):
        """
        Decodes by the engine or, where it declines, by the loops of Transformers, which are the reference.

        Raises:
            ValueError: an argument contradicts `parallel_sentences`.
        """
        beyond = call.beyond_the_engine
        if self._forward_hooks or self._forward_pre_hooks or type(self).forward is not type(self).known_forward:
            beyond.append("hooks of the model or an overridden forward")
        if call.config.parallel_sentences:
            self._refuse_in_parallel(call, beyond)
        can_use_cache = self._can_use_document_cache(call) and call.is_regular(self.config)
        fits = call.plan.min_tokens <= call.plan.budget
        use_engine = call.config.parallel_sentences or (not beyond and fits and can_use_cache)
        if use_engine:
            self._encode(call)
        generate = self._prepared_generate(call, logits_processor)
        outputs = generate(custom_generate=functools.partial(self._run_engine, call)) if use_engine else None
        if outputs is None:  # the engine leaves the call to Transformers
            sizes = (len(call.source_tags), call.config.num_beams or 1)
            outputs = generate(**{CACHE_NAME: DocumentCache(*sizes)} if can_use_cache else {})
        return outputs

    def _encode(self, call: GenerateCall) -> None:
        """Adds the encoded source to the arguments of a call, for all passes over it."""
        arguments = call.arguments
        if arguments.get("encoder_outputs") is None:
            source = {name: arguments.get(name) for name in ("input_ids", "inputs_embeds", "attention_mask")}
            if source["inputs_embeds"] is None and call.inputs is not None:
                source["input_ids"] = call.inputs
            encode = self.get_encoder()
            arguments["encoder_outputs"] = encode(**source, group_tags=arguments.get("group_tags"), return_dict=True)

    def _prepared_generate(self, call: GenerateCall, logits_processor: LogitsProcessorList) -> Callable:
        """`generate` of Transformers with the arguments of a call and with what keeps its sentences aligned."""
        config, limits, arguments = call.config, call.limits, dict(call.arguments)
        source_ids = arguments.get("input_ids") if call.inputs is None else call.inputs
        # Transformers applies custom processors after its own bans and before temperature, top-k and top-p.
        given = spare_sentence_ends(config, logits_processor, source_ids, self.config.eos_token_id)
        processors = LogitsProcessorList([*given, limits])
        if limits.template.end is None:
            ends = SentenceCountCriteria(call.plan.sentences, limits.template)
            arguments["stopping_criteria"] = StoppingCriteriaList([*(arguments.get("stopping_criteria") or []), ends])
            # No token ends a document, and Transformers would stop at its first `</s>`. Padding comes after the end.
            config.eos_token_id = self.config.pad_token_id
            # Transformers allows the token that ends a document, and only that, in this list.
            banned = [words for words in config.bad_words_ids or [] if words != [self.config.eos_token_id]]
            config.bad_words_ids = banned or None
        generate = functools.partial(super().generate, call.inputs, config, processors)
        encoded = arguments.pop("encoder_outputs", None)

        def generate_from_a_copy(**own: Any):
            # Transformers repeats the encoded source for every beam in place.
            source = {} if encoded is None else {"encoder_outputs": type(encoded)(**encoded)}
            return generate(**arguments, **source, **own)

        return generate_from_a_copy

    def _run_engine(
        self,
        call: GenerateCall,
        model: Any,
        input_ids: Tensor,
        logits_processor: LogitsProcessorList,
        stopping_criteria: StoppingCriteriaList,
        generation_config: GenerationConfig,
        **model_kwargs: Any,
    ) -> Tensor | DocumentsOutput | None:
        """
        The `custom_generate` of a call: decodes what Transformers has prepared. Logits processors that Transformers or
        a caller adds are applied to all documents at every step, as in the loops of Transformers.

        Args:
            input_ids: what the documents begin with, a row for every beam, `(R, P)`.

        Returns:
            Documents `(B, T)`; `None` if a stopping criterion is unknown.

        Raises:
            ValueError: a processor or criterion contradicts `parallel_sentences`.
        """
        config, parallel = call.config, call.config.parallel_sentences
        unknown = [each for each in stopping_criteria if not isinstance(each, ENGINE_CRITERIA)]
        score_tokens = [each for each in logits_processor if isinstance(each, TOKEN_PROCESSORS)]
        dependent = [
            each for each in logits_processor if not isinstance(each, (*TOKEN_PROCESSORS, *NEUTRAL_PROCESSORS))
        ]
        if parallel and (unknown or dependent):
            spared = [each.processors if isinstance(each, SentenceEndsSpared) else [each] for each in dependent]
            others = [*unknown, *chain.from_iterable(spared)]
            names = ", ".join(getattr(each, "__name__", type(each).__name__) for each in others)
            raise ValueError(f"parallel_sentences cannot be combined with {names}.")
        if unknown:
            return None
        beams = config.num_beams or 1
        length_penalty = 1.0 if config.length_penalty is None else config.length_penalty
        ranking = Ranking(length_penalty, bool(config.early_stopping))
        sources, prompts = self._sources(call, beams, **model_kwargs), input_ids[::beams]
        streams = any(isinstance(each, SentenceStreamer) for each in logits_processor)  # waits for first sentences
        drafts = parallel is None and call.is_whole and call.few_documents and not streams
        is_independent = self.config.independent_sentences and call.is_whole and parallel is not False
        in_parallel, rounds = not dependent and (is_independent or parallel or drafts), None
        processors = score_tokens if in_parallel else logits_processor
        decoder = TemplateDecoder(self, call.limits, processors, sources)
        if not in_parallel:
            documents = decode_documents(decoder, prompts, beams, ranking)
        elif is_independent:
            documents = decode_independently(decoder, beams, ranking)
        else:
            documents, rounds = self._decode_in_parallel(call, decoder, prompts, beams, ranking)
        recorders = [each for each in logits_processor if isinstance(each, SentenceScoreRecorder)]
        if call.prompt.shape[1] == 1 and documents[0].log_probabilities:
            for recorder in recorders:
                recorder.sums = [call.limits.template.sums(*written) for written in documents]
        sequences = self._padded(call, [written.ids for written in documents])[:, : config.max_length]
        if rounds is None or not config.return_dict_in_generate:
            return sequences
        return DocumentsOutput(sequences=sequences, rounds=torch.tensor(rounds), steps=decoder.steps)

    def _sources(
        self, call: GenerateCall, beams: int, *, encoder_outputs: Any, attention_mask: Tensor | None = None, **_: Any
    ) -> Sources:
        """The encoded documents, without their copies for every beam."""
        # The layers of a model may be on several devices.
        states = encoder_outputs[0][::beams].to(call.source_tags.device)
        mask = torch.ones_like(call.source_tags) if attention_mask is None else attention_mask[::beams]
        return Sources(states, mask, call.source_tags)

    def _decode_in_parallel(
        self, call: GenerateCall, decoder: TemplateDecoder, prompts: Tensor, beams: int, ranking: Ranking
    ) -> tuple[list[Written], list[int]]:
        """Drafts and verifies the sentences of every document in parallel, then runs a beam search for each of them in
        the context of the others, if there are beams. Returns the documents, and the number of rounds of each."""
        decoder.records &= beams == 1  # beams read drafts as context, so their scores differ from the result's
        jacobi = JacobiDecoder(decoder, gives_up=not call.config.parallel_sentences)
        documents, rounds = jacobi.decode(prompts)
        end = [] if decoder.template.end is None else [decoder.template.end]
        if beams > 1:
            documents = jacobi.search(prompts, documents, beams, ranking)
            return [Written([*ids, *end]) for ids in documents], rounds
        scored = zip(documents, jacobi.log_probabilities, strict=True)
        return [Written([*ids, *end], [*scores[: len(ids)], *(0.0 for _ in end)]) for ids, scores in scored], rounds

    def _refuse_in_parallel(self, call: GenerateCall, beyond: list[str]) -> None:
        """Raises `ValueError` if `parallel_sentences` cannot decode a call."""
        if beyond:
            raise ValueError(f"parallel_sentences cannot be combined with {', '.join(beyond)}.")
        if self.config._attn_implementation not in ("eager", "sdpa"):
            raise ValueError("parallel_sentences needs the attn_implementation 'sdpa' or 'eager'.")
        if not read_group_tags(call.prompt, self.config, is_target=True).all():
            raise ValueError("parallel_sentences needs decoder_input_ids of sentences, `<s> w w </s> <s> w`, only.")
        if (call.plan.opened > call.plan.sentences).any():
            raise ValueError("parallel_sentences needs decoder_input_ids of no more sentences than the source has.")
        if call.config.max_length <= call.prompt.shape[1]:
            length = call.prompt.shape[1]
            raise ValueError(f"decoder_input_ids have {length} tokens, max_length is {call.config.max_length}.")

    def _padded(self, call: GenerateCall, documents: list[list[int]]) -> Tensor:
        """Documents `(B, T)`."""
        rows = [torch.tensor(document) for document in documents]
        padded = pad_sequence(rows, batch_first=True, padding_value=self.config.pad_token_id)
        return padded.to(call.source_tags.device)  # an offloaded model has its weights on no device

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
        """Warns of documents that used up their budget, so that their last sentences may be cut short."""
        tokens = (sequences != self.config.pad_token_id).sum(dim=1)
        tokens += self.config.decoder_start_token_id == self.config.pad_token_id
        full = tokens >= config.max_length
        if full.any():
            cut = sorted({int(row) * documents // len(sequences) for row in full.nonzero()[:, 0]})
            logger.warning(
                f"Documents {cut} of the batch reached {config.max_length} tokens (max_length, max_new_tokens or the "
                "model's positions): their last sentences may be cut short. Translate them in parts."
            )

    def _can_use_document_cache(self, call: GenerateCall) -> bool:
        """Whether a [`DocumentCache`] can be used: no argument asks for another cache, for going back in it, or for
        attention weights over the whole document, and every source sentence is contiguous."""
        config, tags = call.config, call.source_tags
        asked = (*CACHE_NAMES, "assistant_model", "decoder_attention_mask", "custom_generate")
        other = [config.cache_implementation, config.prompt_lookup_num_tokens, config.return_dict_in_generate]
        other += [config.assistant_early_exit]
        return (
            config.use_cache is not False
            and self.config._attn_implementation in ("eager", "sdpa")
            and not any(other)
            and all(call.arguments.get(name) is None for name in asked)
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
        max_length = plan.budget if plan.budget >= plan.min_tokens else plan.max_length
        config.max_length, config.min_length = plan.budget, 0
        config.max_new_tokens = config.min_new_tokens = None
        config.decoder_start_token_id = target.start
        return GroupTagLogitsProcessor(plan.token_limits, plan.min_length, max_length, target), plan

    def _budget_of_free_documents(
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
        ends = DocumentLengthCriteria(plan.max_tokens)
        given = model_kwargs.get("stopping_criteria") or []
        return {"max_length": plan.budget, "stopping_criteria": StoppingCriteriaList([*given, ends])}

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
            closed = (prompt[:, 1:] == self.config.eos_token_id).sum(dim=1)  # the first `</s>` may start the document
            if ((prompt[:, -1] == self.config.pad_token_id) & (prompt.shape[1] > 1) & (closed < plan.sentences)).any():
                raise ValueError("decoder_input_ids end with padding: continue prefixes of equal length together.")
        if plan.budget >= plan.min_tokens:
            return
        sentences = int(plan.sentences.max())
        if plan.budget == plan.positions:
            raise ValueError(
                f"A document of {sentences} sentences needs at least {plan.min_tokens} tokens, but the model has only "
                f"{plan.budget} positions: split the document at sentence boundaries."
            )
        logger.warning(
            f"{plan.budget} tokens (max_length or max_new_tokens) are too few for {sentences} sentences, which take "
            f"at least {plan.min_tokens}: the translation will be cut off."
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
                "min_new_tokens has no effect, because the source determines the number of sentences: use min_length."
            )
        if config.exponential_decay_length_penalty is not None:
            logger.warning_once(
                "exponential_decay_length_penalty has no effect: the source determines where a document ends."
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
            # Transformers has made a mask over the places of the cache.
            inputs["decoder_attention_mask"] = {"global": mask, "group": group_mask(mask, query_tags, tags)}
            positions = None
            if self.config.position_scope == "sentence":
                positions = sentence_positions(tags)
            elif prefix_mask is not None:
                # The model counts real tokens only if it gets a mask `(R, T)`.
                positions = document_positions(prefix_mask)
            if positions is not None:
                positions = positions[:, -new_tokens:].clone(memory_format=torch.contiguous_format)
                inputs["decoder_position_ids"] = positions
            tags = query_tags
        inputs["decoder_group_tags"] = tags
        return inputs
