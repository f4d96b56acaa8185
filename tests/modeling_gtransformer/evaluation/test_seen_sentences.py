"""Which test sentences training has seen."""

from modeling_gtransformer.evaluation.seen_sentences import at_positions, positions_of_unseen


def test_sentences_that_training_has_not_seen():
    test = [["Hello there.", "I need  PIZZA."], ["hello THERE."], ["New."]]
    training = [["Hello there."], ["Something.", "I need pizza."]]
    positions = positions_of_unseen(test, training)
    assert positions == [[], [], [0]]
    assert positions_of_unseen(test, [["I need pizza!"]]) == [[0, 1], [0], [0]]
    assert at_positions(test, positions) == [["New."]]
    assert at_positions(test, [[1], [], [0]]) == [["I need  PIZZA."], ["New."]]
