"""The command that scores translations of any system: the table, and the file that a card reads."""

import json

import pytest
from json_lines import write_json_lines

from modeling_gtransformer.evaluation.metrics import compare_systems, score_documents
from modeling_gtransformer.evaluation.scores import ScoreOptions, evaluate_scores
from modeling_gtransformer.evaluation.translations import segment_sizes


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


@pytest.fixture
def score(files):
    """Runs the command on files in the folder, by default with the references of `files`."""

    def score(translations, reference="test.jsonl", **options):
        options = {"reference_column": "de", **options}
        for name in ("baseline", "train_files"):
            if name in options:
                given = options[name]
                options[name] = [str(files / f) for f in given] if isinstance(given, list) else str(files / given)
        return evaluate_scores(ScoreOptions(str(files / translations), str(files / reference), **options))

    return score


def test_scores_of_files(score, files, capsys):
    report = files / "scores" / "test.json"
    returned = score("ours.jsonl", baseline="theirs.jsonl", json=report)
    expected = score_documents(HYPOTHESES, REFERENCES, SEGMENTS)
    compared = compare_systems(HYPOTHESES, BASELINE, REFERENCES, SEGMENTS)
    assert returned == {name: score | compared[name] for name, score in expected.items()}

    content = json.loads(report.read_text())
    assert content["scores"] == returned
    # Names of files, without the folders of this machine.
    sources = [content[name] for name in ("translations", "reference", "baseline")]
    assert sources == ["ours.jsonl", "test.jsonl", "theirs.jsonl"] and "--json" in content["command"]

    table = capsys.readouterr().out
    for name, score in returned.items():
        assert f"{name:16} {score['score']:6.2f}   {score['units']} {score['unit']}   {score['signature']}" in table
        assert f"{score['difference']:+6.2f}   against the baseline" in table


@pytest.fixture
def both(files):
    """The references with sources; a file that was decoded freely is beside them."""
    sources = [["The cat.", "Warm.", "Slept."], ["A dog."]]
    rows = [{"source": s, "de": r} for s, r in zip(sources, REFERENCES, strict=True)]
    write_json_lines(files / "both.jsonl", rows)
    free = [
        {"translation": d, "segments": s, "translated_segments": s} for d, s in zip(HYPOTHESES, SEGMENTS, strict=True)
    ]
    write_json_lines(files / "free.jsonl", free)
    return sources


def test_segments_of_the_paper(score, both, checkpoint, processor):
    """Cut by source and reference, also where sentences were translated one by one."""
    segments = segment_sizes(processor, both, REFERENCES, 40)
    assert segments not in ([[1, 1, 1], [1]], [[3], [1]])
    options = {"reference": "both.jsonl", "tokenizer": checkpoint, "segment_tokens": 40}
    assert score("ours.jsonl", **options) == score_documents(HYPOTHESES, REFERENCES, segments)
    with pytest.raises(ValueError, match=r"free.jsonl was decoded freely"):
        score("free.jsonl", **options)


def test_sentences_that_training_has_not_seen(score, both, files, capsys):
    # Neither case nor white space matters, but punctuation does.
    write_json_lines(files / "train.jsonl", [{"source": ["warm.", "Slept!"]}, {"source": ["A  dog."]}])
    options = {"reference": "both.jsonl", "train_files": ["train.jsonl"]}
    result = score("ours.jsonl", baseline="theirs.jsonl", **options)["s-BLEU/unseen"]
    unseen = [[[document[0][n] for n in (0, 2)]] for document in (HYPOTHESES, BASELINE, REFERENCES)]
    expected = score_documents(unseen[0], unseen[2])["s-BLEU"] | compare_systems(*unseen)["s-BLEU"]
    assert result == {**expected, "unit": "unseen sentences"} and result["units"] == 2
    assert "2 unseen sentences" in capsys.readouterr().out

    write_json_lines(files / "everything.jsonl", [{"source": document} for document in both])
    with pytest.raises(ValueError, match="All test sentences are in"):
        score("ours.jsonl", **{**options, "train_files": ["everything.jsonl"]})
    with pytest.raises(ValueError, match=r"without sentences aligned .* omit tokenizer, train_files"):
        score("free.jsonl", **options)


def test_thirds_of_documents(score, files):
    scores = score("ours.jsonl", thirds=True)
    units = [scores[f"s-BLEU/{third} third"]["units"] for third in ("first", "middle", "last")]
    assert units == [1, 1, 2]  # the only sentence of the second document is in its last third
    middle = score_documents([[HYPOTHESES[0][1]]], [[REFERENCES[0][1]]])["s-BLEU"]["score"]
    assert scores["s-BLEU/middle third"]["score"] == middle
    # Single sentences have no first third.
    write_json_lines(files / "single.jsonl", [{"translation": ["a b c d"], "de": ["a b c d"]}])
    scores = score("single.jsonl", "single.jsonl", thirds=True)
    assert [name for name in scores if "third" in name] == ["s-BLEU/last third"]


def test_decoded_freely(score, files, capsys):
    rows = [
        {
            "translation": ["the cat sat", "on a mat .", "it was warm ."],
            "segments": [2, 1],
            "translated_segments": [3, 0],
        },
        {"translation": ["a dog came in ."], "segments": [1], "translated_segments": [1]},
    ]
    write_json_lines(files / "free.jsonl", rows)
    scores = score("free.jsonl", baseline="ours.jsonl")
    assert set(scores) == {"d-BLEU/segment", "d-BLEU/document"} and all("p_value" in s for s in scores.values())
    assert "4 sentences in, 4 out, 1 missing" in capsys.readouterr().out
    # Of two that were cut in different ways only whole documents can be compared.
    write_json_lines(files / "other.jsonl", [{**rows[0], "segments": [1, 2]}, rows[1]])
    scores = score("free.jsonl", baseline="other.jsonl")
    assert "p_value" in scores["d-BLEU/document"] and "p_value" not in scores["d-BLEU/segment"]


@pytest.mark.parametrize("mark", ["<d>\n", "\n"])
def test_a_system_against_itself_as_text(score, files, capsys, mark):
    for name, documents in (("theirs", BASELINE), ("people", REFERENCES)):
        text = mark.join("\n".join(document) + "\n" for document in documents)
        (files / f"{name}.txt").write_text(text)
    scores = score("theirs.txt", "people.txt", baseline="theirs.txt")
    assert set(scores) == {"s-BLEU", "d-BLEU/document", "chrF"}
    assert [score["p_value"] for score in scores.values()] == [1, 1, 1]
    assert scores["s-BLEU"]["score"] == score_documents(BASELINE, REFERENCES)["s-BLEU"]["score"]
    (files / "short.txt").write_text(f"{BASELINE[0][0]}\n")
    with pytest.raises(ValueError, match="1 documents to score, but 2 reference documents"):
        score("short.txt", "people.txt")


def test_a_tokenizer_that_cannot_be_used_is_refused_before_the_work(monkeypatch):
    def fails(self, **options):
        raise RuntimeError("install mecab")

    with pytest.raises(ValueError, match=r"tokenize must be one of .*, not foo"):
        ScoreOptions("a.jsonl", "b.jsonl", tokenize="foo")
    monkeypatch.setattr("modeling_gtransformer.evaluation.scores.BLEU.__init__", fails)
    with pytest.raises(ValueError, match="tokenize zh: install mecab"):
        ScoreOptions("a.jsonl", "b.jsonl", tokenize="zh")
