"""A fine-tuned model keeps the conditions under which its weights were given."""

import json

import pytest

from modeling_gtransformer.training.licenses import base_license, check_license


NLLB = "facebook/nllb-200-distilled-600M"


@pytest.mark.parametrize(
    "license, of_base",
    [
        ("mit", "cc-by-nc-4.0"),
        ("cc-by-4.0", "cc-by-nc-4.0"),
        ("cc-by-nc-4.0", "cc-by-nc-sa-4.0"),
        ("cc0-1.0", "cc-by-4.0"),
        ("mit", "gpl-3.0"),
        ("cc-by-nc-sa-4.0", "cc-by-sa-4.0"),
        ("cc-by-sa-3.0", "cc-by-sa-4.0"),
        ("mit", "openrail"),
        ("mit", "llama2"),
        ("cc-by-nd-4.0", "cc-by-nd-4.0"),
    ],
)
def test_a_laxer_licence_is_refused(license, of_base):
    with pytest.raises(ValueError, match=of_base):
        check_license(license, "base", of_base)


@pytest.mark.parametrize(
    "license, of_base",
    [
        ("cc-by-nc-4.0", "cc-by-nc-4.0"),
        ("cc-by-nc-sa-4.0", "cc-by-nc-4.0"),
        ("apache-2.0", "mit"),
        ("mit", "cc-by-4.0"),
        ("cc-by-sa-4.0", "cc-by-sa-3.0"),
        ("gpl-3.0", "mit"),
        ("openrail", "openrail"),
        ("mit", "cc0-1.0"),
    ],
)
def test_one_that_keeps_the_conditions_is_not(license, of_base):
    check_license(license, "base", of_base)


def test_the_licence_of_a_base_is_found(tmp_path):
    """In its card, in that of its own base, or by the name of a family; without either it is unknown."""
    (tmp_path / "base").mkdir()
    assert base_license(None) is base_license(str(tmp_path / "base")) is base_license("someone/unknown") is None
    (tmp_path / "tuned").mkdir()
    (tmp_path / "tuned" / "arguments.json").write_text(json.dumps({"model_name_or_path": str(tmp_path / "base")}))
    (tmp_path / "base" / "README.md").write_text("---\nlicense: cc-by-nc-sa-4.0\n---\n# Base\n")
    assert base_license(str(tmp_path / "tuned")) == base_license(str(tmp_path / "base")) == "cc-by-nc-sa-4.0"
    (tmp_path / "base" / "README.md").unlink()
    (tmp_path / "base" / "arguments.json").write_text(json.dumps({"model_name_or_path": NLLB}))
    assert base_license(str(tmp_path / "tuned")) == base_license(NLLB) == "cc-by-nc-4.0"
