"""Hard-wrapped text: which lines make up a paragraph."""

from split_file import translated


WRAPPED = """NAME
       ls - list directory contents

DESCRIPTION
       List  information about the files (the cur‐
       rent directory by default).

       -a, --all
              do not ignore entries

- an item that
  goes on
- another one
  First line,
second line
"""


def test_wrapped_text():
    sentences, result = translated(WRAPPED, "wrapped")
    assert sentences == [
        "NAME",
        "ls - list directory contents",
        "DESCRIPTION",
        "List information about the files (the current directory by default).",
        "-a, --all",
        "do not ignore entries",
        "an item that goes on",
        "another one First line,",
        "second line",
    ]
    assert result == WRAPPED.upper().replace("LIST  INF", "LIST INF")
    longer = translated("some words\n  here.\n", "wrapped", lambda _: "ein Satz von sieben oder acht Wörtern.")
    assert longer == (["some words", "here."], longer[1])
    mail = "> a b\n> c d\ne\n--\nSig\n"
    assert translated(mail, "wrapped") == (["a b c d", "e", "Sig"], mail.upper())
