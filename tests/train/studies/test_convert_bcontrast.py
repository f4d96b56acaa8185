"""Dialogues of BConTrasT, whose speakers write different languages, become documents of two."""

import json

import pytest

from modeling_gtransformer.corpora.corpus import read_documents
from train.studies.convert_bcontrast import ConversionOptions, convert_bcontrast


DIALOGUES = {
    "dlg-1": [
        {"utteranceID": 0, "speaker": "customer", "source": "Schöne Grüße,", "target": "Hello."},
        {"utteranceID": 1, "speaker": "agent", "source": "How can I help?", "target": "Wie kann ich helfen? "},
        {"utteranceID": 2, "speaker": "agent", "source": "Well,", "target": " "},
    ],
    "dlg-2": [{"utteranceID": 0, "speaker": "agent", "source": "Bye.", "target": "Tschüss."}],
    "dlg-3": [{"utteranceID": 0, "speaker": "agent", "source": "", "target": "Ja."}],
}


@pytest.fixture
def convert(tmp_path):
    """Converts dialogues, and gives the path of the documents."""

    def convert(dialogues, name="test.jsonl"):
        source, output = tmp_path / "test.json", tmp_path / name
        source.write_text(json.dumps(dialogues))
        convert_bcontrast(ConversionOptions(source, output))
        return str(output)

    return convert


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.xz"])
def test_sides_are_sorted_by_language(convert, ending, capsys):
    documents = read_documents([convert(DIALOGUES, f"test.{ending}")], ["en", "de"])
    assert [document.record for document in documents] == [
        {"id": "dlg-1", "en": ["Hello.", "How can I help?"], "de": ["Schöne Grüße,", "Wie kann ich helfen?"]},
        {"id": "dlg-2", "en": ["Bye."], "de": ["Tschüss."]},
    ]
    printed = capsys.readouterr().out
    assert printed.startswith("2 dialogues, 3 utterances in ") and printed.endswith("; 2 lack a side: left out\n")


@pytest.mark.parametrize(
    "dialogues",
    [[], {"a": ["Hello."]}, {"a": [{"speaker": "agent", "source": "Hello."}]}, {"a": [{"speaker": "boss"}]}],
)
def test_another_form_is_refused(convert, dialogues, tmp_path):
    with pytest.raises(ValueError, match=r"test\.json does not have the form of BConTrasT"):
        convert(dialogues)
    assert not (tmp_path / "test.jsonl").exists()
