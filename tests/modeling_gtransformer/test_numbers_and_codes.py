import pytest

from modeling_gtransformer.numbers_and_codes import numbers_and_codes
from modeling_gtransformer.terminology import Terminology, missing


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My account number is 98765432.", ["98765432"]),
        ("Ring +49 30 1234567, not 564-2114.", ["+49 30 1234567", "564-2114"]),
        ("(030) 1234567 / 07911 123456 / 212 555 0199", ["(030) 1234567", "07911 123456", "212 555 0199"]),
        ("Card 1234 5678 9012 3456, 12 345,50 or 1 000 000", ["1234 5678 9012 3456", "12 345,50"]),
        ("Order 4432-AB, flight LH441, gate B2.", ["4432-AB", "LH441"]),
        ("Seats A123 and B12", ["A123"]),
        ("It costs $1,234.50 or 1'234.50 francs.", ["1,234.50", "1'234.50"]),
        ("Two tickets at 4:50 pm, row 12, on 2026-11-05.", ["2026-11-05"]),
        ("A hundred is 100, a thousand 1,000, but not 1,001.", ["1,001"]),
        ("10-12 people, 24/7, since 9/11; 50/50 in 1998-2005", ["1998-2005"]),
        ("Version 10.0.1 of v123 and x264", ["10.0.1"]),
    ],
)
def test_numbers_and_codes_of_a_text(text, expected):
    assert numbers_and_codes(text) == expected


@pytest.mark.parametrize(
    ("number", "good", "bad"),
    [
        ("98765432", ["Nummer 98765432.", "98.765.432"], ["9876432", "987654321", "x98765432", "98765 432 1"]),
        ("1,234.50", ["1.234,50 €", "1 234,50", "1234.50"], ["1.234,5", "1,234", "234,50"]),
        ("564-2114", ["564 2114", "564-2114.", "5642114"], ["564-214"]),
        ("2026-11-05", ["05.11.2026", "5.11.2026", "2026/11/05"], ["05.12.2026", "05.11.2025"]),
        ("1/2/2026", ["2.1.2026", "February 1, 2026", "2026年1月2日"], ["2.1.2025", "3. Mai 2026"]),
        ("1914-18", ["von 1914 bis 1918", "1914–18"], ["1914", "1914 bis 1919"]),
        ("512", ["512MB", "512MBの", "第512回", "512년에"], ["MB512", "5120", "1.512"]),
        ("LH441", ["LH441편이"], ["LH441a", "LH4411"]),
        ("1998-2005", ["1998–2005", "1998 bis 2005", "1998-2005"], ["1998", "2005 bis 2006"]),
        ("1998", ["1998-2005", "von 1998–2005"], ["1998.5"]),
        (
            "+49 30 1234567",
            ["Ring +49 30 1234567.", "+49/30/1234567", "+49 (30) 123 45 67", "+49301234567", "0049 30 1234567"],
            ["+9 1234567", "+49 1234567 30", "1234567", "49 30 1234567", "+49 30 12345678"],
        ),
        ("(030) 1234567", ["030 1234567", "030/1234567", "030-12 34 567"], ["30 1234567", "1234567"]),
        ("212 555 0199", ["212-555-0199", "(212) 555-0199"], ["555 0199, 212", "212 555 019"]),
        ("345 678 3451", ["345 678 3451 3"], ["345 678 345"]),
        ("12 345,50", ["12.345,50", "12,345.50"], ["1 345,50", "345,50"]),
        ("5 312", ["Am 5. Mai 312 Leute", "5312"], ["312"]),
        ("4432-AB", ["Bestellung 4432-AB"], ["4432 SBA", "4432-ABC"]),
    ],
)
def test_forms_of_a_number_in_a_translation(number, good, bad):
    assert [missing([number], text) for text in good] == [[]] * len(good)
    assert [missing([number], text) for text in bad] == [[number]] * len(bad)


def test_each_occurrence_counts():
    assert missing(["501", "501"], "501 und noch einmal") == ["501"]


def test_numbers_are_required_with_placeholders_and_outside_of_them():
    terminology = Terminology()
    assert terminology.required("See https://a.org/12345 for 12345.") == ["https://a.org/12345", "12345"]
    assert terminology.required("Call 12345.", keep_placeholders=False) == []
