"""G-Transformer (Bao et al., ACL 2021): an encoder-decoder Transformer whose attention follows sentence boundaries."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers import initialization as init
from transformers.cache_utils import Cache
from transformers.generation import GenerationMixin
from transformers.modeling_outputs import (
    BaseModelOutput,
    BaseModelOutputWithPastAndCrossAttentions,
    Seq2SeqLMOutput,
    Seq2SeqModelOutput,
)
from transformers.processing_utils import Unpack
from transformers.utils import TransformersKwargs, can_return_tuple
from transformers.utils.generic import merge_with_config_defaults
from transformers.utils.output_capturing import OutputRecorder, capture_outputs

from .cache_gtransformer import CACHE_NAME, DocumentCache, StepCache, cache_for, given_cache, ids_so_far
from .configuration_gtransformer import GTransformerConfig
from .document_loss import document_loss, is_plain_linear, linear_document_loss
from .generation_gtransformer import GTransformerGenerationMixin
from .group_attention import TaggedTokens, config_of_call, decoder_masks, encoder_masks
from .group_tags import PADDING, document_positions, read_group_tags, sentence_positions, warn_of_unknown_sentences
from .hub import AdapterMixin, PublishMixin
from .layers_gtransformer import (
    POSITION_EMBEDDINGS,
    GTransformerAttention,
    GTransformerDecoderLayer,
    GTransformerEncoderLayer,
    GTransformerGate,
    GTransformerScaledWordEmbedding,
    GTransformerSinusoidalPositionalEmbedding,
    init_linear_as_base,
    states_by_kind,
)


@dataclass
class GTransformerEncoderOutput(BaseModelOutput):
    """Encoder states together with the group tags `(B, S)` of their tokens, which cross-attention needs."""

    group_tags: torch.LongTensor | None = None


class GTransformerPreTrainedModel(AdapterMixin, PublishMixin, PreTrainedModel):
    config: GTransformerConfig
    auto_class = "AutoModel"
    base_model_prefix = "model"
    supports_gradient_checkpointing = True
    _no_split_modules = ["GTransformerEncoderLayer", "GTransformerDecoderLayer"]
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _can_compile_fullgraph = True
    # Old checkpoints hold tables of positions that are computed here.
    _keys_to_ignore_on_load_unexpected = [r"embed_positions\.weight$"]

    def _loaded_from(self) -> str:
        return self.adapter_folder or self.name_or_path

    def _init_weights(self, module: nn.Module):
        """Uses mBART's normal initialisation or, with `init_std=None`, the Xavier one of the paper's base models."""
        if self.config.init_std is None and isinstance(module, nn.Embedding):
            init.normal_(module.weight, std=module.embedding_dim**-0.5)
            if module.padding_idx is not None and not getattr(module.weight, "_is_hf_initialized", False):
                init.zeros_(module.weight[module.padding_idx])
        elif self.config.init_std is None and isinstance(module, (nn.Linear, GTransformerGate)):
            init_linear_as_base(module)
        elif isinstance(module, GTransformerGate):
            init.normal_(module.weight, std=self.config.init_std)
        else:
            super()._init_weights(module)
        if isinstance(module, GTransformerGate):
            init.constant_(module.bias, module.initial_bias)
        if isinstance(module, GTransformerForConditionalGeneration):
            init.zeros_(module.final_logits_bias)


class GTransformerStack(GTransformerPreTrainedModel):
    """Base of encoder and decoder: embeddings, positions and the final layer norm."""

    # Whether the stack reads target documents.
    is_target: bool

    def __init__(self, config: GTransformerConfig):
        config.follow_late_changes()
        super().__init__(config)
        vocab_size = config.decoder_vocab_size if self.is_target else config.vocab_size
        self.embed_tokens = GTransformerScaledWordEmbedding(config, vocab_size)
        self.embed_positions = POSITION_EMBEDDINGS[config.position_embedding_type](config)
        self.embed_global_positions = GTransformerSinusoidalPositionalEmbedding(config)
        if config.layernorm_embedding:
            self.layernorm_embedding = nn.LayerNorm(config.d_model)
        if config.normalize_before:
            self.layer_norm = nn.LayerNorm(config.d_model)
        self.gradient_checkpointing = False

    def read_group_tags(
        self, input_ids: Tensor | None, inputs_embeds: Tensor, attention_mask: Tensor | dict[str, Tensor] | None
    ) -> Tensor:
        """Group tags `(B, T)` of the ids; embeddings do not show sentences, so without ids the tags are 0."""
        if input_ids is None:
            warn_of_unknown_sentences("target" if self.is_target else "source")
            return torch.zeros(inputs_embeds.shape[:2], dtype=torch.long, device=inputs_embeds.device)
        if not isinstance(attention_mask, Tensor) or attention_mask.shape != input_ids.shape:
            attention_mask = None
        return read_group_tags(input_ids, self.config, self.is_target, attention_mask)

    def embed(
        self,
        inputs_embeds: Tensor,
        attention_mask: Tensor | None,
        tokens: TaggedTokens,
        past_length,
        position_ids: Tensor | None = None,
    ) -> Tensor:
        """Adds positions and normalises; `(B, T, D)`. Positions that are not given count the real tokens of the
        document or of the sentence. The last of the `tokens` are those to embed."""
        if position_ids is None:
            position_ids = self._count_positions(inputs_embeds.shape[1], attention_mask, tokens, past_length)
        hidden_states = inputs_embeds + self.embed_positions(position_ids).to(inputs_embeds)
        if self.config.layernorm_embedding:
            hidden_states = self.layernorm_embedding(hidden_states)
        return nn.functional.dropout(hidden_states, self.config.dropout, self.training)

    def _count_positions(
        self, length: int, attention_mask: Tensor | None, tokens: TaggedTokens, past_length
    ) -> Tensor:
        """Positions of tokens in the sentence or among the real tokens of the document, `(B, T)` or `(1, T)`."""
        if self.config.position_scope == "sentence":
            position_ids = sentence_positions(tokens.tags)[:, -length:]
            if not past_length and length > self.config.max_position_embeddings:
                # Checking synchronises with the device, which a shorter document does not need.
                self.check_length(int(position_ids.max()) + 1)
            return position_ids
        if isinstance(past_length, int):
            self.check_length(past_length + length)
        if isinstance(attention_mask, Tensor) and attention_mask.dim() == 2:
            return document_positions(attention_mask)[:, -length:]
        return torch.arange(length, device=tokens.tags.device)[None] + past_length

    def global_positions(self, tokens: TaggedTokens) -> Tensor | None:
        """Positions `(B, T, D)` that global attention adds to the states of tokens `(B, T)`, if any."""
        if self.config.global_positions == "none":
            return None
        return self.embed_global_positions(tokens.tags)

    def check_length(self, length: int):
        if length > (positions := self.config.max_sentence_tokens):
            by_sentence = self.config.position_scope == "sentence"
            advice = "split that sentence" if by_sentence else "split the document at sentence boundaries"
            raise ValueError(
                f"{length} tokens, but the model has learned {positions} positions: {advice}, as the "
                "document-translation pipeline does."
            )

    def finish(self, hidden_states: Tensor) -> Tensor:
        return self.layer_norm(hidden_states) if self.config.normalize_before else hidden_states


class GTransformerEncoder(GTransformerStack):
    """A stack of `encoder_layers` self-attention layers over the source document."""

    is_target = False

    _can_record_outputs = {
        "hidden_states": GTransformerEncoderLayer,
        "attentions": OutputRecorder(GTransformerAttention, index=1, layer_name="self_attn"),
    }

    def __init__(self, config: GTransformerConfig):
        super().__init__(config)
        self.layers = nn.ModuleList([GTransformerEncoderLayer(config, i) for i in range(config.encoder_layers)])
        self.post_init()

    @merge_with_config_defaults
    @capture_outputs
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        group_tags: torch.LongTensor | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> tuple | GTransformerEncoderOutput:
        """Encodes source documents `(B, S)`; `group_tags` replaces the tags read off the ids."""
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("Give exactly one of input_ids and inputs_embeds.")
        if inputs_embeds is None:
            inputs_embeds = self.embed_tokens(input_ids)
        if group_tags is None:
            group_tags = self.read_group_tags(input_ids, inputs_embeds, attention_mask)

        source = TaggedTokens.of(group_tags, attention_mask)
        masks = encoder_masks(config_of_call(self.config, kwargs), inputs_embeds, attention_mask, source)
        hidden_states = self.embed(inputs_embeds, attention_mask, source, 0)
        positions = self.global_positions(source)
        for layer in self.layers:
            hidden_states = layer(hidden_states, masks, positions, **kwargs)
        return GTransformerEncoderOutput(last_hidden_state=self.finish(hidden_states), group_tags=source.tags)


class GTransformerDecoder(GTransformerStack):
    """A stack of `decoder_layers` layers with causal self-attention and cross-attention to the source document."""

    is_target = True

    _can_record_outputs = {
        "hidden_states": GTransformerDecoderLayer,
        "attentions": OutputRecorder(GTransformerAttention, index=1, layer_name="self_attn"),
        "cross_attentions": OutputRecorder(GTransformerAttention, index=1, layer_name="encoder_attn"),
    }

    def __init__(self, config: GTransformerConfig):
        super().__init__(config)
        self.layers = nn.ModuleList([GTransformerDecoderLayer(config, i) for i in range(config.decoder_layers)])
        self.post_init()

    @merge_with_config_defaults
    @capture_outputs
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: Tensor | dict[str, Tensor] | None = None,
        encoder_hidden_states: Tensor | None = None,
        encoder_attention_mask: Tensor | None = None,
        past_key_values: Cache | None = None,
        inputs_embeds: Tensor | None = None,
        use_cache: bool | None = None,
        group_tags: torch.LongTensor | None = None,
        encoder_group_tags: torch.LongTensor | None = None,
        position_ids: torch.LongTensor | None = None,
        cache: Cache | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> tuple | BaseModelOutputWithPastAndCrossAttentions:
        """Decodes target tokens `(B, T)` after those in the cache. `group_tags` are those of the new tokens or of all,
        the cached ones included; `encoder_group_tags` `(B, S)` those of the source (`None` if it has no sentences);
        `position_ids` `(B, T)` replace the positions of the new tokens."""
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("Give exactly one of decoder_input_ids and decoder_inputs_embeds.")
        if inputs_embeds is None:
            inputs_embeds = self.embed_tokens(self.ids_to_embed(input_ids))
        cache = cache_for(self.config, given_cache(past_key_values, cache), use_cache, has_tags=group_tags is not None)
        past_length = cache.get_seq_length() if cache is not None else 0
        if group_tags is None:
            group_tags = self.read_group_tags(ids_so_far(cache, input_ids), inputs_embeds, attention_mask)
        config = config_of_call(self.config, kwargs)
        target = TaggedTokens.of(group_tags, attention_mask)
        source = None
        # After its first call, a StepCache has all that it needs of the source.
        if encoder_group_tags is not None and not (isinstance(cache, StepCache) and past_length):
            source = TaggedTokens.of(encoder_group_tags, encoder_attention_mask)
        if isinstance(cache, DocumentCache):
            padded = None if source is None else source.tags.masked_fill(~source.real, PADDING)
            cache.start(target.tags, inputs_embeds.shape[1], padded)
        read = (inputs_embeds, attention_mask, target, encoder_hidden_states, encoder_attention_mask, source)
        masks, cross_masks = decoder_masks(config, *read, cache)
        hidden_states = self.embed(inputs_embeds, attention_mask, target, past_length, position_ids)
        positions = self.global_positions(target.last(inputs_embeds.shape[1]))
        encoder_global_states = encoder_hidden_states
        if source is not None:
            encoder_global_states = states_by_kind(encoder_hidden_states, self.global_positions(source))["global"]
        of_source = (encoder_hidden_states, encoder_global_states, cross_masks)
        for layer in self.layers:
            hidden_states = layer(hidden_states, masks, positions, *of_source, cache, **kwargs)
        return BaseModelOutputWithPastAndCrossAttentions(
            last_hidden_state=self.finish(hidden_states), **{CACHE_NAME: cache}
        )

    def ids_to_embed(self, input_ids: Tensor) -> Tensor:
        """The ids whose embeddings the decoder reads, `(B, T)`: a `</s>` that opens a sentence reads as the start."""
        start = self.config.decoder_start_token_id
        if not self.config.template.eos_opens_next or start == self.config.eos_token_id:
            return input_ids
        return input_ids.masked_fill(input_ids == self.config.eos_token_id, start)


class GTransformerModel(GTransformerPreTrainedModel):
    """Encoder and decoder without an output layer."""

    _tied_weights_keys = {
        "decoder.embed_tokens.weight": "shared.weight",
        "encoder.embed_tokens.weight": "shared.weight",
    }

    def __init__(self, config: GTransformerConfig):
        super().__init__(config)
        # If untied, encoder and decoder have their own embeddings, and nothing would use shared ones.
        self.shares_embeddings = config.tie_word_embeddings and config.share_encoder_decoder_embeddings
        if self.shares_embeddings:
            self.shared = GTransformerScaledWordEmbedding(config, config.vocab_size)
        else:
            self._tied_weights_keys = {}
        self.encoder = GTransformerEncoder(config)
        self.decoder = GTransformerDecoder(config)
        self.post_init()

    def get_input_embeddings(self):
        """The word embeddings of encoder and decoder or, if they are untied, of the encoder."""
        return self.encoder.embed_tokens

    def set_input_embeddings(self, value):
        self.encoder.embed_tokens = value
        if self.shares_embeddings:
            self.shared = self.decoder.embed_tokens = value

    def resize_token_embeddings(self, new_num_tokens=None, pad_to_multiple_of=None, mean_resizing=True):
        embeddings = super().resize_token_embeddings(new_num_tokens, pad_to_multiple_of, mean_resizing)
        self.decoder.resize_token_embeddings(new_num_tokens, pad_to_multiple_of, mean_resizing)
        return embeddings

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: torch.LongTensor | None = None,
        decoder_attention_mask: Tensor | dict[str, Tensor] | None = None,
        encoder_outputs: BaseModelOutput | None = None,
        past_key_values: Cache | None = None,
        inputs_embeds: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        group_tags: torch.LongTensor | None = None,
        decoder_group_tags: torch.LongTensor | None = None,
        decoder_position_ids: torch.LongTensor | None = None,
        use_cache: bool | None = None,
        cache: Cache | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> Seq2SeqModelOutput:
        """
        Encodes source documents and decodes target prefixes in their context.

        [`GTransformerForConditionalGeneration.forward`] describes the arguments.

        Raises:
            ValueError: no decoder input, or more tokens than learned positions.
        """
        if decoder_input_ids is None and decoder_inputs_embeds is None:
            raise ValueError("The decoder has no input: give decoder_input_ids, decoder_inputs_embeds or labels.")
        if encoder_outputs is None:
            encoder_outputs = self.encoder(
                input_ids=input_ids,
                attention_mask=attention_mask,
                inputs_embeds=inputs_embeds,
                group_tags=group_tags,
                return_dict=True,
                **kwargs,
            )
        elif isinstance(encoder_outputs, tuple | list):
            # The tags are the only integers in the encoder's own tuple.
            others = (each for each in encoder_outputs if isinstance(each, Tensor))
            tags = next((each for each in others if each.dtype == torch.long), None)
            encoder_outputs = GTransformerEncoderOutput(last_hidden_state=encoder_outputs[0], group_tags=tags)
        if getattr(encoder_outputs, "group_tags", None) is not None:
            group_tags = encoder_outputs.group_tags
        if group_tags is None and input_ids is not None:
            group_tags = self.encoder.read_group_tags(input_ids, encoder_outputs[0], attention_mask)
        if group_tags is None:
            warn_of_unknown_sentences("source")

        decoder_outputs = self.decoder(
            input_ids=decoder_input_ids,
            attention_mask=decoder_attention_mask,
            encoder_hidden_states=encoder_outputs[0],
            encoder_attention_mask=attention_mask,
            cache=given_cache(past_key_values, cache),
            inputs_embeds=decoder_inputs_embeds,
            use_cache=use_cache,
            group_tags=decoder_group_tags,
            encoder_group_tags=group_tags,
            position_ids=decoder_position_ids,
            return_dict=True,
            **kwargs,
        )
        return Seq2SeqModelOutput(
            last_hidden_state=decoder_outputs.last_hidden_state,
            **{CACHE_NAME: getattr(decoder_outputs, CACHE_NAME)},
            decoder_hidden_states=decoder_outputs.hidden_states,
            decoder_attentions=decoder_outputs.attentions,
            cross_attentions=decoder_outputs.cross_attentions,
            encoder_last_hidden_state=encoder_outputs.last_hidden_state,
            encoder_hidden_states=encoder_outputs.hidden_states,
            encoder_attentions=encoder_outputs.attentions,
        )


class GTransformerForConditionalGeneration(GTransformerPreTrainedModel, GTransformerGenerationMixin, GenerationMixin):
    """G-Transformer with an output layer, for translating documents.

    `from_pretrained` of a sentence-level checkpoint (mBART, mBART-50, M2M100, NLLB, Opus-MT, BART, PLBart) works
    without conversion: the pretrained attention becomes the group attention, and only the global attention and the
    gates are newly initialised.
    """

    auto_class = "AutoModelForSeq2SeqLM"
    _keys_to_ignore_on_load_missing = ["final_logits_bias"]
    _tied_weights_keys = {"lm_head.weight": "model.shared.weight"}

    def __init__(self, config: GTransformerConfig):
        super().__init__(config)
        self.model = GTransformerModel(config)
        self.register_buffer("final_logits_bias", torch.zeros(1, config.decoder_vocab_size))
        self.lm_head = nn.Linear(config.d_model, config.decoder_vocab_size, bias=False)
        if not config.share_encoder_decoder_embeddings:
            self._tied_weights_keys = {"lm_head.weight": "model.decoder.embed_tokens.weight"}
        self.generation_config = self.document_generation_config(self.generation_config)
        self.post_init()

    def resize_token_embeddings(self, new_num_tokens=None, pad_to_multiple_of=None, mean_resizing=True):
        """Resizes as Transformers does, the decoder's embeddings included if they are untied.

        Raises:
            ValueError: the model has two vocabularies.
        """
        if not self.config.share_encoder_decoder_embeddings:
            raise ValueError("A model with two vocabularies cannot be resized: one number does not fit both.")
        embeddings = super().resize_token_embeddings(new_num_tokens, pad_to_multiple_of, mean_resizing)
        # Transformers resizes only the embeddings of the encoder if they are untied.
        self.model.decoder.resize_token_embeddings(new_num_tokens, pad_to_multiple_of, mean_resizing)
        self.config.decoder_vocab_size = embeddings.num_embeddings
        added = embeddings.num_embeddings - self.final_logits_bias.shape[-1]
        self.register_buffer("final_logits_bias", nn.functional.pad(self.final_logits_bias, (0, added)))
        return embeddings

    def output_logits(self, hidden_states: Tensor) -> Tensor:
        """Logits `(..., V)` of decoder states `(..., D)`."""
        return self.lm_head(hidden_states) + self.final_logits_bias

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """Decoder input for labels `(B, T)`: the token that starts a document, then all labels but the last, then
        padding."""
        real = labels != -100
        decoder_input_ids = nn.functional.pad(labels, (1, -1))
        if self.config.template.target_prefix == ("tgt_lang",) and not self.config.template.eos_opens_next:
            # As in mBART, the language that ends the labels also starts them.
            last = (real * torch.arange(labels.shape[1], device=labels.device)).argmax(dim=1, keepdim=True)
            decoder_input_ids[:, :1] = labels.gather(1, last)
        else:
            decoder_input_ids[:, 0] = self.config.decoder_start_token_id
        # This also pads the token that ends the document if padding follows, as it would be outside all sentences.
        after_the_last = real.flip(1).cumsum(dim=1).flip(1) == 0
        return decoder_input_ids.masked_fill((decoder_input_ids == -100) | after_the_last, self.config.pad_token_id)

    def target_mask(self, decoder_input_ids: Tensor) -> Tensor:
        """Which tokens `(B, T)` of right-padded target documents are real: all that are not padding, and the
        first one in models that start with the padding token."""
        mask = decoder_input_ids != self.config.pad_token_id
        if self.config.decoder_start_token_id == self.config.pad_token_id:
            mask[:, 0] = True
        return mask

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: torch.LongTensor | None = None,
        decoder_attention_mask: Tensor | dict[str, Tensor] | None = None,
        encoder_outputs: BaseModelOutput | None = None,
        past_key_values: Cache | None = None,
        inputs_embeds: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        group_tags: torch.LongTensor | None = None,
        decoder_group_tags: torch.LongTensor | None = None,
        decoder_position_ids: torch.LongTensor | None = None,
        labels: torch.LongTensor | None = None,
        label_smoothing: float = 0.0,
        num_items_in_batch: Tensor | int | None = None,
        skip_logits: bool | None = None,
        use_cache: bool | None = None,
        cache: Cache | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> Seq2SeqLMOutput:
        r"""
        Computes the logits of the target and, given labels, the loss.

        Args:
            input_ids: source documents, in the paper's template `<s> w w </s> <s> w </s>`, `(B, S)`.
            attention_mask: 1 for source tokens, 0 for padding, `(B, S)`.
            decoder_input_ids: target prefixes in the template, `(B, T)`.
            decoder_attention_mask: 1 for target tokens, cached ones included, 0 for padding, or masks `(B, 1, T, S)`.
            encoder_outputs: states of the source with its tags, as the encoder returns them, to avoid running it
                again. Without tags, `group_tags` or `input_ids` must come with them.
            past_key_values: name of `cache` before Transformers 5.24. Both names work with every version.
            inputs_embeds: embeddings of the source instead of `input_ids`, `(B, S, D)`.
            decoder_inputs_embeds: embeddings of the target instead of `decoder_input_ids`, `(B, T, D)`.
            group_tags: tags of the source tokens, `(B, S)`; by default read off `input_ids`. If the sentences are
                unknown, attention is open to the whole document, with a warning.
            decoder_group_tags: tags of the target tokens, `(B, T)` or preceded by the tags of cached tokens; by
                default read off `decoder_input_ids`.
            decoder_position_ids: positions of the target tokens, `(B, T)`, below `max_position_embeddings`; by default
                counted.
            labels: target documents `w w </s> <s> w </s> [end of document]`, `(B, T)`, -100 where there is no loss.
                They also make the decoder input, unless that is given.
            label_smoothing: share of the target probability that is spread over the vocabulary (paper: 0.1 or 0.2).
            num_items_in_batch: number of labels over which the loss is averaged; by default, this call's labels.
            skip_logits: whether to compute the loss without holding all logits, and return none of them. By default so
                in training, unless an adapter or a hook changes the output layer.
            use_cache: whether to return keys and values of the target; never with labels.
            cache: keys and values of earlier target tokens, which generation fills.
            output_attentions: whether to return attention weights. This call then uses eager attention, whatever the
                model's `attn_implementation`.
            attention_recorder: called for every attention sublayer of this call with its stack ("encoder", "decoder"
                or "cross"), its layer, its weights `(B, H, T, S)` by kind ("group", "global"), and its gate
                `(B, T, D)`, `None` without one. Uses eager attention as well.

        Returns:
            `Seq2SeqLMOutput` with `logits` `(B, T, vocab_size)`, unless skipped, and, given labels, `loss` in nats per
            label.

        Example:

        ```python
        >>> import torch
        >>> from modeling_gtransformer import GTransformerConfig, GTransformerForConditionalGeneration

        >>> config = GTransformerConfig(
        ...     vocab_size=32, d_model=16, encoder_layers=2, decoder_layers=2,
        ...     encoder_ffn_dim=16, decoder_ffn_dim=16,
        ...     encoder_attention_heads=2, decoder_attention_heads=2,
        ... )
        >>> model = GTransformerForConditionalGeneration(config).eval()  # in training it computes no logits
        >>> source = torch.tensor([[0, 5, 6, 2, 0, 7, 2]])  # two sentences
        >>> labels = torch.tensor([[8, 2, 0, 9, 9, 2, 31]])  # 31 ends the document
        >>> model(input_ids=source, labels=labels).logits.shape
        torch.Size([1, 7, 32])
        ```"""
        if labels is not None and decoder_input_ids is None and decoder_inputs_embeds is None:
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        if labels is not None and decoder_input_ids is not None and decoder_attention_mask is None:
            decoder_attention_mask = self.target_mask(decoder_input_ids)
        outputs = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            decoder_input_ids=decoder_input_ids,
            decoder_attention_mask=decoder_attention_mask,
            encoder_outputs=encoder_outputs,
            cache=given_cache(past_key_values, cache),
            inputs_embeds=inputs_embeds,
            decoder_inputs_embeds=decoder_inputs_embeds,
            group_tags=group_tags,
            decoder_group_tags=decoder_group_tags,
            decoder_position_ids=decoder_position_ids,
            use_cache=use_cache if labels is None else False,
            return_dict=True,
            **kwargs,
        )
        loss, logits = None, None
        if skip_logits is None:
            skip_logits = self.training and is_plain_linear(self.lm_head)
        if labels is None or not skip_logits:
            logits = self.output_logits(outputs.last_hidden_state)
        if labels is not None:
            about_loss = (labels, label_smoothing, num_items_in_batch)
            if logits is None:
                output_layer = (self.lm_head.weight, self.final_logits_bias)
                loss = linear_document_loss(outputs.last_hidden_state, *output_layer, *about_loss)
            else:
                loss = document_loss(logits, *about_loss)
        others = {name: value for name, value in outputs.items() if name != "last_hidden_state"}
        return Seq2SeqLMOutput(loss=loss, logits=logits, **others)

    known_forward = forward


__all__ = [
    "GTransformerForConditionalGeneration",
    "GTransformerModel",
    "GTransformerPreTrainedModel",
]
