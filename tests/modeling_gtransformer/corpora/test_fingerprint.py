"""Hashes that tell whether a corpus and a translator are still the same."""

import pytest
import torch

from modeling_gtransformer.corpora.fingerprint import hash_of_file, hashes_of_translator
from modeling_gtransformer.runtime.translator import Translator


def test_a_file_is_known_by_its_content(tmp_path):
    for name, content in {"a": b"one\ntwo\n", "b": b"two\none\n", "c": b"one\ntwo\n"}.items():
        (tmp_path / name).write_bytes(content)
    a, b, c = (hash_of_file(str(tmp_path / name)) for name in "abc")
    assert a == c != b


def change_weight(translate):
    with torch.no_grad():
        next(translate.model.parameters())[0, 0] += 1e-3


def change_generation(translate):
    translate.model.generation_config.num_beams = 7


def change_language(translate):
    translate.processor.tgt_lang = "ro_RO"


CHANGES = {"weights": change_weight, "configuration": change_generation, "processor": change_language}


@pytest.mark.parametrize("part", CHANGES)
def test_what_changed_is_named(checkpoint, part):
    translate = Translator(checkpoint).pipeline
    before = hashes_of_translator(translate.model, translate.processor)
    CHANGES[part](translate)
    after = hashes_of_translator(translate.model, translate.processor)
    assert [name for name in before if before[name] != after[name]] == [part]
