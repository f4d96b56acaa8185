"""Records of JSON lines: translated one by one, or refused in words; what they hold besides stays."""

import json

import pytest

from modeling_gtransformer.cli.json_lines import read_record, write_record


def upper(source):
    """Stands for a pipeline."""
    sentences = source.split("\n") if isinstance(source, str) else source
    pairs = [{"source_text": text, "translation_text": text.upper(), "confidence": -1.0} for text in sentences]
    return {"translation_text": "\n".join(pair["translation_text"] for pair in pairs), "sentences": pairs}


def rewritten(line, column="source", confidence=False, overwrite=False):
    fields = ["translation", "confidence"] if confidence else ["translation"]
    record = read_record(line if isinstance(line, bytes) else line.encode(), column, fields, overwrite)
    return write_record(record, upper(record[column]), column, confidence)


def translated(line, **options):
    return json.loads(rewritten(line, **options))


def test_a_text_and_a_list():
    assert translated('{"source": "a\\nb"}') == {"source": "a\nb", "translation": "A\nB"}
    record = translated('{"id": 1, "en": ["a", "b"]}', column="en", confidence=True)
    assert record == {"id": 1, "en": ["a", "b"], "translation": ["A", "B"], "confidence": [-1.0, -1.0]}


@pytest.mark.parametrize(
    "line, words",
    [
        ('{"source": 5}', "must hold a text or a list of sentences, not int"),
        ('{"source": null}', "must hold a text or a list of sentences, not NoneType"),
        ('{"source": {"a": 1}}', "must hold a text or a list of sentences, not dict"),
        ('{"source": ["a", 5]}', "must hold a text or a list of sentences, not int in a list"),
        ('{"source": [["a"]]}', "must hold a text or a list of sentences, not list in a list"),
        ('{"a": 1}', "no document in the column 'source'"),
        ('["a"]', "a record must be a JSON object, not list"),
        ("null", "a record must be a JSON object, not NoneType"),
        ('{"source": "a', "broken JSON, Unterminated string"),
        ('{"source": "\\ud800"}', r"half of a character \(a lone surrogate\) in the column 'source'"),
        ('{"source": ["a", "\\udc00"]}', "half of a character"),
        ('{"source": "a", "id": {"x": 1, "x": 2}}', "the field 'x' appears twice in an object"),
        ('{"source": "a", "id": 1e400}', "the number 1e400 is too large"),
        (b'{"source": "\xff"}', "not UTF-8, invalid start byte at byte 13"),
        ("[" * 100_000, "nested too deeply"),
        ('{"source": "a", "b": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        ('{"source": "a", "number": ' + "1" * 5000 + "}", "broken JSON, Exceeds the limit"),
    ],
)
def test_what_is_no_record_is_refused(line, words):
    with pytest.raises(ValueError, match=words):
        translated(line)


def test_fields_that_are_there_are_kept_unless_told_otherwise():
    line = '{"source": "a", "translation": "mine", "confidence": 1}'
    with pytest.raises(ValueError, match="already has a field 'translation': --overwrite replaces it"):
        translated(line)
    assert translated(line, overwrite=True) == {"source": "a", "translation": "A"}  # the confidence was of another one
    line = '{"segments": "b", "translation": "mine", "translated_segments": [1]}'
    assert translated(line, column="segments", overwrite=True) == {"segments": "b", "translation": "B"}
    line = '{"source": "a", "confidence": 1}'
    assert translated(line)["confidence"] == 1  # nothing is asked for that would replace it
    with pytest.raises(ValueError, match="already has a field 'confidence'"):
        translated(line, confidence=True)


def test_other_fields_stay_whatever_they_hold():
    line = '{"source": "ä", "other": "\\ud83d", "deep": [[{"a": null}]], "number": 1.5}'
    result = rewritten(line)
    assert json.loads(result) == {**json.loads(line), "translation": "Ä"}
    assert "ä".encode() in rewritten('{"source": "ä"}')
