"""Ruby: readings above the words of a page, such as furigana, which a translation leaves out."""

from collections.abc import Callable, Mapping, Sequence

from .html_tokens import Token


READINGS = frozenset({"rp", "rt", "rtc"})
AROUND_WORDS = frozenset({"rb", "ruby"})


def ruby_annotations(
    tokens: Sequence[Token],
    ends: Mapping[int, int],
    elements: Mapping[int, int],
    is_translated: Callable[[Token], bool],
) -> frozenset[int]:
    """
    Returns the numbers of the tokens that belong to readings, and of the tags around the words that have them. In a
    `<ruby>` that has no end tag, or is not translated, nothing is taken for a reading.

    Args:
        ends: by the numbers of the start tags that have an end tag, the number of the token after the end tag.
        elements: by the numbers of all start tags, the number of the token after the element.
        is_translated: tells whether the element of a start tag is translated.
    """
    found: set[int] = set()
    behind = 0  # number of the token after the element whose words have readings
    for position, token in enumerate(tokens):
        if token.kind == "start" and token.tag == "ruby" and is_translated(token):
            behind = max(behind, ends.get(position, 0))
        if position in found or position >= behind:
            continue
        if token.kind in ("start", "end") and token.tag in AROUND_WORDS:
            found.add(position)
        elif token.kind == "start" and token.tag in READINGS:
            found.update(range(position, min(elements[position], behind - 1)))
    return frozenset(found)
