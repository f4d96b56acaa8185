"""Whether the installed Transformers takes the installed peft, asked with a plain mBART."""

from functools import cache

import pytest
from peft import LoraConfig
from transformers import MBartConfig, MBartForConditionalGeneration


@cache
def refusal() -> str | None:
    """The error of Transformers for this version of peft, if any: 5.24 requires peft 0.22, not yet released."""
    sizes = {"d_model": 4, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 4, "decoder_ffn_dim": 4}
    heads = {"encoder_attention_heads": 1, "decoder_attention_heads": 1}
    model = MBartForConditionalGeneration(MBartConfig(vocab_size=8, **sizes, **heads))
    try:
        model.add_adapter(LoraConfig(target_modules=["q_proj"]))
    except ValueError as error:
        return str(error)
    return None


@pytest.fixture
def adapters() -> None:
    """Skips a test where no model can have an adapter."""
    if refusal():
        pytest.skip(refusal())
