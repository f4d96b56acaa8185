"""Counts the characters that a backtracking matcher such as `re` visits: so its work is seen without a clock."""

import re
import sys


if sys.version_info >= (3, 11):
    from re import _constants as codes
    from re import _parser as parser
else:
    import sre_constants as codes
    import sre_parse as parser

CATEGORIES = {
    codes.CATEGORY_DIGIT: str.isdecimal,
    codes.CATEGORY_SPACE: str.isspace,
    codes.CATEGORY_WORD: lambda character: character.isalnum() or character == "_",
}
NEGATED = {
    codes.CATEGORY_NOT_DIGIT: codes.CATEGORY_DIGIT,
    codes.CATEGORY_NOT_SPACE: codes.CATEGORY_SPACE,
    codes.CATEGORY_NOT_WORD: codes.CATEGORY_WORD,
}
ONE_CHARACTER = {codes.LITERAL, codes.NOT_LITERAL, codes.IN, codes.ANY}


class CountedRegex:
    """A pattern of `re`, slow, whose `visits` grow by one with every character that is compared."""

    def __init__(self, pattern):
        source = pattern.pattern
        self.is_bytes = isinstance(source, bytes)
        self.tree = list(parser.parse(source, pattern.flags & (re.IGNORECASE | re.DOTALL | re.MULTILINE)))
        self.ignores_case = bool(pattern.flags & re.IGNORECASE)
        self.matches_line_ends = bool(pattern.flags & re.DOTALL)
        self.visits = 0

    def finditer(self, text):
        """The spans of all matches."""
        position, spans = 0, []
        while position <= len(text):
            end = self.match(text, position)
            if end is not None:
                spans.append((position, end))
            position = position + 1 if end is None or end == position else end
        return spans

    def match(self, text, position=0):
        """Where the match that begins at a position ends, or `None`."""
        self.text = text.encode().decode("latin-1") if self.is_bytes else text
        return next(self._sequence(self.tree, 0, position), None)

    def _sequence(self, tree, index, position):
        if index == len(tree):
            yield position
            return
        for end in self._node(*tree[index], position):
            yield from self._sequence(tree, index + 1, end)

    def _node(self, code, argument, position):
        if code in ONE_CHARACTER:
            if self._is_one(code, argument, position):
                yield position + 1
        elif code is codes.SUBPATTERN:
            yield from self._sequence(list(argument[3]), 0, position)
        elif code is codes.BRANCH:
            for branch in argument[1]:
                yield from self._sequence(list(branch), 0, position)
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            least, most, body = argument
            yield from self._repeat(list(body), least, most, position, code is codes.MAX_REPEAT)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            direction, body = argument
            # What is looked for behind the position has a fixed width.
            start = position if direction > 0 else position - body.getwidth()[0]
            found = start >= 0 and next(self._sequence(list(body), 0, start), None) is not None
            if found == (code is codes.ASSERT):
                yield position
        elif code is codes.AT:
            if self._is_at(argument, position):
                yield position
        else:
            raise NotImplementedError(f"Unsupported regex code {code}: add its case here.")

    def _repeat(self, body, least, most, position, is_greedy):
        if len(body) == 1 and body[0][0] in ONE_CHARACTER and is_greedy:
            end = position
            while end - position < most and self._is_one(*body[0], end):
                end += 1
            yield from range(end, position + least - 1, -1)
            return
        if not is_greedy and least <= 0:
            yield position
        if most > 0:
            for end in self._sequence(body, 0, position):
                if end > position or least > 0:
                    yield from self._repeat(body, least - 1, most - 1, end, is_greedy)
        if is_greedy and least <= 0:
            yield position

    def _is_one(self, code, argument, position):
        self.visits += 1
        if position >= len(self.text):
            return False
        character = self.text[position]
        if code is codes.ANY:
            return self.matches_line_ends or character != "\n"
        if code is codes.NOT_LITERAL:
            return not self._is_same(argument, character)
        if code is codes.LITERAL:
            return self._is_same(argument, character)
        negated = bool(argument) and argument[0][0] is codes.NEGATE
        return negated != any(self._is_in(*item, character) for item in argument[negated:])

    def _is_in(self, code, argument, character):
        if code is codes.LITERAL:
            return self._is_same(argument, character)
        if code is codes.RANGE:
            return any(argument[0] <= ord(case) <= argument[1] for case in self._cases(character))
        negated = argument in NEGATED
        return negated != bool(CATEGORIES[NEGATED.get(argument, argument)](character))

    def _is_same(self, number, character):
        return number in map(ord, self._cases(character))

    def _cases(self, character):
        if not self.ignores_case:
            return [character]
        return [case for case in {character, character.lower(), character.upper()} if len(case) == 1]

    def _is_at(self, place, position):
        if place is codes.AT_END_STRING:
            return position == len(self.text)
        if place in (codes.AT_BEGINNING, codes.AT_BEGINNING_STRING, codes.AT_BEGINNING_LINE):
            return position == 0 or (place is codes.AT_BEGINNING_LINE and self.text[position - 1] == "\n")
        if place is codes.AT_BOUNDARY:
            is_word = CATEGORIES[codes.CATEGORY_WORD]
            around = [
                bool(near) and is_word(near)
                for near in (self.text[max(position - 1, 0) : position], self.text[position : position + 1])
            ]
            return around[0] != around[1]
        raise NotImplementedError(f"Unsupported regex position {place}: add its case here.")
