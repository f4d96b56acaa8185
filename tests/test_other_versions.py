"""A checkpoint that one version of Transformers saves with its code translates alike with another.

The tests run where `make test-oldest` or `make test-newest` has made its environment.
"""

import json
import sys
from pathlib import Path

import pytest
from repository import ROOT
from transformers import pipeline


OTHERS = [ROOT / f".venv-{name}" for name in ("oldest", "newest") if (ROOT / f".venv-{name}").is_dir()]
ENVIRONMENTS = [folder / "bin" / "python" for folder in OTHERS if folder.resolve() != Path(sys.prefix).resolve()]
SENTENCES = ["the cat sleeps", "it is old", "die katze"]
TRANSLATE = """
import json
from transformers import pipeline
translate = pipeline(model={folder!r}, trust_remote_code=True)
outputs = [translate({sentences!r}, **search)["translation_text"] for search in ({{}}, {{"num_beams": 3}})]
print(json.dumps(outputs))
"""
SAVE = """
import modeling_gtransformer
from transformers import pipeline
pipeline("document-translation", model={checkpoint!r}).save_pretrained({folder!r})
"""

pytestmark = pytest.mark.skipif(
    not ENVIRONMENTS, reason="needs the environment of make test-oldest or make test-newest"
)


@pytest.mark.parametrize("python", ENVIRONMENTS, ids=lambda path: path.parts[-3])
def test_checkpoints_with_code_are_read_by_both(python, checkpoint, run, tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    translate = pipeline("document-translation", model=checkpoint)
    translate.save_pretrained(here)
    run(SAVE.format(checkpoint=checkpoint, folder=str(there)), str(python), PYTHONPATH=str(ROOT))
    searches: list[dict] = [{}, {"num_beams": 3}]
    expected = [translate(SENTENCES, **search)["translation_text"] for search in searches]
    for folder, interpreter in ((here, {"python": str(python)}), (there, {})):
        code = TRANSLATE.format(folder=str(folder), sentences=SENTENCES)
        assert json.loads(run(code, **interpreter)) == expected
