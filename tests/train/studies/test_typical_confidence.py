"""How sure a model is of its own translations."""

import pytest
from json_lines import write_json_lines

from modeling_gtransformer import GTransformerProcessor, Translator
from train.studies.typical_confidence import ConfidenceOptions, measure_confidence


def test_the_mean_is_saved_and_no_document_of_this_kind_gets_a_warning(checkpoint, tmp_path):
    documents = [["the cat", "it is old"], ["it sleeps"]]
    corpus = write_json_lines(tmp_path / "dev.jsonl", [{"source": document} for document in documents])
    found = measure_confidence(ConfidenceOptions(checkpoint, [corpus], save=True))
    assert (found["documents"], found["warned"]) == (2, 0) and found["lowest"] <= found["mean"] < 0
    assert GTransformerProcessor.from_pretrained(checkpoint).typical_confidence == found["mean"]
    pairs = [pair for result in Translator(checkpoint, confidence=True)(documents) for pair in result["sentences"]]
    assert min(pair["confidence"] for pair in pairs) <= found["mean"] <= max(pair["confidence"] for pair in pairs)
    assert found["mean"] == pytest.approx(found["lowest"], abs=0.5)
