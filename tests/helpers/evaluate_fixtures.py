"""A place of its own for the code of metrics that `evaluate` loads."""

import sys

import evaluate
import pytest


@pytest.fixture
def evaluate_cache(tmp_path, monkeypatch):
    """`evaluate` imports metrics as a package, which would stay that of the test that imported it first."""

    def forget():
        for name in [name for name in sys.modules if name.split(".")[0] == "evaluate_modules"]:
            del sys.modules[name]

    folder = str(tmp_path / "evaluate")
    monkeypatch.setattr(evaluate.config, "HF_MODULES_CACHE", folder)
    monkeypatch.syspath_prepend(folder)
    forget()
    yield folder
    forget()
