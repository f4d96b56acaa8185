"""Files that wait to be downloaded."""

from modeling_gtransformer.server.translated_files import TranslatedFiles


def test_files_are_found_by_what_nobody_can_guess():
    files = TranslatedFiles()
    tokens = [files.add("a.txt", b"the cat") for _ in range(2)]
    assert len({*tokens}) == 2 and min(map(len, tokens)) >= 32
    assert files.get(tokens[0]).content == b"the cat" and files.get("a.txt") is None


def test_old_files_are_forgotten():
    now = [0.0]
    files = TranslatedFiles(max_seconds=10, clock=lambda: now[0])
    first = files.add("a.txt", b"a")
    now[0] = 9
    second = files.add("b.txt", b"b")
    assert files.get(first)
    now[0] = 10
    assert files.get(first) is None and files.get(second)


def test_the_oldest_make_room():
    files = TranslatedFiles(max_bytes=10)
    first, second, third = (files.add("a.txt", b"1234") for _ in range(3))
    assert files.get(first) is None and files.get(second) and files.get(third)
    large = files.add("a.txt", b"x" * 100)
    assert files.get(large) and files.get(third) is None
