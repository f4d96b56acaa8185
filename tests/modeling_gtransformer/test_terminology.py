"""What a translation must contain is there, or is said to be missing."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from modeling_gtransformer.document_translation import translate_documents
from modeling_gtransformer.plain_text import whole_words
from modeling_gtransformer.sentence import Sentence
from modeling_gtransformer.terminology import Terminology, missing


@pytest.mark.parametrize(
    "sentence, expected",
    [
        ("{0:,.2f} { count } %{name} %o of <b>bold</b>", ["{0:,.2f}", "{ count }", "%{name}", "%o", "<b>", "</b>"]),
        ("Hello {name}, you have {0} of {{n}} and ${total}.", ["{name}", "{0}", "{{n}}", "${total}"]),
        ("%s of %d, %5.2f or %(name)s and %1$s", ["%s", "%d", "%5.2f", "%(name)s", "%1$s"]),
        ("100% sure, 5 %, {a set of things}", []),
        ("Write to a.b@c.de, or see https://x.y/z?a=b.", ["a.b@c.de", "https://x.y/z?a=b"]),
        ("%(user.name)s, % s and %*d, %%; 50 % d'accord, 100 % sure", ["%(user.name)s", "% s", "%*d", "%%"]),
        ("in $HOME for @name, not for $5 or a@b.de", ["$HOME", "@name", "a@b.de"]),
        ("It costs 512 $US in $HOME.", ["$HOME", "512"]),
        ("{n, plural, one {# file} other {{n} files}} since {a:%Y-%m-%d}.",
         ["{n, plural, one {# file} other {{n} files}}", "{a:%Y-%m-%d}"]),
        ("Copy %1 to %2, %n times", ["%1", "%2", "%n"]),
        ("{{ user|upper }} and {% if a %}", ["{{ user|upper }}", "{% if a %}"]),
        ("请看https://a.b/c，写信给x@y.cn。谢谢", ["https://a.b/c", "x@y.cn"]),
        ("(see https://a.b/c)", ["https://a.b/c"]),
        ("(see https://a.b/c_(d))", ["https://a.b/c_(d)"]),
        ("(https://a.b/c_(d), x.y@z.de)", ["https://a.b/c_(d)", "x.y@z.de"]),
        ("no such thing", []),
    ],
)  # fmt: skip
def test_placeholders(sentence, expected):
    assert Terminology().required(sentence) == expected


PARTS = ["://", "www.", "plural", "{{", "}}", *"{}%()s1$@a.<> ,-*"]


@example("1s://,")  # of the address nothing is left without the comma
@example("1https://a.b, _www.a.b_, awww.a")
@given(st.lists(st.sampled_from(PARTS)).map("".join) | st.text())
def test_a_copy_lacks_nothing(sentence):
    required = Terminology().required(sentence)
    assert missing(required, sentence) == []


@pytest.mark.parametrize(
    ("required", "same", "other"),
    [
        ("$HOME", [], ["$HOMEPAGE"]),
        ("@ann", [], ["@annalena"]),
        ("%1", [], ["%12"]),
        ("a@b.de", ["an a@b.de schreiben"], ["xa@b.de", "Xa@b.de", "a@b.dex"]),
        (
            "https://a.b/c",
            ["https://a.b/cを見る", "(https://a.b/c).", "„https://a.b/c“, da"],
            ["https://a.b/c//bc", "https://a.b/c//Bc", "siehe Xhttps://a.b/c", "siehe xhttps://a.b/c"],
        ),
        ("{n}", ["{n}er", "un{n}"], []),
        ("%d", ["%d/a"], []),
    ],
)
def test_what_became_another_placeholder_is_missing(required, same, other):
    """What stands beside a placeholder changes nothing."""
    assert [text for text in (*same, *other) if missing([required], text)] == other


def test_terms_are_no_parts_of_what_stays():
    terms = Terminology({"order": "Auftrag"})
    assert terms.required("See https://a.org/order for your order.") == ["https://a.org/order", "Auftrag"]
    assert terms.required("Hello {order}, bye") == ["{order}"]
    assert terms.required("{number}order") == ["{number}", "Auftrag"]
    assert terms.required("Use order now", protected=["order"]) == []
    assert terms.required("Use order now", protected=[""]) == ["Auftrag"]
    assert terms.required("See x/order", protected=["x", "x/order"]) == []
    assert terms.required("See order z", protected=["z", "order z"]) == []


def test_glossary():
    terminology = Terminology({"gate": "Tor", "group tag": "Gruppenmarke"})
    assert terminology.required("The Gate, a gate, gates and a group tag") == ["Tor", "Tor", "Gruppenmarke"]
    assert missing(["Tor", "Tor", "{N}"], "ein tor und {n}") == ["Tor", "{N}"]
    assert missing(["Ei"], "meine Arbeit") == ["Ei"]
    # The longest term counts, and scripts without spaces have no borders of words.
    assert Terminology({"bank": "Bank", "river bank": "Ufer"}).required("the river bank") == ["Ufer"]
    assert Terminology({"old": "alt", "old cat": "Katze"}).required("an old cat, an old dog") == ["Katze", "alt"]
    assert Terminology({"模型": "model"}).required("这个模型很好") == ["model"]
    # Regular expressions take i and ı for one letter, Turkish does not.
    assert Terminology({"sinir": "Nerv"}).required("Bu bir sınır, bu bir Sinir.") == ["Nerv"]
    assert Terminology({"İstanbul": "Istanbul"}).required("İstanbul büyük.") == ["Istanbul"]


def test_terms_are_outside_placeholders_and_protected_parts():
    terminology = Terminology({"order": "Auftrag", "command": "Auftrag"})
    sentence = "Give {order} with `order` as a command."
    assert terminology.terms(sentence, protected=["`order`"]) == {"Auftrag": ["command"]}
    assert terminology.terms(sentence, keep_placeholders=False) == {"Auftrag": ["order", "order", "command"]}


PIECES = st.sampled_from(["a", "B", "ab", "ba b", "ß", "İ", "ı", "-", " ", "模", "1", "é", ".", "_"])


@given(
    st.dictionaries(st.lists(PIECES, min_size=1, max_size=3).map("".join).filter(str.strip), st.just("x"), max_size=6),
    st.lists(PIECES, max_size=12).map("".join),
)
def test_terms_are_found_as_by_one_pattern_of_all(glossary, sentence):
    """Which is slow: 3,000 terms took 16 seconds to compile."""
    glossary = {term.lower(): f"{number}" for number, term in enumerate(glossary)}
    terms = sorted(glossary, key=len, reverse=True)
    found = re.finditer("|".join(map(whole_words, terms)), sentence.lower()) if terms else ()
    expected = [glossary[term[0]] for term in found]
    assert Terminology(glossary).required(sentence.lower(), keep_placeholders=False) == expected


@pytest.fixture
def model(translation_model):
    return translation_model()


DOCUMENTS = [["the cat sleeps", "it is old", "the cat"], ["it sleeps"]]


def translate(model, processor, documents, terminology, **arguments):
    sentences = [
        [
            Sentence(text, f"line {number}", required=terminology.required(text), terms=terminology.terms(text))
            for number, text in enumerate(document, 1)
        ]
        for document in documents
    ]
    return translate_documents(model, processor, sentences, **arguments)


GLOSSARY = {"cat": "katze", "old": "alt ist", "sleeps": "schläft"}


@pytest.mark.parametrize("arguments", [{}, {"num_beams": 3}, {"do_sample": True}, {"parallel_sentences": True}])
def test_what_is_required_is_there_or_named(model, processor, arguments):
    free = translate_documents(model, processor, DOCUMENTS, max_length_b=8, **arguments)
    arguments = arguments | {"segment_sentences": 2, "max_length_b": 8}
    terminology = Terminology(GLOSSARY)
    translated = translate(model, processor, DOCUMENTS, terminology, **arguments)
    lacking, named = [], []
    for document, before, after in zip(DOCUMENTS, free, translated, strict=True):
        for sentence, *texts in zip(document, before.texts, after.texts, strict=True):
            was, now = (missing(terminology.required(sentence), text) for text in texts)
            lacking += was
            named += now
    assert len(lacking) > 2 * len(named)  # of themselves these models say nothing of the kind
    warnings = [warning for document in translated for warning in document.warnings]
    assert [warning.partition(" lacks ")[2] for warning in warnings] == [f"{words}." for words in named]


def test_sentences_that_lack_nothing_stay(model, processor):
    free = translate_documents(model, processor, DOCUMENTS)
    bound = translate(model, processor, DOCUMENTS, Terminology())
    assert [document.texts for document in bound] == [document.texts for document in free]


def test_what_the_vocabulary_lacks_is_there_or_named(model, processor):
    [document] = translate(model, processor, [["the cat", "it is Ł, Żż {ŁŁ}"]], Terminology())
    assert "{ŁŁ}" in document.texts[1]
    assert document.warnings == ["line 2 has words unknown to the model: Ł, Żż."]


def test_a_term_without_a_source_is_named(model, processor):
    sentences = [Sentence("the cat"), Sentence("it is old", "line 2", required=["alt", "rot"])]
    [document] = translate_documents(model, processor, [sentences])
    assert document.warnings == ["line 2: its translation lacks alt, rot."]


@pytest.mark.parametrize(
    ("glossary", "words"),
    [
        ({"": "x"}, "blank entry: '', 'x'"),
        ({"gate": " "}, "blank entry"),
        ({"US": "USA", "us": "uns"}, "translates 'us' as 'USA' and as 'uns'"),
        ([("gate", "Tor")], "not a list"),
    ],
)
def test_what_is_no_glossary_is_refused(glossary, words):
    with pytest.raises(ValueError, match=words):
        Terminology(glossary)
