"""The Space as it lies in its folder, and what its pages hold."""

import importlib
from xml.etree import ElementTree

import pytest
from repository import ROOT


SPACE = ROOT / "hub_cards" / "space"


@pytest.fixture
def space(monkeypatch):
    """Imports a module of the Space as it lies there, beside the others."""
    monkeypatch.setenv("GRADIO_ANALYTICS_ENABLED", "False")
    monkeypatch.syspath_prepend(str(SPACE))
    return importlib.import_module


@pytest.fixture
def app(space):
    return space("app")


def elements(html, name):
    """Those of a class, of HTML that is well-formed."""
    return [e for e in ElementTree.fromstring(f"<div>{html}</div>").iter() if e.get("class") == name]


def text_of(element):
    return "".join(element.itertext())
