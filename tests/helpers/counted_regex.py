"""Counts the characters that a backtracking matcher such as `re` visits: so its work is seen without a clock."""

import sys


if sys.version_info >= (3, 11):
    from re import _compiler as compiler
    from re import _constants as codes
    from re import _parser as parser
else:
    import sre_compile as compiler
    import sre_constants as codes
    import sre_parse as parser

ONE_CHARACTER = {codes.LITERAL, codes.NOT_LITERAL, codes.IN, codes.ANY}


class CountedRegex:
    """A pattern of `re`, slow, whose `visits` grow by one with every character that is compared."""

    def __init__(self, pattern):
        source = pattern.pattern
        self.is_bytes = isinstance(source, bytes)
        self.flags = pattern.flags
        self.tree = parser.parse(source, pattern.flags)
        self.compiled = {}
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
        self.text = text.encode() if self.is_bytes else text
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
            yield from self._sequence(argument[3], 0, position)
        elif code is codes.BRANCH:
            for branch in argument[1]:
                yield from self._sequence(branch, 0, position)
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            least, most, body = argument
            yield from self._repeat(body, least, most, position, code is codes.MAX_REPEAT)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            direction, body = argument
            # What is looked for behind the position has a fixed width.
            start = position if direction > 0 else position - body.getwidth()[0]
            found = start >= 0 and next(self._sequence(body, 0, start), None) is not None
            if found == (code is codes.ASSERT):
                yield position
        elif code is codes.AT:
            if self._matches(code, argument, position):
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
        return self._matches(code, argument, position)

    def _matches(self, code, argument, position):
        """Whether `re` itself matches one character, or a place such as the end of the text."""
        key = code, str(argument)
        if key not in self.compiled:
            node = parser.SubPattern(self.tree.state, [(code, argument)])
            self.compiled[key] = compiler.compile(node, self.flags)
        return self.compiled[key].match(self.text, position) is not None
