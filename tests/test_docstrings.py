"""The examples in docstrings give what they say; those that need a trained model are marked `# doctest: +SKIP`."""

import doctest
import importlib
import re

import pytest
from repository import ROOT


class FencedParser(doctest.DocTestParser):
    """Takes a fence of Markdown as the end of an example, not as a part of what it gives."""

    def parse(self, string, name="<string>"):
        return super().parse(re.sub(r"^\s*```\w*$", "", string, flags=re.MULTILINE), name)


FILES = [file for file in sorted((ROOT / "modeling_gtransformer").rglob("*.py")) if ">>> " in file.read_text("utf-8")]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_examples(file):
    module = importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
    runner = doctest.DocTestRunner()
    for docstring in doctest.DocTestFinder(parser=FencedParser()).find(module):
        # Python itself adds docstrings to some classes.
        if not docstring.name.endswith("__"):
            runner.run(docstring)
    assert not runner.summarize().failed
