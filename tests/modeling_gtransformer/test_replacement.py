"""Required strings that a translation lacks take the place of the words that are aligned with their source."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modeling_gtransformer.plain_text import WORD
from modeling_gtransformer.replacement import with_required
from modeling_gtransformer.terminology import Terminology, missing


def aligned(source, translation, pairs, rest=0.1):
    """Weights between words: 0.8 for the pairs of a target and a source word, otherwise `rest`."""
    words = [[word[0] for word in WORD.finditer(text)] for text in (source, translation)]
    return [[0.8 if (target, own) in pairs else rest for own in words[0]] for target in words[1]]


GLOSSARY = {"order": "Auftrag", "job": "Auftrag", "board of directors": "Aufsichtsrat", "订单": "order"}


@pytest.mark.parametrize(
    ("source", "translation", "pairs", "expected"),
    [
        ("Where is my order?", "Wo ist meine Bestellung?", {("Bestellung", "order")}, "Wo ist meine Auftrag?"),
        ("My Order!", "Meine Bestellung!", {("Bestellung", "Order")}, "Meine Auftrag!"),
        ("My order!", "„Meine Bestellung!“", {("Bestellung", "order")}, "„Meine Auftrag!“"),
        # All words of a term, and each of its occurrences.
        (
            "The board of directors met.",
            "Rat der Direktoren tagte.",
            {("Rat", "board"), ("der", "of"), ("Direktoren", "board"), ("Direktoren", "directors")},
            "Aufsichtsrat tagte.",
        ),
        (
            "The board of directors met.",
            "Der Rat Direktoren tagte.",
            {("Rat", "board"), ("Rat", "of"), *(("Direktoren", word) for word in ("board", "of", "directors"))},
            "Der Aufsichtsrat tagte.",
        ),
        ("order by order", "Posten um Reihe", {("Posten", "order"), ("Reihe", "order")}, "Auftrag um Auftrag"),
        ("order by order", "Auftraggeber um Auftrag", {("Auftraggeber", "order")}, "Auftrag um Auftrag"),
        ("order by order", "AUFTRAG um Reihe", {("AUFTRAG", "order"), ("Reihe", "order")}, "AUFTRAG um Auftrag"),
        # No word is likely to be the translation of the term.
        ("Where is my order?", "Was?", set(), "Was?"),
        # A number takes the place of a number, with all of its digits, whatever is aligned.
        ("It is 98765432.", "Sie ist 9876432.", {("ist", "98765432")}, "Sie ist 98765432."),
        ("Costs 1,250.75 $", "Kostet 1.25,7 $", {("25", "250")}, "Kostet 1,250.75 $"),
        ("Rooms 501 and 502", "Zimmer 501 und 501", set(), "Zimmer 501 und 502"),
        ("Code 4432-AB, 7 pieces", "Code 4432 SBA, 7 Stück", {("4432", "4432-AB")}, "Code 4432-AB SBA, 7 Stück"),
        # A unit stays. A number of the source stays, as does what may be the number in other words.
        ("It has 512 MB.", "Es hat 521MB.", set(), "Es hat 512MB."),
        ("Room 1204 on floor 3", "Zimmer im 3. Stock", {("Stock", "1204")}, "Zimmer im 3. Stock 1204"),
        ("1,250,000 people", "1,25 Millionen Leute", {("25", "250")}, "1,25 Millionen Leute"),
        ("12,000 dollars", "1.2万美元", {("2", "12")}, "1.2万美元"),
        ("15,000 people", "1万5000人", {("5000", "15")}, "1万5000人"),
        ("1,500,000 users", "사용자는 150만 명", {("150만", "1")}, "사용자는 150만 명"),
        ("1,500,000 users", "1,5 millió felhasználó", {("5", "500")}, "1,5 millió felhasználó"),
        ("It leaves at 1430", "um 14:30 Uhr", {("um", "1430")}, "um 14:30 Uhr"),
        ("Area 1,250 in all", "面积为1520m2", {("1520m2", "1")}, "面积为1,250m2"),
        ("It has 1,500,000", "Es hat $1.5M", {("1", "1")}, "Es hat $1.5M"),
        ("From 1,250 to 2,000", "1.520–2.000 Leute", set(), "1.520–2.000 Leute"),
        # Another placeholder is its translated name only if it is aligned.
        ("Hi <b>Anna</b>", "Hallo <i>Anna</i>", {("Anna", "Anna")}, "Hallo <i>Anna</i>"),
        ("Item AB12K", "Ware AB21K", set(), "Ware AB12K"),
        ("In 1250-1300", "in 1520–1310", set(), "in 1250-1300"),
        ("It has 1,250", "Es hat 1·520", set(), "Es hat 1,250"),
        ("Hi {name}", "ＡＢＣ", set(), "ＡＢＣ"),
        ("{count} messages", "{Anzahl} Nachrichten", {("Anzahl", "count")}, "{count} Nachrichten"),
        # A mail address is not akin to any word with a full stop.
        ("50 km/h, a@b.de", "50 km/h, z.B.", set(), "50 a@b.de km/h, z.B."),
        # All groups of a number take the place of all groups.
        ("Ring +49 30 1234567.", "Ring +9 1234567.", set(), "Ring +49 30 1234567."),
        ("Ring (030) 1234567.", "Ring (30) 12345, 20.", set(), "Ring (030) 1234567, 20."),
        ("Ring 212 555 0199 in 1998", "1998 ring 21 55 019", set(), "1998 ring 212 555 0199"),
        # Of which nothing remains: it follows the word aligned with it, if there is one.
        ("Number 98765432 please", "Nummer bitte", {("Nummer", "98765432")}, "Nummer 98765432 bitte"),
        ("Number 98765432 please", "Nummer bitte", set(), "Nummer bitte"),
        ("Hi {name}, bye", "Hallo, tschüs", {("Hallo", "name")}, "Hallo {name}, tschüs"),
        ("Hi {name}, bye", "Hallo {nam}, tschüs", {("nam", "name")}, "Hallo {name}, tschüs"),
        ("See a@b.de now.", "Siehe a@b jetzt.", {("a", "a")}, "Siehe a@b.de jetzt."),
        # Other required strings stay.
        ("501 orders, %d of {n}", "%d von 501 {m}", {("501", "n"), ("m", "n")}, "%d von 501 {n}"),
        # Two terms have one translation.
        ("order and job", "Auftrag und Arbeit", {("Arbeit", "job")}, "Auftrag und Auftrag"),
        ("order and job", "Bestellung und Auftrag", {("Bestellung", "order")}, "Auftrag und Auftrag"),
        # Scripts without spaces between words.
        ("the order", "这个订单", {("订", "order"), ("单", "order")}, "这个Auftrag"),
        ("看订单", "See it", {("See", "看"), ("it", "订")}, "See order"),
        ("订单看", "See it", {("See", "看"), ("it", "订")}, "See order"),
        ("room 5012", "房间", {("间", "5012")}, "房间5012"),
        ("room 5012", "a 间", {("间", "5012")}, "a 间5012"),
        # A longer placeholder is another one.
        ("%s order", "%ser Auftrag", {("ser", "s")}, "%s Auftrag"),
        # What is beside a placeholder is not part of it.
        ("{n} order", "{n}单", {("单", "order"), ("n", "order")}, "{n}Auftrag"),
        ("order {n}", "单{n}", {("单", "order"), ("n", "order")}, "Auftrag{n}"),
    ],
)
def test_places(source, translation, pairs, expected):
    terminology = Terminology(GLOSSARY)
    required, alignment = terminology.required(source), aligned(source, translation, pairs)
    assert with_required(source, translation, alignment, required, terminology.terms(source)) == expected


def test_without_an_alignment_nothing_changes():
    assert with_required("It is 98765432.", "Sie ist.", None, ["98765432"], {}) == "Sie ist."


NUMBERS = ["501", "1,250.50", "LH441", "+49 30 1234567", "030 44"]
PIECES = st.sampled_from([*NUMBERS, "order", "{n}", "%s", "a@b.de", "Auftrag", "«", ".", "单", "-"])
TEXTS = st.lists(PIECES, min_size=1, max_size=8).map(" ".join)


@given(TEXTS, TEXTS, st.randoms())
def test_nothing_more_is_missing_than_before(source, translation, random):
    terminology = Terminology(GLOSSARY)
    required = terminology.required(source)
    words = len(WORD.findall(source))
    alignment = [[random.random() for _ in range(words)] for _ in WORD.findall(translation)]
    changed = with_required(source, translation, alignment, required, terminology.terms(source))
    lacking = missing(required, translation)
    assert len(missing(required, changed)) <= len(lacking)
    assert lacking or changed == translation
