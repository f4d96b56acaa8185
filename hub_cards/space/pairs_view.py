"""Source and translation side by side, a pair per sentence, as HTML."""

import math
from collections.abc import Sequence
from html import escape
from typing import Any


def sentence_html(text: str, language: str, attributes: str, more: str = "") -> str:
    """A sentence that the keyboard reaches, in a language that screen readers know of."""
    return f'<p {attributes} tabindex="0" lang="{language}" dir="auto">{escape(text)}{more}</p>'


def pairs_html(pairs: Sequence[dict[str, Any]], src_lang: str, tgt_lang: str) -> str:
    """
    A list of sentence pairs. The background of a translation says how much the model doubts it, as its text does: by
    the mean log-probability of its tokens in nats, and by their geometric mean probability.

    Args:
        pairs: `source_text`, `translation_text` and `confidence` of every sentence.
        src_lang, tgt_lang: codes such as "de".
    """
    items = []
    for pair in pairs:
        probability = math.exp(pair["confidence"])
        nats = f"{pair['confidence']:.2f}".replace("-", "−")
        tooltip = f"Mean log-probability of a token: {nats} nats, a probability of {probability:.0%}"
        confidence = f'<span class="confidence">{nats} nats, {probability:.0%}</span>'
        attributes = f'class="target" title="{tooltip}" style="--doubt: {1 - probability:.1%}"'
        items.append(
            '<li class="pair">'
            + sentence_html(pair["source_text"], src_lang, 'class="source"')
            + sentence_html(pair["translation_text"], tgt_lang, attributes, confidence)
            + "</li>"
        )
    count = f"{len(pairs)} sentence{'' if len(pairs) == 1 else 's'}"
    return (
        f'<p role="status">{count}, from {src_lang} to {tgt_lang}. Behind a translation: the mean '
        "log-probability of its tokens and their mean probability; the stronger the colour, the greater the doubt.</p>"
        f'<ol class="pairs">{"".join(items)}</ol>'
    )
