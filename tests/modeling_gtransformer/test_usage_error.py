"""Errors in a sentence."""

from modeling_gtransformer.runtime.usage_error import user_message


def test_messages():
    assert user_message(ValueError("a\n  b")) == "a b"
    assert user_message(KeyError("a")) == "KeyError: 'a'" and user_message(ValueError()) == "ValueError"
    assert user_message(OSError(28, "No space left on device")) == "No space left on device"
