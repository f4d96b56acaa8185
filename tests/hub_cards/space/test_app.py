"""The Space: the server with the limits of its app, and what it installs."""

from configparser import ConfigParser

import pytest
import yaml
from packaging.requirements import Requirement
from repository import ROOT

from hub_cards.space import app


SPACE = ROOT / "hub_cards" / "space"


def test_the_model_of_a_space(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("GTRANSFORMER_MODEL", raising=False)
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    with pytest.raises(SystemExit, match="No model: set the variable GTRANSFORMER_MODEL"):
        app.serve()
    monkeypatch.setenv("GTRANSFORMER_MODEL", str(tmp_path / "none"))
    assert app.serve() == 2  # with limits that the server knows
    assert "none is a folder that does not exist" in capsys.readouterr().err


def test_what_a_space_installs():
    """The card names the app and a Gradio that fits, and versions are those of the package."""
    _, header, _ = (SPACE / "README.md").read_text().split("---\n", 2)
    header = yaml.safe_load(header)
    assert header["sdk"] == "gradio" and (SPACE / header["app_file"]).is_file()
    lines = (SPACE / "requirements.txt").read_text().splitlines()
    requirements = {str(Requirement(line)) for line in lines if not line.startswith("#")}
    package = ConfigParser()
    package.read(ROOT / "setup.cfg")
    extras = package["options.extras_require"]
    known = "\n".join([package["options"]["install_requires"], extras["files"], extras["serve"], extras["page"]])
    missing = {str(Requirement(line)) for line in known.split("\n") if line} - requirements
    # A page needs no corpora, no encodings to be detected and no words to be compared.
    assert {Requirement(line).name for line in missing} == {
        "charset-normalizer",
        "datasets",
        "stop-words",
        "snowballstemmer",
    }
    assert header["sdk_version"] in Requirement(extras["page"].strip()).specifier
