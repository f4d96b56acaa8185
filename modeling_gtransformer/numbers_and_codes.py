"""Numbers and codes that a translation must contain, in the notation of any language."""

import re
from collections import Counter

from .plain_text import LETTER_OF_A_WORD


# Groups of digits: +49 30 1234567, (030) 1234567, 030 1234567, 1234 5678 9012, 12 345,50. A prefix, the lengths of the
# groups or a third group distinguishes them from consecutive numbers.
SEPARATOR = r"(?:[ \u00a0\u202f./-]|\)[ \u00a0]?|[ \u00a0]\()"
GROUPED = re.compile(
    rf"(?<![\w.])(?:\+(?=\d(?:{SEPARATOR}?\d){{6}})\d+(?:{SEPARATOR}\d+)*"
    r"|\((?:0\d+|\d{3})\)[ \u00a0]?\d{2,}(?:[ \u00a0/-]\d{2,})*"
    r"|0\d+[ \u00a0]\d{2,}(?:[ \u00a0-]\d{2,})*"
    r"|\d+(?: \d{2,}){2,}(?:[.,]\d+)?"
    r"|\d{1,3} \d{3}(?:[.,]\d+)?)(?!\w|[.,]\d)"
)
# Grouped and decimal numbers, dates: digits with single separators between them.
NUMBER = re.compile(rf"{GROUPED.pattern}|(?<![\w.])\d(?:[.,'’/\u00a0\u202f-]?\d)*(?!\w)")
# In a translation, letters may follow (1990s, 512MB, 2021년). Korean letters and those of scripts without spaces may
# precede.
ANY_NUMBER = re.compile(
    NUMBER.pattern.replace(r"(?<![\w.])", rf"(?<!{LETTER_OF_A_WORD})(?<!\.)").replace(r"(?!\w", r"(?!\d")
)
# Article numbers, flights, postcodes: capital letters and digits, perhaps in groups.
CODE = re.compile(r"(?<![\w-])(?=[A-Z-]*\d)(?=[\d-]*[A-Z])[A-Z\d]+(?:-[A-Z\d]+)*(?![\w-])")
# Translations may write short numbers, short codes and round numbers in words ("two", "a hundred"), and times on
# another clock.
LONG = re.compile(r"\d(?:[.,'’\u00a0\u202f]?\d){2}")
ROUND = re.compile(r"\d(?:[.,'’\u00a0\u202f]?0)*")
MIN_CODE = 4


def numbers_and_codes(text: str) -> list[str]:
    """
    Lists the codes of a text and its numbers with at least three successive digits, except round numbers, in order.

    >>> numbers_and_codes("Flight LH441 at 4:50 for 2 people, $1,250.00; ring +49 30 1234567 or 564-2114.")
    ['LH441', '1,250.00', '+49 30 1234567', '564-2114']
    """
    found = [match for match in CODE.finditer(text) if len(match[0]) >= MIN_CODE]
    codes = {position for match in found for position in range(*match.span())}
    found += [match for match in NUMBER.finditer(text) if match.start() not in codes and _must_stay(match[0])]
    return [match[0] for match in sorted(found, key=re.Match.start)]


def _must_stay(number: str) -> bool:
    if is_grouped(number):
        number = re.sub(r"[^\d.,]", "", number)
    return LONG.search(number) is not None and not ROUND.fullmatch(number)


def is_number(words: str) -> bool:
    return NUMBER.fullmatch(words) is not None


def is_grouped(number: str) -> bool:
    return GROUPED.fullmatch(number) is not None


def count_number(number: str, text: str) -> int:
    """
    Counts a number in a text, with any separators between its digits. The parts of a date may have any order, and the
    month may be a word.

    >>> count_number("1,234.50", "Das kostet 1.234,50 €."), count_number("2026-11-05", "am 5. November 2026")
    (1, 1)
    """
    # A space may separate groups of digits or two numbers. A hyphen may denote a range.
    whole, grouped, apart = (
        Counter(map(_key, ANY_NUMBER.findall(form)))
        for form in (
            text,
            re.sub(r"(?<=\d) (?=\d)", "\u00a0", text),
            re.sub(r"(?<=\d)[- ](?=\d)", " | ", text),
        )
    )
    parts = re.split("[- ]", number)
    are_apart = 0 if is_grouped(number) and len(parts) > 2 else min(apart[_key(part)] for part in parts)
    in_words = (min(apart[(part,)] for part in pair) for pair in _written_out(number))
    return max(whole[_key(number)], grouped[_key(number)], are_apart, *in_words)


def _key(number: str) -> tuple[str, ...]:
    parts = re.findall(r"\d+", number.replace("+", "00"))
    return tuple(sorted(part.lstrip("0") for part in parts)) if _is_date(parts) else ("".join(parts),)


def _is_date(parts: list[str]) -> bool:
    lengths = sorted(map(len, parts))
    return lengths[:2] in ([1, 1], [1, 2], [2, 2]) and lengths[2:] == [4]


def _written_out(number: str) -> list[tuple[str, str]]:
    """Returns the numbers that remain of a date with its month in words, and of a range of years such as 1914-18."""
    parts = re.findall(r"\d+", number)
    if _is_date(parts):
        return [(max(parts, key=len), part.lstrip("0")) for part in parts if len(part) < 4]
    return [(parts[0], parts[0][:2] + parts[1])] if re.fullmatch(r"\d{4}[-–]\d\d", number) else []
