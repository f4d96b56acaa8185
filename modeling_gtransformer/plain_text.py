"""Splits plain text into the sentences to translate and the separators to preserve."""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise


Splitter = Callable[[str], Iterable[str]]

LINE_ENDS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
# The end of a line, and what stands in a line or between its tabs.
LINE_END, CELL = re.compile(rf"(\r\n|[{LINE_ENDS}])"), re.compile(rf"[^\t{LINE_ENDS}]+")
# Bullets and numbers of list items.
ITEM = re.compile(r"\s*(?:[-*+•‣·–—]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s+")
# What precedes the text of a line: also marks of quoted lines, and numbers of sections and references.
LINE_START = re.compile(
    r"\s*(?:>(?!=)[>\s]*)?(?:[-*+•‣·–—]|\(?(?:\d{1,3}|[a-zA-Z]|[IVXLC]{2,6}|\d{1,2}(?:\.\d{1,2}){1,5})[.)]|\[\d{1,3}\])"
    r"\s+|\s*>(?!=)[>\s]*"
)
# Scripts without spaces between words; every character counts as a word.
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
# Punctuation of East Asian scripts.
WIDE_MARKS = "\u3000-\u303f\uff00-\uff65"
NOT_IN_MAIL = rf"\s@<>(){{}}\[\],;:\"“”‘’«»{UNSPACED}{WIDE_MARKS}"
# Matching is linear in the length of the text: a web address does not follow a letter, and a mail address fills its
# word.
WEB_ADDRESS = re.compile(rf"(?<![a-z])(?:[a-z][a-z0-9+.-]{{0,30}}://|www\.)[^\s<>{WIDE_MARKS}]+", re.IGNORECASE)
ADDRESS = re.compile(
    rf"{WEB_ADDRESS.pattern}|(?<![^{NOT_IN_MAIL}])[^{NOT_IN_MAIL}]+@[^{NOT_IN_MAIL}]+\.[^{NOT_IN_MAIL}]+",
    re.IGNORECASE,
)
# Number of characters that a splitter gets at once.
STRETCH = 5000
# Syntax of template languages: {{ name }}, {% tag %}, {# comment #}, <%= value %>.
TEMPLATE_SYNTAX = r"\{\{[^{}]*\}\}|\{%[^{}]*%\}|\{#[^{}]*#\}|<%[^<>]*%>"
# White space outside ASCII.
OTHER_SPACE = re.compile(r"(?=[^\x00-\x7f])\s")
LETTER = rf"[^\W{UNSPACED}]"
# A Korean particle follows a number or code without a space.
HANGUL = "\uac00-\ud7a3"
LETTER_OF_A_WORD = rf"[^\W{UNSPACED}{HANGUL}]"
# A word, or a character in scripts without spaces between words.
WORD = re.compile(rf"[{UNSPACED}]|{LETTER}+(?:['’-]{LETTER}+)*")


def whole_words(words: str) -> str:
    """Returns a pattern that matches these words, but not inside longer words."""
    before = f"(?<!{LETTER})" if re.match(LETTER, words) else ""
    behind = f"(?!{LETTER})" if re.search(rf"{LETTER}\Z", words) else ""
    behind = f"(?!{LETTER_OF_A_WORD})" if words[-1:].isdigit() else behind
    return f"{before}{re.escape(words)}{behind}"


@dataclass(frozen=True)
class SplitText:
    """
    A text, split into sentences.

    Attributes:
        sentences: the sentences to translate.
        separators: text before, between and after the sentences: white space, line ends, bullets, and lines without
            words. Interleaved with the sentences, they restore the text exactly.
    """

    sentences: list[str]
    separators: list[str]

    def rejoin(self, sentences: Sequence[str]) -> str:
        """
        Returns the text with its sentences replaced by these.

        Raises:
            ValueError: the number of sentences differs.
        """
        if len(sentences) != len(self.sentences):
            raise ValueError(f"{len(sentences)} sentences in place of {len(self.sentences)}.")
        return "".join(chain.from_iterable(zip(self.separators, [*sentences, ""], strict=True)))


class BilingualText(SplitText):
    """
    A text that keeps its source. After every line with sentences comes a line with an arrow and the translation.

    >>> text = split_text("- One. Two")
    >>> print(BilingualText(text.sentences, text.separators).rejoin(["Eins. Zwei"]))
    - One. Two
    → - Eins. Zwei
    """

    def rejoin(self, sentences: Sequence[str]) -> str:
        """Returns the text with the lines of these sentences after its own."""
        source = LINE_END.split(super().rejoin(self.sentences))
        translated = LINE_END.split(super().rejoin([LINE_END.sub(" ", sentence) for sentence in sentences]))
        numbers = set(accumulate(len(LINE_END.findall(gap)) for gap in self.separators[:-1]))
        line_end = source[1] if len(source) > 1 else "\n"
        result = []
        for number, (line, other, end) in enumerate(
            zip(source[::2], translated[::2], [*source[1::2], ""], strict=True)
        ):
            result += [line, end]
            if number in numbers:
                result += ["" if end else line_end, "→ ", other.removeprefix("\ufeff"), end]
        return "".join(result)


def split_text(text: str, splitter: Splitter | None = None) -> SplitText:
    """
    Splits a text into sentences. A line end always ends a sentence.

    Args:
        splitter: returns the sentences of a line, in order, with or without surrounding white space. By default a line
            is a sentence.

    Raises:
        ValueError: the splitter changed or omitted words.
    """
    sentences, separators, done = [], [""], 0
    for cell in CELL.finditer(text):
        start, line = cell.start(), cell[0]
        item = LINE_START.match(line)
        place = item.end() if item else 0  # end of the previous sentence
        for sentence in [line[place:]] if splitter is None else splitter(line[place:]):
            words = sentence.strip().strip("\ufeff").strip()
            found = line.find(words, place)
            if found < 0 and is_translatable(words):
                raise ValueError(f"The splitter returned {words!r}, but the line {line!r} does not contain it.")
            if found >= 0:
                _check_gap(line[place:found])
                place = found + len(words)
            if not is_translatable(words):
                continue
            separators[-1] += text[done : start + found]
            sentences.append(words)
            separators.append("")
            done = start + place
        _check_gap(line[place:])
    separators[-1] += text[done:]
    return SplitText(sentences, separators)


def _check_gap(gap: str) -> None:
    if is_translatable(gap):
        raise ValueError(f"The splitter omitted {gap.strip()!r}: it must return all words of a line.")


def is_translatable(words: str) -> bool:
    """Returns whether there is a letter outside addresses."""
    return any(character.isalpha() for character in ADDRESS.sub("", words))


def sentencex_splitter(language: str | None) -> Splitter:
    """
    Returns a splitter that uses `sentencex`, for about 300 languages.

    Args:
        language: a code such as "de", "de_DE" or "[de]".

    Raises:
        ImportError: sentencex is not installed.
        ValueError: the language has no code.
    """
    try:
        from babel import Locale, UnknownLocaleError
        from sentencex import segment
    except ImportError as error:
        needed = "Splitting text into sentences needs sentencex and babel: pip install sentencex babel"
        raise ImportError(needed) from error
    code = language_code(language)
    if code is None:
        raise ValueError(f"sentencex needs a language code, not {language!r}: pass another splitter.")
    with suppress(UnknownLocaleError):
        code = Locale.parse(code).language  # sentencex splits by English rules after "deu"

    def split(stretch: str) -> Iterable[str]:
        # sentencex fails at white space outside ASCII after a capital letter ("plan B\u2003.").
        text = OTHER_SPACE.sub(" ", stretch)
        try:
            lengths = [len(sentence) for sentence in segment(code, text)]
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # its panics are not subclasses of `Exception`
            raise ValueError(f"sentencex cannot split {text[:80]!r}: {error}") from error
        return [stretch[start:stop] for start, stop in pairwise(accumulate(lengths, initial=0))]

    return lambda line: _in_stretches(line, split)


def _in_stretches(line: str, splitter: Splitter) -> Iterable[str]:
    """Splits a line in stretches, because a splitter may take quadratic time. The last sentence of a stretch starts
    the next one. A sentence longer than a stretch is cut at a space."""
    start = 0
    while start < len(line):
        stretch = line[start : start + STRETCH]
        sentences = list(splitter(stretch))
        if start + STRETCH < len(line):
            sentences = sentences[:-1] or [stretch[: stretch.rfind(" ") + 1] or stretch]
        yield from sentences
        start += sum(map(len, sentences))


def language_code(language: str | None) -> str | None:
    """Returns `de` for `de_DE` or `[de]`; `None` without a code of two or three letters, as in `[target]`."""
    code = re.search("(?<![a-z])[a-z]{2,3}(?![a-z])", language or "")
    return code[0] if code else None
