"""Boundaries in a translation, in number what its sentence has, without recursion."""

from modeling_gtransformer.files.boundaries import cut_around_protected, nearest, protected_places


def cut(translation, marked):
    """Pieces in backticks are protected."""
    pieces = [piece.strip("`") for piece in marked]
    protected = [number for number, piece in enumerate(marked) if piece.startswith("`")]
    return cut_around_protected(translation, pieces, protected_places(pieces, protected, translation))


def test_repeated_words_are_left_to_the_pieces_that_come():
    assert cut("erst a dann a jetzt", ["`a`", " then ", "`a`", " now"]) == ["", "erst dann ", "", " jetzt"]
    assert cut("a a a", ["`a`", " x ", "`a`"]) == ["", " a ", ""]


def test_an_occurrence_is_taken_once():
    """Also where it is the nearest of two."""
    pieces = ["x", " ", "x", " a long rest of it with x"]
    assert protected_places(pieces, [0, 2], "das hier x und x") == {0: 9, 2: 15}
    # A part of a word takes none of a whole word.
    assert protected_places(["Quote", "s and ", "Quote"], [0, 2], "Quote und Zitate") == {0: None, 2: 0}


def test_words_before_a_lost_piece_end_with_a_space():
    assert cut_around_protected("Nutzen", ["Use it for ", "foo()"], {1: None}) == ["Nutzen ", ""]


def test_more_protected_words_than_python_recurses():
    pieces = ["`a`", " and "] * 3000 + ["more"]
    result = cut("a und " * 3000 + "mehr", pieces)
    assert result == ["", " und "] * 3000 + ["mehr"]
    assert len(cut("nichts", pieces)) == len(pieces)


def test_nearest_place():
    assert nearest([], 1) is None and nearest([1, 5, 9], 6) == 5
    assert nearest([1, 5, 9], 0, lowest=1) == 5 and nearest([1, 5, 9], 9, highest=2) == 5
