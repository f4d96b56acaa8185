"""Cutting documents into instances that fit the model, at sentence borders (paper, section 2)."""


def sentence_cost(words: int) -> int:
    """Tokens that a sentence of `words` tokens takes: `<s>` and `</s>` besides its own."""
    return words + 2


def segment(costs: list[int], max_tokens: int, max_sentences: int | None = None) -> list[slice]:
    """
    Greedy instances of less than `max_tokens` tokens, as in the paper's experiments (512).

    Args:
        costs: tokens of every sentence, see [`sentence_cost`]; of a sentence pair, those of its longer side.
        max_tokens: the sentences of an instance cost less than this in sum. A sentence that alone costs as much or
            more becomes an instance of its own.
        max_sentences: most sentences of an instance; 1 gives the sentence-level baseline.

    Returns:
        The instances as slices of the sentences: in order, none empty, none missing.
    """
    borders, cost_so_far = [0], 0
    for index, cost in enumerate(costs):
        full = cost_so_far + cost >= max_tokens or index - borders[-1] == max_sentences
        if full and index > borders[-1]:
            borders.append(index)
            cost_so_far = 0
        cost_so_far += cost
    return [slice(start, end) for start, end in zip(borders, [*borders[1:], len(costs)], strict=True) if start < end]
