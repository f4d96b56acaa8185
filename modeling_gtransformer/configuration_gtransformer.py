"""Configuration of G-Transformer: mBART's fields, one list of attention kinds per attention stack, and the template of
a sentence, which differs between the pretrained families."""

import math
from collections.abc import Callable
from typing import NamedTuple

from huggingface_hub.dataclasses import strict
from transformers import CONFIG_MAPPING, PreTrainedConfig


ATTENTION_TYPES = ("group", "global", "combined")
POSITION_EMBEDDING_TYPES = ("learned", "sinusoidal", "sinusoidal_marian")
POSITION_SCOPES = ("document", "sentence")
GLOBAL_POSITIONS = ("none", "sentence")


class TargetTemplate(NamedTuple):
    """
    Ids of the tokens around the words of target sentences. The decoder reads `start`, then the prefix, words and
    `</s>` of every sentence. Where `</s>` does not open the next sentence, `start` is itself the first prefix.

    Attributes:
        start: the token that the decoder starts with.
        prefix: tokens that open every sentence.
        eos_id: `</s>`.
        pad: padding.
        end: the token after the last sentence; `None` if its `</s>` ends the document.
        eos_opens_next: whether a `</s>` that is read belongs to the next sentence, as `start` does to the first one.
    """

    start: int
    prefix: tuple[int, ...]
    eos_id: int
    pad: int
    end: int | None
    eos_opens_next: bool

    @property
    def head(self) -> int:
        """Number of tokens of a sentence before its prefix."""
        return int(self.eos_opens_next)

    @property
    def tokens(self) -> int:
        """Number of tokens that a sentence has besides its words."""
        return len(self.prefix) + 1

    def read(self, sentences: list[list[int]]) -> list[int]:
        """Ids of finished sentences, as the decoder reads them."""
        bodies = [token for words in sentences for token in (*self.prefix, *words, self.eos_id)]
        return [self.start, *bodies] if self.eos_opens_next else bodies

    def starts(self, ids: list[int]) -> list[int]:
        """Positions at which sentences begin, including that of a last `</s>` if it may open another one."""
        if not self.eos_opens_next:
            return [position for position, token in enumerate(ids) if token == self.prefix[0]]
        return [0, *(position for position, token in enumerate(ids) if position and token == self.eos_id)]

    def split(self, ids: list[int]) -> list[list[int]]:
        """Words of every sentence that has begun in the ids, which may be padded on both sides."""
        sentences: list[list[int]] = []
        added = {*self.prefix, self.eos_id, self.pad, self.end}
        in_sentence = False
        for token in ids[self._start_of(ids) + self.head :]:
            if self.eos_opens_next and not in_sentence and token != self.pad:
                sentences.append([])
                in_sentence = True
            elif not self.eos_opens_next and token == self.prefix[0]:
                sentences.append([])
            if token == self.eos_id:
                in_sentence = False
            elif sentences and token not in added:
                sentences[-1].append(token)
        return sentences

    def open_sentence(self, ids: list[int]) -> tuple[int, list[int]] | None:
        """Index and words of the sentence that the next token belongs to; `None` if the template sets it."""
        if not self.eos_opens_next:
            if ids[-1] == self.eos_id or self.prefix[0] not in ids:
                return None
            return ids.count(self.prefix[0]) - 1, ids[len(ids) - ids[::-1].index(self.prefix[0]) :]
        body = ids[self._start_of(ids) + 1 :]
        closed = body.count(self.eos_id)
        words = body[len(body) - body[::-1].index(self.eos_id) :] if closed else body
        return (closed, words[len(self.prefix) :]) if len(words) >= len(self.prefix) else None

    def _start_of(self, ids: list[int]) -> int:
        """Position of the token that starts a document, which may be padded on the left."""
        padding = next((position for position, token in enumerate(ids) if token != self.pad), len(ids))
        return max(padding - (self.start == self.pad), 0)


class SentenceTemplate(NamedTuple):
    """
    The tokens around the words of every sentence of a document. `</s>` closes a sentence; the other tokens are named
    by their roles "bos", "eos", "pad", "src_lang" and "tgt_lang".

    Attributes:
        source_prefix: tokens before the words of a source sentence.
        source_suffix: tokens after its `</s>`.
        target_prefix: tokens that open a target sentence.
        start: token that the decoder starts with. It opens the first sentence; every `</s>` that the decoder reads
            opens the next one and belongs to it. If `None`, the decoder starts with the prefix of the first sentence.
        embeds_eos_as_start: whether the decoder embeds `</s>` as the token that it starts with.
        end: token after the last target sentence, which ends a document; `None` if its last `</s>` does.
        label_end: token after the last target sentence in the labels.
        source_code: token before the words of a source sentence in models with several target languages.
        language_setting: field of the generation config that holds the target language, if the decoder is told it.
        position_scope: what positions count from by default, the start of the "document" or of the "sentence".
        translates: whether sentence-level checkpoints with this template have learnt to translate.
    """

    source_prefix: tuple[str, ...] = ()
    source_suffix: tuple[str, ...] = ()
    target_prefix: tuple[str, ...] = ()
    start: str | None = None
    embeds_eos_as_start: bool = False
    end: str | None = None
    label_end: str | None = None
    source_code: str | None = None
    language_setting: str | None = None
    position_scope: str = "sentence"
    translates: bool = True

    @property
    def eos_opens_next(self) -> bool:
        """Whether a `</s>` that the decoder reads belongs to the next sentence."""
        return self.start is not None

    def in_ids(self, id_of: Callable[[str], int]) -> TargetTemplate:
        """The ids around the words of target sentences, given a function from roles to ids of tokens."""
        prefix = tuple(map(id_of, self.target_prefix))
        return TargetTemplate(
            start=id_of(self.start) if self.start else prefix[0],
            prefix=prefix,
            eos_id=id_of("eos"),
            pad=id_of("pad"),
            end=id_of(self.end) if self.end else None,
            eos_opens_next=self.eos_opens_next,
        )


# The paper's template, and those of pretrained translators, in which a sentence of a document reads as it does alone.
SENTENCE_TEMPLATES = {
    "paper": SentenceTemplate(
        source_prefix=("bos",),
        target_prefix=("bos",),
        end="tgt_lang",
        label_end="tgt_lang",
        language_setting="eos_token_id",
        position_scope="document",
        translates=False,
    ),
    # mBART-25 fine-tuned to translate, PLBart.
    "mbart": SentenceTemplate(
        source_suffix=("src_lang",),
        target_prefix=("tgt_lang",),
        label_end="tgt_lang",
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
    "marian": SentenceTemplate(start="pad", embeds_eos_as_start=True, source_code="tgt_lang"),
}


def template_named(name: str) -> SentenceTemplate:
    """
    Returns the template with this name.

    Raises:
        ValueError: there is none.
    """
    if name not in SENTENCE_TEMPLATES:
        raise ValueError(f"sentence_template must be one of {[*SENTENCE_TEMPLATES]}, not {name!r}.")
    return SENTENCE_TEMPLATES[name]


# Upper bounds of sizes, far above those of any model. A list of a billion layers would take all memory.
MAX_SIZES = {
    **dict.fromkeys(("encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads"), 1024),
    **dict.fromkeys(("d_model", "encoder_ffn_dim", "decoder_ffn_dim"), 2**18),
    **dict.fromkeys(("vocab_size", "decoder_vocab_size", "max_position_embeddings"), 2**24),
}

# Fields of a plain configuration that every Transformers configuration has.
COMMON_FIELDS = frozenset({"architectures", "dtype", "id2label", "label2id", "name_or_path", "_name_or_path"})

# Plain models whose checkpoints can be loaded, and what their configurations leave unsaid.
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
            "group" (own sentence only), "global" (whole document) or "combined" (both, weighed by a gate). Filled from
            `encoder_global_layers` unless given; giving both is an error unless they agree.
        decoder_attention_types (`list[str]`, *optional*): the same for the decoder's self-attention.
        cross_attention_types (`list[str]`, *optional*): the same for cross-attention.
        normalize_before (`bool`, defaults to `True`): layer norm before each sublayer and after the last layer, as in
            mBART; `False` is the post-norm of BART and of the paper's base, big and large Transformers.
        layernorm_embedding (`bool`, defaults to `True`): layer norm on the embeddings (mBART, BART).
        position_embedding_type (`str`, defaults to `"learned"`): "learned" (mBART, BART, PLBart), "sinusoidal" (base,
            big, M2M100, NLLB) or "sinusoidal_marian" (Opus-MT, whose positions start at another row with other rates).
        position_scope (`str`, *optional*): what positions count from: the start of the "document", as in the paper, or
            of the "sentence", as in a sentence translator. In the latter case a document may have any number of
            tokens, and `max_position_embeddings` bounds its sentences. By default "document" in the template of the
            paper, else "sentence".
        global_positions (`str`, *optional*): what the global attention reads besides the states: the number of each
            token's "sentence", as a sinusoidal embedding, or "none". By default "sentence" where the other positions
            start again at every sentence, else "none".
        gate_bias (`float`, defaults to 0.0): bias of newly initialised gates; the larger it is, the more of the group
            attention a gate lets through at first.
        sentence_template (`str`, defaults to `"paper"`): the tokens around every sentence, a key of
        `SENTENCE_TEMPLATES`.
            Sentence-level checkpoints get that of their family.
        share_encoder_decoder_embeddings (`bool`, defaults to `True`): one vocabulary and one matrix for both sides;
            `False` for the Opus-MT models that have two.
        decoder_vocab_size (`int`, *optional*): size of the target vocabulary if there are two.
        init_std (`float` or `None`, defaults to 0.02): standard deviation of newly initialised weights; `None` selects
            the Xavier initialisation with which the paper's randomly initialised models start.

    The other fields are those of [`MBartConfig`]. A plain `config.json` of mBART, mBART-50, M2M100, NLLB, Marian
    (Opus-MT), BART or PLBart is understood as it is.

    Raises:
        ValueError: an unknown attention kind, a list or number that does not fit the layers, or a width that does not
            fit the heads. huggingface_hub may wrap it in its `StrictDataclassError`.

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
    encoder_attention_types: list[str] | None = None
    decoder_attention_types: list[str] | None = None
    cross_attention_types: list[str] | None = None
    normalize_before: bool = True
    layernorm_embedding: bool = True
    position_embedding_type: str = "learned"
    position_scope: str | None = None
    global_positions: str | None = None
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
        # A sentence-level checkpoint's config.json names its own type, which must not outlive the loading.
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
            # mBART starts the decoder with the target language code; here that code ends the document instead.
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
        """Whether the sentences of a document attend to each other in any layer."""
        return any(set(self.attention_types(stack)) != {"group"} for stack in self._stacks())

    @property
    def independent_sentences(self) -> bool:
        """Whether a target sentence depends only on its source sentence as the encoder has read it."""
        types = {*self.attention_types("decoder"), *self.attention_types("cross")}
        return types == {"group"} and self.position_scope == "sentence"

    @property
    def max_sentence_tokens(self) -> float:
        """Maximum number of tokens of a sentence: those that have positions; infinite where these are computed."""
        return self.max_position_embeddings if self.position_embedding_type == "learned" else math.inf

    @property
    def max_document_tokens(self) -> float:
        """Maximum number of tokens of a document; infinite where positions are computed or restart at every
        sentence."""
        return self.max_sentence_tokens if self.position_scope == "document" else math.inf

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

    def follow_late_changes(self) -> None:
        """
        Derives fields again from those that were assigned late.

        Raises:
            ValueError: layers and attention kinds no longer match.
        """
        for stack, layers in self._stacks().items():
            self._fill_attention_types(stack, layers)
        self.validate_attention_types()
        if self.share_encoder_decoder_embeddings:
            self.decoder_vocab_size = self.vocab_size

    def validate_attention_types(self):
        """Part of `@strict` validation: every list names known attention kinds, one per layer."""
        for stack, layers in self._stacks().items():
            types = self.attention_types(stack)
            if len(types) != layers:
                raise ValueError(f"{stack}_attention_types names {len(types)} layers, the stack has {layers}.")
            if unknown := sorted(set(types) - set(ATTENTION_TYPES)):
                raise ValueError(f"{stack}_attention_types has unknown kinds {unknown}; known: {ATTENTION_TYPES}.")

    def validate_choices(self):
        """Part of `@strict` validation: fields that choose from a list name one of its entries."""
        for name, known in (
            ("position_embedding_type", POSITION_EMBEDDING_TYPES),
            ("position_scope", POSITION_SCOPES),
            ("global_positions", GLOBAL_POSITIONS),
        ):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {known}, not {getattr(self, name)!r}.")

    def validate_architecture(self):
        """Part of `@strict` validation: the width fits the heads and the position embedding."""
        is_sinusoidal = self.position_embedding_type != "learned" or self.global_positions != "none"
        if is_sinusoidal and self.d_model % 2:
            raise ValueError(f"Sinusoidal positions need an even d_model, not {self.d_model}.")
        for heads in (self.encoder_attention_heads, self.decoder_attention_heads):
            if self.d_model % heads:
                raise ValueError(f"d_model={self.d_model} is not divisible by {heads} attention heads.")

    @classmethod
    def from_dict(cls, config_dict, **kwargs):
        """Reads a configuration as Transformers does. A plain configuration of a known family is understood, and
        layers and attention kinds among the overrides take effect before the lists are filled."""
        model_type = config_dict.get("model_type", cls.model_type)
        if model_type != cls.model_type:
            config_dict = cls._from_family(config_dict)
        elif "sentence_frame" in config_dict:  # its name in version 0.2
            config_dict = {**config_dict, "sentence_template": config_dict["sentence_frame"]}
            del config_dict["sentence_frame"]
        overrides = {name: kwargs.pop(name) for name in list(kwargs) if name.endswith(("_layers", "_attention_types"))}
        # The template decides what other fields mean.
        followed = ("sentence_template", "position_scope", "global_positions")
        overrides |= {name: kwargs.pop(name) for name in followed if name in kwargs}
        config_dict = config_dict | overrides
        for stack in ("encoder", "decoder", "cross"):
            names = {f"{stack}_attention_types", f"{stack}_global_layers"}
            if len(given := names & overrides.keys()) == 1:
                config_dict[(names - given).pop()] = None
        # A field that was derived from another one is derived again.
        if "vocab_size" in kwargs and "decoder_vocab_size" not in kwargs:
            if config_dict.get("decoder_vocab_size") == config_dict.get("vocab_size"):
                config_dict["decoder_vocab_size"] = 0
            config_dict["vocab_size"] = kwargs.pop("vocab_size")
        if "sentence_template" in overrides and "position_scope" not in overrides:
            config_dict["position_scope"] = None
        if overrides.keys() & {"sentence_template", "position_scope"} and "global_positions" not in overrides:
            config_dict["global_positions"] = None
        return super().from_dict(config_dict, **kwargs)

    @classmethod
    def _from_family(cls, config_dict: dict) -> dict:
        """The fields of a plain configuration, with what its type leaves unsaid and without what means nothing
        here."""
        model_type = config_dict["model_type"]
        if model_type not in SENTENCE_LEVEL_MODELS:
            raise ValueError(
                f"No G-Transformer can be made from a {model_type!r} checkpoint, only from {[*SENTENCE_LEVEL_MODELS]}."
            )
        theirs = CONFIG_MAPPING[model_type]().to_dict()
        defaults = {name: theirs[name] for name in cls.__dataclass_fields__ if name in theirs}
        own = {
            name: value for name, value in config_dict.items() if name in COMMON_FIELDS | {*cls.__dataclass_fields__}
        }
        start = own.get("decoder_start_token_id")
        template = {}
        if model_type == "mbart":
            # Pretrained mBART-25 starts with no token of its own, mBART-50 with </s>, a translator with its language.
            is_pretrained = start in (None, own.get("bos_token_id", 0))
            template["sentence_template"] = (
                "paper" if is_pretrained else "mbart50" if start == own["eos_token_id"] else "mbart"
            )
        return defaults | SENTENCE_LEVEL_MODELS[model_type] | template | own

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
