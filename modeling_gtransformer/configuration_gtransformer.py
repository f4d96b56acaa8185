"""Configuration of G-Transformer: mBART's fields, plus one list of attention kinds per attention stack."""

from huggingface_hub.dataclasses import strict
from transformers import CONFIG_MAPPING, PreTrainedConfig


ATTENTION_TYPES = ("group", "global", "combined")
# Plain models whose checkpoints can be loaded, and what their configurations leave unsaid.
PLAIN_MODELS = {"mbart": {}, "bart": {"normalize_before": False}}
POSITION_EMBEDDING_TYPES = ("learned", "sinusoidal")


@strict
class GTransformerConfig(PreTrainedConfig):
    r"""
    Configuration of a [`GTransformerModel`] (Bao et al., ACL 2021). The defaults have the size and layout of mBART25
    (`facebook/mbart-large-cc25`), with combined attention in the top two layers of every stack.

    Args:
        encoder_global_layers (`int`, *optional*): how many top encoder layers attend to the document as well as to the
            sentence ("combined" attention, paper section 4.2). 2 by default, as in the paper.
        decoder_global_layers (`int`, *optional*): the same for the decoder's self-attention (target-side context).
        cross_global_layers (`int`, *optional*): the same for cross-attention.
        encoder_attention_types (`list[str]`, *optional*): the attention kind of every encoder layer, bottom to top:
            "group" (own sentence only), "global" (whole document) or "combined" (both, summed by a gate). Filled from
            `encoder_global_layers` unless given; giving both is an error unless they agree.
        decoder_attention_types (`list[str]`, *optional*): the same for the decoder's self-attention.
        cross_attention_types (`list[str]`, *optional*): the same for cross-attention.
        normalize_before (`bool`, defaults to `True`): layer norm before each sublayer and after the last layer, as in
            mBART; `False` is the post-norm of BART and of the paper's base, big and large Transformers.
        layernorm_embedding (`bool`, defaults to `True`): layer norm on the embeddings (mBART, BART).
        position_embedding_type (`str`, defaults to `"learned"`): "learned" (mBART, BART) or "sinusoidal" (base, big).
        init_std (`float` or `None`, defaults to 0.02): standard deviation of fresh weights; `None` selects the Xavier
            initialisation with which the paper's randomly initialised models start.

    The other fields are those of [`MBartConfig`]. A plain mBART or BART `config.json` is understood as it is.

    Raises:
        ValueError: an unknown attention kind, a list or number that does not fit the layers, or a width that does not
            fit the heads; as huggingface_hub's `StrictDataclassError` where that wraps it.

    Example:

    ```python
    >>> from modeling_gtransformer import GTransformerConfig

    >>> config = GTransformerConfig(encoder_layers=3, decoder_layers=3, decoder_global_layers=0)
    >>> config.encoder_attention_types, config.decoder_attention_types
    (['group', 'combined', 'combined'], ['group', 'group', 'group'])
    ```"""

    model_type = "gtransformer"
    keys_to_ignore_at_inference = ["past_key_values"]
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
    encoder_attention_types: list[str] | None = None
    decoder_attention_types: list[str] | None = None
    cross_attention_types: list[str] | None = None
    normalize_before: bool = True
    layernorm_embedding: bool = True
    position_embedding_type: str = "learned"
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
        # A plain checkpoint's config.json names its own type, which must not outlive the loading.
        kwargs.pop("model_type", None)
        kwargs.pop("forced_eos_token_id", None)
        for stack, layers in self._stacks().items():
            self._fill_attention_types(stack, layers)
        # mBART starts the decoder with the target language code; here that code ends the document instead.
        self.decoder_start_token_id = self.bos_token_id
        super().__post_init__(**kwargs)

    def attention_types(self, stack: str) -> list[str]:
        """The attention kind of every layer of the stack "encoder", "decoder" (self-attention) or "cross"."""
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
        filled = ["group"] * (layers - combined) + ["combined"] * combined
        if given is not None and given != filled:
            raise ValueError(f"{types}={given} contradicts {global_layers}={combined}: give one of the two.")
        setattr(self, global_layers, combined)
        setattr(self, types, filled)

    def validate_attention_types(self):
        """Part of `@strict` validation: every list names known attention kinds, one per layer."""
        for stack, layers in self._stacks().items():
            types = self.attention_types(stack)
            if len(types) != layers:
                raise ValueError(f"{stack}_attention_types names {len(types)} layers, the stack has {layers}.")
            if unknown := sorted(set(types) - set(ATTENTION_TYPES)):
                raise ValueError(f"{stack}_attention_types has unknown kinds {unknown}; known: {ATTENTION_TYPES}.")

    def validate_architecture(self):
        """Part of `@strict` validation: the width fits the heads and the position embedding."""
        if self.position_embedding_type not in POSITION_EMBEDDING_TYPES:
            raise ValueError(f"position_embedding_type must be one of {POSITION_EMBEDDING_TYPES}.")
        if self.position_embedding_type == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"Sinusoidal positions need an even d_model, not {self.d_model}.")
        for heads in (self.encoder_attention_heads, self.decoder_attention_heads):
            if self.d_model % heads:
                raise ValueError(f"d_model={self.d_model} is not divisible by {heads} attention heads.")

    @classmethod
    def from_dict(cls, config_dict, **kwargs):
        """Reads a configuration as Transformers does. A plain mBART or BART configuration is understood, and layers
        and attention kinds among the overrides take effect before the lists are filled."""
        model_type = config_dict.get("model_type", cls.model_type)
        if model_type != cls.model_type:
            config_dict = cls._defaults_of(model_type) | config_dict
        overrides = {name: kwargs.pop(name) for name in list(kwargs) if name.endswith(("_layers", "_attention_types"))}
        config_dict = config_dict | overrides
        for stack in ("encoder", "decoder", "cross"):
            names = {f"{stack}_attention_types", f"{stack}_global_layers"}
            if len(given := names & overrides.keys()) == 1:
                config_dict[(names - given).pop()] = None
        return super().from_dict(config_dict, **kwargs)

    @classmethod
    def _defaults_of(cls, model_type: str) -> dict:
        """Values that a plain configuration of this type leaves unsaid."""
        if model_type not in PLAIN_MODELS:
            raise ValueError(
                f"No G-Transformer can be made of a {model_type!r} checkpoint: only of {[*PLAIN_MODELS]}."
            )
        theirs = CONFIG_MAPPING[model_type]().to_dict()
        return {name: theirs[name] for name in cls.__dataclass_fields__ if name in theirs} | PLAIN_MODELS[model_type]

    def to_dict(self):
        """Returns the fields as Transformers does, without the lists that a `*_global_layers` fills, so that the
        number can still be changed."""
        output = super().to_dict()
        for stack, layers in self._stacks().items():
            types, number = output.get(f"{stack}_attention_types"), output.get(f"{stack}_global_layers")
            if types is not None and number is not None:
                # Where they differ the list was assigned later, and layers are built from lists.
                agree = types == ["group"] * (layers - number) + ["combined"] * number
                output[f"{stack}_attention_types" if agree else f"{stack}_global_layers"] = None
        return {name: value for name, value in output.items() if not (name.endswith("_types") and value is None)}


__all__ = ["GTransformerConfig"]
