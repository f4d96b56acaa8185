"""Configuration of G-Transformer: mBART's fields, and a list of attention kinds per stack."""

import math
from typing import Literal, TypeAlias

from huggingface_hub.dataclasses import strict
from transformers import CONFIG_MAPPING, PreTrainedConfig

from .sentence_template import SentenceTemplate, template_named


AttentionTypes: TypeAlias = list[Literal["group", "global", "combined"]]
STACKS = ("encoder", "decoder", "cross")

# Fields by default derived from other fields.
DERIVED = {
    **{f"{stack}_attention_types": {f"{stack}_global_layers"} for stack in STACKS},
    **{f"{stack}_global_layers": {f"{stack}_attention_types"} for stack in STACKS},
    "position_scope": {"sentence_template"},
    "global_positions": {"sentence_template", "position_scope"},
}

# Maximum sizes, far above any model's, so a broken config.json cannot exhaust memory.
MAX_SIZES = {
    **dict.fromkeys(("encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads"), 1024),
    **dict.fromkeys(("d_model", "encoder_ffn_dim", "decoder_ffn_dim"), 2**18),
    **dict.fromkeys(("vocab_size", "decoder_vocab_size", "max_position_embeddings"), 2**24),
}

# Fields of every Transformers configuration, copied from sentence-level checkpoints.
COMMON_FIELDS = frozenset({"architectures", "dtype", "id2label", "label2id", "name_or_path", "_name_or_path"})

# Supported sentence-level models, with the fields that their configurations lack.
SENTENCE_LEVEL_MODELS = {
    "mbart": {},
    "bart": {"normalize_before": False, "sentence_template": "bart"},
    "plbart": {"normalize_before": False, "sentence_template": "mbart"},
    "m2m_100": {
        "layernorm_embedding": False,
        "position_embedding_type": "sinusoidal",
        "sentence_template": "mbart50",
    },
    "marian": {
        "normalize_before": False,
        "layernorm_embedding": False,
        "position_embedding_type": "sinusoidal_marian",
        "sentence_template": "marian",
    },
}


def combined_on_top(layers: int, combined: int) -> list[str]:
    """Returns the attention kinds of a stack of `layers` layers, the top `combined` with combined attention."""
    return ["group"] * (layers - combined) + ["combined"] * combined


@strict
class GTransformerConfig(PreTrainedConfig):
    r"""
    Configuration of a [`GTransformerModel`] (Bao et al., ACL 2021). The defaults have the size and layout of mBART25
    (`facebook/mbart-large-cc25`), with combined attention in the top two layers of every stack.

    Args:
        encoder_global_layers (`int`, *optional*): number of top encoder layers with "combined" attention (paper,
            section 4.2). 2 by default, as in the paper.
        decoder_global_layers (`int`, *optional*): likewise for the decoder's self-attention (target-side context).
        cross_global_layers (`int`, *optional*): likewise for cross-attention.
        encoder_attention_types (`list[str]`, *optional*): attention kind of every encoder layer, bottom to top:
            "group" (own sentence only), "global" (whole document) or "combined" (both, weighted by a gate). Derived
            from `encoder_global_layers` by default.
        decoder_attention_types (`list[str]`, *optional*): likewise for the decoder's self-attention.
        cross_attention_types (`list[str]`, *optional*): likewise for cross-attention.
        normalize_before (`bool`, defaults to `True`): layer norm before each sublayer and after the last layer, as in
            mBART; `False` is the post-norm of BART and of the paper's base, big and large Transformers.
        layernorm_embedding (`bool`, defaults to `True`): layer norm on the embeddings (mBART, BART).
        position_embedding_type (`str`, defaults to `"learned"`): "learned" (mBART, BART, PLBart), "sinusoidal" (base,
            big, M2M100, NLLB) or "sinusoidal_marian" (Opus-MT, which has another first row and other frequencies).
        position_scope (`str`, *optional*): positions count from the start of the "document", as in the paper, or of
            the "sentence", as in sentence-level models. Sentence positions allow documents of any length;
            `max_position_embeddings` then limits sentences. By default "document" for the template of the paper, else
            "sentence".
        global_positions (`str`, *optional*): positions for global attention: "sentence", a sinusoidal embedding of
            each token's sentence number, or "none". By default "sentence" with `position_scope="sentence"`, else
            "none".
        gate_bias (`float`, defaults to 0.0): bias of newly initialised gates. A larger bias initially favours group
            attention.
        sentence_template (`str`, defaults to `"paper"`): the tokens around every sentence, a key of
            `SENTENCE_TEMPLATES`. Sentence-level checkpoints get the template of their family.
        share_encoder_decoder_embeddings (`bool`, defaults to `True`): one vocabulary and one matrix for both sides;
            `False` for Opus-MT models with two vocabularies.
        decoder_vocab_size (`int`, *optional*): size of a separate target vocabulary.
        init_std (`float` or `None`, defaults to 0.02): standard deviation of newly initialised weights; `None` selects
            Xavier initialisation, as for the paper's randomly initialised models.

    [`MBartConfig`] describes the remaining fields. `from_pretrained` also reads the `config.json` of an mBART,
    mBART-50, M2M100, NLLB, Marian (Opus-MT), BART or PLBart model.

    Raises:
        ValueError: a list or number does not fit the layers, the number of global layers contradicts the list, or the
            width does not fit the heads. huggingface_hub may wrap the error in its `StrictDataclassError`, which it
            also raises for values of other types, such as unknown attention kinds.

    Example:

    ```python
    >>> from modeling_gtransformer import GTransformerConfig

    >>> config = GTransformerConfig(encoder_layers=3, decoder_layers=3, decoder_global_layers=0)
    >>> config.encoder_attention_types, config.decoder_attention_types
    (['group', 'combined', 'combined'], ['group', 'group', 'group'])
    ```"""

    model_type = "gtransformer"
    keys_to_ignore_at_inference = ["past_key_values", "cache"]
    attribute_map = {
        "num_attention_heads": "encoder_attention_heads",
        "hidden_size": "d_model",
        "num_hidden_layers": "encoder_layers",
    }

    vocab_size: int = 250027
    max_position_embeddings: int = 1024
    d_model: int = 1024
    encoder_layers: int = 12
    encoder_ffn_dim: int = 4096
    encoder_attention_heads: int = 16
    decoder_layers: int = 12
    decoder_ffn_dim: int = 4096
    decoder_attention_heads: int = 16
    encoder_global_layers: int | None = None
    decoder_global_layers: int | None = None
    cross_global_layers: int | None = None
    encoder_attention_types: AttentionTypes | None = None
    decoder_attention_types: AttentionTypes | None = None
    cross_attention_types: AttentionTypes | None = None
    normalize_before: bool = True
    layernorm_embedding: bool = True
    position_embedding_type: Literal["learned", "sinusoidal", "sinusoidal_marian"] = "learned"
    position_scope: Literal["document", "sentence"] | None = None
    global_positions: Literal["none", "sentence"] | None = None
    gate_bias: float | int = 0.0
    sentence_template: str = "paper"
    share_encoder_decoder_embeddings: bool = True
    decoder_vocab_size: int = 0
    scale_embedding: bool = True
    activation_function: str = "gelu"
    dropout: float | int = 0.1
    attention_dropout: float | int = 0.0
    activation_dropout: float | int = 0.0
    init_std: float | None = 0.02
    use_cache: bool = True
    is_encoder_decoder: bool = True
    tie_word_embeddings: bool = True
    bos_token_id: int | None = 0
    pad_token_id: int | None = 1
    eos_token_id: int | None = 2
    decoder_start_token_id: int | None = None

    def __post_init__(self, **kwargs):
        # A sentence-level checkpoint's config.json contains another type.
        kwargs.pop("model_type", None)
        for name, bound in MAX_SIZES.items():
            if getattr(self, name) > bound:
                raise ValueError(f"{name} is {getattr(self, name)}, but its maximum is {bound}.")
        for stack, layers in self._stacks().items():
            self._fill_attention_types(stack, layers)
        if self.position_scope is None:
            self.position_scope = self.template.position_scope
        if self.global_positions is None:
            self.global_positions = "sentence" if self.position_scope == "sentence" else "none"
        if not self.decoder_vocab_size or self.share_encoder_decoder_embeddings:
            self.decoder_vocab_size = self.vocab_size
        if self.template.target_prefix == ("bos",) and not self.template.eos_opens_next:
            # mBART starts the decoder with the target language code; our template ends the document with it.
            self.decoder_start_token_id = self.bos_token_id
        elif self.template.start and self.decoder_start_token_id is None:
            self.decoder_start_token_id = getattr(self, f"{self.template.start}_token_id")
        super().__post_init__(**kwargs)

    @property
    def template(self) -> SentenceTemplate:
        """The tokens around every sentence."""
        return template_named(self.sentence_template)

    @property
    def has_global_attention(self) -> bool:
        """Whether sentences attend to each other in any layer."""
        return any(set(self.attention_types(stack)) != {"group"} for stack in self._stacks())

    @property
    def independent_sentences(self) -> bool:
        """Whether a target sentence depends only on the encoder states of its source sentence."""
        types = {*self.attention_types("decoder"), *self.attention_types("cross")}
        return types == {"group"} and self.position_scope == "sentence"

    @property
    def max_sentence_tokens(self) -> float:
        """Maximum number of tokens per sentence; infinite with sinusoidal positions."""
        return self.max_position_embeddings if self.position_embedding_type == "learned" else math.inf

    @property
    def max_document_tokens(self) -> float:
        """Maximum number of tokens per document; infinite with sinusoidal or sentence positions."""
        return self.max_sentence_tokens if self.position_scope == "document" else math.inf

    def attention_types(self, stack: str) -> list[str]:
        """Returns the attention kind of every layer of the stack "encoder", "decoder" (self-attention) or "cross"."""
        return getattr(self, f"{stack}_attention_types")

    def _stacks(self) -> dict[str, int]:
        return {"encoder": self.encoder_layers, "decoder": self.decoder_layers, "cross": self.decoder_layers}

    def _fill_attention_types(self, stack: str, layers: int):
        types, global_layers = f"{stack}_attention_types", f"{stack}_global_layers"
        given, combined = self.attention_types(stack), getattr(self, global_layers)
        if given is not None and combined is None:
            return
        combined = min(2, layers) if combined is None else combined
        if not 0 <= combined <= layers:
            raise ValueError(f"{global_layers}={combined} does not fit the {layers} layers of the stack.")
        filled = combined_on_top(layers, combined)
        if given is not None and given != filled:
            raise ValueError(f"{types}={given} contradicts {global_layers}={combined}: set only one of them.")
        setattr(self, global_layers, combined)
        setattr(self, types, filled)

    def follow_late_changes(self) -> None:
        """
        Updates derived fields after later assignments.

        Raises:
            ValueError: layers and attention kinds no longer match.
        """
        for stack, layers in self._stacks().items():
            self._fill_attention_types(stack, layers)
        self.validate_attention_types()
        if self.share_encoder_decoder_embeddings:
            self.decoder_vocab_size = self.vocab_size

    def validate_attention_types(self):
        """Validates, for `@strict`, that every list has an attention kind per layer."""
        for stack, layers in self._stacks().items():
            types = self.attention_types(stack)
            if len(types) != layers:
                raise ValueError(f"{stack}_attention_types lists {len(types)} layers, the stack has {layers}.")

    def validate_architecture(self):
        """Validates, for `@strict`, that the width fits the heads and the position embedding."""
        is_sinusoidal = self.position_embedding_type != "learned" or self.global_positions != "none"
        if is_sinusoidal and self.d_model % 2:
            raise ValueError(f"Sinusoidal positions need an even d_model, not {self.d_model}.")
        for heads in (self.encoder_attention_heads, self.decoder_attention_heads):
            if self.d_model % heads:
                raise ValueError(f"d_model={self.d_model} is not divisible by {heads} attention heads.")

    @classmethod
    def from_dict(cls, config_dict, **kwargs):
        """Reads a configuration like Transformers. Also converts configurations of sentence-level models, and derives
        dependent fields from overrides."""
        if config_dict.get("model_type", cls.model_type) != cls.model_type:
            config_dict = cls._from_family(config_dict)
        overrides = {name: kwargs.pop(name) for name in [*kwargs] if name in OWN_FIELDS}
        derived = [name for name, origins in DERIVED.items() if origins & overrides.keys()]
        config_dict = config_dict | dict.fromkeys(derived) | overrides
        if "sentence_frame" in config_dict:  # version 0.2
            config_dict.setdefault("sentence_template", config_dict.pop("sentence_frame"))
        return super().from_dict(config_dict, **kwargs)

    @classmethod
    def _from_family(cls, config_dict: dict) -> dict:
        """Converts a sentence-level configuration, with the defaults of its type."""
        model_type = config_dict["model_type"]
        if model_type not in SENTENCE_LEVEL_MODELS:
            possible = ", ".join([cls.model_type, *SENTENCE_LEVEL_MODELS])
            raise ValueError(f"The checkpoint has the unsupported type {model_type!r}. Supported types: {possible}.")
        fields = cls.__dataclass_fields__
        defaults = {name: value for name, value in CONFIG_MAPPING[model_type]().to_dict().items() if name in fields}
        own = {name: value for name, value in config_dict.items() if name in COMMON_FIELDS or name in fields}
        template = {}
        if model_type == "mbart":
            # Pretrained mBART-25 has no start token, mBART-50 starts with </s>, a translator with its language.
            names = {None: "paper", own.get("bos_token_id", 0): "paper", own.get("eos_token_id", 2): "mbart50"}
            template["sentence_template"] = names.get(own.get("decoder_start_token_id"), "mbart")
        return defaults | SENTENCE_LEVEL_MODELS[model_type] | template | own

    def to_dict(self):
        """Returns the fields like Transformers, without the lists derived from `*_global_layers`, so that an override
        of the number takes effect."""
        output = super().to_dict()
        for stack, layers in self._stacks().items():
            types, number = f"{stack}_attention_types", f"{stack}_global_layers"
            if output.get(types) is not None and output.get(number) is not None:
                # If they differ, the list was assigned later. The list takes precedence.
                output[types if output[types] == combined_on_top(layers, output[number]) else number] = None
        return {name: value for name, value in output.items() if not (name.endswith("_types") and value is None)}


OWN_FIELDS = frozenset(GTransformerConfig.__annotations__)

__all__ = ["GTransformerConfig"]
