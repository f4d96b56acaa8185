"""XLIFF 1.2 and 2. Inline elements are boundaries of runs or protected."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from .languages import is_same_language, language_tag
from .placeholders import has_same_placeholders
from .template import TextFile
from .xml_tokens import XML, XmlToken, XmlTree, tag_name, with_attribute, words_of, xml_escape, xml_tokens


# Names of the elements with a source and a target in version 1.2 and in version 2.
UNITS = {"1": "trans-unit", "2": "segment"}
LANGUAGE_ATTRIBUTES = {"1": ("file", "target-language"), "2": ("xliff", "trgLang")}
# States of a target that is not yet a translation.
NEW_STATES = {"1": frozenset({"new", "needs-translation"}), "2": frozenset({"initial"})}
# Inline elements around text of the sentence, and elements that represent part of it.
AROUND_TEXT = frozenset({"g", "mrk", "pc"})
PLACEHOLDERS = frozenset({"it", "ph", "x"})
# Empty elements and native codes that begin or end a format.
OPENING, CLOSING = frozenset({"bpt", "bx", "sc"}), frozenset({"ept", "ex", "ec"})


@dataclass(frozen=True)
class _Scope:
    """Inherited state of an element: whether to translate and to preserve white space, and data of inline elements."""

    is_translated: bool = True
    keeps_space: bool = False
    data: dict[str, str] = field(default_factory=dict)


def read_xliff(text: str, tgt_lang: str | None = None, mark_fuzzy: bool = False) -> TextFile:
    """
    Reads an XLIFF file of version 1.2 or 2. Every `<file>` is a document.

    A unit is translated if its target is missing, empty, or in the state `new`, `needs-translation` or `initial`. It
    gets a target in the state `translated`, with the inline elements of the source. Units with `translate="no"` do not
    change, nor do units whose translation has other placeholders, which would break the program. The model reads the
    text that a placeholder represents.

    Args:
        tgt_lang: language of the translation, set in files without a target language.
        mark_fuzzy: whether to mark new targets for review, with the state `needs-review-translation` or, in version 2,
            a `subState`.

    Raises:
        ValueError: the file is broken, or has another version or target language.
    """
    return _Reader(text, language_tag(tgt_lang), mark_fuzzy).read()


class _XliffFile(TextFile):
    """A template that preserves units with changed placeholders. `untranslated` lists the numbers of their blocks."""

    def __init__(self, text: str):
        super().__init__(xml_escape(text))
        # For every unit with a new target: its characters, and the ranges of its parts and blocks.
        self._units: list[tuple[str, slice, slice]] = []
        self.untranslated: list[int] = []

    @contextmanager
    def unit(self, raw: str) -> Iterator[None]:
        """Records the parts and blocks that are added inside as those of a unit."""
        parts, blocks = len(self._parts), len(self.blocks)
        yield
        self._units.append((raw, slice(parts, len(self._parts)), slice(blocks, len(self.blocks))))

    def filled_parts(self, blocks: Sequence[Sequence[str]]) -> list[str]:
        result = super().filled_parts(blocks)
        self.untranslated = []
        for raw, parts, own in self._units:
            runs = [run for block in self.blocks[own] for run in block]
            texts = [text for block in blocks[own] for text in block]
            source, translation = (
                "".join(text for run, text in zip(runs, each, strict=True) if run.markup is None)
                for each in ([run.text for run in runs], texts)
            )
            if not has_same_placeholders(source, translation):
                result[parts] = [raw, *[""] * (parts.stop - parts.start - 1)]
                self.untranslated.append(own.start)
        return result


class _Reader(XmlTree):
    def __init__(self, text: str, language: str | None, mark_fuzzy: bool):
        super().__init__(xml_tokens(text))
        self.file = _XliffFile(text)
        self.language, self.mark_fuzzy = language, mark_fuzzy
        root = next(token for token in self.tokens if token.kind == "start")
        # Local names of the start tags of XLIFF; empty strings for other tokens.
        self.names = [
            token.name[1] if token.kind == "start" and token.name[0] == root.name[0] else "" for token in self.tokens
        ]
        if root.name[1] != "xliff":
            raise ValueError(f"not XLIFF: it begins with <{root.name[1]}>")
        self.version = root.get("version")[:1]
        if self.version not in UNITS:
            raise ValueError(f"unsupported XLIFF version {root.get('version')!r}: supported are 1.2, 2.0 and 2.1")

    def read(self) -> _XliffFile:
        scopes = [_Scope()]
        position = 0
        while position < len(self.tokens):
            token, name = self.tokens[position], self.names[position]
            if token.kind == "end":
                scopes.pop()
            elif token.kind == "start":
                scopes.append(self._scope(position, scopes[-1]))
                if name == "file":
                    self.file.begin_document()
                if name == UNITS[self.version]:
                    self._add_unit(position, scopes.pop())
                    position = self.ends[position] + 1
                    continue
            self.file.add(self._with_language(token) if name == LANGUAGE_ATTRIBUTES[self.version][0] else token.raw)
            position += 1
        return self.file

    def _scope(self, position: int, outer: _Scope) -> _Scope:
        token = self.tokens[position]
        translated, space = token.get("translate"), token.get("space", XML)
        return _Scope(
            translated == "yes" if translated else outer.is_translated,
            space == "preserve" if space else outer.keeps_space,
            self._original_data(position) if self.names[position] == "unit" else outer.data,
        )

    def _original_data(self, position: int) -> dict[str, str]:
        """Returns the data of the inline elements in a unit of version 2, by `dataRef`."""
        return {
            self.tokens[number].get("id"): self.words(number)
            for place in self.children(position)
            if self.names[place] == "originalData"
            for number in self.children(place)
            if self.names[number] == "data"
        }

    def _with_language(self, token: XmlToken) -> str:
        """Returns a tag with the target language. Raises `ValueError` if it declares another one."""
        _, attribute = LANGUAGE_ATTRIBUTES[self.version]
        there = token.get(attribute)
        if self.language is None:
            return token.raw
        if there and not is_same_language(there, self.language):
            raise ValueError(f"its target language is {there}, but the translation is in {self.language}")
        return token.raw if there else with_attribute(token.raw, attribute, self.language)

    def _add_unit(self, position: int, scope: _Scope) -> None:
        """Adds a unit, with a new target unless it is translated."""
        # The first child of each name.
        children = {self.names[child]: child for child in reversed([*self.children(position)])}
        source, target = children.get("seg-source", children.get("source")), children.get("target")
        stop = self.ends[position] + 1
        is_done = target is not None and self._is_done(position, target)
        if source is None or not scope.is_translated or is_done or not self.words(source).strip():
            self.file.add(self.raw(position, stop))
        else:
            with self.file.unit(self.raw(position, stop)):
                self._add_with_target(position, source, target, scope)

    def _add_with_target(self, position: int, source: int, target: int | None, scope: _Scope) -> None:
        """Adds a unit with a new target. It replaces an old one."""
        unit_tag, behind = self.tokens[position].raw, self.ends[source] + 1
        self.file.add(self._in_state(unit_tag) if self.version == "2" else unit_tag)
        if target is None:
            own_name = tag_name(self.tokens[source].raw)
            start, rest = f"<{own_name.removesuffix(self.names[source])}target>", behind
            before = self.tokens[source - 1]
            self.file.add(self.raw(position + 1, behind) + (before.raw if before.kind == "text" else ""))
        else:
            start, rest = self.tokens[target].raw, self.ends[target] + 1
            start = start.removesuffix("/>").rstrip() + ">" if start.endswith("/>") else start
            self.file.add(self.raw(position + 1, target))
        self.file.add(self._in_state(start) if self.version == "1" else start)
        self._add_content(source, self._scope(source, scope))
        self.file.add(f"</{tag_name(start)}>" + self.raw(rest, self.ends[position] + 1))

    def _is_done(self, unit: int, target: int) -> bool:
        inside = self.tokens[target + 1 : self.ends[target]]
        state = self.tokens[target if self.version == "1" else unit].get("state")
        # Segmentation alone is no translation.
        is_code = (token.kind == "start" and token.get("mtype") != "seg" for token in inside)
        has_content = any(is_code) or any(token.words.strip() for token in inside)
        return has_content and state not in NEW_STATES[self.version]

    def _in_state(self, tag: str) -> str:
        if self.version == "1":
            return with_attribute(tag, "state", "needs-review-translation" if self.mark_fuzzy else "translated")
        tag = with_attribute(tag, "state", "translated")
        return with_attribute(tag, "subState", "gtransformer:needs-review") if self.mark_fuzzy else tag

    def _add_content(self, source: int, scope: _Scope) -> None:
        """Adds the text and the inline elements of a source as content of the target."""
        self.file.end_block()
        self.file.style = ()
        position, segments = source + 1, set()
        while position < self.ends[source]:
            token = self.tokens[position]
            stop = position + 1
            if token.kind == "cdata" or (token.kind == "text" and scope.keeps_space):
                self.file.add_line(token.raw, "", words_of)
            elif token.kind == "text":
                self.file.add_text(token.raw, words_of)
            elif token.kind == "start" and (self.names[position] not in AROUND_TEXT or _is_protected(token)):
                stop = self.ends[position] + 1
                self._add_code(position, stop, scope)
            else:
                if token.kind == "start" and token.get("mtype") == "seg":
                    segments |= {position, self.ends[position]}
                elif token.kind == "start":
                    self.file.open_style(self.ends[position])
                if position in segments:
                    self.file.end_block()
                self.file.add(token.raw)
                self.file.close_style(position)
            position = stop
        self.file.end_block()

    def _add_code(self, position: int, stop: int, scope: _Scope) -> None:
        """Adds a preserved inline element. The model reads the text that a placeholder represents."""
        token, name, raw = self.tokens[position], self.names[position], self.raw(position, stop)
        words = ""
        if _is_protected(token):
            words = self.words(position)
        elif name in PLACEHOLDERS and self.version == "1":
            words = token.get("equiv-text") or self.words(position)
        elif name in PLACEHOLDERS:
            words = token.get("disp") or scope.data.get(token.get("dataRef"), "") or token.get("equiv")
        words = " ".join(words.split())
        # An element that ends a format refers to the element that begins it.
        pair = token.get("startRef") or token.get("rid") or token.get("id")
        if words and not words.startswith("<"):
            self.file.add_protected(raw, words)
        else:
            if name in OPENING:
                self.file.open_style(pair)
            self.file.add(raw)
            if name in CLOSING:
                self.file.close_style(pair)
        if token.get("ctype") == "lb" or token.get("subType") == "xlf:lb":
            self.file.end_block()


def _is_protected(token: XmlToken) -> bool:
    return token.name[1] == "mrk" and (token.get("mtype") == "protected" or token.get("translate") == "no")
