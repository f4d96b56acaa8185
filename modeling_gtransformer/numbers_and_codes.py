"""Numbers and codes that a translation must contain, in any of the forms in which languages write them."""

import re
from collections import Counter


# Digits in groups: +49 30 1234567, (030) 1234567, 030 1234567, 1234 5678 9012, 12 345,50. A prefix, the lengths of the
# groups or a third group distinguishes them from numbers that follow each other.
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
# An article number, a flight, a postcode: capital letters and digits, perhaps in groups.
CODE = re.compile(r"(?<![\w-])(?=[A-Z-]*\d)(?=[\d-]*[A-Z])[A-Z\d]+(?:-[A-Z\d]+)*(?![\w-])")
# Fewer digits in a row may become words ("two", "10-12", "24/7"), or a time of another clock. Short codes and round
# numbers ("a hundred") may become words, too.
LONG = re.compile(r"\d(?:[.,'’\u00a0\u202f]?\d){2}")
ROUND = re.compile(r"\d(?:[.,'’\u00a0\u202f]?0)*")
MIN_CODE = 4


def numbers_and_codes(text: str) -> list[str]:
    """
    Lists the numbers with three digits or more in succession, but round ones, and the codes of a text, in order.

    >>> numbers_and_codes("Flight LH441 at 4:50 for 2 people, $1,250.00; ring +49 30 1234567 or 564-2114.")
    ['LH441', '1,250.00', '+49 30 1234567', '564-2114']
    """
    found = [match for match in CODE.finditer(text) if len(match[0]) >= MIN_CODE]
    codes = {position for match in found for position in range(*match.span())}
    found += [match for match in NUMBER.finditer(text) if match.start() not in codes and _must_stay(match[0])]
    return [match[0] for match in sorted(found, key=re.Match.start)]


def _must_stay(number: str) -> bool:
    """Whether a number is neither round nor short."""
    if is_grouped(number):
        number = re.sub(r"[^\d.,]", "", number)
    return LONG.search(number) is not None and not ROUND.fullmatch(number)


def is_number(words: str) -> bool:
    return NUMBER.fullmatch(words) is not None


def is_grouped(number: str) -> bool:
    return GROUPED.fullmatch(number) is not None


def count_number(number: str, text: str) -> int:
    """
    How often a text contains a number, whatever separates its digits, and a date also with its parts in another order.

    >>> count_number("1,234.50", "Das kostet 1.234,50 €."), count_number("2026-11-05", "am 05.11.2026")
    (1, 1)
    """
    # A space may separate groups of digits, or two numbers; a hyphen is also that of a range.
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
