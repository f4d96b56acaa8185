"""Settings of a translation, as they are given on the command line."""

import pytest

from modeling_gtransformer.corpora.translation_settings import TranslationSettings, parse_translation


def test_what_the_command_line_leaves_open_the_model_decides():
    *files, settings, overwrite = parse_translation(["model", "in.jsonl", "out.jsonl", "--segment_tokens", "9"])
    assert not overwrite and files == ["model", "in.jsonl", "out.jsonl"]
    arguments = {"src_lang": None, "tgt_lang": None}
    arguments |= {"segment_tokens": 9, "segment_sentences": None, "carried_sentences": 0}
    assert settings.translation_arguments() == arguments
    for parallel_sentences in (True, False):
        decided = {"max_tokens": 99, "num_beams": 3, "parallel_sentences": parallel_sentences}
        assert TranslationSettings(segment_tokens=9, **decided).translation_arguments() == arguments | decided


@pytest.mark.parametrize("given, value", [([], True), (["true"], True), (["false"], False)])
def test_a_flag_that_the_model_decides_may_be_set_either_way(given, value):
    words = ["model", "in.jsonl", "out.jsonl", "--parallel_sentences", *given]
    *_, settings, _ = parse_translation(words)
    assert settings.parallel_sentences is value


@pytest.mark.parametrize("option", ["num_beams 0", "segment_tokens -5", "max_tokens 0", "chunk_documents 0"])
def test_numbers_out_of_their_range(option, capsys):
    name, value = option.split()
    with pytest.raises(SystemExit) as exit:
        parse_translation(["model", "in.jsonl", "out.jsonl", f"--{name}", value])
    assert exit.value.code == 2 and f"--{name} must be " in capsys.readouterr().err
