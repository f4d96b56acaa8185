"""Numbers and codes that a translation must contain, in the notation of any language."""

import re
from collections import Counter


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
    Counts a number in a text, with any separators between its digits, and for a date in any order of its parts.

    >>> count_number("1,234.50", "Das kostet 1.234,50 €."), count_number("2026-11-05", "am 05.11.2026")
    (1, 1)
    """
    # A space may separate groups of digits or two numbers. A hyphen may denote a range.
    whole, grouped, apart = (
        Counter(map(_key, NUMBER.findall(form)))
        for form in (
            text,
            re.sub(r"(?<=\d) (?=\d)", "\u00a0", text),
            re.sub(r"(?<=\d)[- ](?=\d)", " | ", text),
        )
    )
    parts = re.split("[- ]", number)
    are_apart = 0 if is_grouped(number) and len(parts) > 2 else min(apart[_key(part)] for part in parts)
    return max(whole[_key(number)], grouped[_key(number)], are_apart)


def _key(number: str) -> tuple[str, ...]:
    parts = re.findall(r"\d+", number.replace("+", "00"))
    is_date = len(parts) == 3 and sorted(map(len, parts))[:2] in ([1, 1], [1, 2], [2, 2]) and max(map(len, parts)) == 4
    return tuple(sorted(part.lstrip("0") for part in parts)) if is_date else ("".join(parts),)
