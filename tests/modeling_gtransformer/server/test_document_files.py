"""Translated files that wait to be downloaded."""

import asyncio

from modeling_gtransformer.server.document_files import TranslatedFiles


def test_files_are_found_by_tokens_that_nobody_can_guess():
    async def add():
        files = TranslatedFiles()
        return files, [files.add("a.txt", b"the cat") for _ in range(2)]

    files, tokens = asyncio.run(add())
    assert len({*tokens}) == 2 and min(map(len, tokens)) >= 32
    assert files.get(tokens[0]) == ("a.txt", b"the cat") and files.get("a.txt") is None


def test_files_are_removed_in_time():
    async def add():
        files = TranslatedFiles(max_seconds=0.01)
        token = files.add("a.txt", b"a")
        assert files.get(token)
        while files.get(token):
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(add(), 60))


def test_the_oldest_make_room():
    async def add():
        files = TranslatedFiles(max_bytes=10)
        first, second, third = (files.add("a.txt", b"1234") for _ in range(3))
        assert files.get(first) is None and files.get(second) and files.get(third)
        large = files.add("a.txt", b"x" * 100)
        assert files.get(large) and files.get(third) is None

    asyncio.run(add())
