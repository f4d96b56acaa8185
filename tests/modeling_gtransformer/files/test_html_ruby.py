"""Readings above words are no text, and go with the words."""

import pytest

from modeling_gtransformer.files.formats import SplitFile


PAGE = "<p>今日<ruby>東京<rt>とうきょう</ruby>へ行く。</p><nav>次<ruby>章<rt>しょう</ruby></nav>"


@pytest.mark.parametrize(
    "page, rest",
    [
        ("<ruby>東<rp>(</rp><rt>とう</rt><rp>)</rp>京<rp>(<rt>きょう<rp>)</ruby>へ", "X"),
        ("<ruby><rb>東<rb>京<rtc><rt>とう<rt>きょう</rtc></ruby>へ", "X"),
        ("<ruby><ruby>東<rt>とう</rt></ruby>京<rt>Tokyo</rt></ruby>へ", "X"),
        ("<ruby><rb>東<rt>とう<rb>京<rt>きょう</ruby>へ", "X"),
        ("<ruby>東<rt>とう<rtc><rt>East</rtc>京<rt>きょう</ruby>へ", "X"),
        ("<ruby>東<rtc><rt>とう</rtc>京<rt>きょう</rt></ruby>へ", "X"),
        (PAGE, "<p>X</p><nav>X</nav>"),
        # No element of readings, or one that has no end.
        ("<rt>東</rt>京", "<rt>X</rt>X"),
        ("<p><ruby>東<rt>とう<p>京<p>へ", "<p><ruby>X<rt>X<p>X<p>X"),
        ("<ruby>東<p><ruby>京<rt>きょう</rt></ruby>", "<ruby>X<p>X"),
    ],
)
def test_translations_omit_readings(page, rest):
    file = SplitFile(page, "html")
    assert file.rejoin(["X"] * len(file.sentences)) == rest


@pytest.mark.parametrize("bilingual", [False, True])
def test_a_name_that_is_not_translated_keeps_its_reading(bilingual):
    name = "<ruby translate=no>東京<rt>とうきょう</rt></ruby>"
    file = SplitFile(f"<p>私は{name}へ行く", "html", bilingual=bilingual)
    [sentence] = file.sentences
    assert name in file.rejoin([f"{sentence}!"]).partition("<br/>")[2 if bilingual else 0]


@pytest.mark.parametrize(
    "page", ["<p>12 <ruby>3<rt>三</rt></ruby></p>", PAGE, "<ruby>東<rt>とう</rt></ruby><code>x</code>"]
)
def test_what_is_not_translated_keeps_its_readings(page):
    file = SplitFile(page, "html")
    assert file.rejoin(file.sentences) == page


def test_beside_the_translation_the_page_keeps_its_readings():
    file = SplitFile(PAGE, "html", bilingual=True)
    assert file.sentences == SplitFile(PAGE, "html").sentences == ["今日東京へ行く。", "次章"]
    page = file.rejoin(["To Tokyo today.", "Next"])
    assert page.startswith("<p>今日<ruby>東京<rt>とうきょう</ruby>へ行く。<br/>") and page.count("とう") == 1
    assert page.endswith(">To Tokyo today.</span></p><nav>次<ruby>章<rt>しょう</ruby> / Next</nav>")
    untranslated = "<p><ruby>1<rt>いち</rt></ruby></p><nav>1<ruby>2<rt>に</rt></ruby></nav><p><ruby></ruby></p>"
    assert SplitFile(untranslated, "html", bilingual=True).rejoin([]) == untranslated
