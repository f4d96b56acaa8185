"""Sentence pairs as HTML."""

import math
from collections.abc import Sequence
from html import escape
from typing import Any


def pairs_html(pairs: Sequence[dict[str, Any]], src_lang: str, tgt_lang: str) -> str:
    """
    Formats a list of sentence pairs. A label and the background colour show the confidence of each translation, the
    geometric mean of its tokens' probabilities.

    Args:
        pairs: `source_text`, `translation_text` and `confidence` of every sentence.
        src_lang, tgt_lang: codes such as "de".
    """
    items = "".join(pair_html(pair, src_lang, tgt_lang) for pair in pairs)
    count = f"{len(pairs)} sentence{'' if len(pairs) == 1 else 's'}"
    return (
        f'<p role="status">{count}. Confidence is the mean probability of the tokens of a translation. The stronger '
        f'the colour, the lower the confidence.</p><ol class="pairs">{items}</ol>'
    )


def pair_html(pair: dict[str, Any], src_lang: str, tgt_lang: str) -> str:
    source = _sentence(pair["source_text"], src_lang, 'class="source"')
    return f'<li class="pair">{source}{_target(pair, tgt_lang)}</li>'


def _target(pair: dict[str, Any], language: str) -> str:
    if pair.get("confidence") is None:
        return _sentence(pair["translation_text"], language, 'class="target"')
    probability = math.exp(pair["confidence"])
    title = f"Mean log-probability of a token: {pair['confidence']:.2f} nats"
    attributes = f'class="target" title="{title}" style="--doubt: {1 - probability:.1%}"'
    confidence = f'<span class="confidence">confidence {probability:.0%}</span>'
    return _sentence(pair["translation_text"], language, attributes, confidence)


def _sentence(text: str, language: str, attributes: str, more: str = "") -> str:
    """Formats a sentence with keyboard focus, and with its language for screen readers."""
    return f'<p {attributes} tabindex="0" lang="{language}" dir="auto">{escape(text)}{more}</p>'
