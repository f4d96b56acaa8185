"""The command that scores translations: the table, and the file that a card reads."""

import json

import pytest
from json_lines import write_json_lines

from modeling_gtransformer.evaluation.metrics import compare_systems, score_documents
from modeling_gtransformer.training.segments import segment_sizes
from train.score_translations import main as score_translations


REFERENCES = [["the cat sat on the mat .", "it was very warm there .", "then it slept ."], ["a dog came in ."]]
HYPOTHESES = [["the cat sat on a mat .", "it was warm there .", ""], ["a dog came in ."]]
BASELINE = [["the cat sat here .", "it was there .", "then it slept ."], ["dogs came in ."]]
SEGMENTS = [[2, 1], [1]]


@pytest.fixture
def files(tmp_path):
    def rows(translations):
        pairs = zip(translations, SEGMENTS, strict=True)
        return [{"translation": sentences, "segments": segments} for sentences, segments in pairs]

    write_json_lines(tmp_path / "test.jsonl", [{"de": document} for document in REFERENCES])
    for name, translations in (("ours", HYPOTHESES), ("theirs", BASELINE)):
        write_json_lines(tmp_path / f"{name}.jsonl", rows(translations))
    return tmp_path


def test_scores_of_files(files, capsys):
    scores, output = files / "scores" / "test.json", str(files / "ours.jsonl")
    reference = ["--reference", str(files / "test.jsonl"), "--reference_column", "de"]
    options = [*reference, "--baseline", str(files / "theirs.jsonl"), "--json", str(scores)]
    returned = score_translations([output, *options])
    expected = score_documents(HYPOTHESES, REFERENCES, SEGMENTS)
    compared = compare_systems(HYPOTHESES, BASELINE, REFERENCES, SEGMENTS)
    assert returned == {name: score | compared[name] for name, score in expected.items()}

    content = json.loads(scores.read_text())
    assert content["scores"] == returned
    # Names of files, without the folders of this machine.
    sources = [content[name] for name in ("translations", "reference", "baseline")]
    assert sources == ["ours.jsonl", "test.jsonl", "theirs.jsonl"] and "--json" in content["command"]

    table = capsys.readouterr().out
    for name, score in returned.items():
        assert f"{name:16} {score['score']:6.2f}   {score['units']} {score['unit']}   {score['signature']}" in table
        assert f"{score['difference']:+6.2f}   against the baseline" in table


def test_segments_of_the_paper(files, checkpoint, processor):
    """Cut by source and reference, also where sentences were translated one by one."""
    sources = [["the cat " * 3] * 3, ["a dog"]]
    rows = [{"source": s, "de": r} for s, r in zip(sources, REFERENCES, strict=True)]
    reference = ["--reference", write_json_lines(files / "both.jsonl", rows), "--reference_column", "de"]
    segments = segment_sizes(processor, sources, REFERENCES, 40)
    assert segments not in ([[1, 1, 1], [1]], [[3], [1]])
    options = [*reference, "--tokenizer", checkpoint, "--segment_tokens", "40"]
    scores = score_translations([str(files / "ours.jsonl"), *options])
    assert scores == score_documents(HYPOTHESES, REFERENCES, segments)
    free = [
        {"translation": d, "segments": s, "translated_segments": s} for d, s in zip(HYPOTHESES, SEGMENTS, strict=True)
    ]
    with pytest.raises(ValueError, match="was decoded freely"):
        score_translations([write_json_lines(files / "free.jsonl", free), *options])


def test_sentences_that_training_has_not_seen(files, capsys):
    sources = [["The cat.", "Warm.", "Slept."], ["A dog."]]
    rows = [{"source": s, "de": r} for s, r in zip(sources, REFERENCES, strict=True)]
    reference = ["--reference", write_json_lines(files / "both.jsonl", rows), "--reference_column", "de"]
    train = write_json_lines(files / "train.jsonl", [{"source": ["warm."]}, {"source": ["A  dog."]}])
    options = [*reference, "--train_files", train, "--baseline", str(files / "theirs.jsonl")]
    score = score_translations([str(files / "ours.jsonl"), *options])["s-BLEU/unseen"]
    first = [[[document[0][n] for n in (0, 2)]] for document in (HYPOTHESES, BASELINE, REFERENCES)]
    expected = score_documents(first[0], first[2])["s-BLEU"] | compare_systems(*first)["s-BLEU"]
    assert score == {**expected, "unit": "unseen sentences"} and score["units"] == 2
    assert "2 unseen sentences" in capsys.readouterr().out

    everything = write_json_lines(files / "everything.jsonl", [{"source": document} for document in sources])
    with pytest.raises(ValueError, match="All test sentences are in"):
        score_translations([str(files / "ours.jsonl"), *reference, "--train_files", everything])
    free = [
        {"translation": d, "segments": s, "translated_segments": s} for d, s in zip(HYPOTHESES, SEGMENTS, strict=True)
    ]
    with pytest.raises(ValueError, match="has no sentences to compare: leave --train_files out"):
        score_translations([write_json_lines(files / "free.jsonl", free), *reference, "--train_files", train])


def test_decoded_freely(files, capsys):
    rows = [
        {
            "translation": ["the cat sat", "on a mat .", "it was warm ."],
            "segments": [2, 1],
            "translated_segments": [3, 0],
        },
        {"translation": ["a dog came in ."], "segments": [1], "translated_segments": [1]},
    ]
    reference = ["--reference", str(files / "test.jsonl"), "--reference_column", "de"]
    free = write_json_lines(files / "free.jsonl", rows)
    scores = score_translations([free, *reference, "--baseline", str(files / "ours.jsonl")])
    assert set(scores) == {"d-BLEU/segment", "d-BLEU/document"} and all("p_value" in s for s in scores.values())
    assert "4 sentences in, 4 out, 1 missing" in capsys.readouterr().out
    # Of two that were cut in different ways only whole documents can be compared.
    other = write_json_lines(files / "other.jsonl", [{**rows[0], "segments": [1, 2]}, rows[1]])
    scores = score_translations([free, *reference, "--baseline", other])
    assert "p_value" in scores["d-BLEU/document"] and "p_value" not in scores["d-BLEU/segment"]


def test_a_system_against_itself_and_text_without_segments(files, capsys):
    reference = ["--reference", str(files / "test.jsonl"), "--reference_column", "de"]
    texts = ["<d>\n" + "\n".join(document) + "\n" for document in BASELINE]
    (files / "theirs.txt").write_text("".join(texts))
    text = str(files / "theirs.txt")
    scores = score_translations([text, *reference, "--baseline", text])
    assert set(scores) == {"s-BLEU", "d-BLEU/document", "chrF"}
    assert [score["p_value"] for score in scores.values()] == [1, 1, 1]
    assert "p = 1.0000" in capsys.readouterr().out


def test_a_tokenizer_that_cannot_be_used_is_said_before_the_work(monkeypatch, capsys):
    def fails(**options):
        raise RuntimeError("install mecab")

    for name, words in {"foo": "invalid choice: 'foo'", "zh": "--tokenize zh: install mecab"}.items():
        with monkeypatch.context() as patch, pytest.raises(SystemExit):
            if name == "zh":
                patch.setattr("train.score_translations.BLEU.__init__", lambda self, **options: fails())
            score_translations(["a.jsonl", "--reference", "b.jsonl", "--tokenize", name])
        assert words in capsys.readouterr().err
