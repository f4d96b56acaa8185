"""Numbers and codes that a translation must contain, in any of the forms in which languages write them."""

import re
from collections import Counter


# Grouped and decimal numbers, dates, telephone numbers: digits with single separators between them.
NUMBER = re.compile(r"(?<![\w.])\d(?:[.,'’/\u00a0\u202f-]?\d)*(?!\w)")
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

    >>> numbers_and_codes("Flight LH441 at 4:50 for 2 people, $1,250.00; ring 564-2114.")
    ['LH441', '1,250.00', '564-2114']
    """
    found = [match for match in CODE.finditer(text) if len(match[0]) >= MIN_CODE]
    codes = {position for match in found for position in range(*match.span())}
    found += [
        match
        for match in NUMBER.finditer(text)
        if match.start() not in codes and LONG.search(match[0]) and not ROUND.fullmatch(match[0])
    ]
    return [match[0] for match in sorted(found, key=re.Match.start)]


def is_number(words: str) -> bool:
    return NUMBER.fullmatch(words) is not None


def count_number(number: str, text: str) -> int:
    """
    How often a text contains a number, whatever separates its digits, and a date also with its parts in another order.

    >>> count_number("1,234.50", "Das kostet 1.234,50 €."), count_number("2026-11-05", "am 05.11.2026")
    (1, 1)
    """
    # A space may separate groups of digits, or two numbers; a hyphen is also that of a range.
    whole, grouped, ends = (
        Counter(map(_key, NUMBER.findall(form)))
        for form in (text, re.sub(r"(?<=\d) (?=\d)", "\u00a0", text), re.sub(r"(?<=\d)-(?=\d)", " ", text))
    )
    both_ends = min(ends[_key(end)] for end in number.split("-"))
    return max(whole[_key(number)], grouped[_key(number)], both_ends)


def _key(number: str) -> tuple[str, ...]:
    parts = re.findall(r"\d+", number)
    is_date = len(parts) == 3 and sorted(map(len, parts))[:2] in ([1, 1], [1, 2], [2, 2]) and max(map(len, parts)) == 4
    return tuple(sorted(part.lstrip("0") for part in parts)) if is_date else ("".join(parts),)
